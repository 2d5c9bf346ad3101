# SPDX-License-Identifier: MIT
"""The record of mutants that were drawn and judged, over many runs: tests/mutation_record.json.

  seconds   {test executable: what it takes}: saves a trial from running everything unchanged
  judged    one entry per mutant and source: id, source, seed, commit, verdict, by
  answers   {id of a survivor: "caught now by SUITE.TEST", "equivalent: REASON" or "survives: REASON"}"""
import json
from pathlib import Path

JUDGED = ("caught", "survived", "timeout")


def file(root):
    return Path(root, "tests/mutation_record.json")


def read(root):
    """What is recorded; empty where there is no record."""
    path = file(root)
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {"seconds": {}, "judged": [], "answers": {}, **found}


def add(record, results, seed, commit):
    """Adds what was judged of `results`. A mutant of the same source counts once."""
    known = {(r["id"], r["source"]) for r in record["judged"]}
    for r in results:
        if r["verdict"] in JUDGED and (r["id"], r["source"]) not in known:
            by = " ".join(r.get("by", "").split())[:100]
            record["judged"].append({"id": r["id"], "source": r["source"], "seed": seed, "commit": commit,
                                     "verdict": r["verdict"], **({"by": by} if by else {})})
            known.add((r["id"], r["source"]))
    record["judged"].sort(key=lambda r: (r["id"], r["source"]))


def write(root, record):
    # A line per mutant, so that a diff shows what came.
    parts = [f'"seconds": {json.dumps(record["seconds"], indent=1, sort_keys=True)}',
             '"judged": [\n' + ",\n".join(json.dumps(r) for r in record["judged"]) + "\n]",
             f'"answers": {json.dumps(record["answers"], indent=1, sort_keys=True)}']
    file(root).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def summary(record):
    """Lines: how many were caught as they were drawn, and what became of the others."""
    answers, lines = record["answers"], []
    missed = [r for r in record["judged"] if r["verdict"] != "caught"]
    equivalent = [r for r in missed if answers.get(r["id"], "").startswith("equivalent")]
    since = [r for r in missed if answers.get(r["id"], "").startswith("caught now")]
    judged, caught = len(record["judged"]) - len(equivalent), len(record["judged"]) - len(missed)
    for r in missed:
        lines.append(f"{r['verdict']}: {r['id']} ({r['commit']}): {answers.get(r['id'], 'no answer yet')}")
    if judged:
        lines.append(f"{judged} judged, without {len(equivalent)} equivalent ones: {caught} caught as they were drawn "
                     f"({100 * caught / judged:.1f} %), {caught + len(since)} with the tests added since "
                     f"({100 * (caught + len(since)) / judged:.1f} %)")
    return lines or ["nothing is recorded"]
