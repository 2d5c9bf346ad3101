#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kernels of others for Blackwell through ./run check (docs/check.md, "Kernels of others"): right as they are, and with
a planted bug not. Works on copies of local checkouts; changes only sizes and what g++ or a missing library needs.

Usage: foreign_kernels.py --build BUILD [--learn-cuda DIR] [--thunderkittens DIR] [--cutlass DIR] [--full] [NAME ...]
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/check/foreign"

# By the letter of the PTX ISA these are mistakes of the sources, which are right on a B200 all the same: no fence for
# the async proxy in the thread that writes or that initialises a barrier; registers that are converted before
# tcgen05.wait::ld; a TMA store, or an arrival at another block's barrier, that nothing orders before a block's end.
FENCES, REGISTERS, END = "proxy", "no tcgen05.wait::ld", "may (?:end|have ended)"
UNWAITED = r"read at copy_sm100\.hpp:\d+ \(.*writes at tmem_allocator"  # by such a load, when the memory is freed
KITTENS_LETTER = (FENCES, REGISTERS, END)


class Case:
    def __init__(self, name, source, call, planted, letter=(), device="b200", right=r"^0 wrong$", options=(), given=(),
                 planted_in=""):
        self.name, self.source, self.planted, self.letter, self.given = name, source, planted, letter, list(given)
        self.planted_in = planted_in or source
        self.call = call if call.endswith(")") else f"{call}(A, B, C, n, n, n)"
        self.device, self.right, self.options = device, right, options
        self.kittens, self.cutlass = source.startswith("kernels/"), source.startswith(("examples/", "test/"))
        self.checkout = "thunderkittens" if self.kittens else "cutlass" if self.cutlass else "learn_cuda"


def without(text):
    return text, ";"


