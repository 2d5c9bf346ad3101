# SPDX-License-Identifier: MIT
"""Unit tests of ./run compare: what is wrong is not timed, the arguments, and - where PyTorch and Triton are
installed - Triton's kernels, in its interpreter on the CPU."""
import contextlib
import functools
import importlib.util
import io
import os
import shutil
import sys
import types
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import compare
import contestants
from contestants import (cutile, cutlass, flash_attention_3, libraries, quack_softmax, tilelang_kernels,
                         timing)
from cookbook_plots import book

from .fixtures import Folder

STAND_INS = Path(__file__).with_name("stand_ins")

INSTALLED = all(importlib.util.find_spec(name) for name in ("torch", "triton"))
if INSTALLED:
    os.environ.setdefault("TRITON_INTERPRET", "1")
FILE = "chapters/09_online_softmax/level_6_cluster.cuh"


class FlashAttention3(unittest.TestCase):
    """Where it cannot run, the reason is given, and nothing else is lost."""

    def make(self, path, dtype="bfloat16", seq=4):
        torch = mock.Mock(bfloat16="bfloat16")
        q = mock.Mock(dtype=dtype, shape=(1, seq, 2, 64))
        with mock.patch.dict(sys.modules, torch=torch, flash_attn_interface=None), \
                mock.patch.dict(os.environ, COOKBOOK_FA3_LIBRARY=path):
            return flash_attention_3.make(q, q, q, q, q, False)

    def test_reasons(self):
        self.assertEqual(self.make(""), "not installed")
        self.assertIn("COOKBOOK_FA3_LIBRARY=/nowhere.so: ", self.make("/nowhere.so"))
        self.assertIn("bf16 only", self.make("/nowhere.so", dtype="float16"))
        self.assertIn("no split kernels", self.make("/nowhere.so", seq=1))
        self.assertIn("COOKBOOK_FA3_LIBRARY=libm.so.6: ", self.make("libm.so.6"))  # without the function

    def test_the_source_of_a_level_is_found(self):
        import compare_attention
        for level, file in compare_attention.LEVELS.items():
            self.assertEqual(compare_attention.source_of(level), book.ROOT / file)


class TileLangAndQuack(unittest.TestCase):
    """Where they cannot run, the reason is given, and nothing else is lost."""

    def test_reasons(self):
        tensor = mock.Mock(shape=(64, 64))
        with mock.patch.dict(sys.modules, {"tilelang": None, "quack": None, "quack.softmax": None, "torch": mock.Mock()}):
            self.assertIsNone(tilelang_kernels.version())
            self.assertEqual(tilelang_kernels.choose(tensor, tensor, tensor, None), (None, "not installed (PyPI: tilelang)"))
            self.assertIn("quack", quack_softmax.make(tensor, tensor))
        with mock.patch.object(quack_softmax.importlib, "import_module", side_effect=ModuleNotFoundError(name="quack")), \
                mock.patch.dict(sys.modules, torch=mock.Mock()):
            self.assertEqual(quack_softmax.make(tensor, tensor), "not installed (PyPI: quack-kernels)")
        with mock.patch.object(quack_softmax.importlib, "import_module", side_effect=RuntimeError("driver\ntoo old")), \
                mock.patch.dict(sys.modules, torch=mock.Mock()):
            self.assertEqual(quack_softmax.make(tensor, tensor), "does not load: RuntimeError: driver")
        for error in (ImportError("cannot import name", name="quack"), ModuleNotFoundError("no cutlass", name="cutlass")):
            self.assertEqual(contestants.why_not(error, "quack", "quack-kernels"), f"does not load: {type(error).__name__}: {error}")

    def test_a_configuration_that_does_not_compile_is_left_out(self):
        compiled = []

        def compile(function):
            if function[-1] != tilelang_kernels.CONFIGS[1]:
                raise RuntimeError("too much shared memory")
            return lambda *tensors: compiled.append(tensors)

        a, b, out = (mock.Mock(shape=shape) for shape in ((64, 32), (32, 48), (64, 48)))
        with mock.patch.dict(sys.modules, tilelang=mock.Mock(compile=compile)), \
                mock.patch.object(tilelang_kernels, "product", lambda *problem: problem):
            config, call = tilelang_kernels.choose(
                a, b, out, lambda configs, make: timing.fastest(configs, make, None, timing.Budget(10)))
            call()
        self.assertEqual(config, tilelang_kernels.CONFIGS[1])
        self.assertEqual(compiled, [(a, b, out)] * 2)


