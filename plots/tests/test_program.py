# SPDX-License-Identifier: MIT
"""./run roofline: what it makes of ncu's CSV, with a stand-in for ncu, and what it refuses."""
import json
import os
import unittest
from pathlib import Path
from unittest import mock

from cookbook_plots import program, style

from .fixtures import Folder, said

HEADER = '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'


def launch_of(index, kernel, nanoseconds, dram, l2, ffma=0, tensor=0):
    return [f'"{index}","7","{kernel}","{metric}.sum","{unit}","{value}"' for metric, unit, value in (
        ("gpu__time_duration", "ns", nanoseconds), ("dram__bytes", "byte", dram), ("lts__t_bytes", "byte", l2),
        ("l1tex__t_bytes", "Kbyte", "1,000"), ("smsp__sass_thread_inst_executed_op_ffma_pred_on", "inst", ffma),
        ("smsp__sass_thread_inst_executed_op_fadd_pred_on", "inst", 10),
        ("sm__ops_path_tensor_src_bf16_dst_fp32", "", tensor), ("sm__ops_path_tensor_src_tf32_dst_fp32", "", "n/a"))]


SAXPY, GEMM = "void mine::saxpy<float>(int, float*)", "gemm(const float *, float *)"
CSV = "\n".join(["==PROF== Connected", HEADER] + launch_of(0, SAXPY, "1,000", "4,000,000", 5000000, ffma=45)
                + launch_of(1, GEMM, 50000, 2000000, 9000000, tensor=10**9) + launch_of(2, SAXPY, 3000, 4000000, 5000000, ffma=55))
ROOFS = {"hbm_copy_gbps": 4000, "l2_gbps": 8000, "shared_gbps": 30000, "fp32_tflops": 60, "wgmma_bf16_tflops": 900,
         "mma_bf16_tflops": 600}
STAND_INS = Path(__file__).with_name("stand_ins")


class Parsing(unittest.TestCase):
    def test_launches_of_one_kernel_are_added_and_the_longest_comes_first(self):
        gemm, saxpy = program.kernels_of(CSV)
        self.assertEqual((gemm.name, gemm.launches, saxpy.name, saxpy.launches), ("gemm", 1, "saxpy<float>", 2))
        self.assertAlmostEqual(saxpy.seconds, 4e-6)
        self.assertEqual(saxpy.bytes, {"dram": 8e6, "l2": 1e7, "l1": 2e6})
        self.assertEqual(saxpy.work, {"fp32": 2 * 100 + 20, "tensor": 0})
        self.assertEqual(gemm.work["tensor"], 1e9)

    def test_names_are_short(self):
        for name, expected in {"void a::b::k<int, (bool)1>(int)": "k<int, (bool)1>", "k(float *)": "k",
                               "void (anonymous namespace)::k(int)": "k", "_Z1kv": "_Z1kv",
                               "void k<" + "x" * 40 + ">(int)": "k<...>"}.items():
            self.assertEqual(program.short(name), expected)

    def test_the_binding_roof_is_the_nearest(self):
        gemm, saxpy = program.kernels_of(CSV)
        self.assertEqual(gemm.binding(ROOFS), "no roof reached, nearest L2: 2 % of 8.0 TB/s (ncu)")
        # 8 MB in 4 us: 2,000 GB/s of 4,000; 10 MB: 2,500 of 8,000.
        self.assertEqual(saxpy.binding(ROOFS), "no roof reached, nearest device memory: 50 % of 4.0 TB/s (ncu)")
        self.assertEqual(saxpy.binding({}), "")

    def test_without_a_kernel_it_says_so(self):
        for text in ("", HEADER, "==PROF== nothing"):
            with self.assertRaisesRegex(program.ResultError, "measured no kernel"):
                program.kernels_of(text)

    def test_the_table_has_at_most_100_columns(self):
        kernels = program.kernels_of(CSV.replace("gemm", "a_kernel_whose_name_is_much_longer_than_its_column_is"))
        lines = program.table(kernels, ROOFS)
        self.assertEqual(len(lines), 5)
        self.assertLessEqual(max(map(len, lines)), 100)