WAIT = "mbarrier_wait({} + {} * 8, {});"
E, C = "02e_matmul_sm100/", "02c_matmul_sm120/"
ERRORS = r"^Error count: 0$"
SCALED = r"^err mean: +(0|[0-9.]+(e-\d+)?)$"
CASES = [
    Case("02e v1", E + "matmul_v1.cu", "matmul_v1a", without('asm volatile("tcgen05.wait::ld.sync.aligned;");')),
    Case("02e v2", E + "matmul_v2.cu", "matmul_v2a", ("SBO = 8 * 128", "SBO = 8 * 64")),
    Case("02e v3", E + "matmul_v3.cu", "matmul_v3", without("mbarrier_wait(mma_mbar_addr, mma_phase);")),
    Case("02e v4", E + "matmul_v4.cu", "matmul_v4", without("mbarrier_wait(mainloop_mbar_addr, 0);")),
    Case("02e v5", E + "matmul_v5.cu", "matmul_v5", ("cta_mask = (1 << CTA_GROUP) - 1;", "cta_mask = 1;")),
    Case("02e v6", E + "matmul_v6.cu", "matmul_v6", without(WAIT.format("mma_mbar_addr", "tma_stage", "mma_phase"))),
    Case("02e v7", E + "matmul_v7.cu", "matmul_v7_launch<256, 2, 2, false, false>(A, B, C, n, n, n, nullptr, 0)",
         without(WAIT.format("epilogue_mbar_addr", "mainloop_stage", "epilogue_phase")), letter=(END,)),
    Case("02e tmem", E + "_matmul_tmem.cu", "matmul_tmem_launch<128, 128, 64>",
         without('asm volatile("tcgen05.wait::st.sync.aligned;");')),
    *(Case(f"02c v{v}", f"{C}matmul_v{v}.cu", f"matmul_v{v}_bf16", bug, device="rtx5090") for v, bug in (
        (0, ('"n"(NUM_STAGES - 1)', '"n"(NUM_STAGES)')), (1, without("mbarrier_wait(mbar_addr + stage * 8, phase);")),
        (2, without(WAIT.format("tma_mbar_addr", "stage_id", "phase"))),
        (3, without(WAIT.format("tma_mbar_addr", "stage_id", "phase"))))),
    Case("educational 06", "kernels/gemm/educational_b200/level_06.cu", "run_benchmark(256)",
         without("wait(compute_done, 0);"), KITTENS_LETTER, right=ERRORS),
    Case("educational 09", "kernels/gemm/educational_b200/level_09.cu", "run_benchmark(512)",
         without("wait(outputs_arrived[warpgroup::groupid()], 0);"), KITTENS_LETTER, right=ERRORS),
    Case("bf16 (launch control)", "kernels/gemm/bf16_b200/bf16_b200_gemm.cu",
         "(run_benchmark<config<256, 64, 128, 4, true, 5, 2>>(512, 512, 512, true))",
         without("wait(outputs_arrived[warpgroup::groupid()], task_iter%2);"), KITTENS_LETTER, right=SCALED),
    Case("mxfp8", "kernels/gemm/mxfp8_b200/mxfp8_b200_gemm.cu",
         "(run_benchmark<mxfp8_gemm::config<128, 5, 4, 12, 2, true>>(512, 512, 512, true))",
         without("wait(outputs_arrived, get_phasebit<0>(phasebits, 0));"), KITTENS_LETTER, right=SCALED),
    # Its assertions count the columns of E4M3 scales as those of a matrix: they are for debug builds only.
    Case("nvfp4", "kernels/gemm/nvfp4_b200/nvfp4_b200_gemm.cu",
         "(run_benchmark<nvfp4_gemm::config<128, 5, 4, 12, 2, true>>(512, 512, 512, true))",
         without("wait(outputs_arrived, get_phasebit<0>(phasebits, 0));"), KITTENS_LETTER, right=SCALED,
         options=("-D", "NDEBUG=1")),
    *(Case(f"tutorial {name[:2]}", f"examples/cute/tutorial/blackwell/{name}.cu", "()", without(
        "cute::wait_barrier(shared_storage.mma_barrier, mma_barrier_phase_bit);"), (FENCES, REGISTERS, UNWAITED),
           right="^Execution is successful", given=("--", "256", "256", "64"))
      for name in ("01_mma_sm100", "02_mma_tma_sm100", "04_mma_tma_2sm_sm100", "05_mma_tma_epi_sm100")),
    Case("launch control", "test/unit/pipeline/pipeline_cluster_launch_control_async_warp_specialized_blackwell.cu", "()",
         without("cutlass::arch::fence_view_async_shared();"),
         planted_in="include/cutlass/gemm/kernel/sm100_tile_scheduler.hpp",
         options=("-D", "NDEBUG=1")),  # it sets no role, which debug builds ask for
]
# CUTLASS is compiled as device code throughout: it asks __CUDA_ARCH__ in every header.
CUTLASS = ["-D", "CUTLASS_ARCH_MMA_SM100_SUPPORTED=1", "-D", "__CUDA_ARCH__=1000", "-D", "__CUDA_ARCH_FEAT_SM100_ALL=1",
           "-D", "__CUDA_ARCH_SPECIFIC__=1000"]
CUTLASS_EDITS = {  # g++ has no `#pragma` in macros, no `always_inline` of recursive functions, no libcu++, no driver API
    "include/cutlass/cutlass.h": [(r"#define CUDA_STD_HEADER.*", "#include <cuComplex.h>\n"
                                   "#define CUDA_STD_HEADER(header) <header>")],
    "include/cutlass/detail/helper_macros.hpp": [(r"(PRAGMA_(NO_)?UNROLL) #pragma.*", r"\1"),
                                                 (r"(define CUTLASS_NOT_IMPLEMENTED\(\)).*", r"\1 __builtin_trap()")],
    "include/cutlass/arch/wmma.h": [(r"define CUTLASS_ARCH_WMMA_", "define CUTLASS_ARCH_NO_WMMA_")],  # of 4 bits
    "include/cutlass/workspace.h": [(r"(?s)    CUdeviceptr .*?(\n#endif\n  \})", r"    return Status::kErrorInternal;\1")],
    "include/cute/config.hpp": [(r"(define CUTE_(NO_)?UNROLL).*", r"\1")],
    "include/cute/numeric/math.hpp": [(r"CUTE_HOST_DEVICE constexpr\s+T\s+(rot[lr]\()", r"inline constexpr T \1")],
}