class Cutlass(Folder):
    """It is compiled where its headers are; otherwise the reason is given."""

    def setUp(self):
        super().setUp()
        self.file("include/cutlass/cutlass.h", "")
        self.file("include/cutlass/version.h", "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n"
                  "#define CUTLASS_OTHER\n")
        shutil.copy(STAND_INS / "nvcc.sh", self.folder / "nvcc")
        patches = (mock.patch.dict(os.environ, COOKBOOK_CUTLASS=str(self.folder), BROKEN="neither",
                                   PATH=f"{self.folder}:{os.environ['PATH']}"),
                   mock.patch.object(cutlass, "FOLDER", self.folder / "built"),
                   contextlib.redirect_stderr(io.StringIO()))
        for patch in patches:
            patch.__enter__()
            self.addCleanup(patch.__exit__, None, None, None)

    def test_headers_are_those_that_are_named(self):
        self.assertEqual(cutlass.version(), "4.2.1")
        with mock.patch.dict(os.environ, COOKBOOK_CUTLASS="/nowhere"):
            self.assertIsNone(cutlass.version())
            self.assertEqual(cutlass.build_all(), "not installed")
            self.assertEqual(cutlass.choose(cutlass.build_all(), None, None, None, None), (None, "not installed"))

    def test_a_schedule_is_compiled_once_and_again_when_its_source_changes(self):
        built = cutlass.build_all()
        self.assertEqual({path.read_text() for path in built.values()}, {"library\n"})
        self.assertEqual(len(set(built.values())), len(cutlass.SCHEDULES))
        self.assertEqual(cutlass.build_all(), built)
        self.assertEqual(len((self.folder / "log").read_text().splitlines()), 2)
        self.file("include/cutlass/version.h", "#define CUTLASS_MAJOR 5\n")
        cutlass.build_all()
        self.assertEqual(len((self.folder / "log").read_text().splitlines()), 4)

    def test_what_does_not_compile_is_a_reason(self):
        with mock.patch.dict(os.environ, BROKEN="0"):
            self.assertIn("libcutlass_gemm_0.so does not compile: error: no", cutlass.build_all())


def tilegym():
    """Stands for TileGym's modules: what its tuner would try."""
    tile = {"num_ctas": 2, "occupancy": 1, "TILE_SIZE_M": 256, "TILE_SIZE_N": 256, "TILE_SIZE_K": 64, "TILE_M": 128,
            "TILE_N": 64}
    names = ["_matmul_autotune_configs", "_static_persistent_matmul_autotune_configs", "_fmha_autotune_configs"]
    configs = {name: lambda *_: [types.SimpleNamespace(**tile, GROUP_SIZE_M=8, LOAD_LATENCY=-1)] for name in names}
    return mock.patch.object(cutile, "module", lambda ladder: types.SimpleNamespace(**configs))


