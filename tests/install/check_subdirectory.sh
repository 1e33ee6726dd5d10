#!/usr/bin/env bash
# Build a small program in a project that has weft as a subdirectory, without a C++ compiler.
# Usage: check_subdirectory.sh SOURCE BUILD CC
set -euo pipefail
source=$1
export CC=$3
unset CXX
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake -S "$source/tests/install/subdirectory" -B "$folder" -DWEFT_SOURCE="$source" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DCMAKE_CXX_COMPILER=NOTFOUND \
    >"$folder/log" || { cat "$folder/log"; exit 1; }
cmake --build "$folder" --target program -j 2 >"$folder/log" || { cat "$folder/log"; exit 1; }
"$folder/program" | grep -q 'weft [0-9.]*: a timeout is "the time limit passed"'
if [[ ! -e $folder/lib/weft/libweft_plugin_gloo-cpu.so ]]; then
    echo "a program that links weft has no plugin to run with"
    exit 1
fi
if (cd "$folder" && ctest -N) | grep -q 'Test *#'; then
    echo "weft's tests are among those of the project around it"
    exit 1
fi
cmake --install "$folder" --prefix "$folder/installed" >/dev/null
if [[ -e $folder/installed/include/weft ]]; then
    echo "weft is installed along with the project around it, unasked"
    exit 1
fi
