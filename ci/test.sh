#!/usr/bin/env bash
# test.sh - everything that must hold before a change lands, on a fresh Debian or Ubuntu.
#
#   ci/test.sh [--sanitizers]
#
# Installs what is missing (as root or with sudo), then runs the lanes one after the other: the
# static checks, with --sanitizers asan and tsan, and the release lane last, so that the output ends
# with ctest's summary.
source "$(dirname "$0")/lib.sh"

part packages need build test static
part static env TIDY=--quick ci/lanes/static
if [[ ${1:-} == --sanitizers ]]; then
    part asan ci/lanes/asan
    part tsan ci/lanes/tsan
fi
part cpu-gcc ci/lanes/cpu-gcc
finish ci/test.sh
