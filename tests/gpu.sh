#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# On a machine with a GPU: runs both commands of the README from a clean copy of this tree, and more,
# and writes down how that went in tests/gpu_record.json, which is committed.
#   tests/gpu.sh [--record FILE] [--limit SECONDS] [run] [test] [parity] [architectures[:75,80,...]]
# Without a step: run, test, parity. Steps may be run one by one; each keeps its own entry.
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/gpu_record.py" "$@"
