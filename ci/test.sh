#!/usr/bin/env bash
# test.sh - everything that must hold before a change lands, on a fresh Debian or Ubuntu.
#
# Installs what is missing (as root or with sudo), then runs the lanes one after the other.  The
# release lane comes last, so that the output ends with ctest's summary.
source "$(dirname "$0")/lib.sh"

part packages need build test clang clang_runtime static
part static env TIDY=--quick ci/lanes/static
part asan ci/lanes/asan
part tsan ci/lanes/tsan
part cpu-gcc ci/lanes/cpu-gcc
finish ci/test.sh
