// SPDX-License-Identifier: MIT
// Light or dark: as the system is, until the reader chooses.
(function () {
  const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement.classList;
  let store = {};  // where storage is blocked the choice lasts as long as the page
  try { store = localStorage; } catch { /* see above */ }
  function apply() {
    const dark = store.scheme ? store.scheme === "dark" : system.matches;
    root.toggle("dark-mode", dark);
    root.toggle("light-mode", !dark);
  }
  apply();
  system.addEventListener("change", apply);
  window.addEventListener("storage", apply);  // chosen in another tab
  window.addEventListener("DOMContentLoaded", () => {
    document.getElementById("scheme").addEventListener("click", () => {
      store.scheme = root.contains("dark-mode") ? "light" : "dark";
      apply();
    });
    const top = document.getElementById("top"), at = top.querySelector(".at");
    if (at) top.scrollTop = at.offsetTop - top.clientHeight / 2;
  });
})();

// What Doxygen's lists of files and classes call to fold a folder, all below a level, or inherited members.
(function () {
  const depth = (row) => row.id.split("_").length - 2;
  function mark(row, open) {
    const [arrow, icon] = [row.querySelector(".arrow"), row.querySelector(".iconfopen, .iconfclosed")];
    if (arrow) arrow.textContent = open ? "▼" : "►";
    if (icon) icon.className = open ? "iconfopen" : "iconfclosed";
  }
  window.toggleFolder = (id) => {
    const [own, ...below] = document.querySelectorAll(`tr[id^="row_${id}"]`);
    const shows = below.every((row) => row.hidden);
    mark(own, shows);
    for (const row of below) {
      row.hidden = !shows || depth(row) > depth(own) + 1;
      mark(row, false);
    }
  };
  window.toggleLevel = (level) => {
    for (const row of document.querySelectorAll("table.directory tr")) {
      row.hidden = depth(row) > level;
      mark(row, depth(row) < level);
    }
  };
  window.toggleInherit = (name) => {
    const rows = document.querySelectorAll(`tr.inherit.${CSS.escape(name)}`), shows = rows[0].style.display !== "table-row";
    for (const row of rows) row.style.display = shows ? "table-row" : "none";
    const image = document.querySelector(`tr.inherit_header.${CSS.escape(name)} img`);
    image.src = image.src.replace(/\w+\.png$/, shows ? "open.png" : "closed.png");
  };
})();

// A link to a level opens the listings under it.
(function () {
  function openTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    let node = target.closest("h1, h2, h3") || target.parentElement;
    for (node = node && node.nextElementSibling; node && !/^H[1-3]$/.test(node.tagName); node = node.nextElementSibling) {
      if (node.tagName === "DETAILS" && !node.querySelector("pre.report")) {
        node.open = true;
        break;
      }
    }
  }
  window.addEventListener("hashchange", openTarget);
  window.addEventListener("DOMContentLoaded", openTarget);
})();

// Rooflines that can be explored, and pictures of requests: their scripts are loaded only where a page has the data.
(function () {
  function load(names) {
    if (!names.length) return;
    const script = document.createElement("script");
    script.src = names[0];
    script.onload = () => load(names.slice(1));
    document.head.appendChild(script);
  }
  window.addEventListener("DOMContentLoaded", () => {
    if (document.querySelector("script.roofline-data")) load(["d3.min.js", "explore.js"]);
    if (document.querySelector("script.request-data, script.twin-data")) load(["lanes.js", "twins.js"]);
  });
})();

