#!/bin/sh
# SPDX-License-Identifier: MIT
# ./run of a GPU machine on which tests fail.
case "$*" in
  test)
    echo "98% tests passed, 1 tests failed out of 50"
    echo " 3/9 Test #3: a.b ....***Skipped 0.1 sec"
    echo "100% tests passed out of 10"
    echo "ok    chapter 3 memcheck (2 s)"
    echo "FAIL  chapter 4 memcheck: status 9"
    exit 8
    ;;
  "--json "*/results/book.json)
    echo "Chapter 0 - roofs"
    echo "Chapter 1 - copies"
    ls >"$SEEN"
    echo "commit $COOKBOOK_COMMIT" >>"$SEEN"
    mkdir -p build/cuda
    ;;
esac
