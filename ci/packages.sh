#!/usr/bin/env bash
# packages.sh - build the Debian packages of a tree, and print their paths.
#
#   ci/packages.sh OUT [SOURCE [BUILD]]     packages of SOURCE (this tree) into the folder OUT, built in BUILD
#
# The same sources give the same bytes, in whatever folder and at whatever time they are built, with the same compiler.
source "$(dirname "$0")/lib.sh"
(($# >= 1 && $# <= 3)) || die "usage: ci/packages.sh OUT [SOURCE [BUILD]]"
mkdir -p "$1"
out=$(realpath "$1") source=$(realpath "${2:-$root}") build=$(realpath -m "${3:-${2:-$root}/build/packages}")
need build deb
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH CC=gcc CXX=g++
umask 022
mkdir -p "$build"
log=$build/packages.log
{
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
        -DWEFT_WERROR=ON -DWEFT_BUILD_TESTS=OFF -DWEFT_BUILD_EXAMPLES="${WEFT_PACKAGES_EXAMPLES:-OFF}" &&
        cmake --build "$build" -j "$jobs" &&
        rm -rf "$build/deb" && (cd "$build" && cpack -G DEB -B deb)
} >"$log" 2>&1 || { tail -n 50 "$log" >&2; die "$log has the rest"; }
cp "$build"/deb/*.deb "$out"
for file in "$build"/deb/*.deb; do echo "$out/${file##*/}"; done
