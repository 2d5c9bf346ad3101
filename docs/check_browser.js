// SPDX-License-Identifier: MIT
// What check_browser.py asks of a page.

// Text whose contrast with the nearest background is under 3 : 1 (large text's bound of WCAG 2).
function faint() {
  const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const linear = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const found = [];
  const walker = document.createTreeWalker(document.querySelector("div.contents"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(), seen = 0; node && seen < 4000; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest(".MathJax, .no, script")) continue;
    seen += 1;
    const colour = parse(getComputedStyle(element).color);
    let back = element, shade = [];
    for (; back; back = back.parentElement) {
      shade = parse(getComputedStyle(back).backgroundColor);
      if (shade.length === 3 || shade[3] > 0.5) break;
    }
    if (!back) shade = parse(getComputedStyle(document.body).backgroundColor);
    const [a, b] = [luminance(colour), luminance(shade)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 3) found.push(node.data.trim().slice(0, 40) + ": " + colour + " on " + shade);
  }
  return [...new Set(found)].slice(0, 3);
}

// The addresses of images that are shown and could not be loaded.
async function undrawn() {
  const images = [...document.images].filter((image) => image.checkVisibility());
  for (const image of images) image.loading = "eager";
  await Promise.all(images.map((image) => image.complete || new Promise((done) => {
    image.onload = image.onerror = done;
    setTimeout(done, 5000);
  })));
  return images.filter((image) => image.naturalWidth === 0).map((image) => image.src);
}

// Whether the section whose heading has the anchor `id` shows a level's source.
function showsSource(id) {
  let node = document.getElementById(id).closest("h1, h2, h3").nextElementSibling;
  while (node && !node.querySelector("pre.level-source") && !/^H/.test(node.tagName)) node = node.nextElementSibling;
  return Boolean(node && node.querySelector("pre.level-source") && node.open);
}

// Labels that the frame of a roofline, or of bars, cuts off.
function cut() {
  return [...document.querySelectorAll(".explore .ceiling text, .explore .bar text")].filter((text) => {
    const svg = text.closest("svg"), box = text.getBoundingClientRect();
    const frame = (svg.querySelector(".area") || svg).getBoundingClientRect();
    return box.width && (box.right > frame.right + 0.5 || box.left < frame.left - 0.5);
  }).map((text) => text.textContent);
}

// Characters on each line of a paragraph, as it is laid out.
function lineLengths(node) {
  const counts = new Map(), walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    for (const word of text.data.matchAll(/\S+\s*/g)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].trimEnd().length);
      const box = range.getBoundingClientRect(), line = Math.round(box.bottom / 8);  // code in a line is a little lower
      if (box.width) counts.set(line, (counts.get(line) || 0) + word[0].trimEnd().length + /\s$/.test(word[0]));
    }
  }
  return [...counts.values()];
}

// Paragraphs with more than 75 characters per line, on average over their full lines.
function long(most = 75) {
  const text = document.querySelectorAll(".textblock > p, .textblock > dl > dd, .textblock > ul > li, .textblock > ol > li");
  return [...text].filter((node) => {
    const full = lineLengths(node).slice(0, -1);
    return full.length > 1 && full.reduce((a, b) => a + b) / full.length > most;
  }).slice(0, 3).map((node) => node.innerText.slice(0, 40));
}

// What the legends of live pictures have and nothing in them is drawn with.
function idle() {
  const look = (rect) => rect.getAttribute("fill") || rect.getAttribute("class");
  return [...document.querySelectorAll(".twin svg")].flatMap((svg) => {
    const drawn = new Set([...svg.querySelectorAll("g:not(.swatch) > rect")].map(look));
    return [...svg.querySelectorAll("g.swatch > rect")].map(look).filter((one) => !drawn.has(one));
  });
}

// [level, place among all dots] of the first dot of each level of a roofline.
function dots() {
  const names = d3.selectAll(".explore a.mark").data().map((one) => one.level.name);
  return [...new Set(names)].map((name) => [name, names.indexOf(name)]);
}

// Where the document of every page finds them.
window.check = { cut, dots, faint, idle, long, undrawn, showsSource };
