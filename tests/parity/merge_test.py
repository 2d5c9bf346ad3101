#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""merge.py and table.py on made-up pages in the layout that Nsight Compute prints."""
import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import merge
import table

KERNEL = "_Z5tilesPKfPf"

SASS = """
\t.section\t.text._Z5tilesPKfPf,"ax",@progbits
.text._Z5tilesPKfPf:
\t//## File "/src/./chapters/9/level.cuh", line 2
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/src/common/device/vector.cuh", line 77 inlined at "/src/chapters/9/level.cuh", line 3
\t//## File "/src/chapters/9/level.cuh", line 3 inlined at "/src/chapters/9/level.cuh", line 9
\t//## File "/src/chapters/9/level.cuh", line 9
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/                   STS [R0], R4 ;
\t//## File "/src/chapters/9/level.cuh", line 5
        /*0030*/                   LDS.64 R4, [R2] ;
        /*0040*/                   ATOMS.ADD R4, [R2], R5 ;
        /*0050*/                   STG.E desc[UR4][R6.64], R4 ;
\t.section\t.text._Z5otherv,"ax",@progbits
        /*0000*/                   EXIT ;
"""

SOURCE = "line one\n  line two\n  value = in[i];  // \"quoted\"\nfour\n  out[j] = tile[j];\n"

LABELS = ["Instructions Executed", "L1 Tag Requests Global", "L2 Theoretical Sectors Global",
          "L2 Theoretical Sectors Global Ideal", "L1 Wavefronts Shared",
          "L1 Wavefronts Shared Ideal"]
COUNTED = [  # sass, then the six of LABELS
    ("LDC R1, c[0x0][0x28]", 64, 0, 0, 0, 0, 0),
    ("@!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64]", 64, 256, 1024, 1024, 0, 0),
    ("STS [R0], R4", 64, 0, 0, 0, 64, 64),
    ("LDS.64 R4, [R2]", 64, 0, 0, 0, 2048, 128),
    ("ATOMS.ADD R4, [R2], R5", 64, 0, 0, 0, 640, 64),
    ("STG.E desc[UR4][R6.64], R4", 64, 64, 256, 256, 0, 0),
]

ASYNC_KERNEL = "_Z6copiesPKfPf"
# As ptxas writes them: the last predicate of LDGSTS says whether to read or to fill with zeros, and
# the loads that never execute stand before the wait.
ASYNC_SASS = """
\t.section\t.text._Z6copiesPKfPf,"ax",@progbits
\t//## File "/src/common/device/copy.cuh", line 55 inlined at "/src/chapters/9/level.cuh", line 3
\t//## File "/src/chapters/9/level.cuh", line 3 inlined at "/src/chapters/9/level.cuh", line 9
\t//## File "/src/chapters/9/level.cuh", line 9
        /*0000*/                   LDGSTS.E.BYPASS.LTC128B.128 [R14], desc[UR14][R18.64], P1 ;
        /*0010*/              @!P2 LDGSTS.E [R25], desc[UR6][R28.64], !P2 ;
\t//## File "/src/chapters/9/level.cuh", line 2
        /*0020*/              @!PT LDS RZ, [RZ] ;
        /*0030*/                   LDGDEPBAR ;
\t//## File "/src/common/device/mma.cuh", line 61 inlined at "/src/chapters/9/level.cuh", line 5
\t//## File "/src/chapters/9/level.cuh", line 5
        /*0040*/                   LDSM.16.MT88.4 R8, [R2+0x80] ;
        /*0050*/                   LDSM.16.M88 R8, [R2] ;
        /*0060*/                   LD.E R4, desc[UR6][R8.64] ;
        /*0070*/                   STSM.16.M88.2 [R2], R8 ;
"""
ASYNC_COUNTED = [
    ("LDGSTS.E.BYPASS.LTC128B.128 [R14], desc[UR14][R18.64], P1", 32, 128, 512, 512, 256, 128),
    ("@!P2 LDGSTS.E [R25], desc[UR6][R28.64], !P2", 16, 16, 64, 64, 16, 16),
    ("@!PT LDS RZ, [RZ]", 16, 0, 0, 0, 0, 0),
    ("LDGDEPBAR", 16, 0, 0, 0, 0, 0),
    ("LDSM.16.MT88.4 R8, [R2+0x80]", 16, 0, 0, 0, 512, 64),
    ("LDSM.16.M88 R8, [R2]", 16, 0, 0, 0, 16, 16),
    ("LD.E R4, desc[UR6][R8.64]", 16, 0, 0, 0, 128, 16),
    ("STSM.16.M88.2 [R2], R8", 16, 0, 0, 0, 32, 32),
]


