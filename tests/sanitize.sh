#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# compute-sanitizer over every level of every chapter at its check size, on a GPU.
#   tests/sanitize.sh [chapter...]      needs build/cuda; exit 1 when a tool reports an error
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
command -v compute-sanitizer >/dev/null || { echo "sanitize: compute-sanitizer is not on the PATH" >&2; exit 2; }

# racecheck does not understand bulk copies (cp.async.bulk), so chapters built on them are left out;
# the SIMT backend's race detector covers those.
bulk=" 0 6 7 8 9 10 11 13 "
chapters=("$@")
[ $# -gt 0 ] || mapfile -t chapters < <(cut -d' ' -f1 chapters/contents.txt)

[ ${#chapters[@]} -gt 0 ] || { echo "sanitize: chapters/contents.txt lists no chapter: nothing was checked" >&2; exit 1; }

# One tool on one chapter; its log only if it fails.
check() {
  local chapter=$1 tool=$2 log began=$SECONDS status=0 ladders=("") ladder
  # Of chapter 15's ladder cp_async, racecheck reports what cp.async.mbarrier.arrive orders. That it
  # does not understand that either is assumed.
  [ "$tool $chapter" != "racecheck 15" ] || ladders=(gemm attention)
  log=$(mktemp)
  for ladder in "${ladders[@]}"; do
    timeout "${SANITIZE_SECONDS:-300}" compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "build/cuda/chapter-$chapter" --check --no-trace ${ladder:+--ladder "$ladder"} >>"$log" 2>&1 || status=$?
  done
  if [ "$status" -eq 0 ]; then
    echo "ok    chapter $chapter $tool ($((SECONDS - began)) s)"
  else
    # cat, since it writes all lines at once: echo writes them one by one, with others' in between.
    cat <<<"FAIL  chapter $chapter $tool: status $status
$(grep -E '=========|chapter' "$log" | head -20)"
  fi
  rm -f "$log"
  return "$status"
}

# A few at once: most of a run is the tool starting and the host's reference, not the GPU.
at_once=${SANITIZE_JOBS:-4} pids=()
for chapter in "${chapters[@]}"; do
  for tool in memcheck synccheck initcheck racecheck; do
    if [ "$tool" = racecheck ] && [[ $bulk == *" $chapter "* ]]; then continue; fi
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do sleep 0.2; done
    check "$chapter" "$tool" &
    pids+=($!)
  done
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
exit "$status"