// The search box looks through the text of every page.
// The index is a script (search_index.js), loaded when the box is first used, so it works from disk.
(function () {
  const isField = (event) => event.target instanceof Element && event.target.id === "MSearchField";
  // "ping-pong" finds ping_pong, "partial tiles" a partial tile, "padding" what is padded.
  const stem = (word) => word.replace(/(?<=..)ing$/, "").replace(/(?<=..[^s])s$/, "");
  const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}.:#+]+/u).filter(Boolean).map(stem);
  let panel = null, wanted = "", loading = false;

  function load() {
    if (loading) return;
    loading = true;
    const script = document.createElement("script");
    script.src = "search_index.js";
    script.onload = () => { if (wanted) show(wanted); };
    document.head.appendChild(script);
  }

  // Every word must occur. In headings, and in bold, as a word is where it is introduced, it counts more than in the text;
  // at the start of a word more than within.
  function score(entry, terms) {
    let sum = 0;
    for (const term of terms) {
      const at = (text) => {
        const place = text.toLowerCase().indexOf(term);
        return place < 0 ? 0 : place === 0 || /[^\p{L}\p{N}]/u.test(text[place - 1]) ? 2 : 1;
      };
      const found = 6 * at(entry[1]) + 2 * at(entry[2]) + at(entry[3]) + 6 * at(entry[4] || "");
      if (!found) return 0;
      sum += found;
    }
    return sum;
  }

  function marked(parent, text, terms) {
    const pattern = new RegExp("(" + terms.map((t) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "ig");
    text.split(pattern).forEach((part, i) => {
      const node = i % 2 ? document.createElement("mark") : document.createTextNode(part);
      if (i % 2) node.textContent = part;
      parent.appendChild(node);
    });
  }

  function show(query) {
    wanted = query;
    const terms = words(query);
    if (!panel) {
      panel = document.createElement("div");
      panel.id = "cookbook-results";
      panel.setAttribute("role", "listbox");
      panel.setAttribute("aria-label", "Search results");
      document.body.appendChild(panel);
    }
    panel.replaceChildren();
    panel.hidden = terms.length === 0;
    if (panel.hidden || !window.cookbookIndex) return load();
    const box = document.getElementById("MSearchBox").getBoundingClientRect();
    panel.style.top = box.bottom + 6 + "px";
    panel.style.left = Math.max(8, Math.min(box.left, window.innerWidth - 8 - panel.offsetWidth)) + "px";
    const all = window.cookbookIndex.map((entry) => [score(entry, terms), entry]).filter(([points]) => points > 0)
      .sort((a, b) => b[0] - a[0]);
    // What explains a word stands before names of the API that contain it.
    const isPage = ([, entry]) => entry.length > 4;
    const found = [...all.filter(isPage).slice(0, 16), ...all.filter((one) => !isPage(one)).slice(0, 8)];
    if (!found.length) panel.textContent = "Nothing found";
    for (const [, [url, heading, page, text]] of found) {
      const link = document.createElement("a");
      link.href = url;
      const title = document.createElement("strong");
      marked(title, heading, terms);
      link.append(title);
      if (page !== heading) link.append(" · " + page);
      const place = Math.min(...terms.map((t) => text.toLowerCase().indexOf(t)).filter((i) => i >= 0));
      if (Number.isFinite(place)) {
        const piece = document.createElement("span");
        const from = Math.max(0, place - 50);
        marked(piece, (from ? "..." : "") + text.slice(from, place + 110), terms);
        link.append(piece);
      }
      panel.appendChild(link);
    }
  }

  function hide() {
    wanted = "";
    if (panel) panel.hidden = true;
  }

  function move(step) {
    const links = [...panel.querySelectorAll("a")];
    const next = links.indexOf(document.activeElement) + step;
    if (next < 0) document.getElementById("MSearchField").focus();
    else if (links.length) links[Math.min(next, links.length - 1)].focus();
  }

  for (const kind of ["keydown", "input", "focusin", "click"]) {
    window.addEventListener(kind, (event) => {
      const open = panel && !panel.hidden;
      if (kind === "focusin" && isField(event)) load();
      else if (kind === "input" && isField(event)) show(event.target.value);
      else if (kind === "click" && open && !isField(event) && !panel.contains(event.target)) hide();
      else if (kind === "keydown" && open && (isField(event) || panel.contains(event.target))) {
        if (event.key === "Escape") hide();
        else if (event.key === "ArrowDown") move(1);
        else if (event.key === "ArrowUp") move(-1);
        else if (event.key === "Enter" && isField(event)) {
          const first = panel.querySelector("a");
          if (first) location.href = first.href;
        } else return;
        event.preventDefault();
      }
    });
  }
  window.addEventListener("pagehide", hide);
})();

// Figures and tables that are wider than the page fade out where they go on.
(function () {
  function fade(box) {
    box.classList.toggle("goes-on", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  }
  window.addEventListener("load", () => {
    const boxes = [...document.querySelectorAll("div.figures, .contents table.markdownTable")];
    for (const box of boxes) {
      box.addEventListener("scroll", () => fade(box), { passive: true });
      new ResizeObserver(() => fade(box)).observe(box);
      for (const image of box.querySelectorAll("img")) image.addEventListener("load", () => fade(box));
    }
  });
})();