class Tiles(unittest.TestCase):
    """cuTile: what it tries, what it picks, and what a configuration that takes its process along costs."""

    PROBLEM = cutile.Problem("softmax", (64, 32), "f32")

    def found(self, run, problems=None):
        with mock.patch.object(cutile, "version", lambda: "1"), mock.patch.object(cutile.CuTile, "tried", []):
            tiles = cutile.CuTile(problems or [self.PROBLEM], timing.Budget(60), run)
            return tiles, cutile.CuTile.document()

    def test_a_configuration_that_takes_its_process_along_costs_only_itself(self):
        tiles, document = self.found(lambda *order: cutile.run_child(*order, program=(sys.executable, STAND_INS / "cutile_child.py")))
        found = {entry["config"][0]: entry.get("ms", entry.get("reason")) for entry in tiles.results[self.PROBLEM]}
        gone = "hung, or ended its process"
        self.assertEqual(found, {"a": 2.0, "b": gone, "c": gone, "d": "WRONG", "e": 1.0})
        self.assertEqual(document[0]["chosen"], {"cuTile": "e 8", "cuTile, as shipped": "a 8"})
        self.assertEqual(len(document[0]["configs"]), 5)

    def test_reasons(self):
        with mock.patch.object(cutile, "version", lambda: None):
            tiles = cutile.CuTile([self.PROBLEM], timing.Budget(60))
        self.assertEqual(set(tiles.contestants(self.PROBLEM).values()), {"not installed"})
        line = {"problem": 0, "index": 0, "config": "a", "shipped": False, "reason": "WRONG"}
        for lines, ending, reasons in (
                ([{"problem": -1, "fatal": "ImportError: no tiles"}], "done", ["ImportError: no tiles"] * 2),
                ([], "out of time", ["its child process found nothing in 30 s: out of time"] * 2),
                ([line], "done", ["WRONG", "no configuration was tried in time"])):
            tiles, _ = self.found(lambda *_: (lines, ending))
            self.assertEqual(tiles.contestants(self.PROBLEM), dict(zip(("cuTile", "cuTile, as shipped"), reasons)))

    @unittest.skipIf(importlib.util.find_spec("cuda"), "cuda.tile may be installed")
    def test_the_child_says_what_is_missing(self):
        lines, ending = cutile.run_child([self.PROBLEM], [], 60)
        self.assertIn("ModuleNotFoundError", lines[0]["fatal"])
        self.assertEqual(ending, "done")

    def test_configurations(self):
        problems = [problem for name in compare.ALL for quick in (False, True)
                    for problem in importlib.import_module(f"compare_{name}").tile_problems(quick)]
        with tilegym():
            for problem in problems:
                configs = cutile.configs_of(problem, 132)
                texts = [config.text() for config in configs]
                self.assertEqual(len(texts), len(set(texts)), "the text finds the configuration again")
                self.assertTrue({config.shipped for config in configs} == {True, False}, problem)
                for config in configs:
                    self.assertLessEqual(dict(config.hints).get("num_worker_warps") or 0, 8, "more hang some kernels")
                    self.assertGreater(config.grid[0], 0)
        self.assertEqual({problem.ladder for problem in problems}, {"gemm", "softmax", "attention"})

    def test_the_winner_is_launched_at_another_length_too(self):
        tuned, longer = (cutile.Problem("attention", (1, 2, seq, 128), "bf16", True) for seq in (256, 512))
        with tilegym():
            best = cutile.attention_configs(tuned, 132)[0]
            line = {"problem": 0, "index": 0, "config": best.text(), "shipped": True, "ms": 1.0}
            tiles, _ = self.found(lambda *_: ([line], "done"), [tuned])
            launched = []
            torch = mock.Mock()
            torch.cuda.get_device_properties.return_value.multi_processor_count = 132
            with mock.patch.dict(sys.modules, torch=torch), mock.patch.object(
                    cutile, "launcher", lambda problem, config, tensors, stream: launched.append(config) or "call"):
                self.assertEqual(tiles.contestants(longer, like=tuned)["cuTile"], "call")
        self.assertEqual(launched[0].grid[0], 2 * best.grid[0])


class Output:
    """Stands for the tensor that contestants write."""

    value = None

    def fill_(self, value):
        self.value = value