def copy(case, checkout, folder, bug):
    """A copy with what g++ needs, and the bug if there is to be one. Returns its source."""
    if case.cutlass:
        for part in ("include", "tools/util/include", "examples/common", "test/unit/common",
                     str(Path(case.source).parent)):
            shutil.copytree(checkout / part, folder / part)
        for header in ("cluster_launch.hpp", "cuda_host_adapter.hpp"):
            shutil.copy(HERE / "cutlass" / header, folder / "include/cutlass")
        for header, edits in CUTLASS_EDITS.items():
            text = (folder / header).read_text()
            for pattern, by in edits:
                text = re.sub(pattern, by, text)
            (folder / header).write_text(text)
    elif case.kittens:
        shutil.copytree(checkout / "include", folder / "include")
        for host_only in ("ipc", "vmm"):  # several GPUs, by the driver API
            (folder / f"include/types/system/{host_only}.cuh").write_text("#pragma once\n")
        shutil.copytree(checkout / "kernels/gemm", folder / "kernels/gemm")
    else:
        shutil.copytree((checkout / case.source).parent, folder / Path(case.source).parent)
        for header in ("torch/library.h", "ATen/ATen.h"):
            (folder / header).parent.mkdir()
            (folder / header).write_text(f'#include "{HERE}/torch.hpp"\n')
    source = folder / case.source
    text = source.read_text()
    if case.kittens:  # as the standard asks, where nvcc does not
        text = re.sub(r"(allocate<|sizeof\(|, )G::(\w+(?:_t|_tile)\b)", r"\1typename G::\2", text)
    if case.cutlass:  # the kernel with its type; small sizes
        text = text.replace("(void const*) kernel_ptr", "kernel_ptr")
        text = re.sub(r"const void\* kernel = \(const void\*\)", "const auto kernel = ", text)
        text = text.replace("Int<4>{}, Int<4>{}", "Int<2>{}, Int<1>{}").replace("{32,32,1}", "{8,8,1}")
    source.write_text(text)
    if bug:
        where = folder / case.planted_in
        text = where.read_text()
        if case.planted[0] not in text:
            raise SystemExit(f"{case.name}: no place for the planted bug '{case.planted[0]}'")
        where.write_text(text.replace(*case.planted))
    return source


def run(case, checkout, build, bug, full):
    """(whether the results are right, the messages that are not by the letter)"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = copy(case, checkout, folder, bug)
        places = [HERE / "cutlass", folder / "tools/util/include", folder / "examples/common", folder,
                  folder / "include", source.parent, source.parents[1]]
        options = [option for place in places for option in ("-I", str(place))]
        options += ["-D", f'FOREIGN_SOURCE="{source}"', "-D", f"FOREIGN_CALL={case.call}"]
        program = HERE / ("kittens.cu" if case.kittens else "product.cu")
        if case.kittens:
            options += ["-D", "KITTENS_BLACKWELL=1"]
        if case.cutlass:
            program = source
            options += ["--cutlass", *CUTLASS]
        environment = {"COOKBOOK_SIMT_DEVICE": case.device, "COOKBOOK_SIMT_L2_BYTES": "1"}  # as few buffers as possible
        done = subprocess.run([sys.executable, ROOT / "tools/check/check.py", "--build", build,
                               program, "--quiet", "--json", folder / "found.json", *options, *case.options,
                               *["--full"] * full, *case.given],
                              capture_output=True, text=True, env={**os.environ, **environment})
        if not (folder / "found.json").exists():
            return False, [done.stdout[-500:] + done.stderr[-500:]]
        found = json.loads((folder / "found.json").read_text())["findings"]
    messages = [one["message"] for one in found]
    return re.search(case.right, done.stdout, re.MULTILINE) is not None, \
        [text for text in messages if not any(re.search(part, text) for part in case.letter)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--learn-cuda", type=Path)
    parser.add_argument("--thunderkittens", type=Path)
    parser.add_argument("--cutlass", type=Path)
    parser.add_argument("--full", action="store_true", help="trace every block")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    failed = 0
    for case in CASES:
        checkout = getattr(options, case.checkout)
        if checkout is None or options.names and case.name not in options.names:
            continue
        begin = time.monotonic()
        right, messages = run(case, checkout, options.build, False, options.full)
        bug_right, bug_messages = run(case, checkout, options.build, True, options.full)
        good, seen = right and not messages, bool(bug_messages) or not bug_right
        failed += not (good and seen)
        print(f"{case.name}: {'right' if good else 'WRONG'}; planted bug {'found' if bug_messages else 'wrong result'}"
              f"{'' if seen else ' NOT SEEN'}; {time.monotonic() - begin:.0f} s", flush=True)
        for text in messages if not good else bug_messages[:1]:
            print(f"  {text[:400]}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
