#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dump_report.py REPORT.ncu-rep OUT.json: the counters of every launch and instruction, read with
Nsight Compute's own module. A second way to what the CSV pages say, should their layout change.

The module lies in extras/python below the folder of `ncu`; run_ncu.sh puts that on PYTHONPATH."""
import json
import sys

import ncu_report

from merge import COUNTERS, HARDWARE, OPTIONAL


def mangled_name(action):
    for base in (lambda: ncu_report.IAction.NameBase_MANGLED,
                 lambda: ncu_report.IAction.NameBase.MANGLED):
        try:
            return action.name(base())
        except (AttributeError, TypeError):
            pass
    return action.name()


def by_address(action, name):
    """Address -> value of a metric that is kept per instruction."""
    metric = action.metric_by_name(name)
    if metric is None:  # renamed, or not collected: not the same as a count of zero
        raise SystemExit(f"dump_report: {sys.argv[1]} has no {name}")
    if metric.num_instances() == 0:
        return {}
    addresses = metric.correlation_ids()
    return {addresses.as_uint64(i): metric.as_uint64(i) for i in range(metric.num_instances())}


def launch(action):
    instructions = {}
    for _, name, _ in COUNTERS:
        for address, value in by_address(action, name).items():
            one = instructions.setdefault(
                address, {"pc": address, "sass": action.sass_by_pc(address).strip()})
            one[name] = value
    metrics = {}
    for name in [*HARDWARE.values(), *(name for names in OPTIONAL.values() for name in names)]:
        metric = action.metric_by_name(name)
        if metric is not None:
            metrics[name] = metric.as_uint64()
    return {"kernel": mangled_name(action), "metrics": metrics,
            "instructions": [instructions[address] for address in sorted(instructions)]}


def main():
    context = ncu_report.load_report(sys.argv[1])
    launches = []
    for i in range(context.num_ranges()):
        one = context.range_by_idx(i)
        launches += [launch(one.action_by_idx(j)) for j in range(one.num_actions())]
    with open(sys.argv[2], "w") as out:
        json.dump(launches, out)
    print(f"{len(launches)} launches")


if __name__ == "__main__":
    main()
