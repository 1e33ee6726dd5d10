#!/usr/bin/env bash
# cppcheck.sh - cppcheck over the C sources.
source "$(dirname "$0")/../lib.sh"
command -v cppcheck >/dev/null || skip "cppcheck not found"
mkdir -p build/cppcheck
mapfile -t files < <(project_files 'core/*.c' 'files/*.c' 'parallel/*.c' 'cli/*.c' 'feed/*.c' 'kit/*.c' 'plugins/*.c' 'examples/*.c')
cppcheck --quiet -j "$jobs" --std=c11 --enable=warning,performance,portability --inline-suppr \
    --cppcheck-build-dir=build/cppcheck --suppressions-list=ci/checks/cppcheck.allow \
    --error-exitcode=1 -DWEFT_VERSION_STRING='""' -DWEFT_LIBDIR='"lib"' -D_GNU_SOURCE -D__x86_64__ \
    -I core -I core/include -I files -I files/include -I parallel -I parallel/include -I feed -I feed/include -I cli -I kit "${files[@]}"
echo "cppcheck: ${#files[@]} files, nothing to complain about"
