# SPDX-License-Identifier: MIT
"""Numbers that a picture prints and cannot compute again: compared with the sources, counters and outputs that they are from."""
import json
import re

from ..results import ResultError

RESULTS = "plots/results/h200"
CHAPTERS = "chapters"
SHORTEST = 0.7  # of a marked kernel's time, divided by its overhead: that at the speed of the chapter's own, larger size


def constant(root, file, name):
    """The number that a source gives a constant; there must be one."""
    found = re.findall(rf"\b{name} = (\d+)\b", (root / file).read_text())
    if len(found) != 1:
        raise ResultError(f"{file}: {len(found)} numbers for {name}")
    return int(found[0])


def constants(root, file, *names):
    return [constant(root, file, name) for name in names]


def runs(root, file):
    return json.loads((root / file).read_text())["runs"]


def run_of(root, chapter, ladder):
    return next(run for run in runs(root, f"{RESULTS}/chapter-{chapter}.json") if run["ladder"] == ladder)


def printed(root, name):
    """What a sidebar printed on the GPU."""
    return (root / f"{RESULTS}/sidebars/{name}.txt").read_text()


def size_text(size):
    return " x ".join(map(str, size))


def recorded(root, script, pattern):
    """The one match of a line of a script that records."""
    [found] = re.findall(pattern, (root / script).read_text(), re.MULTILINE)
    return found


# ---- of each kind: (what, as in the data, as in its source, the source) ----


def waves(document, root):
    of = "sidebars/chapter-7-waves.txt"
    size, tile, sms = document["size"], document["tile"], document["sms"]
    output = printed(root, "chapter-7-waves")
    yield "SMs", sms, run_of(root, 7, "l2_order")["device"]["sm_count"], f"the device of {RESULTS}/chapter-7.json"
    yield "size", size, run_of(root, 7, "l2_order")["problem"]["size"], f"l2_order of {RESULTS}/chapter-7.json"
    yield "tile", tile, constants(root, f"{CHAPTERS}/06_tma/level_6_two_consumers.cuh", "kBlockM", "kBlockN"), "level two_consumers"
    heading = f"{size_text(size)}, tiles of {size_text(tile)}, {sms} at a time"
    _, found, table = output.partition(heading)
    yield "sizes", heading, heading if found else "no such line", of
    for order in document["orders"]:
        for wave in order["waves"]:
            yield f"tiles of a wave, {order['name']}", len(wave["tiles"]), sms, "its number of SMs"
        most = max(2e-6 * size[2] * (wave["rows"] * tile[0] + wave["cols"] * tile[1]) for wave in order["waves"])
        largest = float(re.search(rf"^ +{order['name']} +\d+ +([\d.]+)", table, re.MULTILINE)[1])
        yield f"largest wave in MB, {order['name']}", min(round(most, 1), largest), round(most, 1), f"{of}: {largest} in all waves"


