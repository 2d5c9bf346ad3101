#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures every case of tests/parity/ with Nsight Compute, on this machine's GPU.
#
#   tests/parity/run_ncu.sh OUT [PARITY]
#
# PARITY is the CUDA build's executable, build/cuda/parity unless given. OUT receives
#   h200.json, h200.instructions.csv   the golden files, if everything could be read
#   parity-raw.tar.gz                  everything that merge.py reads, whatever happened
#   parity-reports.tar.gz              Nsight Compute's reports, for its user interface
#   parity.log                         what was done and how long it took
# Golden files that were not written here can be made elsewhere: merge.py on the unpacked raw files.
set -u
[ $# -ge 1 ] || { echo "usage: tests/parity/run_ncu.sh OUT [PARITY]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
parity=$(realpath "${2:-$here/../../build/cuda/parity}")
limit=${PARITY_LIMIT_S:-90}  # seconds for one group of cases

raw=$(mktemp -d) reports=$(mktemp -d) status=1
pack() {
  tar -C "$raw" -czf "$out/parity-raw.tar.gz" .
  tar -C "$reports" -czf "$out/parity-reports.tar.gz" .
  rm -rf "$raw" "$reports"
  exit "$status"
}
trap pack EXIT
exec > >(tee "$out/parity.log") 2>&1

find_tool() {
  command -v "$1" && return
  local found
  for found in /usr/local/cuda/bin/"$1" /opt/nvidia/nsight-compute/*/"$1"; do
    [ -x "$found" ] && echo "$found" && return
  done
}
ncu=$(find_tool ncu) cuobjdump=$(find_tool cuobjdump) nvdisasm=$(find_tool nvdisasm)
[ -x "$parity" ] || { echo "$parity is missing: build the target parity of the CUDA preset"; exit; }
for tool in ncu cuobjdump nvdisasm; do
  [ -n "${!tool}" ] || { echo "$tool is not installed"; exit; }
done

export PYTHONDONTWRITEBYTECODE=1
steps=(python3 "$here/ncu_steps.py")

# The tools, as they name themselves.
"${steps[@]}" versions "ncu=$ncu" "nvdisasm=$nvdisasm" > "$raw/versions.json"

# Which kernels each case launches, and which source line each instruction comes from.
timeout 60 "$parity" --json "$raw/manifest.json" || { echo "parity does not run"; exit; }
# cuobjdump would write one file for all the sources called levels.cu: a fatbinary at a time.
elf=$(mktemp -d)
"${steps[@]}" fatbinaries "$parity" "$elf"
for folder in "$elf"/*/; do
  (cd "$folder" && "$cuobjdump" -xelf all code.fatbin > /dev/null)
  for file in "$folder"*.cubin; do
    "$nvdisasm" -c -gi "$file" > "$raw/$(basename "$folder")_$(basename "$file" .cubin).sass"
  done
done
rm -rf "$elf"
mkdir "$raw/sources"
(cd "$here/../.." && find chapters library tests/parity -name '*.cuh' -o -name '*.hpp' -o -name '*.cu') |
  tar -C "$here/../.." -cf - -T - | tar -C "$raw/sources" -xf -

metrics=inst_executed,memory_l1_tag_requests_global
metrics+=,memory_l2_theoretical_sectors_global,memory_l2_theoretical_sectors_global_ideal
metrics+=,memory_l1_wavefronts_shared,memory_l1_wavefronts_shared_ideal
for op in ld st; do
  metrics+=,l1tex__t_requests_pipe_lsu_mem_global_op_$op.sum
  metrics+=,l1tex__t_sectors_pipe_lsu_mem_global_op_$op.sum
  metrics+=,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_$op.sum
  metrics+=,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_$op.sum
done

# Counters of cp.async and ldmatrix, as far as this GPU has them: an unknown name would be an error.
more=
timeout 60 "$ncu" --query-metrics > "$raw/metrics.txt" 2>&1
for metric in $("${steps[@]}" optional); do
  grep -qw "${metric%.sum}" "$raw/metrics.txt" && more+=,$metric
done

# profile GROUP OPTIONS...: counters do not depend on clocks or on what the caches hold.
profile() {
  local group=$1
  shift
  timeout -s INT -k 10 "$limit" "$ncu" --profile-from-start off --clock-control none \
    --cache-control none "$@" --force-overwrite --export "$reports/$group" \
    "$parity" --group "$group" > "$raw/ncu_$group.log" 2>&1
  [ -s "$reports/$group.ncu-rep" ]
}

modules=
for folder in "$(dirname "$(realpath "$ncu")")" /opt/nvidia/nsight-compute/* \
  /usr/local/cuda/nsight-compute-*; do
  [ -z "$modules" ] && [ -d "$folder/extras/python" ] && modules=$folder/extras/python
done
for group in $("${steps[@]}" groups "$raw/manifest.json"); do
  start=$SECONDS
  if ! profile "$group" --section SourceCounters --metrics "$metrics$more" &&
    ! profile "$group" --section SourceCounters --metrics "$metrics"; then
    tail -n 5 "$raw/ncu_$group.log"
    echo "$group: again, with whole sections instead of single metrics"
    profile "$group" --section SourceCounters --section MemoryWorkloadAnalysis_Tables ||
      tail -n 5 "$raw/ncu_$group.log"
  fi
  report="$reports/$group.ncu-rep"
  if [ -s "$report" ]; then
    print=("$ncu" --import "$report" --csv --print-units base --print-kernel-base mangled)
    "${print[@]}" --page source --print-source sass > "$raw/source_$group.csv"
    "${print[@]}" --page raw > "$raw/raw_$group.csv"
    PYTHONPATH="$here:$modules" timeout 60 python3 "$here/dump_report.py" "$report" \
      "$raw/report_$group.json"
  fi
  echo "$group: $((SECONDS - start)) s"
done

python3 "$here/merge.py" "$raw" --golden "$out/h200.json"
status=$?
