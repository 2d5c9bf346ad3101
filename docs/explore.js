// SPDX-License-Identifier: MIT
// A roofline that can be hovered, zoomed and filtered, drawn with D3 (version 3, BSD licence) in place of the SVG.
// The SVG stays for printing and where there is no JavaScript.
(function () {
  const SHAPES = { dram: "circle", l2: "square", shared: "triangle-up", "": "diamond" };
  const plain = (v) => (v >= 1000 ? d3.format(",.0f")(v) : String(+v.toPrecision(3)));
  const bytes = (v) => (v >= 1e9 ? plain(v / 1e9) + " GB" : plain(v / 1e6) + " MB");

  function add(parent, tag, properties) {
    return parent.appendChild(Object.assign(document.createElement(tag), properties));
  }

  // Heights near the wanted ones, at least `room` apart, as `spread` in plots/cookbook_plots/figures.py.
  function spread(wanted, room) {
    const groups = [];
    for (const key of d3.range(wanted.length).sort((a, b) => wanted[a] - wanted[b])) {
      groups.push({ keys: [key], sum: wanted[key] });
      while (groups.length > 1) {
        const [before, after] = groups.slice(-2), n = before.keys.length;
        if (before.sum / n + n * room <= after.sum / after.keys.length) break;
        groups.splice(-2, 2, { keys: before.keys.concat(after.keys),
          sum: before.sum + after.sum - n * room * after.keys.length });
      }
    }
    const placed = [];
    for (const { keys, sum } of groups) keys.forEach((key, i) => { placed[key] = sum / keys.length + i * room; });
    return placed;
  }

  // A bar per level, in front of what is in `parent`.
  function bars(parent, ladder, kind, { levels, value, tick, says, label, about }) {
    const row = 26, top = 8, bottom = 40, width = Math.max(300, parent.clientWidth), height = top + bottom + row * levels.length;
    const svg = d3.select(parent).insert("svg", ":first-child").attr({ width, height, role: "img", class: kind })
      .attr("aria-label", ladder.ladder + ": " + about + " on " + ladder.device);
    const rows = svg.selectAll("a.bar").data(levels).enter().append("a").attr("class", "bar")
      .attr("xlink:href", (level) => level.link || null)
      .attr("transform", (level, i) => `translate(0,${top + row * i})`);
    const names = rows.append("text").attr({ y: row / 2 + 4, "text-anchor": "end" })
      .text((level) => (level.index === undefined ? "" : level.index + " · ") + level.name);
    const left = 8 + Math.ceil(d3.max(names[0], (name) => name.getComputedTextLength())), right = 118;
    const x = d3.scale.linear().domain([0, d3.max(levels, value)]).range([left, Math.max(left + 40, width - right)]);
    names.attr("x", left - 8);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`)
      .call(d3.svg.axis().scale(x).orient("bottom").ticks(width < 480 ? 3 : 6).tickFormat((v) => tick(v)));
    svg.append("text").attr({ class: "label", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }).text(label);
    rows.append("rect").attr({ x: left, y: 3, height: row - 6 }).attr("width", (level) => x(value(level)) - left);
    rows.append("text").attr("class", "value").attr({ y: row / 2 + 4 }).attr("x", (level) => x(value(level)) + 6).text(says);
  }

  // On a phone the ladders' figure would be cut off: bars that fit stand in its place.
  function phone(box, ladders) {
    for (const ladder of ladders.filter((one) => one.device === ladders[0].device).reverse()) {
      const part = document.createElement("div");
      part.className = "explore explore-chart on-phone";
      box.insertBefore(part, box.firstChild);
      bars(part, ladder, "speed", {
        levels: ladder.levels.concat(ladder.libraries), value: (level) => level.speed, tick: plain,
        says: (level) => plain(level.speed) + " · " + level.time, label: `${ladder.ladder}, ${ladder.size}: ${ladder.unit}`,
        about: ladder.unit });
    }
    box.classList.add("has-phone");
  }

  function explore(box) {
    const ladders = JSON.parse(box.querySelector("script.roofline-data").textContent);
    if (!ladders.length) return;
    const images = [...box.querySelectorAll("a.only-light, a.only-dark")];
    const panel = document.createElement("div");
    panel.className = "explore";
    box.insertBefore(panel, box.firstChild);
    const bar = add(panel, "div", { className: "explore-bar" });
    const choice = add(bar, "select", { title: "Which ladder, on which GPU" });
    const elsewhere = (one) => (one.device === ladders[0].device ? "" : " · " + one.device);
    ladders.forEach((one, i) =>
      add(choice, "option", { value: i, textContent: one.ladder + " · " + one.size + elsewhere(one) }));
    const same = ladders.filter((one) => one.unit === ladders[0].unit && !elsewhere(one));
    ladders.forEach((one, i) => {
      if (one.levels.some((level) => level.energy)) {
        add(choice, "option", { value: "energy" + i, textContent: one.ladder + " · energy" + elsewhere(one) });
      }
    });
    if (same.length > 1) add(choice, "option", { value: "all", textContent: "all ladders in " + same[0].unit });
    const button = (text, title) => add(bar, "button", { type: "button", textContent: text, title });
    const nearer = button("+", "Zoom in"), farther = button("−", "Zoom out"), whole = button("Reset", "Show everything");
    const swap = button("As a figure", "Show the figure for print");
    const chart = add(panel, "div", { className: "explore-chart" });
    const tip = add(chart, "div", { className: "explore-tip", hidden: true });
    tip.setAttribute("role", "status");
    const note = add(panel, "div", { className: "explore-note" });
    const MARK = { dram: "●", l2: "■", shared: "▲" };
    const D3 = "Drawn with <a href='https://d3js.org'>D3</a> (BSD licence).";
    const looks = (dots) => [["full: measured by ncu", "ncu"], ["open: counted", ""]].filter(([, of]) =>  // only what is there
      dots.some(({ dot }) => dot.origin && (dot.origin === "ncu") === (of === "ncu"))).map(([text]) => text).join(", ");
    const legend = (memories, dots) => d3.values(memories).map((one) =>
      `<span class=${one.memory}>${MARK[one.memory]}</span> ${one.name} ${plain(one.gbps)} GB/s`).join(", ") +
      (looks(dots) && "; " + looks(dots)) + ". Hover or tap a dot, click it for its level; drag to move, Ctrl and wheel to zoom. " + D3;
    let energy = null;  // the ladder whose energy is shown
    let shown = ladders.slice(0, 1), zoom = null, redraw = null, described = [], firstTap = false, hiding = 0;

    function describe(level, dot, ladder, brief) {
      described.push(level);
      add(tip, "strong", { textContent: (level.index === undefined ? "" : level.index + " · ") + level.name });
      const line = (text) => text && add(tip, "div", { textContent: text });
      line(level.time + ", " + plain(level.speed) + " " + ladder.unit + (level.roof ? ", " + level.roof : ""));
      if (dot && dot.bytes && !brief) {
        const roof = ladder.memories.find((one) => one.memory === dot.memory);
        line((roof ? roof.name : dot.memory) + ": " + bytes(dot.bytes) + " (" + dot.origin + ")");
      }
      if (!brief) {
        line(level.bound);
        line(level.changed);
      }
      if (level.link) add(tip, "a", { href: level.link, textContent: "to this level" });
    }

    function place(event) {
      const area = chart.getBoundingClientRect(), at = event.target.getBoundingClientRect();
      tip.hidden = false;
      const left = at.left - area.left + 14, room = area.width - tip.offsetWidth - 4;
      tip.style.left = Math.max(0, Math.min(left, room)) + "px";
      const below = at.bottom - area.top + 8;
      tip.style.top = (below + tip.offsetHeight > area.height ? Math.max(0, at.top - area.top - tip.offsetHeight - 8)
        : below) + "px";
    }

    // Joules per launch.
    function drawEnergy() {
      const joules = (v) => (v === 0 ? "0" : v >= 1 ? plain(v) + " J" : v >= 1e-3 ? plain(v * 1e3) + " mJ" : plain(v * 1e6) + " µJ");
      bars(chart, energy, "energy", {
        levels: energy.levels.filter((level) => level.energy), value: (level) => level.energy.joules, tick: joules,
        says: (level) => joules(level.energy.joules) + " · " + plain(Math.round(level.energy.watts)) + " W",
        label: "energy per launch", about: "joules per launch" });
      note.innerHTML = "Energy of the whole GPU per launch, idle power included, launches back to back; NVML's counter. " +
        "Watts: the mean power meanwhile. " + D3;
    }

    function draw() {
      chart.querySelectorAll("svg").forEach((old) => old.remove());
      tip.hidden = true;
      [nearer, farther, whole].forEach((one) => { one.hidden = Boolean(energy); });
      if (energy) { drawEnergy(); return; }
      const width = Math.max(300, chart.clientWidth), height = Math.round(Math.max(340, Math.min(540, 0.6 * width)));
      const left = 56, right = 14, top = 12, bottom = 42;
      const dots = [], stars = [], memories = {}, ceilings = {};
      for (const ladder of shown) {
        for (const level of ladder.levels) for (const dot of level.dots) dots.push({ ladder, level, dot });
        for (const library of ladder.libraries) stars.push({ ladder, level: library });
        for (const one of ladder.memories) memories[one.memory] = one;
        for (const one of ladder.ceilings) ceilings[one.name] = one;
      }
      note.innerHTML = legend(memories, dots);
      const flops = shown[0].flops, slope = (one) => one.gbps * (flops ? 1e-3 : 1);
      const xs = dots.map((d) => d.dot.x).concat(shown.map((one) => one.algorithm));
      const ys = dots.map((d) => d.level.speed).concat(stars.map((d) => d.level.speed), d3.values(ceilings).map((c) => c.value));
      const x = d3.scale.log().domain([d3.min(xs) / 2, d3.max(xs) * 2.5]).range([left, width - right]);
      const y = d3.scale.log().domain([d3.min(ys) / 2, d3.max(ys) * 2]).range([height - bottom, top]);
      const svg = d3.select(chart).insert("svg", ":first-child").attr({ width, height, role: "img" })
        .attr("aria-label", shown.map((one) => one.ladder).join(", ") + " under the roofs of " + shown[0].device);
      const id = "clip-" + box.id;
      svg.append("clipPath").attr("id", id).append("rect")
        .attr({ x: left, y: top, width: width - left - right, height: height - top - bottom });
      svg.append("rect").attr({ class: "area", x: left, y: top, width: width - left - right, height: height - top - bottom });
      const narrow = width < 480, labelled = narrow ? /^[15]/ : /^[125]/;
      const ticks = d3.svg.axis().tickFormat((v) => (labelled.test(v.toExponential()) ? plain(v) : ""));
      const xAxis = svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - bottom})`);
      const yAxis = svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`);
      svg.append("text").attr({ class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" })
        .text(flops ? "FLOP per byte" : "bytes the problem needs, per byte moved");
      svg.append("text").attr({ class: "label", transform: `translate(13,${(top + height - bottom) / 2}) rotate(-90)`,
        "text-anchor": "middle" }).text(shown[0].unit);
      const body = svg.append("g").attr("clip-path", `url(#${id})`);
      const lines = body.selectAll("path.roof").data(d3.values(memories)).enter().append("path")
        .attr("class", (one) => "roof " + one.memory);
      lines.append("title").text((one) => `${one.name}: ${plain(one.gbps)} GB/s`);
      const names = body.selectAll("text.roof").data(d3.values(memories)).enter().append("text")
        .attr("class", (one) => "roof " + one.memory).text((one) => `${one.name} ${plain(one.gbps)} GB/s`);
      const tops = body.selectAll("g.ceiling").data(d3.values(ceilings)).enter().append("g").attr("class", "ceiling");
      tops.append("line");
      tops.append("text").text((one) => `${one.name} ${plain(one.value)}` + (narrow ? "" : " " + shown[0].unit));
      const own = body.selectAll("line.algorithm").data(shown).enter().append("line").attr("class", "algorithm");
      const holders = body.selectAll("line.holder").data(d3.merge(shown.map((one) => one.levels))).enter().append("line")
        .attr("class", "holder");
      const marks = body.selectAll("a.mark").data(dots).enter().append("a").attr("class", "mark")
        .attr("xlink:href", (d) => d.level.link || null).attr("tabindex", 0);
      marks.append("path").attr("class", (d) => `dot ${d.dot.memory} ${d.dot.origin === "ncu" || !d.dot.origin ? "full" : "open"}`
        + (d.dot.origin === "at most" ? " faint" : ""))
        .attr("d", d3.svg.symbol().size(78).type((d) => SHAPES[d.dot.memory]));
      const first = dots.filter((d) => d.dot === d.level.dots[0]);
      const numbered = marks.filter((d) => first.includes(d));
      numbered.append("line");
      numbered.append("text").attr("x", 20).text((d) => d.level.index);
      const others = body.selectAll("g.library").data(stars).enter().append("g").attr({ class: "library", tabindex: 0 });
      others.append("path").attr("d", d3.svg.symbol().size(70).type("cross"));
      others.append("text").attr({ x: -8, y: 4, "text-anchor": "end" }).text((d) => d.level.name);

      // Dots lie over each other: what is described are all levels here, in full the one that is touched.
      const here = (d) => [d, ...dots.filter((other) => d.dot && other.dot.memory === d.dot.memory && other.level !== d.level
        && Math.hypot(x(other.dot.x) - x(d.dot.x), y(other.level.speed) - y(d.level.speed)) < 12)];
      const show = (d) => {
        clearTimeout(hiding);  // of the dot that was left
        tip.replaceChildren();
        described = [];
        for (const one of here(d)) describe(one.level, one.dot, one.ladder, one !== d);
        place(d3.event);
      };
      for (const some of [marks, others]) {
        some.on("mouseenter", show).on("focus", show).on("mouseleave", () => {
          hiding = setTimeout(() => { if (!tip.matches(":hover")) tip.hidden = true; }, 250);
        }).on("touchstart", (d) => { firstTap = tip.hidden || described[0] !== d.level; });
      }
      marks.on("click", (d) => {
        if (d3.event.defaultPrevented) return;
        if (firstTap) d3.event.preventDefault();  // it shows; the second one follows the link
        firstTap = false;
      });

      redraw = () => {
        const [low, high] = x.domain();
        xAxis.call(ticks.scale(x).orient("bottom").ticks(6));
        yAxis.call(ticks.scale(y).orient("left").ticks(6));
        const highest = d3.max(d3.values(ceilings), (one) => one.value);
        const end = (one) => (highest ? Math.min(high, highest / slope(one)) : high);
        lines.attr("d", (one) => (end(one) > low ? `M${x(low)},${y(slope(one) * low)}L${x(end(one))},${y(slope(one) * end(one))}` : null));
        names.attr("transform", (one) => {
          const start = Math.max(low, y.domain()[0] / slope(one)) * 1.1;
          const rise = Math.atan2(y(slope(one) * start * 2) - y(slope(one) * start), x(start * 2) - x(start)) * 180 / Math.PI;
          return `translate(${x(start)},${y(slope(one) * start) - 5}) rotate(${rise})`;
        }).style("display", (one) => (Math.max(low, y.domain()[0] / slope(one)) * 3 < end(one) ? null : "none"));
        tops.attr("transform", (one) => `translate(0,${y(one.value)})`);
        tops.select("line").attr({ x1: left, x2: width - right });
        const ridge = (one) => d3.max(d3.values(memories), (memory) => one.value / slope(memory)) || low;
        // On the side of its line where fewer dots are.
        const beside = (one, from, to) => first.filter((d) => {
          const off = y(d.level.speed) - y(one.value);
          return off > from && off < to;
        }).length;
        tops.select("text").attr("y", (one) => (beside(one, 0, 20) < beside(one, -20, 0) ? 13 : -4)).attr("x", function (one) {
          return Math.max(left + 6, Math.min(x(ridge(one)) + 8, width - right - this.getComputedTextLength() - 4));
        });
        own.attr({ y1: top, y2: height - bottom }).attr("x1", (one) => x(one.algorithm)).attr("x2", (one) => x(one.algorithm));
        holders.attr("x1", (d) => x(d3.min(d.dots, (dot) => dot.x))).attr("x2", (d) => x(d3.max(d.dots, (dot) => dot.x)))
          .attr("y1", (d) => y(d.speed)).attr("y2", (d) => y(d.speed));
        marks.attr("transform", (d) => `translate(${x(d.dot.x)},${y(d.level.speed)})`);
        const heights = spread(first.map((d) => y(d.level.speed)), 13);
        const shift = (d) => heights[first.indexOf(d)] - y(d.level.speed);
        numbered.select("text").attr("y", (d) => shift(d) + 4);
        numbered.select("line").attr({ x1: 7, x2: 18 }).attr("y2", shift);
        others.attr("transform", (d) => `translate(${x(d.ladder.algorithm)},${y(d.level.speed)})`);
      };
      zoom = d3.behavior.zoom().x(x).y(y).scaleExtent([0.5, 30]).on("zoom", () => { tip.hidden = true; redraw(); });
      svg.call(zoom);
      // A wheel or a finger alone scrolls the page.
      const wheel = svg.on("wheel.zoom"), touch = svg.on("touchstart.zoom");
      svg.on("wheel.zoom", function () {
        if (d3.event.ctrlKey || d3.event.metaKey) wheel.apply(this, arguments);
      });
      svg.on("touchstart.zoom", function () {
        if (d3.event.touches.length > 1) touch.apply(this, arguments);
      });
      redraw();
    }

    function by(factor) {
      const svg = chart.querySelector("svg"), old = zoom.scale(), scale = Math.max(0.5, Math.min(30, old * factor));
      const at = [svg.clientWidth / 2, svg.clientHeight / 2], shift = zoom.translate();
      zoom.scale(scale).translate(at.map((c, i) => c + (shift[i] - c) * scale / old));
      redraw();
    }
    function figure(on) {
      images.forEach((image) => { image.style.display = on ? "" : "none"; });
      panel.classList.toggle("explore-off", on);
      swap.textContent = on ? "Explore" : "As a figure";
      if (!on) draw();
    }
    nearer.onclick = () => by(1.5);
    farther.onclick = () => by(1 / 1.5);
    whole.onclick = draw;
    swap.onclick = () => figure(!panel.classList.contains("explore-off"));
    choice.onchange = () => {
      energy = choice.value.startsWith("energy") ? ladders[choice.value.slice(6)] : null;
      if (!energy) shown = choice.value === "all" ? same : [ladders[choice.value]];
      draw();
    };
    let last = 0;
    window.addEventListener("resize", () => {
      if (chart.clientWidth !== last && !panel.classList.contains("explore-off")) draw();
      last = chart.clientWidth;
    });
    figure(false);
    last = chart.clientWidth;
  }

  document.querySelectorAll("div.figures").forEach((box) => {
    const data = box.querySelector("script.roofline-data");
    if (!data) return;
    explore(box);
    const ladder = document.getElementById(box.id.replace("roofline", "ladder"));
    if (ladder && ladder !== box && window.innerWidth < 768) phone(ladder, JSON.parse(data.textContent));
  });
  // Figures change the height of the page: a link that was followed leads where it did.
  if (location.hash) {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) target.scrollIntoView();
  }
})();
