#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the documentation site into build/docs/html: open index.html from disk, nothing is fetched.
# Installs what is missing; a warning is an error. Needs neither a GPU nor CUDA.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*" >&2; }

missing() {
  command -v doxygen >/dev/null || echo doxygen
  command -v python3 >/dev/null || echo python3
  [ -f /usr/share/doxygen-awesome-css/doxygen-awesome.css ] || echo doxygen-awesome-css
  [ -f /usr/share/javascript/mathjax/MathJax.js ] || echo libjs-mathjax
  [ -f /usr/share/javascript/d3/d3.min.js ] || echo libjs-d3
}

# shellcheck disable=SC2046
set -- $(missing)
if [ $# -gt 0 ]; then
  say "Installing $* (documentation)."
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "docs: needs $*; please type:  apt-get install -y $*  as root"; exit 2; }
    as_root=(sudo)
  fi
  command -v apt-get >/dev/null || { say "docs: needs $*: install them with your system's package manager"; exit 2; }
  "${as_root[@]}" apt-get update -qq >&2 || say "docs: apt-get update failed; trying the lists there are"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null || { say "docs: could not install $*"; exit 1; }
fi

out=build/docs
rm -rf "$out"
mkdir -p "$out/html" "$out/explain"

# A page that needs what is not there, or a program older than the page, fails far from its cause.
explain_failure() {
  if [ -f build/simt/build.ninja ] && ! ninja -C build/simt -n 2>&1 | grep -q 'no work to do'; then
    say "docs: build/simt is half built or older than the sources: finish it (./run test) or delete it, then try again."
  fi
}
trap '[ $? -eq 0 ] || explain_failure' EXIT

# What --explain prints, of every chapter that is built for the SIMT backend: of the levels that its
# page shows, because all take three times as long.
explain() {  # explain <chapter number>
  local program=build/simt/chapter-$1 ladder levels level arguments wanted
  wanted=$(python3 -B docs/make_pages.py --wanted "$1") || return
  if [ -z "$wanted" ]; then
    say "docs: the page of chapter $1 shows no level: docs/levels/chapter_$1.json lists none"
    return 1
  fi
  while read -r ladder levels; do
    arguments=(--ladder "$ladder")
    for level in $levels; do arguments+=(--level "$level"); done
    timeout 300 "$program" --explain "${arguments[@]}" </dev/null || return
  done <<<"$wanted"
}
for program in build/simt/chapter-*-traced; do
  [ -x "$program" ] || continue
  number=${program##*/chapter-}
  number=${number%-traced}
  if [ -x "build/simt/chapter-$number" ]; then
    status=0
    explain "$number" >"$out/explain/$number.txt" 2>"$out/explain.log" || status=$?
    if [ "$status" -ne 0 ]; then  # a page without it would look as if there were nothing to explain
      say "docs: build/simt/chapter-$number --explain ended with status $status (124: it took more than 300 s):"
      tail -n 5 "$out/explain/$number.txt" "$out/explain.log" >&2
      exit 1
    fi
  fi
done

python3 -B docs/make_pages.py --out "$out/generated" --html "$out/html" --explain "$out/explain"

cp docs/cookbook.js docs/explore.js docs/lanes.js docs/twins.js "$out/html/"

# D3 draws the figures that can be explored. Its licence (BSD, 3 clauses) asks for its notice beside a copy.
cp -L /usr/share/javascript/d3/d3.min.js "$out/html/"
cp /usr/share/doc/libjs-d3/copyright "$out/html/d3-copyright.txt" 2>/dev/null \
  || say "docs: /usr/share/doc/libjs-d3/copyright is missing: add D3's notice before you publish the site"

# MathJax is copied without what a page of this site never loads.
mkdir -p "$out/html/mathjax"
for part in MathJax.js config extensions jax fonts/HTML-CSS/TeX localization/en; do
  if [ -e "/usr/share/javascript/mathjax/$part" ]; then
    mkdir -p "$out/html/mathjax/$(dirname "$part")"
    cp -rL "/usr/share/javascript/mathjax/$part" "$out/html/mathjax/$(dirname "$part")/"
  fi
done

if ! (cat docs/Doxyfile; echo "HTML_EXTRA_STYLESHEET = /usr/share/doxygen-awesome-css/doxygen-awesome.css docs/cookbook.css"
  echo "MATHJAX_RELPATH = mathjax"; echo "PROJECT_NUMBER = $(cat VERSION)") | doxygen -; then
  say "docs: Doxygen warns, and a warning is an error:"
  cat "$out/warnings.txt" >&2
  exit 1
fi
if [ -s "$out/warnings.txt" ]; then
  cat "$out/warnings.txt" >&2
  exit 1
fi
python3 -B docs/edit_site.py "$out/html"
python3 -B docs/make_search.py "$out/html" "$out/names.xml"
python3 -B docs/make_slides.py "$out/html"
python3 -B docs/check_site.py "$out/html"

# In a real browser, where Playwright for Python and Chromium are installed.
browser_python=
for candidate in .venv/bin/python python3; do
  if command -v "$candidate" >/dev/null && "$candidate" -m playwright --version >/dev/null 2>&1; then
    browser_python=$candidate
    break
  fi
done
if [ -n "$browser_python" ]; then
  "$browser_python" -B docs/check_browser.py "$out/html"
else
  say "Skipped: the check in a browser (pip install playwright; apt-get install chromium)."
fi
echo "The site: $out/html/index.html"
