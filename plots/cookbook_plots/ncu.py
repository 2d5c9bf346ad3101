# SPDX-License-Identifier: MIT
"""What Nsight Compute is asked for, and what it prints."""
import csv
import io
import re
import subprocess

BYTES = {"dram": "dram__bytes.sum", "l2": "lts__t_bytes.sum", "l1": "l1tex__t_bytes.sum"}
MEMORIES = {metric: memory for memory, metric in BYTES.items()}
TENSOR = [f"sm__ops_path_tensor_src_{source}_dst_fp32.sum" for source in ("bf16", "fp16", "tf32")]  # operations
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12}


def gpu_name():
    """As the driver gives it; "" where there is no GPU."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True,
                              check=False)
    except OSError:
        return ""
    return done.stdout.split("\n")[0].strip()


def operations(**letters):
    """{metric: (kind, operations of what it counts)} of instructions of one thread and of tensor cores; letters:
    fp32="f", fp64="d"."""
    return {f"smsp__sass_thread_inst_executed_op_{letter}{name}_pred_on.sum": (kind, weight)
            for kind, letter in letters.items() for name, weight in (("add", 1), ("mul", 1), ("fma", 2))} | \
        dict.fromkeys(TENSOR, ("tensor", 1))


def rows(text):
    """(row, its value) of ncu's CSV, a row per launch and metric. The value is None where the GPU has no such counter."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        value = (row.get("Metric Value") or "").replace(",", "")
        if (row.get("ID") or "").isdigit():
            yield row, float(value) if re.fullmatch(r"[\d.eE+]+", value) else None
