#!/bin/sh
# SPDX-License-Identifier: MIT
# nvcc that fails for the schedule $BROKEN, and logs beside itself.
echo "$@" >>"$(dirname "$0")/log"
case "$*" in *COOPERATIVE=$BROKEN*)
  echo "error: no" >&2
  exit 2
  ;;
esac
for last; do :; done
echo library >"$last"