class Command(Folder):
    def setUp(self):
        super().setUp()
        self.program("ncu", (STAND_INS / "ncu.py").read_text())
        self.program("nvidia-smi", "#!/bin/sh\necho 'NVIDIA H200'\n")
        self.program("prog", "#!/bin/sh\n")
        self.environment = {"PATH": f"{self.folder}:{os.environ['PATH']}", "FAKE_CSV": CSV,
                            "FAKE_LOG": str(self.folder / "log"), "COOKBOOK_CALLER": str(self.folder)}

    def run_it(self, *arguments, **environment):
        with mock.patch.dict(os.environ, {**self.environment, **environment}):
            return said(program.main, list(arguments))

    def test_it_prints_draws_and_writes_and_draws_again_from_the_file(self):
        status, out, err = self.run_it("--out", "figures", "--kernel", "gemm|saxpy", "--", "./prog", "--size", "5")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("saxpy<float>", out)
        command = (self.folder / "log").read_text()
        self.assertTrue(command.startswith(str(self.folder)), "the program runs in the caller's folder")
        self.assertTrue(command.strip().endswith("--kernel-name regex:gemm|saxpy ./prog --size 5"), command)
        written = json.loads((self.folder / "figures/roofline.json").read_text())
        self.assertEqual([kernel["launches"] for kernel in written["kernels"]], [1, 2])
        self.assertEqual(written["kernels"][1]["bytes"]["dram"], 4e6)  # per launch
        drawn = (self.folder / "figures/roofline-light.svg").read_text()
        for text in ("0 · gemm", "1 · saxpy", "NVIDIA H200", "wgmma bf16"):
            self.assertIn(text, drawn)
        (self.folder / "figures/roofline-dark.svg").unlink()
        status, again, _ = self.run_it("--out", "figures", "figures/roofline.json", PATH=str(self.folder / "nothing"))
        self.assertEqual(status, 0)
        self.assertEqual(again.splitlines()[:5], out.splitlines()[:5])
        self.assertTrue((self.folder / "figures/roofline-dark.svg").exists())

    def test_a_gpu_without_some_counters_gives_time_and_bytes(self):
        status, _, err = self.run_it("--out", "figures", "--", "./prog", FAKE_MISSING="1")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(len((self.folder / "log").read_text().splitlines()), 2)

    def test_kernels_that_only_move_bytes_have_bars_and_no_roofline(self):
        moving = "\n".join(line for line in CSV.splitlines() if "smsp__" not in line and "sm__ops" not in line)
        kernels = program.kernels_of(moving)
        document = program.document_of("prog", "NVIDIA H200", kernels)
        with style.Theme("light") as theme:
            self.assertEqual(len(program.figure_of(kernels, document, theme).axes), 1)
            document = program.document_of("prog", "An unknown GPU", program.kernels_of(CSV))
            self.assertEqual(len(program.figure_of(program.kernels_of(CSV), document, theme).axes), 2)

    def test_bad_input_gets_one_line_and_2(self):
        self.file("bad.json", {"kernels": [{"name": 1}]})
        for arguments, reason in (((), "takes a program after --"), (("a.json", "--", "./prog"), "takes a program"),
                                  (("--", "./nothing"), "no program './nothing'"), (("missing.json",), "no such file"),
                                  (("bad.json",), "not a file of ./run roofline"),
                                  (("--launches", "0", "--", "./prog"), "must be above 0")):
            status, out, err = self.run_it(*arguments)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), arguments)
            self.assertIn(reason, err)
        for printed, ended, reason in (("==ERROR== ERR_NVGPUCTRPERM", "1", "refuses counters"), ("", "3", "exit status 3")):
            status, _, err = self.run_it("--", "./prog", FAKE_CSV=printed, FAKE_STATUS=ended)
            self.assertEqual(status, 2)
            self.assertIn(reason, err)


if __name__ == "__main__":
    unittest.main()