class Cases(unittest.TestCase):
    PROBLEM = {"chapter": 9, "ladder": "softmax", "size": [2, 3], "dims": ["rows", "cols"], "dtype": "f32",
               "variant": "", "flops": 0, "bytes": 2e6, "unit": "GB/s"}

    def case(self, calls, time_all=None):
        out = Output()

        def contestant(value):
            if isinstance(value, str):
                return value

            def call():
                if value is not None:
                    out.value = value
            return call
        timed = time_all or (lambda running, rounds, flush: {name: [2.0, 1.0, 3.0] if name == "cluster" else [4.0] * 3
                                                             for name in running})
        return contestants.run_case(self.PROBLEM, {name: contestant(value) for name, value in calls.items()},
                                    {"cluster": FILE}, out,
                                    lambda: (abs(out.value - 1), abs(out.value - 1) < 0.1), 3, None, time_all=timed)

    def test_what_is_right_is_timed_and_compared(self):
        case = self.case({"cluster": 1.0, "PyTorch": 1.01})
        ours, theirs = case["rows"]
        self.assertEqual(ours["time_ms"]["median"], 2)
        self.assertEqual(ours["gbps"], 1.0)
        self.assertEqual(ours["identity"]["tokens"], book.token_hash(book.ROOT / FILE))
        self.assertEqual(theirs["vs_cookbook"]["ratio"], 0.5)
        self.assertIn("PyTorch", contestants.case_text(case))

    def test_what_is_wrong_or_writes_nothing_is_not_timed(self):
        case = self.case({"cluster": 1.0, "wrong": 2.0, "silent": None, "absent": "not installed"})
        self.assertEqual([row["name"] for row in case["rows"]], ["cluster"])
        self.assertIn("WRONG", case["skipped"]["wrong"])
        self.assertIn("WRONG", case["skipped"]["silent"], "NaN is never right")
        self.assertEqual(case["skipped"]["absent"], "not installed")

    def test_what_goes_wrong_while_it_is_timed_is_dropped(self):
        out = Output()
        broken = []

        def flaky():
            out.value = 2.0 if broken else 1.0

        def time_all(running, rounds, flush):
            broken.append(True)
            return {name: [1.0] for name in running}

        def steady():
            out.value = 1.0
        case = contestants.run_case(self.PROBLEM, {"PyTorch": flaky, "cluster": steady}, {"cluster": FILE}, out,
                                    lambda: (0, out.value == 1.0), 1, None, time_all=time_all)
        self.assertEqual([row["name"] for row in case["rows"]], ["cluster"])
        self.assertIn("after timing", case["skipped"]["PyTorch"])
        self.assertNotIn("cluster", case["skipped"])

    def test_each_contestant_follows_each_other_one(self):
        names, pairs = list("abcde"), {}
        for turn in range(40):
            order = timing.order(names, turn)
            self.assertEqual(sorted(order), names)
            self.assertEqual(order, timing.order(names, turn))
            for pair in zip(order, order[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        self.assertEqual(len(pairs), 20)  # a fixed or a rotating order has four or five
        self.assertLess(max(pairs.values()), 20)

    def test_quartiles(self):
        self.assertEqual(timing.quartiles([5, 1, 2, 4, 3]), [2, 3, 4])
        self.assertEqual(timing.quartiles([7]), [7, 7, 7])
        self.assertEqual(timing.quartiles([1, 2]), [1.25, 1.5, 1.75])


class Command(unittest.TestCase):
    def test_arguments(self):
        quick = compare.parse(["gemm", "--quick", "--out", "x.json"])
        self.assertEqual((quick.names, quick.rounds, quick.seconds, str(quick.out)), (["gemm"], 9, 50, "x.json"))
        self.assertEqual(compare.parse([]).names, compare.ALL)
        for wrong in (["nothing"], ["--rounds", "-1"], ["--rounds", "x"]):
            with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(io.StringIO()):
                compare.parse(wrong)
            self.assertEqual(stopped.exception.code, 2)

    def test_every_comparison_has_its_parts(self):
        for name in compare.ALL:
            module = importlib.import_module(f"compare_{name}")
            self.assertTrue(module.sizes(True) and module.sizes(False))
            for needed in module.NEEDS:
                for file in libraries.sources(needed):
                    self.assertTrue(file.exists(), file)
            for level, file in module.LEVELS.items():
                self.assertIn(f'"{level}"', (book.ROOT / file).read_text())

    def test_the_libraries_digest_follows_their_sources(self):
        digests = {libraries.digest(name, []) for name in libraries.FOLDERS}
        self.assertEqual(len(digests), len(libraries.FOLDERS))
        self.assertNotEqual(libraries.digest("gemm", []), libraries.digest("gemm", ["-O3"]))


class LibraryAttention(unittest.TestCase):
    """The autograd function of library/attention's README, beside autograd in fp64; needs a GPU."""

    @classmethod
    def setUpClass(cls):
        import compare
        if why := compare.why_not_here():
            raise unittest.SkipTest(why)
        text = (book.ROOT / "library/attention/README.md").read_text()
        cls.example = {}
        exec(text[text.index("import torch\n"):].split("```")[0], cls.example)

    def both(self, shape, causal):
        """What the example and plain PyTorch in fp64 give: o, lse, dq, dk, dv."""
        import torch
        batch, heads_q, heads_kv, seq_q, seq_k, dim = shape
        torch.manual_seed(seq_q)
        leaves = [torch.randn(batch, seq, heads, dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
                  for seq, heads in ((seq_q, heads_q), (seq_k, heads_kv), (seq_k, heads_kv))]
        wide = [leaf.detach().double().requires_grad_() for leaf in leaves]
        q, k, v = (tensor.repeat_interleave(heads_q // tensor.shape[2], 2).transpose(1, 2) for tensor in wide)
        s = q @ k.transpose(2, 3) / dim**0.5
        if causal:
            s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1 + seq_k - seq_q), float("-inf"))
        plain = ((torch.softmax(s, 3) @ v).transpose(1, 2), torch.logsumexp(s, 3))
        got = self.example["Attention"].apply(*leaves, causal)
        weights = [torch.randn_like(tensor) for tensor in got]
        for result in (got, plain):
            sum((tensor * weight).sum() for tensor, weight in zip(result, weights)).backward()
        return (*got, *(leaf.grad for leaf in leaves)), (*plain, *(leaf.grad for leaf in wide))

    def test_gradients(self):
        for shape in ((2, 4, 4, 300, 300, 128), (1, 8, 2, 130, 515, 64), (2, 4, 1, 257, 257, 128), (1, 2, 2, 1000, 1000, 64)):
            for causal in (False, True):
                for name, got, exact in zip(("o", "lse", "dq", "dk", "dv"), *self.both(shape, causal)):
                    error = (got.double() - exact).norm() / exact.norm()
                    self.assertLess(error.item(), 0.01, (name, shape, causal))

    def test_the_deterministic_kernel_repeats_itself(self):
        import torch
        library = self.example["library"]
        for dim in (64, 128):
            for causal in (0, 1):
                q, k, v, o, d_o = (torch.randn(2, 2048, 4, dim, device="cuda", dtype=torch.bfloat16) for _ in range(5))
                lse = torch.empty(2, 4, 2048, device="cuda")
                problem = libraries.AttentionProblem(2, 4, 4, 2048, 2048, dim, causal, 0)
                library.plan("attention", problem, q, k, v, o, lse)()
                runs = []
                for _ in range(20):
                    out = torch.full((3, *q.shape), float("nan"), device="cuda", dtype=torch.bfloat16)
                    library.backward("deterministic", problem, q, k, v, o, d_o, lse, None, *out)()
                    runs.append(out.view(torch.int16))
                self.assertTrue(all(torch.equal(run, runs[0]) for run in runs))
                usual = torch.empty_like(out)
                library.backward("backward", problem, q, k, v, o, d_o, lse, None, *usual)()
                self.assertLess(((out - usual).double().norm() / usual.double().norm()).item(), 1e-3)


@unittest.skipUnless(INSTALLED, "needs PyTorch and Triton")
class TritonKernels(unittest.TestCase):
    """Small and odd shapes, interpreted: no GPU is needed. In fp16: the interpreter's bf16 `dot` is wrong."""

    @classmethod
    def setUpClass(cls):
        import torch
        from contestants import triton_kernels
        if os.environ.get("TRITON_INTERPRET") != "1":
            raise unittest.SkipTest("TRITON_INTERPRET is off")
        torch.manual_seed(1)
        cls.torch, cls.kernels = torch, triton_kernels

    def test_softmax(self):
        for dtype in (self.torch.float32, self.torch.bfloat16):
            for rows, cols in ((1, 1), (5, 31), (3, 1000)):
                for config in ((4, 0), (4, 2)):
                    x = 3 * self.torch.randn(rows, cols, dtype=dtype)
                    out = self.torch.full_like(x, float("nan"))
                    self.kernels.softmax(x, out, config)
                    self.torch.testing.assert_close(out, self.torch.softmax(x.float(), 1).to(dtype))

    def test_product(self):
        for m, n, k in ((64, 64, 32), (33, 70, 45), (1, 1, 1), (130, 64, 40)):
            a, b = (self.torch.randint(-3, 4, shape).half() for shape in ((m, k), (k, n)))
            out = self.torch.full((m, n), float("nan"), dtype=self.torch.float16)
            self.kernels.product(a, b, out, (64, 32, 16, 4, 2))
            self.assertTrue(self.torch.equal(out, (a.float() @ b.float()).half()), (m, n, k))

    def test_product_with_descriptors(self):
        if self.kernels.TensorDescriptor is None:
            self.skipTest("needs Triton 3.4")
        for m, n, k in ((64, 64, 32), (72, 88, 40), (136, 64, 8)):
            a, b = (self.torch.randint(-3, 4, shape).half() for shape in ((m, k), (k, n)))
            out = self.torch.full((m, n), float("nan"), dtype=self.torch.float16)
            self.kernels.product_with_descriptors(a, b, out, (64, 32, 16, 4, 2), sms=2)()
            self.assertTrue(self.torch.equal(out, (a.float() @ b.float()).half()), (m, n, k))

    def test_attention(self):
        torch = self.torch
        for batch, heads, kv, seq_q, seq_k, dim in ((1, 1, 1, 64, 64, 64), (2, 4, 2, 33, 70, 64), (1, 2, 2, 100, 100, 128)):
            for causal in (False, True):
                q = torch.randn(batch, seq_q, heads, dim, dtype=torch.float16)
                k, v = (torch.randn(batch, seq_k, kv, dim, dtype=torch.float16) for _ in range(2))
                o = torch.full_like(q, float("nan"))
                lse = torch.full((batch, heads, seq_q), float("nan"))
                self.kernels.attention(q, k, v, o, lse, causal, (32, 32, 4, 2))
                kf, vf = (t.float().repeat_interleave(heads // kv, 2) for t in (k, v))
                s = torch.einsum("bihd,bjhd->bhij", q.float(), kf) / dim**0.5
                if causal:
                    hidden = torch.ones(seq_q, seq_k, dtype=torch.bool).tril(seq_k - seq_q).logical_not()
                    s = s.masked_fill(hidden, -float("inf"))
                exact = torch.einsum("bhij,bjhd->bihd", torch.softmax(s, 3), vf)
                torch.testing.assert_close(o.float(), exact, atol=4e-3, rtol=1e-2)
                torch.testing.assert_close(lse, torch.logsumexp(s, 3), atol=2e-3, rtol=1e-3)

    def test_every_comparison_from_end_to_end(self):
        """On the CPU, at small sizes, with stand-ins for the book's library and for the clock."""
        torch = self.torch
        torch_made = {name: getattr(torch, name) for name in ("randn", "empty", "linspace")}

        class Stand:
            def __init__(self, name):
                pass

            def plan(self, level, problem, *tensors):
                if isinstance(problem, libraries.AttentionProblem):
                    q, k, v = (t.transpose(1, 2).float() for t in tensors[:3])
                    return lambda: tensors[3].copy_(torch.nn.functional.scaled_dot_product_attention(
                        q, k, v, is_causal=bool(problem.causal)).transpose(1, 2))
                if isinstance(problem, libraries.GemmProblem):
                    return lambda: torch.matmul(*tensors[:2], out=tensors[2])
                return lambda: tensors[-1].copy_(torch.softmax(tensors[0].float(), 1))

        small = {"softmax": [("f32", 4, 33), ("bf16", 3, 64)], "gemm": [64], "attention": [(2, 2, 96, 64, True)]}
        patches = [mock.patch.object(torch, name, lambda *a, made=made, device=None, **k: made(*a, **k))
                   for name, made in torch_made.items()]
        patches += [mock.patch.object(contestants.Triton, "loaded", contestants.Triton(self.kernels, 4)),
                    mock.patch.object(contestants, "run_case", functools.partial(
                        contestants.run_case, time_all=lambda calls, *_: {name: [1.0] for name in calls}))]
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            for name, sizes in small.items():
                module = importlib.import_module(f"compare_{name}")
                stack.enter_context(mock.patch.object(module, "Library", Stand))
                stack.enter_context(mock.patch.object(module, "sizes", lambda quick, sizes=sizes: sizes))
                if hasattr(module, "run_case") and name != "attention":
                    stack.enter_context(mock.patch.object(module, "run_case", contestants.run_case))
                if name == "attention":
                    stack.enter_context(mock.patch.object(module, "time_all", lambda calls, *_: {
                        name: [1.0] for name in calls}))
                cases = list(module.cases(compare.parse(["--quick"]), None, timing.Budget(60)))
                self.assertEqual(len(cases), len(sizes))
                for case in cases:
                    rows = {row["name"] for row in case["rows"]}
                    self.assertLessEqual(set(module.LEVELS), rows, case["skipped"])
                    if case["dtype"] == "f32":
                        self.assertIn("Triton", rows, case["skipped"])
                    if name == "gemm":
                        self.assertEqual(case["skipped"]["CUTLASS"], "not installed")
                    self.assertIn(case["unit"], contestants.case_text(case))


if __name__ == "__main__":
    unittest.main()
