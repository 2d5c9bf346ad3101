# SPDX-License-Identifier: MIT
"""Figures of one's own results: ./run plots FILE... draws what `--json FILE` wrote, of any chapter, capstone or GPU.

Per ladder and problem: the speed of every level and the roofline where a GPU timed it; where several runs of it are
given (before and after, two GPUs), both runs in one figure; where only the SIMT backend ran, the traffic and the
ceilings that roofs allow. Files of ./run profile among FILES add the bytes that Nsight Compute measured. Nothing but
the folder of figures is written."""
import argparse
import re
import sys
from pathlib import Path

from . import book, devices, figures, memories, style
from .results import (RESULTS, ROOF_KEYS, SIMT, Counted, ResultError, Results, counted_by_simt, gpus, load,
                      of_the_right_form, read_run, simt_counters, traffic)
from .staging import Staging, ended


def documents(files):
    """(file, document) of every file; a ResultError names the one that is no result."""
    for file in files:
        try:
            document = load(file)
        except FileNotFoundError:
            raise ResultError(f"{file}: no such file") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ResultError(f"{file}: cannot be read: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get("runs", document.get("profiles")), list):
            raise ResultError(f"{file}: neither results of ./run --json nor of ./run profile")
        yield file, document


def key_of(run):
    return run.heading, run.ladder


def read(files):
    """(runs, of which are timed and which counted only), with counters and measured bytes filled in."""
    runs, profiles, of_book = [], [], book.identities()
    for file, document in documents(files):
        profiles += document.get("profiles", [])
        for raw in document.get("runs", []):
            with of_the_right_form(f"{file}: not a result"):
                # A capstone's sources are not here: its levels count as they are.
                identities = book.Identities(map(book.tokens_of, raw["levels"])) if raw.get("capstone") else of_book
                run = read_run(file, raw, identities)
                if raw["backend"] == "cuda" and not run.timed and raw["levels"]:
                    raise ResultError(f"{file}: {run.heading}, {run.ladder}: no level was timed")
                for level in run.levels:
                    level.counted = Counted.of(level.json, raw["problem"])
                check(run)
            if run.levels:
                runs.append(run)
    if not runs:
        raise ResultError(f"no run of a ladder in {', '.join(map(str, files))}")
    lend_counters(runs, of_book)
    try:
        for profile in profiles:
            for run in runs:
                if (run.chapter, run.ladder, list(run.size)) == (profile["chapter"], profile["ladder"], profile["size"]):
                    run.take(profile)
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"a file of ./run profile lacks a key: {error}") from error
    return runs


def check(run):
    """Raises KeyError and the like for what the figures would stumble over."""
    problem = run.json["problem"]
    needed = [problem["dims"], problem["dtype"], problem["bytes"], problem["flops"], run.json["device"]["name"],
              run.json["date"][:10], run.json["references"], run.ladder, run.size]
    for level in run.levels:
        needed += [level.name, level.json["changed"], *(level.json["time_us"][q] for q in ("median", "q1", "q3")
                                                        if level.timed)]
    if not problem["bytes"]:
        raise ValueError("problem.bytes is 0")
    return needed


def lend_counters(runs, identities):
    """A level without counters takes those of the same source: of another run here, or those committed."""
    committed = simt_counters(identities=identities) if (RESULTS / SIMT).exists() else {}
    here = {(run.heading, run.ladder, level.name, book.tokens_of(level.json)): level.counted
            for run in runs for level in run.levels if level.counted}
    for run in runs:
        for level in run.levels:
            level.counted = level.counted or here.get((*key_of(run), level.name, book.tokens_of(level.json)))
            if not level.counted and run.chapter is not None:
                level.counted = counted_by_simt(run, level, committed, identities)


# --- roofs -----------------------------------------------------------------------------------------
def measured_roofs(device, runs, roof=None):
    """(roofs, where they are from) that a run on this GPU measured, in FILES or in the book; or None. Chapter 0 measures
    all roofs, any other run those that its ladders need: so of several runs the one with most, and with `roof` (a key
    of "roofs") if any has it."""
    def sources():
        yield [run for run in runs if run.roofs_measured], ""
        for folder in gpus():
            yield Results(folder).runs, f"plots/results/{folder.name}/"

    def knows(run):
        return roof is None or run.json["roofs"].get(roof) is not None

    answer = None
    for found, where in sources():
        found = [run for run in found if run.json.get("roofs") and run.json["device"]["name"] == device]
        run = max(found, key=lambda run: (knows(run), sum(value is not None for value in run.json["roofs"].values())),
                  default=None)
        if run and (answer is None or knows(run)):
            answer = run.json["roofs"], f"measured, {where}{run.file.name}"
        if run and knows(run):
            break
    return answer


def roofs_of(device, runs=(), roof=None):
    """(roofs, where they are from, whether they were measured): measured ones before those of a data sheet."""
    if found := measured_roofs(device, runs, roof):
        return *found, True
    sheet = devices.sheet_of(device)
    return (sheet.roofs, f"data sheet ({sheet.name})", False) if sheet else ({}, "", False)


def with_roofs(run, device, runs):
    """Gives a run the roofs of `device`, where some are known."""
    roofs, *origin = roofs_of(device, runs, ROOF_KEYS.get(run.json["roof"]))
    if roofs:
        run.json["roofs"], (run.roofs_from, run.roofs_measured) = roofs, origin


