// SPDX-License-Identifier: MIT
// The live twin of a picture of one request: hover or tap a lane, or step with the arrow keys, to see its address and
// what serves it; where lanes have one stride, a slider changes it, and shared memory can be swizzled. Sectors and wavefronts are computed as in
// plots/cookbook_plots/pictures/requests.py. The SVG stays for printing and where there is no JavaScript.
(function () {
  const NS = "http://www.w3.org/2000/svg", LANES = 32, SECTOR = 32, LINE = 128, WORD = 4, BANKS = 32;
  const WIDTH = 380, LEFT = 8, HIGH = 12.5, SCALE = 12, MOST_ROWS = 40;
  const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"];
  const RAMP = ["#3F6FB5", "#21918C", "#5EC962", "#F3D02F", "#E98A15", "#C2461B"];
  const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
  const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  function colours(count) {
    if (count <= PALETTE.length) return PALETTE.slice(0, count);
    return range(0, count).map((i) => {
      const at = (i / (count - 1)) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
      const [from, to] = [parts(RAMP[low]), parts(RAMP[low + 1])];
      return "#" + from.map((a, k) => Math.round(a + (at - low) * (to[k] - a)).toString(16).padStart(2, "0")).join("");
    });
  }

  function on(fill) {
    const linear = parts(fill).map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 ? "#000" : "#fff";
  }

  // --- what a request costs ---
  const active = (r) => range(0, LANES).filter((lane) => r.addresses[lane] !== null);

  function sectorsOf(r) {  // sector -> its used bytes
    const used = new Map();
    for (const lane of active(r)) {
      for (const byte of range(r.addresses[lane], r.addresses[lane] + r.bytes)) {
        const sector = Math.floor(byte / SECTOR);
        if (!used.has(sector)) used.set(sector, new Set());
        used.get(sector).add(byte);
      }
    }
    return used;
  }

  function phasesOf(r) {
    const size = r.bytes > 8 ? 8 : r.bytes > 4 ? 16 : LANES, groups = [];
    const there = (lane) => r.addresses[lane] !== null;
    const merge = (lanes) => [1, 2].some((far) => lanes.every((lane) => !there(lane) || !there(lane ^ far) ||
      r.addresses[lane] === r.addresses[lane ^ far]));
    const step = size < LANES && r.rule === "load_store" ? 2 * size : size;
    for (let first = 0; first < LANES; first += step) {
      const lanes = range(first, first + step);
      if (step === size || merge(lanes)) groups.push(lanes);
      else groups.push(lanes.slice(0, size), lanes.slice(size));
    }
    return groups.map((lanes) => lanes.filter(there)).filter((lanes) => lanes.length);
  }

  function deliveriesOf(r) {
    const found = [];
    let first = 0;
    for (const phase of phasesOf(r)) {
      const words = new Map(), depth = Array(BANKS).fill(0);
      for (const lane of phase) {
        const last = Math.floor((r.addresses[lane] + r.bytes - 1) / WORD);
        for (const word of range(Math.floor(r.addresses[lane] / WORD), last + 1)) {
          const key = r.rule === "atomic" ? `${word}/${lane}` : word;
          if (!words.has(key)) {
            words.set(key, { word, wavefront: first + depth[word % BANKS]++, lanes: [] });
            found.push(words.get(key));
          }
          words.get(key).lanes.push(lane);
        }
      }
      first += Math.max(...depth);
    }
    return found;
  }

  function costOf(r) {
    if (r.memory === "global") {
      const units = sectorsOf(r).size, distinct = new Set(active(r).map((lane) => r.addresses[lane])).size;
      return { units, ideal: Math.min(units, Math.ceil((distinct * r.bytes) / SECTOR)) };
    }
    return { units: 1 + Math.max(...deliveriesOf(r).map((d) => d.wavefront)), ideal: phasesOf(r).length };
  }

  // --- the drawing ---
  function add(parent, tag, properties, svg) {
    const node = svg ? document.createElementNS(NS, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (svg && name !== "textContent") node.setAttribute(name, value);
      else node[name] = value;
    }
    return parent.appendChild(node);
  }

  function live(box, recorded) {
    const unit = recorded.memory === "global" ? "sector" : "wavefront", lanes = active(recorded);
    const counted = costOf(recorded);
    if (counted.units !== recorded.counted || counted.ideal !== recorded.ideal) {
      console.error(`${recorded.where}: ${counted.units} ${unit}s here, ${recorded.counted} counted`);
      return;  // the picture stays
    }
    const panel = add(box, "div", { className: "lanes" });
    const title = add(panel, "strong", {});
    add(panel, "code", { textContent: recorded.source });
    let stride = recorded.addresses[lanes[1]] - recorded.addresses[lanes[0]], at = null;
    const linear = lanes.length > 1 && stride > 0 && stride % Math.min(recorded.bytes, WORD) === 0 &&
      lanes.every((lane) => recorded.addresses[lane] === recorded.addresses[lanes[0]] + (lane - lanes[0]) * stride);
    let request = recorded, swizzled = false;
    // A word, or as much as a lane reads, goes to the place in its line of 128 bytes that the XOR with the line's number gives.
    const swizzle = (address) => address ^ (Math.floor(address / LINE) % (LINE / recorded.bytes)) * recorded.bytes;
    function change() {
      const moved = recorded.addresses.map((address, lane) => (address === null || !linear ? address
        : recorded.addresses[lanes[0]] + (lane - lanes[0]) * stride));
      request = { ...recorded, addresses: moved.map((address) => (address === null || !swizzled ? address : swizzle(address))) };
      draw();
    }
    if (linear && stride <= 256) {
      const label = add(panel, "label", { textContent: "bytes between lanes " });
      const step = Math.max(recorded.bytes, WORD);
      const slider = add(label, "input", { type: "range", min: 0, max: 256, step, value: stride });
      const value = add(label, "output", { value: stride });
      slider.addEventListener("input", () => {
        stride = +slider.value;
        value.value = stride;
        change();
      });
    }
    if (unit === "wavefront" && recorded.bytes >= WORD && recorded.rule !== "atomic") {
      const label = add(panel, "label", {}), choice = add(label, "input", { type: "checkbox" });
      label.append(" XOR the place in a line with the line's number");
      choice.addEventListener("change", () => {
        swizzled = choice.checked;
        change();
      });
    }
    const svg = add(panel, "svg", { tabindex: 0, role: "img", "aria-label": "Lanes of one request; arrow keys step" }, true);
    const says = add(panel, "div", { className: "lanes-says" });
    says.setAttribute("role", "status");

    function cell(x, y, width, lane, fill, text) {
      const group = add(svg, "g", { class: "lane", "data-lane": lane }, true);
      add(group, "rect", { x, y, width, height: HIGH, fill }, true);
      const size = Math.min(width < 20 ? 8.2 : 10.5, 1.06 * width);
      if (text.length * size * 0.62 > width + 1) return;
      add(group, "text", { x: x + width / 2, y: y + HIGH / 2 + 0.36 * size, "font-size": size, fill: on(fill), textContent: text }, true);
    }

    function draw() {
      const { units, ideal } = costOf(request), global = unit === "sector", gap = global ? 3 : 0;
      title.textContent = `${plural(lanes.length, "lane")} x ${plural(request.bytes, "byte")}: ${plural(units, unit)} (ideal: ${ideal})`;
      const perByte = (WIDTH - 2 * LEFT - (LINE / SECTOR - 1) * gap) / LINE;
      const xOf = (byte) => LEFT + byte * perByte + Math.floor(byte / SECTOR) * gap;
      const deliveries = global ? [] : deliveriesOf(request), fills = global ? [PALETTE[0]] : colours(units);
      const fillOf = (lane) => fills[Math.min(...deliveries.filter((d) => d.lanes.includes(lane)).map((d) => d.wavefront), units - 1)];
      const used = sectorsOf(request);
      svg.textContent = "";
      for (const lane of range(0, LANES)) {
        if (request.addresses[lane] === null) add(svg, "rect", { class: "idle", x: xOf(4 * lane), y: 1, width: 4 * perByte, height: HIGH }, true);
        else cell(xOf(4 * lane), 1, 4 * perByte, lane, global ? fills[0] : fillOf(lane), String(lane));
      }
      const touched = [...new Set([...used.keys()].map((sector) => Math.floor((sector * SECTOR) / LINE)))].sort((a, b) => a - b);
      const span = touched[touched.length - 1] - touched[0];
      const rows = span < MOST_ROWS ? range(touched[0], touched[0] + span + 1) : touched;
      let y = HIGH + 10;
      if (!global) {
        for (const bank of [0, 4, 8, 12, 16, 20, 24, 28, 31]) {
          add(svg, "text", { class: "scale", x: xOf(bank * WORD) + 2 * perByte, y: y + 8, "font-size": 10, textContent: bank }, true);
        }
        y += SCALE;
      }
      for (const row of rows) {
        for (const column of range(0, global ? LINE / SECTOR : BANKS)) {
          const size = global ? SECTOR : WORD, moves = global && used.has((row * LINE) / SECTOR + column);
          add(svg, "rect", { class: moves ? "waste" : "off", x: xOf(column * size), y, width: size * perByte, height: HIGH }, true);
        }
        y += HIGH + (global ? 2 : 0);
      }
      const yOf = (row) => HIGH + 10 + (global ? 0 : SCALE) + rows.indexOf(row) * (HIGH + (global ? 2 : 0));
      for (const lane of [...lanes].reverse()) {  // of lanes with one address the first is named, as in the SVG
        for (let byte = request.addresses[lane], end = byte + request.bytes; byte < end;) {  // split where a sector or row ends
          const until = Math.min(end, (Math.floor(byte / SECTOR) + 1) * SECTOR), row = Math.floor(byte / LINE);
          cell(xOf(byte % LINE), yOf(row), (until - byte) * perByte, lane, global ? fills[0] : fillOf(lane), String(lane));
          byte = until;
        }
      }
      svg.setAttribute("viewBox", `0 0 ${WIDTH} ${y + 4}`);
      show(at);
    }

    function describe(lane) {
      const address = request.addresses[lane];
      if (address === null || address === undefined) return `lane ${lane}: inactive`;
      const bytes = `lane ${lane}: ${request.bytes === 1 ? "byte" : "bytes"} ${address.toLocaleString("en")}` +
        (request.bytes === 1 ? "" : ` to ${(address + request.bytes - 1).toLocaleString("en")}`);
      if (unit === "sector") {
        const sector = Math.floor(address / SECTOR);
        return `${bytes}, sector ${sector.toLocaleString("en")}: ${sectorsOf(request).get(sector).size} of its 32 bytes are used`;
      }
      const own = deliveriesOf(request).filter((d) => d.lanes.includes(lane));
      const banks = own.map((d) => d.word % BANKS), wavefronts = [...new Set(own.map((d) => d.wavefront + 1))];
      const sharing = own[0].lanes.length > 1 ? `, one word for lanes ${own[0].lanes.join(", ")}` : "";
      return `${bytes}, ${banks.length > 1 ? `banks ${banks[0]} to ${banks[banks.length - 1]}` : `bank ${banks[0]}`}, ` +
        `wavefront ${wavefronts.join(", ")} of ${costOf(request).units}${sharing}`;
    }

    function show(lane) {
      at = lane;
      for (const group of svg.querySelectorAll("g.lane.at")) group.classList.remove("at");
      for (const group of svg.querySelectorAll(`g.lane[data-lane="${lane}"]`)) {
        group.classList.add("at");
        svg.append(group);  // its outline above its neighbours
      }
      const wasted = unit === "sector" && [...sectorsOf(request).values()].some((used) => used.size < SECTOR);
      says.textContent = lane === null ? (wasted ? "Filled bytes without a number move for nothing. " : "") +
        "Hover or tap a lane, or step with the arrow keys." : describe(lane);
    }

    for (const event of ["pointerover", "click"]) {
      svg.addEventListener(event, (e) => {
        const group = e.target.closest("g.lane");
        if (group && +group.dataset.lane !== at) show(+group.dataset.lane);
      });
    }
    svg.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (!step) return;
      e.preventDefault();
      show(at === null ? lanes[0] : (at + step + LANES) % LANES);
    });
    draw();
    box.classList.add("is-live");
  }

  window.cookbookPicture = { add, colours, on, plural, range, PALETTE, WIDTH, LEFT, HIGH };  // for twins.js
  for (const data of document.querySelectorAll("script.request-data")) live(data.parentElement, JSON.parse(data.textContent));
})();
