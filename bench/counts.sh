#!/bin/sh
# counts.sh - instructions of frequent calls, and sizes of the libraries, of two builds.
#
#   bench/counts.sh BUILD_A BUILD_B
#
# Both are release builds of one compiler.  counts.c runs an operation 1000 and 2000 times on one rank, and callgrind
# (Debian: valgrind) counts the instructions: a thousandth of the difference is the count of a call.
set -eu
. "$(dirname "$0")/lib.sh"
if [ $# != 2 ]; then
    echo "usage: bench/counts.sh BUILD_A BUILD_B" >&2
    exit 2
fi
if ! command -v valgrind >/dev/null; then
    echo "counts.sh: valgrind not found" >&2
    exit 77
fi
begin counts
export WEFT_BACKEND=gloo-cpu

# takes_options BUILD: do weft_op_apply and weft_tensor_move of the build take options?
takes_options() {
    "$python" -c 'import json, sys
names = [one["name"] for one in json.load(open(sys.argv[1]))["functions"]["weft_tensor_move"]["arguments"]]
sys.exit("options" not in names)' "$1/api/weft-api.json"
}
# compile BUILD PROGRAM
compile() {
    set -- "$(cd "$1" && pwd)" "$2"
    old=
    takes_options "$1" || old=-DNO_OPTIONS
    libraries=-lweft
    if [ -e "$1/lib/libweft_parallel.so" ]; then libraries="-lweft_parallel -lweft"; fi
    # shellcheck disable=SC2086 # words
    ${CC:-cc} -std=gnu17 -O2 $old -I"$1/include" -o "$2" "$here/counts.c" -L"$1/lib" $libraries -Wl,-rpath,"$1/lib"
}
# instructions PROGRAM OPERATION COUNT
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 | sed -n 's/^.*Collected : \([0-9]*\)$/\1/p'
}
# of_a_call PROGRAM OPERATION
of_a_call() {
    echo $((($(instructions "$1" "$2" 2000) - $(instructions "$1" "$2" 1000) + 500) / 1000))
}
# bytes BUILD LIBRARY: of the stripped library, or "-"
bytes() {
    if [ ! -e "$1/lib/$2" ]; then
        echo -
        return
    fi
    strip -o "$work/stripped" "$1/lib/$2"
    wc -c <"$work/stripped"
}

compile "$1" "$work/a"
compile "$2" "$work/b"
echo "| instructions of a call | A | B |"
echo "|------------------------|---|---|"
for operation in all_reduce redistribute plan apply tensor_move; do
    echo "| $operation | $(of_a_call "$work/a" $operation) | $(of_a_call "$work/b" $operation) |"
done
echo
echo "| bytes, stripped | A | B |"
echo "|-----------------|---|---|"
for library in libweft.so libweft_file.so libweft_parallel.so; do
    echo "| $library | $(bytes "$1" $library) | $(bytes "$2" $library) |"
done