def device_named(text):
    """The name of a GPU as its driver gives it, or as its sheet does."""
    for folder in gpus():
        for run in Results(folder).runs[:1]:
            if text.lower() in run.json["device"]["name"].lower():
                return run.json["device"]["name"]
    by_name = {sheet.name.lower(): sheet.name for sheet in devices.sheets()}
    found = by_name.get(text.lower()) or (devices.sheet_of(text) and text)
    if not found:
        raise ResultError(f"--gpu {text}: not known; there are {', '.join(sheet.name for sheet in devices.sheets())}")
    return found


def take_roofs(runs, gpu):
    """Roofs for every run that has none: those of its own GPU; of what was only counted, those of `gpu`."""
    known = [run for run in runs if run.roofs] or [run for folder in gpus() for run in Results(folder).runs[:1]]
    model = device_named(gpu) if gpu else known[0].json["device"]["name"] if known else "H100 SXM"
    for run in runs:
        if run.timed and not run.roofs:
            with_roofs(run, run.json["device"]["name"], runs)
    for run in runs:
        if not run.timed:
            run.model = model
            with_roofs(run, model, [other for other in runs if other.timed])


# --- what to draw ----------------------------------------------------------------------------------
def identifier(*parts):
    return "-".join(filter(None, (re.sub(r"[^a-z0-9_]+", "-", str(part).lower()).strip("-") for part in parts)))


def labels(runs):
    """A name for every run of one ladder: what tells it from the others."""
    ways = [lambda r: r.json["device"]["name"].replace("NVIDIA ", ""), lambda r: r.file.stem,
            lambda r: "x".join(map(str, r.size)), lambda r: r.json["date"][:16].replace("T", " "),
            lambda r: f"commit {(r.json.get('commit') or '?')[:10]}"]
    chosen, found = [], [""] * len(runs)
    for way in ways:
        more = [" · ".join(filter(None, [text, way(run)])) for text, run in zip(found, runs)]
        if len(set(more)) > len(set(found)):
            found, chosen = more, chosen + [way]
    if len(set(found)) < len(runs):
        found = [f"{text} · {i + 1}".removeprefix(" · ") for i, text in enumerate(found)]
    return found


def plan(runs):
    """Name -> (kind, what). A sentence on what is not drawn goes to the second value."""
    names, said, groups = {}, [], {}
    for run in runs:
        groups.setdefault(key_of(run), []).append(run)
    for (heading, ladder), mine in groups.items():
        stem = identifier(heading, ladder)
        timed = [run for run in mine if run.timed]
        sizes, models = {run.size for run in timed}, {run.json["device"]["name"] for run in timed}
        for run, label in zip(mine, labels(mine) if len(mine) > 1 else [""]):
            name = identifier(stem, label)
            if run.timed:
                names[f"{name}-ladder"] = ("ladder", run)
                if run.counts_own:
                    continue  # a roofline has no axis for its unit
                names[f"{name}-roofline"] = ("roofline", run)
                if not run.roofs:
                    said.append(f"{name}: no roof is known of {run.json['device']['name']}: dots without roofs "
                                "(./run 0 --json FILE on it measures them)")
                elif not run.roofs_measured:
                    said.append(f"{name}: roofs of the {run.roofs_from}; ./run 0 --json FILE on it measures them, and a "
                                "measured file among FILES wins")
                continue
            if any(traffic(run, level)[0] for level in run.levels):
                names[f"{name}-traffic"] = ("traffic", run)
                if run.counts_own:
                    said.append(f"{name}: the SIMT backend counts and has no times: traffic")
                    continue
                names[f"{name}-ceilings"] = ("ceilings", run)
                said.append(f"{name}: the SIMT backend counts and has no times: traffic, and the speed that the counted "
                            f"bytes allow under the roofs of {run.model} ({run.roofs_from}); no dot of a speed")
            else:
                said.append(f"{name}: nothing to draw: no times (the SIMT backend has none), and no counters that can be "
                            "compared (was it run with --no-trace?)")
        if len(timed) > 1 and (len(sizes) < 3 or len(models) > 1):
            names[f"{stem}-compared"] = ("compared", (timed, labels(timed)))
            names[f"{stem}-compared-roofline"] = ("overlay", (timed, labels(timed)))
        if len(sizes) >= 3 and len(models) == 1:
            names[f"{stem}-sweep"] = ("sweep", sorted({run.size: run for run in timed}.values(),
                                                      key=lambda run: (run.json["problem"]["flops"], run.size[::-1])))
    return names, said


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="plots", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON of ./run ... --json, or of ./run profile")
    parser.add_argument("--out", type=Path, help="folder of the figures (default: build/plots/<name of the first file>)")
    parser.add_argument("--gpu", help="the GPU whose roofs stand over what the SIMT backend counted: "
                        + ", ".join(sheet.name for sheet in devices.sheets()))
    return ended("plots", make, parser.parse_args(arguments))


def make(options):
    out = options.out or book.ROOT / "build/plots" / options.files[0].stem
    runs = read(options.files)
    take_roofs(runs, options.gpu)
    names, said = plan(runs)
    with Staging() as files:
        style.save_all(figures.draw, names, files, out, out, lambda _: "own")
    for sentence in said:
        print(sentence)
    for run in runs:
        for level in run.timed:
            if bound := memories.binding(run, level):
                print(f"{identifier(*key_of(run))} {level.name}: {bound.explained}")
    print(f"drew {len(names)} figure{'s' if len(names) != 1 else ''} in {out}: {', '.join(names)}" if names else "drew nothing")


if __name__ == "__main__":
    sys.exit(main())
