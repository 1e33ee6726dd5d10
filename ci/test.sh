#!/usr/bin/env bash
# test.sh - build everything and run all tests, on a fresh Debian or Ubuntu.
#
#   ci/test.sh [--sanitizers]
#
# Installs what is missing (as root or with sudo), then runs the lanes one after the other: with
# --sanitizers asan and tsan, and the release lane last, so that the output ends with ctest's
# summary.  .ci/run adds the static checks and the Python package.
source "$(dirname "$0")/lib.sh"

part packages need build test
if [[ ${1:-} == --sanitizers ]]; then
    part asan ci/lanes/asan
    part tsan ci/lanes/tsan
fi
part cpu-gcc ci/lanes/cpu-gcc
finish ci/test.sh
