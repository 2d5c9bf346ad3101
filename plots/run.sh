#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Draws the figures and writes the tables from the results under plots/results/<gpu>/.
#   plots/run.sh           everything; PNGs for slides go to build/plots/
#   plots/run.sh --check   writes nothing, fails if a table, the CSV or a figure's data would change
#   plots/run.sh --test    the unit tests of the plots
#   plots/run.sh --own FILE...   one's own results, into build/plots/
#   plots/run.sh --program [OPTIONS] -- PROGRAM   the kernels of any CUDA program, measured by ncu
#   plots/run.sh --timeline TRACE... --out NAME   one block of traces of ./run N --timeline
#   plots/run.sh --capstone plots|report FOLDER   those of a capstone, in its own folder
# Needs Python 3.10 or later. matplotlib, and what reads the Markdown of a capstone, come from the system, or into .venv on
# first use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

needs_markdown=''
has_libraries() { "$1" -B plots/can_draw.py $needs_markdown >/dev/null 2>&1; }

# apt_install <package>...: as root or with sudo; fails quietly where there is neither.
apt_install() {
  command -v apt-get >/dev/null || return 1
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
  "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

find_python() {
  local candidate
  for candidate in .venv/bin/python python3 /usr/bin/python3; do
    if command -v "$candidate" >/dev/null && has_libraries "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  echo "Installing matplotlib${needs_markdown:+ and markdown-it-py} into .venv (the figures need it)." >&2
  command -v python3 >/dev/null || apt_install python3 python3-venv
  if python3 -m venv .venv >/dev/null 2>&1 || { apt_install python3-venv && python3 -m venv .venv >/dev/null; }; then
    if .venv/bin/python -m pip install -q --disable-pip-version-check 'matplotlib>=3.6,<4' ${needs_markdown:+'markdown-it-py>=2,<5'} >&2; then
      echo .venv/bin/python
      return
    fi
    rm -rf .venv
  fi
  if apt_install python3-matplotlib ${needs_markdown:+python3-markdown-it} && has_libraries /usr/bin/python3; then
    echo /usr/bin/python3
    return
  fi
  echo "plots: needs matplotlib${needs_markdown:+ and markdown-it-py}: pip install matplotlib${needs_markdown:+ markdown-it-py}," \
    "or apt-get install python3-matplotlib${needs_markdown:+ python3-markdown-it}" >&2
  exit 1
}

export PYTHONPATH=plots${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
case "${1:-}" in
  --check | --tables-only | -h | --help) exec python3 -m cookbook_plots "$@" ;;  # matplotlib is not needed
  --timeline) arguments=(-m cookbook_plots.timeline "${@:2}") ;;
  --program) arguments=(-m cookbook_plots.program "${@:2}") ;;
  --capstone) arguments=(-m cookbook_plots.capstone "${@:2}") ;;
  --own) arguments=(-m cookbook_plots.own "${@:2}") ;;
  --test) arguments=(-m unittest discover -s plots/tests -t plots) ;;
  *) arguments=(-m cookbook_plots "$@") ;;
esac
case "${1:-}" in --capstone | --test) needs_markdown=--markdown ;; esac
python=$(find_python)  # not within exec's arguments: there its failure would not end the script
exec "$python" "${arguments[@]}"
