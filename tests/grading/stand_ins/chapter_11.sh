#!/bin/sh
# SPDX-License-Identifier: MIT
# Chapter 11's program: each shard keeps its own number, and shard 2 of 4 fails.
if [ "$1" = merge ]; then
  out=$2
  shift 2
  cat "$@" >"$out"
  exit
fi
while [ $# -gt 0 ]; do
  case $1 in
    --shard) shard=$2 ;;
    --cache) cache=$2 ;;
    --kernel) kernel=$2 ;;
  esac
  shift
done
[ "$shard" != 2/4 ] || exit 1
echo "$kernel $shard" >"$cache"