def attention_schedule(document, root):
    sidebar, chunks = (f"{CHAPTERS}/10_flash_attention/{name}" for name in ("sidebar_schedule.cu", "key_chunks.hpp"))
    yield "cost of a chunk", document["chunk_cost"], constant(root, chunks, "kChunkCost"), chunks
    yield "tokens", document["tokens"], constant(root, sidebar, "kTokens"), sidebar
    yield "tile", document["tile"], constants(root, sidebar, "kBlockM", "kBlockN"), sidebar
    heads, tokens, width = constants(root, sidebar, "kLastHeads", "kLastTokens", "kLastBlockN")
    yield "query tiles", document["tiles"], heads * tokens // document["tile"][0], sidebar
    yield "key tiles", document["key_tiles"], -(-tokens // width), sidebar
    yield "SMs", len(document["blocks"]), run_of(root, 10, "last_wave")["device"]["sm_count"], f"{RESULTS}/chapter-10.json"


def order(document, root):
    counters = "plots/results/simt/chapter-6.json"
    run = next(run for run in runs(root, counters) if run["ladder"] == "gemm")
    m, n, k = run["problem"]["trace_size"]
    size = recorded(root, "plots/pictures.sh", r"--level \$level --size (\S+) --timeline")
    for level in document["levels"]:
        copies, name = level["tracks"]["copies by TMA"], level["level"]
        yield f"size of {name}", level["size"], list(map(int, size.split("x"))), "plots/pictures.sh"
        tile_m, tile_n, of_k = level["size"]  # one block computes it
        count = -(-m // tile_m) * -(-n // tile_n) * -(-k // (of_k // len(copies)))
        counted = next(one for one in run["levels"] if one["name"] == name)["counters"]["async_load_bytes"] / count
        for *_, size_of_copy in copies:
            yield f"bytes of a copy, {name}", size_of_copy, counted, f"{counters}, at {size_text((m, n, k))}: per k-block"


def tensor_memory(document, _root):
    for tile in document["tiles"]:
        for number, block in enumerate(tile["blocks"]):
            yield f"columns of C, {tile['level']}, block {number}", block["columns_of_c"], [0, len(block["column_of_column"])], \
                "the columns that its lanes were read from"


def timeline(document, root):
    gemm = len(document["levels"][0]["size"]) == 3
    name, chapter, ladder = ("gemm-timeline", 8, "gemm") if gemm else ("attention-timeline", 10, "prefill")
    size, names = recorded(root, "plots/timelines.sh", rf"^record {name} {chapter} (\S+) ([\w ]+?) +#")
    yield "levels", [level["level"] for level in document["levels"]], names.split(), "plots/timelines.sh"
    run = run_of(root, chapter, ladder)
    yield "device", document["device"], run["device"]["name"], f"{RESULTS}/chapter-{chapter}.json"
    for level in document["levels"]:
        yield f"size of {level['level']}", level["size"], list(map(int, size.split("x"))), "plots/timelines.sh"
        tflops = next(one for one in run["levels"] if one["name"] == level["level"])["tflops"]
        took = max(end for spans in level["tracks"].values() for _, _, end in spans)
        share = level["overhead"] * flops(level["size"]) / tflops / 1e6 / took
        yield f"overhead of {level['level']}", min(max(share, SHORTEST), 1), share, \
            f"at the speed of {RESULTS}/chapter-{chapter}.json it would take 0.7 to 1 of the marked time, divided by the overhead"


def flops(size):
    """Of a GEMM, or of attention without a mask."""
    if len(size) == 3:
        return 2 * size[0] * size[1] * size[2]
    batch, heads, _, queries, keys, width = size
    return 4 * batch * heads * queries * keys * width


def stages(document, root):
    of, output = "sidebars/chapter-6-depth.txt", printed(root, "chapter-6-depth")
    [device, size] = re.search(r" on an ([^,]+),.*\n(.+) NN\n", output).groups()
    yield "size", size_text(document["size"]), size, of
    yield "device", document["device"], device, of
    for count, speed in document["tflops"].items():
        found = re.search(rf"waits for each batch, {count} stages +([\d.]+)", output)
        yield f"TFLOP/s with {count} stages", speed, float(found[1]) if found else None, of
    yield "tile", document["tile"], constants(root, f"{CHAPTERS}/06_tma/level_6_two_consumers.cuh", "kBlockM", "kBlockN", "kBlockK"), \
        "level two_consumers"
    yield "SMs", document["sms"], run_of(root, 6, "gemm")["device"]["sm_count"], f"{RESULTS}/chapter-6.json"


def zoom(document, root):
    level, sidebar = (f"{CHAPTERS}/05_tensor_cores/{name}" for name in ("level_6_wide_tiles.cuh", "sidebar_fragments.cu"))
    size = recorded(root, sidebar, r'"size", std::vector<double>\{(\d+), (\d+)\}')
    yield "size", document["size"], list(map(int, size)), sidebar
    block = constants(root, level, "kBlockM", "kBlockN")
    yield "block tile", document["block"], block, level
    yield "warp tile", document["warp"], [of // count for of, count in zip(block, constants(root, level, "kWarpsM", "kWarpsN"))], level


def promotion(document, root):
    of = "sidebars/chapter-12-promotion.txt"
    rows = {int(k): row.split() for k, row in re.findall(r"^ +(\d+)((?: +[\d.]+e-\d+){4})$", printed(root, "chapter-12-promotion"), re.MULTILINE)}
    for row in document["rows"]:
        yield f"errors at K = {row['k']}", [f"{error:.2e}" for error in row["errors"]], rows.get(row["k"]), of


KINDS = {"waves": waves, "attention_schedule": attention_schedule, "order": order, "tensor_memory": tensor_memory,
         "timeline": timeline, "stages": stages, "zoom": zoom, "promotion": promotion}


def check(document, root):
    """ResultError where a number of the data is not what its source has."""
    for what, shown, expected, source in KINDS.get(document["kind"], lambda *_: ())(document, root):
        if shown != expected:
            raise ResultError(f"{what}: {shown}; {source}: {expected}")
