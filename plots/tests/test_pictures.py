# SPDX-License-Identifier: MIT
"""Pictures of requests: they show what was counted, or nothing."""
import json
import re
import sys
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import draw
from cookbook_plots.pictures import banks, book, sectors
from cookbook_plots.pictures.requests import Request
from cookbook_plots.pictures.svg import EM, WIDTH, Picture, colours

from .fixtures import Folder, said

ROOT, LANES = book.book.ROOT, range(32)


def request(addresses, counted, ideal, memory="shared", size=4, rule="load_store"):
    """A recorded request, as the tracer writes it."""
    unit = "sectors" if memory == "global" else "wavefronts"
    return {"kernel": "k", "file": "mine.cuh", "line": 3, "source": "y = tile[x];", "memory": memory, "operation": "load",
            "buffer": "tile", "bytes": size, "rule": rule if memory == "shared" else None, "block": [0, 0, 0], "warp": 1,
            "addresses": list(addresses), "counted": {unit: counted, "ideal": ideal},
            "line_total": {"requests": 1, unit: counted, "ideal": ideal}}


def document(*requests):
    return {"schema": 1, "kind": "requests", "chapter": None, "capstone": "mine", "ladder": "copy", "level": "mine",
            "size": [64], "requests": list(requests)}


# What the tracer counts of these: tests/simt_counters_test.cpp has the same cases.
SHARED = {
    "[32]": request((128 * lane + 16 for lane in LANES), 32, 1),
    "[33]": request((132 * lane + 16 for lane in LANES), 1, 1),
    "XOR": request((128 * lane + 4 * (lane ^ 5) for lane in LANES), 1, 1),
    "broadcast": request((4 * (lane // 2) for lane in LANES), 1, 1),
    "16 bytes": request((16 * lane for lane in LANES), 4, 4, size=16),
    "16 bytes, a column": request((64 * lane for lane in LANES), 16, 4, size=16),
    "16 bytes, two lanes each, merged": request((16 * (lane // 2) for lane in LANES), 2, 2, size=16),
    "16 bytes, never merged": request((16 * (lane // 2) for lane in LANES), 4, 4, size=16, rule="matrix_rows"),
    "8 bytes": request((8 * lane for lane in LANES), 2, 2, size=8),
    "atomics on one word": request((0 for lane in LANES), 32, 1, rule="atomic"),
    "divergent": request((128 * lane if lane % 3 == 0 else None for lane in LANES), 11, 1),
}
GLOBAL = {
    "strided": request((128 * lane for lane in LANES), 32, 4, "global"),
    "coalesced": request((4 * lane for lane in LANES), 4, 4, "global"),
    "misaligned": request((4 * lane + 12 for lane in LANES), 5, 4, "global"),
    "halves": request((2 * lane for lane in LANES), 2, 2, "global", size=2),
    "bytes": request(LANES, 1, 1, "global", size=1),
    "a tail": request((16 * lane if lane < 20 else None for lane in LANES), 10, 10, "global", size=16),
    "far apart": request((100_000 * lane for lane in LANES), 32, 4, "global"),
    "one word": request((64 for lane in LANES), 1, 1, "global"),
}


SVG = "{http://www.w3.org/2000/svg}"
PAINTED = ("waste", "off", "faint")  # classes of rectangles; the others are outlines


def looks_of(rect):
    return rect.get("fill") or rect.get("class") or ""


def unexplained(svg, per_unit=4):
    """The words of an SVG's legend whose colour is nowhere to be seen. Paints its rectangles one over the other."""
    root = ElementTree.fromstring(svg)
    parts = [part for part in root if part.tag in (f"{SVG}rect", f"{SVG}text")]
    legend, painted = [], []
    for part, outline, text in zip(parts, parts[1:] + [root], parts[2:] + [root, root]):
        swatch = part.tag == f"{SVG}rect" and (part.get("width"), part.get("height")) == ("11", "11")
        if swatch and looks_of(outline) == "edge" and text.tag == f"{SVG}text" and looks_of(part) != "edge":
            legend.append((looks_of(part), text.text))
        elif part.tag == f"{SVG}rect" and (looks_of(part).startswith("#") or looks_of(part) in PAINTED):
            painted.append(part)
    width, height = (int(float(size) * per_unit) + 1 for size in root.get("viewBox").split()[2:])
    canvas = [[""] * width for _ in range(height)]
    for part in painted:
        left, top, right, bottom = (round(per_unit * sum(float(part.get(key)) for key in keys))
                                    for keys in (("x",), ("y",), ("x", "width"), ("y", "height")))
        for line in canvas[top:bottom]:
            line[left:right] = [looks_of(part)] * (right - left)
    seen = set().union(*canvas)
    return [text for look, text in legend if look not in seen]


def picture(data):
    return (sectors if data["memory"] == "global" else banks).draw(Request(data))


class Pictures(unittest.TestCase):
    def test_they_recompute_what_was_counted(self):
        for name, data in {**SHARED, **GLOBAL}.items():
            with self.subTest(name):
                picture(data)

    def test_text_stays_within_the_picture(self):
        for name, data in {**SHARED, **GLOBAL}.items():
            for text in ElementTree.fromstring(picture(data).svg()).iter("{http://www.w3.org/2000/svg}text"):
                font = "mono" if "Mono" in text.get("font-family", "") else "bold" if text.get("font-weight") else "sans"
                width = len(text.text) * float(text.get("font-size")) * EM[font]
                share = {"middle": 0.5, "end": 1}.get(text.get("text-anchor"), 0)
                left = float(text.get("x")) - share * width
                with self.subTest(name, text=text.text):
                    self.assertGreaterEqual(left, 0)
                    self.assertLessEqual(left + width, WIDTH)

    def test_the_grid_shows_each_lane_in_its_bank(self):
        svg = picture(SHARED["XOR"]).svg()
        for lane in LANES:
            self.assertIn(f"<title>lane {lane}, bank {lane ^ 5}, wavefront 1</title>", svg)
        svg = picture(SHARED["[32]"]).svg()
        for lane in LANES:
            self.assertIn(f"<title>lane {lane}, bank 4, wavefront {lane + 1}</title>", svg)

    def test_a_quarter_warp_is_a_phase(self):
        svg = picture(SHARED["16 bytes"]).svg()
        for lane in LANES:
            bank = 4 * (lane % 8)
            self.assertIn(f"<title>lane {lane}, bank {bank} to {bank + 3}, wavefront {lane // 8 + 1}</title>", svg)

    def test_merged_quarters_are_said(self):
        for name, merged in (("16 bytes, two lanes each, merged", True), ("16 bytes, never merged", False), ("16 bytes", False)):
            self.assertEqual("two such parts are served together: 2 phases." in picture(SHARED[name]).description, merged)

    def test_bytes_that_move_for_nothing(self):
        self.assertIn("128 of the 1,024 bytes that move are used.", picture(GLOBAL["strided"]).svg())
        self.assertIn("moves for nothing", picture(GLOBAL["misaligned"]).svg())
        self.assertNotIn("moves for nothing", picture(GLOBAL["coalesced"]).svg())

    def test_lanes_with_one_address_are_said(self):
        self.assertIn("Lanes share one address", picture(GLOBAL["one word"]).svg())
        self.assertNotIn("Lanes share", picture(GLOBAL["bytes"]).svg())

    def test_inactive_lanes_are_shown_and_said(self):
        svg = picture(GLOBAL["a tail"]).svg()
        self.assertEqual(svg.count('class="faint dash"'), 12)
        self.assertIn("Lanes 20 to 31 are inactive.", svg)

    def test_a_legend_explains_what_can_be_seen(self):
        for name, data in {**SHARED, **GLOBAL}.items():
            with self.subTest(name):
                self.assertEqual(unexplained(picture(data).svg()), [])
        self.assertIn(">does not move<", picture(GLOBAL["misaligned"]).svg())
        self.assertNotIn(">does not move<", picture(GLOBAL["coalesced"]).svg())

    def test_what_is_not_drawn_or_hidden_has_no_legend(self):
        drawn = Picture("", "")
        drawn.rect(8, 0, 40, 10, "off")
        for left in (8, 28):
            drawn.rect(left, 0, 20, 10, fill="#0072B2")
        drawn.rect(60, 0, 40, 10, "waste")
        drawn.rect(60, 0, 30, 10, fill="#E69F00")
        drawn.y = 20
        drawn.legend([("off", "hidden"), ("#0072B2", "above"), ("waste", "in part"), ("#009E73", "nowhere")])
        self.assertEqual(re.findall(">([a-z ]+)</text>", drawn.svg()), ["above", "in part"])
        with mock.patch.object(Picture, "shows", return_value=True):
            drawn.legend([("off", "hidden"), ("#009E73", "nowhere")])
        self.assertEqual(unexplained(drawn.svg()), ["hidden", "nowhere"])

    def test_light_dark_and_words(self):
        for data in (*SHARED.values(), *GLOBAL.values()):
            svg = picture(data).svg()
            self.assertIn("prefers-color-scheme:dark", svg)
            self.assertRegex(svg, "<title>[^<]+</title>\n<desc>[^<]{40,}</desc>")

    def test_wavefronts_have_colours_that_differ(self):
        for count in range(1, 33):
            self.assertEqual(len(set(colours(count))), count)


class Files(Folder):
    def drawn(self, content):
        return said(draw.main, [str(self.file("copy-mine.json", content))])

    def test_a_file_is_drawn_beside_itself(self):
        status, out, err = self.drawn(document(SHARED["[32]"], GLOBAL["strided"]))
        self.assertEqual((status, err), (0, ""))
        files = [self.folder / f"copy-mine-{name}.svg" for name in ("1-shared-load", "2-global-load")]
        self.assertEqual(out.split(), list(map(str, files)))
        for file in files:
            ElementTree.parse(file)

    def refused(self, content, *patterns):
        status, out, err = self.drawn(content)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        for pattern in patterns:
            self.assertRegex(err, pattern)
        self.assertEqual(list(self.folder.glob("*.svg")), [])

    def test_a_wrong_count_is_refused(self):
        for data in (*SHARED.values(), *GLOBAL.values()):
            for key, wrong in (("ideal", 1), ("sectors", 1), ("wavefronts", -1)):
                planted = json.loads(json.dumps(data))
                if key in planted["counted"]:
                    planted["counted"][key] += wrong
                    self.refused(document(planted), r"mine.cuh:3: the addresses make \d+ .*; the tracer counted \d+")

    def test_a_moved_lane_is_refused(self):
        planted = json.loads(json.dumps(SHARED["XOR"]))
        planted["addresses"][7] = planted["addresses"][6] + 128
        self.refused(document(planted), "the addresses make 2 wavefronts, 1 at best; the tracer counted 1, 1 at best")

    def test_what_is_no_data_of_a_picture_is_refused(self):
        good = document(SHARED["[32]"])
        self.refused("no JSON", "cannot be read")
        self.refused([], "not the data of a picture")
        self.refused(good | {"schema": 2}, "schema 2")
        self.refused(good | {"kind": "else"}, "kind 'else'")
        self.refused(good | {"requests": []}, "no request in it")
        for key, value in (("addresses", [0]), ("addresses", ["0"] * 32), ("addresses", [None] * 32), ("addresses", [-4] * 32),
                           ("bytes", 0), ("bytes", 1 << 20), ("rule", "none"), ("memory", "local"), ("block", None),
                           ("counted", {})):
            self.refused(document(SHARED["[32]"] | {key: value}), "not the data of a picture")

    def test_a_file_that_is_not_there_is_refused(self):
        status, _, err = said(draw.main, [str(self.folder / "none.json")])
        self.assertEqual((status, err.count("\n")), (2, 1))


class Sidebars(Folder):
    """What the book's own data make, and what one wrong number in them makes."""

    def changed(self, name, change):
        content = json.loads(book.recorded(ROOT, name).read_text())
        change(content)
        return said(draw.main, [str(self.file(f"{name}.json", content))])

    def refused(self, name, change, pattern):
        status, out, err = self.changed(name, change)
        self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
        self.assertRegex(err, pattern)

    def test_they_are_drawn(self):
        for name in ("tensor-core-sums", "mma-zoom", "swizzle-spans", "raster-waves", "online-softmax", "gemm-timeline",
                     "attention-timeline", "gemm-stages", "wgmma-descriptor", "promotion", "capstone-start"):
            self.assertEqual(self.changed(name, lambda content: None)[0], 0)
            ElementTree.parse(self.folder / f"{name}.svg")
        for name, parts in (("attention-schedule", ("queue", "last-wave")), ("gemm-order", ("phases", "stage"))):
            self.assertEqual(self.changed(name, lambda content: None)[0], 0)
            for part in parts:
                ElementTree.parse(self.folder / f"{name}-{part}.svg")

    def test_phases_end_when_their_bytes_are_there(self):
        """Of the barrier that the chapter's definition shows: three phases of parity 0, 1, 0, and what twins.js says of each event."""
        svg = book.pictures(book.recorded(ROOT, "gemm-order"), ["phases"])["gemm-order-phases"].svg()
        self.assertIn("A phase ends when 1 arrival and 32,768 bytes are complete.", svg)
        live = book.live_data("gemm-order", ["phases"])
        self.assertEqual(live["events"][:2] + live["events"][6:8],
                         ["The barrier is new. full: phase 0, parity 0.",
                          "Thread 0 arrives at full and expects 32,768 bytes. full: phase 0, parity 0.",
                          "TMA has written 32,768 bytes. full: phase 1, parity 1.", "Warp 0 goes on. full: phase 1, parity 1."])
        self.assertEqual({len(values) for *_, values in live["rows"]}, {len(live["events"])})

        def early(data):
            data["levels"][0]["tracks"]["warp 0"][0][2] = 3
        self.refused("gemm-order", early, r"swizzle_128: warp 0 goes on before phase 0 of full\[0\] has ended")

    def test_a_template_that_claims_something_else_is_refused(self):
        def counted(data):  # as if its lanes read neighbours
            request = data["levels"][0]["request"]
            request["addresses"], request["counted"]["sectors"] = [4 * lane for lane in range(32)], 4
        self.refused("capstone-start", counted, "level_0_naive.cuh claims 32 sectors per request; the tracer counted 4")
        self.refused("capstone-start", lambda data: data["levels"][1]["request"]["counted"].update(sectors=5), "the addresses make 4 sectors")
        self.refused("capstone-start", lambda data: data["levels"][1].update(level="mine"), "the template has no level_1_mine.cuh")

    def test_a_wrong_sum_is_refused(self):
        for number in range(5):
            self.refused("tensor-core-sums", lambda data: data["sums"][number].update(sum=1.5), "the tensor core's sum was 1.5")
        for key, value in (("fraction_bits", 24), ("terms", 8)):
            self.refused("tensor-core-sums", lambda data: data.update({key: value}), "the tensor core's sum was 1.0")  # or 1.0000001
        self.refused("tensor-core-sums", lambda data: data.update(terms=3), "not the data of a picture")

    def test_a_chunk_at_another_place_is_refused(self):
        def swap(data):
            places = data["spans"][3]["places"]
            places[9], places[10] = places[10], places[9]
        self.refused("swizzle-spans", swap, "span of 128 bytes: chunk 9 belongs at place 8; the program has it at 11")

    def test_a_descriptor_that_leads_elsewhere_is_refused(self):
        for tile, key, wrong, text in ((0, "low", 64 + (8 << 16), "no swizzle: the descriptor leads to byte 128 for row 0, chunk 1"),
                                       (0, "high", 16, "no swizzle: .* row 8, chunk 0"), (1, "high", 64, "swizzle 128: .* row"),
                                       (1, "low_of_next_step", 65, "swizzle 128: .* row 0, chunk 2")):
            self.refused("wgmma-descriptor", lambda data: data["tiles"][tile].update({key: wrong}), text)

        def swap(data):
            places = data["tiles"][1]["places"]
            places[9], places[10] = places[10], places[9]
        self.refused("wgmma-descriptor", swap, "swizzle 128: .* row 1, chunk 1; TMA has put it at 176")

    def test_an_element_in_another_lane_is_refused(self):
        def swap(data):
            data["elements"][4:6] = data["elements"][5:3:-1]
        self.refused("mma-zoom", swap, "d0 of lane 1 holds element 3; by the PTX ISA it holds 2")
        self.refused("mma-zoom", lambda data: data.update(accumulators=64), "has 128 accumulators per lane; the Config has 64")
        self.refused("mma-zoom", lambda data: data.update(warp=[48, 64]), "block tile 128 x 256 is not made of warp tile 48 x 64")

    def test_what_tensor_memory_does_not_do_is_refused(self):
        def place(*path):
            def change(data):
                *way, last, value = path
                for key in way:
                    data = data[key]
                data[last] = value
            return change
        for change, text in (
                (place("warps", 5, "lanes", [0]), r"warp 5 reaches lanes from \[0\] on; by the PTX ISA from 32"),
                (place("tiles", 0, "blocks", 0, "row_of_lane", 3, 4), "its lanes do not hold rows 0 on in order"),
                (place("tiles", 1, "blocks", 1, "column_of_column", 9, 8), "its columns do not hold"),
                (place("tiles", 1, "blocks", 1, "rows_of_a", [0, 128]), "pairs, block 1: rows .* of A, and .* of C"),
                (place("tiles", 1, "blocks", 1, "columns_of_b", [0, 128]), "its columns of B begin at 0, not at 128"),
                (place("tiles", 1, "blocks", 0, "columns_of_c", [0, 512]), "hold 256 columns of B for 512 of C"),
                (place("tiles", 1, "block_k", 32), "pairs: a stage has 32768 bytes, its rows and columns 16384"),
                (lambda data: data["tiles"][1].update(block_k=128, stage_bytes=65536), "pairs: .* bytes at .* TMA was counted to load"),
                (place("byte_of_atom", 16 * 5 + 4, 80), "lane 5, column 1: byte 80 of the atom; scale 0 of row 37 is byte 84"),
                (place("byte_of_atom", 16 * 70 + 4, 80), "lane 70, column 1"),
                (lambda data: data["copies"].pop(), "8 k-blocks and 36 instructions of 3 tiles of 3 k-blocks"),
                (self.moved("mma", 0, "when", 1), "k-block 0 is multiplied before it has arrived"),
                (self.moved("mma", 14, "columns", [0, 256]), "tile 1 is multiplied into columns from 0 on"),
                (lambda data: data["copies"][4]["copy"].__setitem__(1, 31), "k-block 4 is loaded before k-block 0, of the same stage"),
                (self.moved("read", 5, "columns", [0, 32]), "warp . reads columns from 0 on of tile 0"),
                (self.moved("read", 5, "warp", 7), "warp . reads 23 times, not 24"),
                (self.moved("read", 0, "when", 2), "warp . reads tile 0 before it is multiplied"),
                (self.moved("mma", 24, "when", 30), "tile 2 overwrites tile 0 before|is multiplied before it has arrived"),
                (self.moved("allocate", 0, "columns", [0, 256]), r"begins with \('allocate', \[0, 256\]\).* 512 columns per block were counted")):
            with self.subTest(text):
                self.refused("tensor-memory", change, text)

    @staticmethod
    def moved(what, number, key, value):
        return lambda data: [event for event in data["events"] if event["what"] == what][number].update({key: value})

    def test_a_wrong_count_of_panels_is_refused(self):
        for key in ("rows", "cols"):
            self.refused("raster-waves", lambda data: data["orders"][1]["waves"][2].update({key: 5}), "grouped 16, wave 3: .* counted")
        self.refused("raster-waves", lambda data: data["orders"][0]["waves"][0]["tiles"].append(0), "compute a tile twice")

    def test_a_multiplication_that_is_lost_or_late_is_refused(self):
        def tracks(data, level):
            return data["levels"][level]["tracks"]
        for level in range(2):
            self.refused("gemm-timeline", lambda data: tracks(data, level)["consumer 1: multiplies in flight"].pop(3),
                         r"the tiles of its consumers have .*\b15\b.*; all tiles have as many")
            self.refused("gemm-timeline", lambda data: tracks(data, level)["copies by TMA"].pop(3), "79 k-blocks|47 k-blocks")
        def late(data):
            tracks(data, 0)["consumer 0: multiplies in flight"][15][1:] = [37, 38]  # after the tile's store
        self.refused("gemm-timeline", late, r"\[15, 17, 16\]")
        self.refused("attention-timeline", lambda data: tracks(data, 2)["consumer 0: multiplies in flight"].pop(), "11.5")
        self.refused("gemm-timeline", lambda data: tracks(data, 0)["consumer 0"][0].reverse(), "not the data of a picture")

    def test_a_barrier_that_nobody_completes_is_refused(self):
        def tracks(data, level=1):
            return data["levels"][level]["tracks"]
        def without(name, track):
            def change(data):
                spans = tracks(data)[track]
                spans.remove(next(span for span in spans if span[0] == name))
            return change
        self.refused("gemm-order", without("wait wgmma", "warp 2"), r"warp 0 goes on before phase 0 of empty\[0\] has ended")
        self.refused("gemm-order", lambda data: tracks(data)["warp 3"].insert(4, ["wait wgmma", 36, 36]),
                     r"at the end a phase of empty\[0\] is incomplete")

        def early(data):
            tracks(data)["warp 1"][0][2] = 18
        self.refused("gemm-order", early, r"warp 1 goes on before phase 0 of full\[0\] has ended")

    def test_a_stage_that_is_overwritten_or_read_early_is_refused(self):
        def moved(level, which, place, to):
            def change(data):
                tracks = data["levels"][level]["tracks"]
                sorted(tracks["copies by TMA"], key=lambda span: span[1])[which][place] = to
            return change
        self.refused("gemm-order", moved(1, 3, 1, 30), "k-block 3 is loaded while k-block 0, of the same stage, is read")
        self.refused("gemm-order", moved(1, 1, 2, 48), "k-block 1 is read before it has arrived")
        self.refused("gemm-order", moved(0, 1, 1, 16), "k-block 1 is loaded while k-block 0, of the same stage, is read")

        def apart(data):  # three stages, and every load waits for the read before it
            for spans in data["levels"][1]["tracks"].values():
                spans[:] = []
            for block in range(6):
                tracks = data["levels"][1]["tracks"]
                tracks["copies by TMA"].append([f"copy [{block % 3}]", 4 * block, 4 * block + 1, 1])
                tracks["warp 0: multiplies in flight"].append([f"multiply [{block % 3}]", 4 * block + 2, 4 * block + 3])
        self.refused("gemm-order", apart, "3 stages, and loads do not overlap")

    def test_speeds_that_the_drawing_does_not_explain_are_refused(self):
        for stages, speed in ((2, 348.6), (3, 900.0)):
            self.refused("gemm-stages", lambda data: data["tflops"].update({str(stages): speed}), f"{stages} stages: drawn as 69")

    def test_a_number_that_is_only_shown_is_compared_with_its_source(self):
        """Each is changed alone, by as little as is wrong; what else checks it first may refuse it, too."""
        for name, *way, wrong, text in (
                ("raster-waves", "sms", 131, "SMs: 131; the device of .*chapter-7.json: 132"),
                ("raster-waves", "size", [8192, 8192, 4096], r"size: .*4096.; l2_order of .*: .8192, 8192, 8192"),
                ("raster-waves", "size", 0, 8320, "size: .*8320"),
                ("raster-waves", "tile", [128, 128], "its tiles read 3 and 64 panels|tile: .*; level two_consumers"),
                ("attention-schedule", "chunk_cost", 5, "cost of a chunk: 5; .*key_chunks.hpp: 4"),
                ("attention-schedule", "tokens", 1000, "tokens: 1000; .*sidebar_schedule.cu: 1024"),
                ("gemm-order", "levels", 1, "tracks", "copies by TMA", 2, 3, 32752, "bytes of a copy, pipeline: 32752; .*per k-block: 32768|incomplete"),
                ("gemm-order", "levels", 0, "size", [128, 128, 448], "size of swizzle_128: .*; plots/pictures.sh: .128, 128, 384"),
                ("tensor-memory", "tiles", 0, "blocks", 0, "columns_of_c", [1, 256], "columns of C, two_accumulators, block 0: .1, 256"),
                ("tensor-memory", "tiles", 1, "blocks", 1, "columns_of_c", [0, 128], "columns of C, pairs, block 1: .0, 128"),
                ("gemm-timeline", "levels", 0, "size", [4608, 2816, 2048], "size of static: .*; plots/timelines.sh: .4608, 2816, 1024"),
                ("attention-timeline", "levels", 2, "size", 3, 3000, "size of split_softmax: .*3000"),
                ("gemm-timeline", "levels", 0, "overhead", 5.2, "overhead of static: 1; .*divided by the overhead: 1.88"),
                ("gemm-timeline", "levels", 1, "overhead", 1.8, "overhead of ping_pong: 0.7; .*: 0.5"),
                ("attention-timeline", "levels", 1, "overhead", 5.1, "overhead of ping_pong: 1; .*: 2.8"),
                ("gemm-stages", "size", [4096, 4096, 8192], "size: 4096 x 4096 x 8192; sidebars/chapter-6-depth.txt: 4096 x 4096 x 4096|explain it"),
                ("gemm-stages", "tflops", "2", 616.7, "TFLOP/s with 2 stages: 616.7; .*: 616.6"),
                ("gemm-stages", "sms", 66, "SMs: 66; .*: 132"),
                ("gemm-stages", "tile", [128, 128, 64], "tile: .*; level two_consumers: .128, 256, 64"),
                ("mma-zoom", "size", [4096, 8192], "size: .4096, 8192.; .*sidebar_fragments.cu: .8192, 8192"),
                ("promotion", "rows", 3, "errors", 1, 1.2e-4, "errors at K = 4096: .*1.20e-04.*; sidebars/chapter-12-promotion.txt: .*1.03e-04")):
            def change(data, way=way, wrong=wrong):
                *to, last = way
                for key in to:
                    data = data[key]
                data[last] = wrong
            with self.subTest(name, way=way):
                self.refused(name, change, text)

    def test_a_wrong_schedule_is_refused(self):
        for key, wrong, text in (("key_tiles", 7, "query tile 7 of head 2 visits 7 key tiles; its last query sees keys of 8"),
                                 ("head", 1, "does not have each of 8 query tiles of 4 heads once")):
            self.refused("attention-schedule", lambda data: data["queue"][2].update({key: wrong}), text)
        self.refused("attention-schedule", lambda data: data["queue"].reverse(), "the longest tiles first")

        def change(place, value):
            return lambda data: data["blocks"][1]["chunks"].__setitem__(place, value)
        self.refused("attention-schedule", change(0, 131), "tile 131 is divided, and it is a whole one")
        self.refused("attention-schedule", change(1, 5), "the chunks of tile 132 have 24 of its 24 key tiles, or one twice")
        self.refused("attention-schedule", change(2, 5), "the chunks of tile 132 have 23 of its 24 key tiles, or one twice")

    def test_a_wrong_pair_is_refused(self):
        for key, value in (("max", 7), ("sum", 1.2)):
            self.refused("online-softmax", lambda data: data["steps"][4].update({key: value}), "after 4: .* the kernel had")
            self.refused("online-softmax", lambda data: data["halves"][1].update({key: value}), "the second half: .* the kernel had")
            self.refused("online-softmax", lambda data: data["merged"][0].update({key: value}), "the merged halves: .* the kernel had")

    def test_another_first_element_is_refused(self):
        def change(data):
            data["rows"][0]["first"][3] += 2 ** -10
        self.refused("promotion", change, "K = 512, promotion never: element .0, 0. is .*; the tensor core's was")


class Pages(Folder):
    """A page shows the picture of a recorded request of a source."""

    def setUp(self):
        super().setUp()
        self.file("chapters/01/mine.cuh", "a\nb\ny = tile[x];\n")
        data = SHARED["[32]"] | {"file": "chapters/01/mine.cuh"}
        self.data = document(data, GLOBAL["strided"]) | {"chapter": 1, "capstone": None}
        self.file(f"{book.RECORDED}/copy-mine.json", self.data)
        self.page = self.file("chapters/01/README.md", "words\n\n<!-- picture copy-mine shared load -->\n\nmore\n")

    def fill(self):
        drawn = {}
        text = book.filled(self.page.read_text(), self.page, self.folder, drawn)
        return text, drawn

    def wrong(self, drawn):
        return "\n".join(book.wrong(self.folder, drawn, True))

    def write(self):
        text, drawn = self.fill()
        self.page.write_text(text)
        for path, svg in drawn.items():
            self.file(path.relative_to(self.folder), svg)
        return drawn

    def test_the_picture_stands_below_its_line(self):
        drawn = self.write()
        text = self.page.read_text()
        self.assertRegex(text, r"load -->\n\n!\[Bank grid [^]]+\]\(\.\./\.\./plots/figures/pictures/copy-mine-shared-load.svg\)\n\nmore")
        self.assertEqual((self.fill()[0], self.wrong(drawn)), (text, ""))
        alternative, said = re.search(r"!\[([^]]+)\]", text)[1], re.search("<desc>(.*)</desc>", next(iter(drawn.values())))[1]
        self.assertTrue(said.startswith(alternative) and len(said) > len(alternative), "the page has the first sentences only")

    def test_a_picture_of_other_data_is_found(self):
        drawn = self.write()
        path = next(iter(drawn))
        path.write_text(path.read_text().replace("wavefront 7<", "wavefront 8<"))
        self.assertIn("not what its data make", self.wrong(drawn))

    def test_what_no_page_shows_is_found(self):
        drawn = self.write()
        self.file(f"{book.DRAWN}/left.svg", "<svg/>")
        self.file(f"{book.RECORDED}/other.json", document(SHARED["XOR"]))
        self.assertEqual(len(self.wrong(drawn).split("\n")), 2)

    def test_another_source_is_refused_and_a_moved_line_is_followed(self):
        self.file("chapters/01/mine.cuh", "a comment\n\na\nb\n  y = tile[x];\n")
        self.assertIn("mine.cuh:5 ", next(iter(self.fill()[1].values())))
        self.file("chapters/01/mine.cuh", "y = tile[x + 1];\n")
        with self.assertRaisesRegex(book.ResultError, "recorded of another source"):
            self.fill()

    def test_lines_that_do_not_add_up_to_the_counters_are_found(self):
        counters = {"shared_load_wavefronts": 32, "global_load_sectors": 32}
        run = {"ladder": "copy", "problem": {"trace_size": [64]}, "levels": [{"name": "mine", "counters": counters}]}
        self.file("plots/results/simt/chapter-1.json", {"runs": [run]})
        self.assertEqual(self.wrong(self.write()), "")
        counters["shared_load_wavefronts"] = 33
        self.file("plots/results/simt/chapter-1.json", {"runs": [run]})
        self.assertRegex(self.wrong(self.write()), "its lines have 32 shared_load_wavefronts, the level 33")

    def test_a_request_that_is_not_there_is_refused(self):
        self.page.write_text("<!-- picture copy-mine shared store -->\n")
        with self.assertRaisesRegex(book.ResultError, "nothing in it is called 'shared store'"):
            self.fill()


def section_of(page, anchor):
    """The text below the heading with this anchor, up to the next one of its size or larger; of no anchor the page's."""
    text = page.read_text()
    if not anchor:
        return text
    parts = re.split(r"^(#{1,4}) (.*)\n", text, flags=re.MULTILINE)
    for at in range(1, len(parts), 3):
        if re.sub(r"[^\w\- ]", "", parts[at + 1].lower().strip()).replace(" ", "-") == anchor:
            found = parts[at + 2]
            for size, _, body in zip(*[iter(parts[at + 3:])] * 3):
                if len(size) <= len(parts[at]):
                    break
                found += body
            return found
    return ""


def questions_without_picture(text, page):
    """[question] of a table whose links lead to no section with a picture that exists, and how many questions there are."""
    rows = [row.strip("|").split("|") for row in re.findall(r"^\|.*\?.*\|$", text, re.MULTILINE)]
    found = []
    for question, *_, links in rows:
        sections = [((page.parent / path).resolve() if path else page, anchor)
                    for path, anchor in re.findall(r"\]\(([^)\s#]*)#?([^)\s]*)\)", links)]
        images = [file.parent / image for file, anchor in sections
                  for image in re.findall(r'!\[[^]]+\]\(([^)\s]+)\)|<img src="([^"]+)"', section_of(file, anchor)) for image in filter(None, image)]
        if not images or not all(image.exists() for image in images):
            found.append(question.strip())
    return found, len(rows)


class Book(unittest.TestCase):
    def test_each_question_leads_to_a_picture_that_exists(self):
        page = ROOT / "docs/pictures.md"
        text = page.read_text()
        found, count = questions_without_picture(text, page)
        self.assertEqual(found, [])
        self.assertGreaterEqual(count, 10)
        row = next(line for line in text.splitlines() if line.startswith("| what is a descriptor?"))
        for wrong in (row.replace("#2--wgmma", "#5--warp_specialised"), row.replace("#2--wgmma", "#2--wgmm")):
            self.assertEqual(questions_without_picture(text.replace(row, wrong), page), (["what is a descriptor?"], count))

    def test_an_alternative_carries_a_number(self):
        """It says what to see and how much, in its first sentence; no picture is only called what it is."""
        for page in (*(ROOT / "chapters").glob("*/*.md"), *(ROOT / "docs").glob("*.md")):
            for alternative in re.findall(rf"!\[([^]]+)\]\([./]*{book.DRAWN}/", page.read_text()):
                with self.subTest(page.name, alternative=alternative):
                    self.assertGreaterEqual(len(re.findall(r"\d[\d.,]*", alternative)), 2)

    def test_every_word_of_a_legend_occurs(self):
        words = 0
        for file in sorted((ROOT / book.DRAWN).glob("*.svg")):
            with self.subTest(file.name):
                self.assertEqual(unexplained(file.read_text()), [])
            words += file.read_text().count('width="11" height="11" class="edge"')
        self.assertGreater(words, 30)

    def test_each_chapter_from_1_to_10_has_a_picture(self):
        def without(text_of):
            return [number for number in range(1, 11) if not book.MARK.search(text_of(next((ROOT / "chapters").glob(f"{number:02}_*/README.md"))))]
        self.assertEqual(without(Path.read_text), [])
        self.assertEqual(without(lambda page: page.read_text().replace("<!-- picture sgemm", "<!-- none")), [2, 4])

    def test_the_pages_show_what_is_recorded(self):
        """Beside `./run plots --check`: every picture is in a page, and the page's words are its own."""
        shown = set()
        for page in (*(ROOT / "chapters").glob("*/*.md"), *(ROOT / "docs").glob("*.md")):
            shown |= set(re.findall(rf"\]\((?:\.\./)+{book.DRAWN}/([\w-]+)\.svg\)", page.read_text()))
        self.assertEqual(shown, {file.stem for file in (ROOT / book.DRAWN).glob("*.svg")})


if __name__ == "__main__":
    unittest.main()
