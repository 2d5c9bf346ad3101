// SPDX-License-Identifier: MIT
// The live twins of the pictures that are no request: sliders for what a picture is a function of, a sentence for what is under the
// pointer. A twin computes what it shows; where that is not what was recorded, the console says so and the SVG stays.
(function () {
  const { add, colours, on, plural, range, PALETTE, WIDTH, LEFT, HIGH } = window.cookbookPicture;
  const INNER = WIDTH - 2 * LEFT, LABEL = 106, CHUNK = 16, LINE = 128;
  const MULTIPLY = PALETTE[5], LOAD = PALETTE[4];
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const distinct = (list) => [...new Set(list)];
  const bytes = (count) => `${count.toLocaleString("en")} bytes`;
  const fixed = (value) => +value.toFixed(3);

  /// What a twin draws on. `says` is shown while the pointer is over a cell.
  class Paper {
    constructor(svg) {
      this.svg = svg;
      this.y = 2;
      this.looks = new Set();
    }
    cell(x, y, width, height, look, text = "", says = "") {
      const group = add(this.svg, "g", says ? { "data-says": says } : {}, true), fill = look.startsWith("#");
      this.looks.add(look);
      add(group, "rect", { x, y, width: Math.max(width, 0.4), height, ...(fill ? { fill: look } : { class: look }) }, true);
      const size = Math.min(width < 20 ? 8.2 : 10.5, height);
      if (!text || text.length * size * 0.62 > width + 1) return;
      add(group, "text", { x: x + width / 2, y: y + height / 2 + 0.36 * size, "font-size": size, class: fill ? "" : "scale",
        ...(fill ? { fill: on(look) } : {}), textContent: text }, true);
    }
    label(text, x = LEFT, y = this.y, look = "scale") {
      add(this.svg, "text", { x, y: y + 10, "font-size": 10.5, class: `left ${look}`, textContent: text }, true);
    }
    legend(entries) {  // below what it explains: without what is not drawn
      this.y += 6;
      let x = LEFT;
      for (const [look, text] of entries.filter((entry) => this.looks.has(entry[0]))) {
        this.cell(x, this.y, 11, 11, look);
        this.svg.lastChild.classList.add("swatch");  // check_browser.js looks for it
        this.label(text, x + 15, this.y - 1);
        x += 27 + text.length * 6;
      }
      this.y += HIGH + 2;
    }
    heading(text) {
      this.label(text, LEFT, this.y += 4, "strong");
      this.y += HIGH + 4;
    }
    row(name) {
      this.label(name);
      this.y += HIGH + 2;
      return this.y - HIGH - 2;
    }
    cursor(x, top) {
      add(this.svg, "path", { class: "cursor", d: `M${x} ${top}V${this.y}` }, true);
    }
  }

  /// What each kind needs: `controls`, which are sliders; draw(paper, values) returns [title, sentence]; wrong(), if what it computes
  /// can differ from what was recorded, says how.
  const KINDS = {
    swizzle(data) {
      const spans = data.spans.map((span) => span.bytes), length = (span) => (span === CHUNK ? LINE : span) / CHUNK;
      const line = (chunk) => Math.floor(chunk * CHUNK / LINE);
      const place = (span, chunk) => chunk ^ (line(chunk) % (span / CHUNK));
      const read = (span, column) => range(0, 8).map((row) => place(span, row * length(span) + column % length(span)));
      const wavefronts = (places) => Math.max(...range(0, 8).map((banks) => places.filter((p) => p % 8 === banks).length));
      return {
        wrong: () => data.spans.some((span) => span.places.some((p, chunk) => p !== place(span.bytes, chunk))) && "other places",
        controls: [["span", 0, spans.length - 1, 1, spans.length - 1, (at) => (at ? bytes(spans[at]) : "none")],
          ["chunk that ldmatrix reads of eight rows", 0, 7, 1, 0, (at) => at]],
        draw(paper, [at, column]) {
          const span = spans[at], places = read(span, column), count = wavefronts(places), fills = colours(count), seen = [];
          const cell = INNER / 8;
          for (const chunk of range(0, 64)) {
            const p = place(span, chunk), n = span / CHUNK, order = places.indexOf(p), banks = 4 * (p % 8);
            let look = "off";
            if (order >= 0) {
              seen[p % 8] = places.slice(0, order).filter((other) => other % 8 === p % 8).length;
              look = fills[seen[p % 8]];
            }
            const within = chunk % length(span), xor = n > 1 ? `${chunk % 8} ^ (${line(chunk)} % ${n}) = ${p % 8}` : `${p % 8}`;
            paper.cell(LEFT + p % 8 * cell, 2 + line(chunk) * (HIGH + 4), cell - 1, HIGH + 3, look, String(within),
              `row ${Math.floor(chunk / length(span))}, chunk ${within}: line ${line(chunk)}, place ${xor}, banks ${banks} to ${banks + 3}`);
          }
          paper.y += 8 * (HIGH + 4);
          return [`${at ? `Span of ${bytes(span)}` : "No swizzle"}: ${plural(count, "wavefront")}`,
            `Rows of ${length(span)} chunks, in lines of 128 bytes. Chunk ${column % length(span)} of eight rows is coloured.`];
        },
      };
    },

    stages(data) {
      const [m, n, k] = data.size, [tileM, tileN, tileK] = data.tile, most = Math.max(...Object.keys(data.tflops));
      const blocks = Math.ceil(Math.ceil(m / tileM) * Math.ceil(n / tileN) / data.sms) * Math.ceil(k / tileK);
      const perBlock = (tflops) => 2e-6 * m * n * k / tflops / blocks;
      const multiply = perBlock(data.tflops[most]), measured = perBlock(data.tflops[1]) - multiply;
      const speed = (stages, load) => data.tflops[most] * multiply / Math.max(multiply, (load + multiply) / stages);
      return {
        wrong: () => Object.entries(data.tflops).some(([stages, tflops]) =>
          Math.abs(speed(+stages, measured) - tflops) > 0.15 * tflops) && "other speeds",
        controls: [["stages", 1, 6, 1, 3, (at) => at],
          ["a load takes, of a multiplication", 25, 300, 5, 5 * Math.round(20 * measured / multiply), (at) => `${at} %`]],
        draw(paper, [stages, percent]) {
          const load = percent / 100 * multiply, until = 8 * (measured + multiply), scale = (INNER - LABEL) / until, steps = [];
          for (let ended = 0; ;) {
            const block = steps.length, begin = block >= stages ? steps[block - stages].end : 0;
            if (begin >= until) break;
            const start = Math.max(begin + load, ended);
            ended = start + multiply;
            steps.push({ block, begin, start, end: ended });
          }
          const box = (y, step, what, begin, end, look) => begin < until && paper.cell(LEFT + LABEL + begin * scale, y,
            (Math.min(end, until) - begin) * scale, HIGH, look, String(step.block),
            `k-block ${step.block}: ${what} from ${begin.toFixed(2)} to ${end.toFixed(2)} us`);
          const top = paper.row("tensor cores");
          for (const step of steps) box(top, step, "multiply", step.start, step.end, MULTIPLY);
          for (const stage of range(0, stages)) {
            const y = paper.row(`stage ${stage}`);
            for (const step of steps.filter((one) => one.block % stages === stage)) {
              box(y, step, "load", step.begin, step.begin + load, LOAD);
              box(y, step, "multiply", step.start, step.end, MULTIPLY);
            }
          }
          const idle = 1 - speed(stages, load) / data.tflops[most];
          paper.legend([[LOAD, `load, ${load.toFixed(2)} us`], [MULTIPLY, `multiply, ${multiply.toFixed(2)} us`]]);
          return [`${plural(stages, "stage")}: the tensor cores wait ${(100 * idle).toFixed(0)} % of the time`,
            data.tflops[stages] ? `Measured with ${plural(stages, "stage")} on an ${data.device}: ${data.tflops[stages].toFixed(0)} TFLOP/s.` : ""];
        },
      };
    },

    order(data) {
      const last = data.events.length - 1;
      return {
        controls: [["event by event", 0, last, 1, Math.min(6, last), (at) => `${at} of ${last}`]],
        draw(paper, [at]) {
          const width = (INNER - LABEL) / data.events.length;
          for (const [name, what, values] of data.rows) {
            const y = paper.row(name);
            for (let first = 0, next; first <= last; first = next) {
              next = values.findIndex((value, i) => i > first && value !== values[first]);
              if (next < 0) next = last + 1;
              const value = values[first], look = { parity: PALETTE[1 + value % 2], waits: value === "0" ? "off" : PALETTE[3] }[what] || "off";
              paper.cell(LEFT + LABEL + first * width, y, (next - first) * width, HIGH, look, what === "waits" && value === "0" ? "" : value);
            }
          }
          paper.cursor(LEFT + LABEL + (at + 0.5) * width, 0);
          return [data.title, data.events[at]];
        },
      };
    },

    online_softmax(data) {
      const numbers = data.steps.map((step) => step.x);
      const merge = (a, b) => {
        const m = Math.max(a.m, b.m), [f, g] = [a, b].map((part) => (part.s ? Math.exp(part.m - m) : 0));
        return { m, s: a.s * f + b.s * g, f, g };
      };
      const empty = { m: -Infinity, s: 0 }, one = (x) => ({ m: x, s: 1 });
      const total = (part) => part.reduce((all, x) => merge(all, one(x)), empty);
      const near = (found, recorded) => found.m === recorded.max && Math.abs(found.s - recorded.sum) < 1e-5 * found.s;
      return {
        wrong: () => !(numbers.every((_, i) => near(total(numbers.slice(0, i + 1)), data.steps[i]))
          && near(total(numbers), data.merged[0])) && "other sums",
        controls: [["numbers so far", 1, numbers.length, 1, numbers.length, (at) => at],
          ["the row is cut after", 1, numbers.length - 1, 1, numbers.length / 2, (at) => at]],
        draw(paper, [seen, cut]) {
          const most = Math.max(...numbers.map((_, i) => total(numbers.slice(0, i + 1)).s)), scale = (INNER - LABEL - 50) / most;
          const texts = (y, ...columns) => columns.forEach((text, i) => paper.label(String(text), LEFT + [0, 22, 56][i], y));
          texts(paper.row(""), "x", "max", "factor");
          let all = empty;
          for (const x of numbers.slice(0, seen)) {
            const before = all, grows = x > before.m;
            all = merge(before, one(x));
            const factor = before.s ? fixed(all.f) : 1, y = paper.row("");
            texts(y, x, all.m, grows && before.s ? factor : "");
            const says = `x = ${x}: ` + (before.s ? (grows ? `the maximum grows from ${before.m} to ${x}, so the sum so far, ` +
              `${fixed(before.s)}, is multiplied by exp(${before.m} - ${x}) = ${factor}` : `the maximum stays ${all.m}`) : "the first") +
              `; add exp(${x} - ${all.m}) = ${fixed(all.g)}: ${fixed(all.s)}`;
            paper.cell(LEFT + LABEL, y, before.s * all.f * scale, HIGH, LOAD, "", says);
            paper.cell(LEFT + LABEL + before.s * all.f * scale, y, all.g * scale, HIGH, MULTIPLY, "", says);
            paper.label(all.s.toFixed(3), LEFT + LABEL + all.s * scale + 4, y);
          }
          paper.y += (numbers.length - seen) * (HIGH + 2);
          paper.legend([[LOAD, "the old sum, rescaled"], [MULTIPLY, "exp(x - max)"]]);
          const [a, b] = [total(numbers.slice(0, cut)), total(numbers.slice(cut))], both = merge(a, b);
          return [`After ${plural(seen, "number")}: maximum ${all.m}, sum ${all.s.toFixed(3)}`,
            `Cut after ${cut}: (${a.m}, ${a.s.toFixed(3)}) and (${b.m}, ${b.s.toFixed(3)}) merge to maximum ${both.m}, ` +
            `sum ${a.s.toFixed(3)} x ${fixed(both.f)} + ${b.s.toFixed(3)} x ${fixed(both.g)} = ${both.s.toFixed(3)}.`];
        },
      };
    },

    timeline(data) {
      const longest = Math.max(...data.levels.map((level) => level.end)), looks = { multiply: MULTIPLY, softmax: PALETTE[2], store: PALETTE[3] };
      return {
        controls: [["time", 0, Math.floor(longest), 0.5, Math.round(longest / 3), (at) => `${at} us`]],
        draw(paper, [at]) {
          const scale = (INNER - LABEL) / longest, said = [];
          for (const level of data.levels) {
            paper.heading(`${level.level}: ${level.idle}`);
            const top = paper.y;
            for (const [name, spans] of level.rows) {
              const y = paper.row(name);
              paper.cell(LEFT + LABEL, y, level.end * scale, HIGH, "off");
              for (const [what, begin, end] of spans) {
                const half = what === "softmax" ? HIGH / 2 : 0;
                paper.cell(LEFT + LABEL + begin * scale, y + half, (end - begin) * scale, HIGH - half, looks[what] || MULTIPLY, "",
                  `${level.level}, ${name}: ${what} from ${begin.toFixed(1)} to ${end.toFixed(1)} us`);
              }
            }
            const now = level.rows.map(([name, spans]) => [name, distinct(spans.filter(([, a, b]) => a <= at && at <= b).map((s) => s[0]))]);
            paper.cursor(LEFT + LABEL + at * scale, top);
            said.push(`${level.level}: ${now.map(([name, whats]) => `${name} ${whats.join(" and ") || "wait"}`).join(", ")}.`);
          }
          const what = distinct(data.levels.flatMap((level) => level.rows.flatMap(([, spans]) => spans.map((span) => span[0]))));
          paper.legend(what.map((name) => [looks[name] || MULTIPLY, name]));
          return [`At ${at} us`, said.join(" ")];
        },
      };
    },

    zoom(data) {
      const [rows, cols] = data.instruction, holds = new Map(data.elements.map((element, i) => [element, [Math.floor(i / 4), i % 4]]));
      return {
        wrong: () => data.elements.some((element, i) =>
          element !== (Math.floor(i / 16) + Math.floor(i % 4 / 2) * 8) * cols + 2 * (Math.floor(i / 4) % 4) + i % 2) && "other elements",
        controls: [["lane", 0, 31, 1, 13, (at) => at]],
        draw(paper, [at]) {
          const width = INNER / cols;
          for (const element of range(0, rows * cols)) {
            const [lane, register] = holds.get(element), row = Math.floor(element / cols), col = element % cols;
            paper.cell(LEFT + col * width, 2 + row * (HIGH + 1), width - 1, HIGH, lane === at ? PALETTE[1] : "off", `${lane}.d${register}`,
              `row ${row}, column ${col}: d${register} of lane ${lane}`);
          }
          paper.y += rows * (HIGH + 1);
          const own = data.elements.slice(4 * at, 4 * at + 4).map((e, i) => `d${i} row ${Math.floor(e / cols)} column ${e % cols}`);
          return [`mma.sync ${rows} x ${cols}: 4 accumulators per lane`, `Lane ${at}: ${own.join(", ")}.`];
        },
      };
    },

    waves(data) {
      const [m, n, k] = data.size, [tileM, tileN] = data.tile, rows = m / tileM, cols = n / tileN, all = range(0, rows * cols);
      const tile = (block, group) => {
        const first = Math.floor(block / (group * cols)) * group, height = Math.min(group, rows - first), within = block % (group * cols);
        return (first + within % height) * cols + Math.floor(within / height);
      };
      const wave = (group, at) => all.slice(at * data.sms, (at + 1) * data.sms).map((block) => tile(block, group));
      const same = (group, order) => order.waves.every((one, at) => wave(group, at).every((t, i) => t === one.tiles[i]));
      return {
        wrong: () => !(same(1, data.orders[0]) && same(16, data.orders[1])) && "another order",
        controls: [["rows of tiles in a group", 1, rows, 1, 16, (at) => (at === 1 ? "1: row-major" : at)],
          ["wave", 1, Math.ceil(all.length / data.sms), 1, 1, (at) => at]],
        draw(paper, [group, at]) {
          const now = wave(group, at - 1), before = new Set(range(0, at - 1).flatMap((one) => wave(group, one))), width = (INNER - 10) / cols;
          const ofA = distinct(now.map((t) => Math.floor(t / cols))), ofB = distinct(now.map((t) => t % cols)), high = width / 2;
          for (const row of ofA) paper.cell(LEFT, 12 + row * high, 6, high, PALETTE[2], "", `A, row ${row} of tiles`);
          for (const col of ofB) paper.cell(LEFT + 10 + col * width, 2, width, 6, PALETTE[1], "", `B, column ${col} of tiles`);
          for (const t of all) {
            const [row, col] = [Math.floor(t / cols), t % cols];
            paper.cell(LEFT + 10 + col * width, 12 + row * high, width, high, now.includes(t) ? PALETTE[0] : before.has(t) ? "waste" : "off", "",
              `tile row ${row}, column ${col}`);
          }
          paper.y = 14 + rows * high;
          paper.legend([[PALETTE[0], "this wave"], ["waste", "earlier"], [PALETTE[2], "rows of A"], [PALETTE[1], "columns of B"]]);
          const megabytes = 2e-6 * k * (ofA.length * tileM + ofB.length * tileN);
          return [`Wave ${at} reads ${megabytes.toFixed(1)} MB of A and B`,
            `${plural(now.length, "tile")}: ${plural(ofA.length, "row")} of A, ${plural(ofB.length, "column")} of B.`];
        },
      };
    },

    attention_schedule(data) {
      return data.shows === "queue" ? queue(data) : lastWave(data);
    },

    descriptor(data) {
      const tiles = data.tiles.map((tile) => {
        const layout = tile.high >>> 30, field = (bits, at) => (Math.floor(bits / 2 ** at) & 0x3fff) * CHUNK;
        return { ...tile, layout, span: { 0: 16, 1: 128, 2: 64, 3: 32 }[layout], start: field(tile.low, 0),
          leading: field(tile.low, 16), stride: field(tile.high, 0), step: (tile.low_of_next_step - tile.low) * CHUNK };
      });
      const address = (tile, step, row, chunk) => {
        const across = tile.span === CHUNK ? chunk * tile.leading : chunk * CHUNK;
        const at = tile.start + step * tile.step + Math.floor(row / 8) * tile.stride + row % 8 * tile.span + across;
        return at ^ (Math.floor(at / 8) & (tile.span - CHUNK));
      };
      const chunks = range(0, 8 * data.rows);
      return {
        wrong: () => tiles.some((tile) => chunks.some((i) => {
          const [row, chunk] = [Math.floor(i / 8), i % 8];
          return address(tile, chunk >> 1, row, chunk & 1) !== tile.start + tile.places[i] * CHUNK;
        })) && "other places",
        controls: [["swizzle", 0, tiles.length - 1, 1, tiles.length - 1, (at) => tiles[at].swizzle],
          ["k of the instruction", 0, 3, 1, 0, (at) => `${16 * at} to ${16 * at + 15}`]],
        draw(paper, [which, step]) {
          const tile = tiles[which], cell = INNER / 8, high = 4.5;
          for (const i of chunks) {
            const [row, chunk] = [Math.floor(i / 8), i % 8], at = tile.places[i];
            const reads = chunk >> 1 === step, terms = [`start ${tile.start + step * tile.step}`, `${Math.floor(row / 8)} x stride ${tile.stride}`,
              `${row % 8} x ${tile.span}`, `${chunk & 1} x ${tile.span === CHUNK ? `leading ${tile.leading}` : CHUNK}`];
            paper.cell(LEFT + at % 8 * cell, 2 + Math.floor(at / 8) * high, cell - 1, high - 1, reads ? LOAD : "off", "",
              `row ${row}, chunk ${chunk}: ` + (reads ? terms.join(" + ") + (tile.span > CHUNK ? ", swizzled:" : " =") : "at") +
              ` byte ${tile.start + at * CHUNK}`);
          }
          paper.y += data.rows * high;
          paper.legend([[LOAD, "read by the instruction"]]);
          return [`Start ${(tile.start + step * tile.step).toLocaleString("en")}, ` +
            (tile.span === CHUNK ? `leading ${tile.leading.toLocaleString("en")}, ` : "") + `stride ${tile.stride.toLocaleString("en")}`,
            `Shared memory in lines of 128 bytes. The next instruction starts ${bytes(tile.step)} further on.`];
        },
      };
    },
  };

  function queue(data) {
    const longest = data.queue.map((tile) => [tile.query_tile, tile.head, tile.key_tiles]);
    const serve = (tiles, sms) => {
      const free = Array(sms).fill(0);
      return tiles.map(([query, head, keys]) => {
        const sm = free.indexOf(Math.min(...free));
        free[sm] += keys;
        return { query, head, sm, begin: free[sm] - keys, end: free[sm] };
      });
    };
    const end = (found) => Math.max(...found.map((one) => one.end)), work = sum(longest.map((tile) => tile[2]));
    return {
      wrong: () => longest.some(([query, , keys]) => keys !== Math.ceil(Math.min((query + 1) * data.tile[0], data.tokens) / data.tile[1]))
        && "other key tiles",
      controls: [["SMs", 2, 16, 1, 8, (at) => at], ["order", 0, 1, 1, 0, (at) => (at ? "the shortest first" : "the longest first")]],
      draw(paper, [sms, reverse]) {
        const found = serve(reverse ? [...longest].reverse() : longest, sms), scale = (INNER - LABEL) / end(found);
        for (const sm of range(0, sms)) {
          const y = paper.row(`SM ${sm}`);
          for (const one of found.filter((tile) => tile.sm === sm)) {
            paper.cell(LEFT + LABEL + one.begin * scale, y, (one.end - one.begin) * scale, HIGH, PALETTE[one.query % 6], String(one.query),
              `query tile ${one.query} of head ${one.head}: key tiles 0 to ${one.query}`);
          }
        }
        return [`The last SM ends after ${plural(end(found), "key tile")}`,
          `Evenly distributed, each of ${sms} SMs would end after ${fixed(work / sms)}. A box is a query tile, as long as it has key tiles.`];
      },
    };
  }

  function lastWave(data) {
    const blocks = data.blocks.map(({ chunks }) => range(0, chunks.length / 3).map((i) => chunks.slice(3 * i, 3 * i + 3)));
    const visited = (tile) => sum(blocks.flat().filter((chunk) => chunk[0] === tile).map((chunk) => chunk[2])), left = range(data.whole_tiles, data.tiles);
    return {
      wrong: () => left.some((tile) => visited(tile) !== data.key_tiles) && "other key tiles",
      controls: [["query tile", data.whole_tiles, data.tiles - 1, 1, data.whole_tiles, (at) => at]],
      draw(paper, [at]) {
        const width = INNER / blocks.length, unit = 6, own = [];
        let longest = 0;
        blocks.forEach((chunks, sm) => {
          let down = 0;
          for (const [tile, first, count] of chunks) {
            const says = `SM ${sm}: query tile ${tile}, key tiles ${first} to ${first + count - 1}`;
            paper.cell(LEFT + sm * width, 2 + down * unit, width, count * unit, tile === at ? PALETTE[0] : PALETTE[1 + tile % 2], "", says);
            paper.cell(LEFT + sm * width, 2 + (down + count) * unit, width, data.chunk_cost * unit, "waste");
            down += count + data.chunk_cost;
            if (tile === at) own.push(sm);
          }
          longest = Math.max(longest, down);
        });
        paper.y += longest * unit;
        return [`Query tile ${at} is divided among ${plural(own.length, "SM")}: ${own.join(", ")}`,
          `From left to right: SMs; down: key tiles, and per chunk a cost of ${data.chunk_cost}. Divided, ${left.length} tiles take ` +
          `${plural(longest, "key tile")} instead of ${data.key_tiles}.`];
      },
    };
  }

  function live(box, data) {
    const kind = KINDS[data.kind](data), wrong = kind.wrong && kind.wrong();
    if (wrong) {
      console.error(`The picture of kind ${data.kind}: ${wrong} here than were recorded`);
      return;  // the picture stays
    }
    const folded = add(box, "details", {});  // the SVG above it says more in words
    add(folded, "summary", { textContent: `Live: ${kind.controls.map(([name]) => name).join("; ")}` });
    const panel = add(folded, "div", { className: "lanes twin" }), title = add(panel, "strong", {});
    panel.dataset.kind = data.kind;
    const sliders = kind.controls.map(([name, min, max, step, value, shown]) => {
      const label = add(panel, "label", { textContent: `${name} ` });
      const slider = add(label, "input", { type: "range", min, max, step, value });
      return { slider, shown, output: add(label, "output", {}) };
    });
    const svg = add(panel, "svg", { role: "img" }, true), says = add(panel, "div", { className: "lanes-says" });
    says.setAttribute("role", "status");
    let sentence = "";
    function draw() {
      svg.textContent = "";
      const paper = new Paper(svg), values = sliders.map(({ slider }) => +slider.value);
      sliders.forEach(({ output, shown }, i) => { output.value = shown(values[i]); });
      [title.textContent, sentence] = kind.draw(paper, values);
      says.textContent = sentence;
      svg.setAttribute("aria-label", title.textContent);
      svg.setAttribute("viewBox", `0 0 ${WIDTH} ${paper.y + 4}`);
    }
    for (const { slider } of sliders) slider.addEventListener("input", draw);
    for (const event of ["pointerover", "click"]) {
      svg.addEventListener(event, (e) => {
        const cell = e.target.closest("[data-says]");
        says.textContent = cell ? cell.dataset.says : sentence;
      });
    }
    svg.addEventListener("pointerleave", () => { says.textContent = sentence; });
    draw();
    box.classList.add("has-twin");
  }

  for (const data of document.querySelectorAll("script.twin-data")) live(data.parentElement, JSON.parse(data.textContent));
})();
