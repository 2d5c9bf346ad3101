#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# install.sh <why> <package>...: installs them with apt-get, as root or with sudo; on a terminal it asks before.
set -euo pipefail
say() { printf '%s\n' "$*" >&2; }
die() { say "run: $1"; exit "${2:-2}"; }

why=$1
shift
command -v apt-get >/dev/null || die "needs $*, and this system has no apt-get: install them with its own package manager"
as_root=() by_hand="please type:  sudo apt-get install -y $*"
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && [ -t 0 ] && [ -t 2 ]; then
    answer=
    read -r -p "Needs $* ($why). Install with sudo apt-get? [Y/n] " answer || answer=n
    case "$answer" in "" | [Yy]*) as_root=(sudo) ;; *) die "nothing was installed; $by_hand" ;; esac
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    die "cannot install without root; $by_hand"
  fi
fi
say "Installing $* ($why)."
"${as_root[@]}" apt-get update -qq >&2 || say "run: apt-get update failed; trying the lists there are"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null \
  || die "could not install $*" 1