def source_page(launches=1, kernel=KERNEL, rows=COUNTED):
    out = []
    for _ in range(launches):
        out.append(f'"Kernel Name","{kernel}"')
        out.append(",".join(f'"{name}"' for name in
                            ["#", "Address", "Source", "# Samples", LABELS[0], *LABELS,
                             "Access Size"]))
        for i, (sass, *counters) in enumerate(rows):
            values = [f"{counters[0]:,}"] + [f"{value:,}" if value else "-" for value in counters]
            out.append(",".join(f'"{value}"' for value in
                                [i, hex(0x7f3a00000500 + 16 * i), "      " + sass, 3, *values, ""]))
    return "\n".join(out) + "\n"


def raw_page(launches=1, kernel=KERNEL, more=()):
    values = {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "64",
              "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "1,024",
              "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "64",
              "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "256", **dict(more)}
    names = list(dict.fromkeys([*merge.HARDWARE.values(), *more]))
    out = ['"ID","Kernel Name",' + ",".join(f'"{name}"' for name in names),
           '"","",' + ",".join('"sector"' for _ in names)]
    for i in range(launches):
        out.append(f'"{i}","{kernel}",' + ",".join(f'"{values.get(name, "7")}"' for name in names))
    return "==PROF== a line that is not CSV\n" + "\n".join(out) + "\n"


class Merge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.raw = pathlib.Path(self.folder.name)
        (self.raw / "sources/chapters/9").mkdir(parents=True)
        (self.raw / "sources/chapters/9/level.cuh").write_text(SOURCE)
        (self.raw / "00_levels.sass").write_text(SASS)
        self.write([{"name": "g/ladder/one", "size": [4, 8], "kernels": [KERNEL]}])

    def tearDown(self):
        self.folder.cleanup()

    def write(self, cases, **pages):
        (self.raw / "manifest.json").write_text(json.dumps({
            "source_dir": "/src", "cases": cases,
            "device": {"name": "a GPU", "toolkit": "1", "driver": "2", "sm_count": 3}}))
        launches = sum(len(case["kernels"]) for case in cases)
        (self.raw / "source_g.csv").write_text(pages.get("source") or source_page(launches))
        (self.raw / "raw_g.csv").write_text(pages.get("raw") or raw_page(launches))

    def check_one(self, case):
        self.assertEqual(case["size"], [4, 8])
        self.assertEqual(case["totals"]["global_load"], {"requests": 64, "sectors": 1024})
        self.assertEqual(case["totals"]["global_store"], {"requests": 64, "sectors": 256})
        self.assertEqual(case["totals"]["shared_load"],
                         {"requests": 64, "wavefronts": 2048, "conflicts": 1920,
                          "pipe_wavefronts": 7, "pipe_conflicts": 7})
        self.assertEqual(case["totals"]["shared_store"]["conflicts"], 0)
        self.assertNotIn("notes", case)
        self.assertEqual(
            [(line["line"], line["op"], line["bytes"], line["text"]) for line in case["lines"]],
            [(3, "global_load", 16, 'value = in[i];  // "quoted"'),
             (3, "shared_store", 4, 'value = in[i];  // "quoted"'),
             (5, "global_store", 4, "out[j] = tile[j];"),
             (5, "shared_load", 8, "out[j] = tile[j];")])
        self.assertEqual(case["lines"][0]["sass"], ["LDG.E.128.CONSTANT"])

    def test_one_launch(self):
        golden, rows, problems = merge.merge(self.raw)
        self.assertEqual(problems, [])
        self.check_one(golden["cases"]["g/ladder/one"])
        self.assertEqual([row["offset"] for row in rows], [16, 32, 48, 80])

    def test_launches_belong_to_cases_in_order_and_add_up(self):
        self.write([{"name": "g/a", "size": [1], "kernels": [KERNEL]},
                    {"name": "g/b", "size": [1], "kernels": [KERNEL] * 3}])
        golden, _, problems = merge.merge(self.raw)
        self.assertEqual(problems, [])
        self.assertEqual(golden["cases"]["g/a"]["totals"]["global_load"]["sectors"], 1024)
        self.assertEqual(golden["cases"]["g/b"]["totals"]["global_load"]["sectors"], 3072)
        self.assertEqual(golden["cases"]["g/b"]["lines"][0]["requests"], 192)

    def test_metric_names_instead_of_labels(self):
        page = source_page()
        for _, name, label in reversed(merge.COUNTERS):  # longer labels first
            page = page.replace(f'"{label}"', f'"{name}"')
        self.write([{"name": "g/ladder/one", "size": [4, 8], "kernels": [KERNEL]}], source=page)
        golden, _, problems = merge.merge(self.raw)
        self.assertEqual(problems, [])
        self.check_one(golden["cases"]["g/ladder/one"])

    def test_demangled_names_are_accepted(self):
        self.write([{"name": "g/ladder/one", "size": [4, 8], "kernels": [KERNEL]}],
                   source=source_page(kernel="tiles(const float *, float *)"),
                   raw=raw_page(kernel="tiles(const float *, float *)"))
        golden, _, problems = merge.merge(self.raw)
        self.assertEqual(problems, [])
        self.check_one(golden["cases"]["g/ladder/one"])

    def test_report_takes_the_place_of_pages(self):
        for page in ("source_g.csv", "raw_g.csv"):
            (self.raw / page).write_text("==ERROR== unknown option\n")
        names = [name for _, name, _ in merge.COUNTERS]
        (self.raw / "report_g.json").write_text(json.dumps([{
            "kernel": KERNEL, "metrics": dict(merge.parse_raw_page(raw_page())[0][1]),
            "instructions": [{"pc": 0x500 + 16 * i, "sass": sass, **dict(zip(names, counters))}
                             for i, (sass, *counters) in enumerate(COUNTED)]}]))
        golden, _, problems = merge.merge(self.raw)
        self.assertEqual(problems, [])
        self.check_one(golden["cases"]["g/ladder/one"])

    def copies(self, counted=ASYNC_COUNTED, **more):
        """The case of ASYNC_SASS, without ordinary stores of global memory."""
        (self.raw / "01_levels.sass").write_text(ASYNC_SASS)
        # The launch's counter of loads: what the copies read, and nothing else.
        loads = merge.HARDWARE[("global_load", "sectors")]
        zero = {name: "0" for name in merge.HARDWARE.values() if "mem_global" in name}
        zero[loads] = "576"
        self.write([{"name": "g/ladder/copies", "size": [4, 8], "kernels": [ASYNC_KERNEL]}],
                   source=source_page(kernel=ASYNC_KERNEL, rows=counted),
                   raw=raw_page(kernel=ASYNC_KERNEL, more={**zero, **more}))
        golden, rows, problems = merge.merge(self.raw)
        self.assertEqual(problems, [])
        return golden["cases"]["g/ladder/copies"], rows

    def test_copies_count_on_both_sides(self):
        case, rows = self.copies()
        self.assertEqual(case["totals"], {
            "shared_load": {"requests": 48, "wavefronts": 656, "conflicts": 560,
                            "pipe_wavefronts": 7, "pipe_conflicts": 7},
            "shared_store": {"requests": 16, "wavefronts": 32, "conflicts": 0,
                             "pipe_wavefronts": 7, "pipe_conflicts": 7},
            "global_async_load": {"requests": 48, "sectors": 576},
            "shared_async_store": {"requests": 48, "wavefronts": 272, "conflicts": 128}})
        self.assertNotIn("notes", case)
        self.assertEqual(
            [(line["line"], line["op"], line["bytes"], line["requests"]) for line in case["lines"]],
            [(3, "global_async_load", 16, 48), (3, "shared_async_store", 16, 48),
             (5, "shared_load", 16, 48), (5, "shared_store", 8, 16)])
        self.assertEqual(case["lines"][2]["sass"], ["LD.E", "LDSM.16.M88", "LDSM.16.MT88.4"])
        self.assertEqual([(row["offset"], row["op"]) for row in rows[:4]],
                         [(0, "global_async_load"), (0, "shared_async_store"),
                          (16, "global_async_load"), (16, "shared_async_store")])

    def test_loads_beside_copies(self):
        loads = merge.HARDWARE[("global_load", "sectors")]
        plain = list(ASYNC_COUNTED)
        plain[6] = ("LD.E R4, desc[UR6][R8.64]", 16, 16, 48, 48, 0, 0)  # of global memory now
        case, _ = self.copies(plain, **{loads: "624"})
        self.assertEqual(case["totals"]["global_load"], {"requests": 16, "sectors": 48})
        self.assertEqual(case["totals"]["global_async_load"], {"requests": 48, "sectors": 576})
        self.assertNotIn("notes", case)
        case, _ = self.copies(plain, **{loads: "640"})  # the launch's counter is believed
        self.assertEqual(case["totals"]["global_load"]["sectors"], 48)
        self.assertEqual(case["totals"]["global_async_load"]["sectors"], 592)
        self.assertEqual(case["notes"], ["global_load and global_async_load: 640 sectors in all, "
                                         "but 48 and 576 over their instructions"])

    def test_counters_that_not_every_gpu_has(self):
        access, bypass = merge.OPTIONAL[("global_async_load", "pipe_sectors")]
        [conflicts] = merge.OPTIONAL[("shared_async_store", "pipe_conflicts")]
        case, _ = self.copies(**{access: "64", bypass: "512", conflicts: "9"})
        self.assertEqual(case["totals"]["global_async_load"],
                         {"requests": 48, "sectors": 576, "pipe_sectors": 576})
        self.assertEqual(case["totals"]["shared_async_store"]["pipe_conflicts"], 9)
        self.assertNotIn("notes", case)
        case, _ = self.copies(**{access: "64"})  # one of two is none
        self.assertNotIn("pipe_sectors", case["totals"]["global_async_load"])
        case, _ = self.copies(**{access: "64", bypass: "500"})
        self.assertEqual(case["notes"], ["global_async_load: 576 sectors over its instructions, "
                                         "but 564 through the pipe"])

    def fails_with(self, text, **pages):
        self.write([{"name": "g/ladder/one", "size": [4, 8], "kernels": [KERNEL]}], **pages)
        golden, _, problems = merge.merge(self.raw)
        self.assertEqual(golden["cases"], {})
        self.assertEqual(len(problems), 1)
        self.assertIn(text, problems[0])

    def test_what_does_not_fit_is_said(self):
        self.fails_with("2 launches profiled, 1 expected",
                        source=source_page(2), raw=raw_page(2))
        self.fails_with("2 launches on the source page, 1 on the raw page", source=source_page(2))
        self.fails_with("ran _Z3foov", source=source_page(kernel="_Z3foov"),
                        raw=raw_page(kernel="_Z3foov"))
        self.fails_with("not in any .sass file",
                        source=source_page(rows=[COUNTED[1], *COUNTED[1:]]))
        self.fails_with("no counters per instruction",
                        source=source_page(rows=[(sass, 64, 0, 0, 0, 0, 0)
                                                 for sass, *_ in COUNTED]))
        for _, name, label in merge.COUNTERS:
            page = source_page().replace(f'"{label}"', '"a new name"')
            self.fails_with(f"source_g.csv: no column '{label}' ({name})", source=page)
        self.fails_with("source_g.csv: 'n/a' is no count", source=source_page().replace('"1,024"', '"n/a"'))
        self.fails_with("'nan' is no count", raw=raw_page().replace('"1,024"', '"nan"'))
        missing = merge.HARDWARE[("global_load", "sectors")]
        self.fails_with(f"no {missing}", raw=raw_page().replace(missing, "something else"))

    def test_sectors_that_do_not_add_up_are_noted(self):
        self.write([{"name": "g/ladder/one", "size": [4, 8], "kernels": [KERNEL]}],
                   raw=raw_page().replace('"1,024"', '"1,025"'))
        golden, _, problems = merge.merge(self.raw)
        self.assertEqual(problems, [])
        self.assertEqual(golden["cases"]["g/ladder/one"]["notes"],
                         ["global_load: 1025 sectors in all, but 1024 over its instructions"])

    def test_golden_file_reads_back_and_prunes(self):
        self.write([{"name": "g/a", "size": [1], "kernels": [KERNEL]},
                    {"name": "g/b", "size": [1], "kernels": [KERNEL]}])
        golden, _, _ = merge.merge(self.raw)
        path = self.raw / "golden.json"
        merge.write_golden(path, golden)
        self.assertEqual(json.loads(path.read_text()), golden)
        (self.raw / "cases.json").write_text(json.dumps({"cases": [{"name": "g/b"}]}))
        with contextlib.redirect_stdout(io.StringIO()):
            merge.prune(path, self.raw / "cases.json")
        self.assertEqual(list(json.loads(path.read_text())["cases"]), ["g/b"])

    def test_table(self):
        golden, _, _ = merge.merge(self.raw)
        text = table.tables(golden, [])
        self.assertIn("| `ladder/one` | 4x8 | 64 / 1,024 | 64 / 256 | 2,048 / 1,920 | 64 / 0 "
                      "| equal |", text)
        self.assertNotIn("cp.async", text)
        exception = {"case": "g/ladder/one", "op": "shared_load", "hardware": 1920, "simt": 5,
                     "why": "nvcc fuses loads"}
        text = table.tables(golden, [exception])
        self.assertIn("| differs (1) |", text)
        self.assertIn("1. nvcc fuses loads\n   - `g/ladder/one`: shared_load conflicts in all: "
                      "hardware 1,920, SIMT 5", text)

    def test_table_of_copies(self):
        self.copies()
        golden, _, _ = merge.merge(self.raw)
        text = table.tables(golden, [])
        self.assertIn("| `cp.async` reads: requests / sectors "
                      "| `cp.async` writes: wavefronts / conflicts | SIMT |", text)
        self.assertIn("| `ladder/copies` | 4x8 |  |  | 656 / 560 | 32 / 0 | 48 / 576 | 272 / 128 "
                      "| equal |", text)


if __name__ == "__main__":
    unittest.main()
