#!/usr/bin/env bash
# Install into a temporary folder whose name has spaces, move it, and use it there.
# Usage: check_installed.sh SOURCE BUILD CC CXX
set -euo pipefail
source=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset LD_LIBRARY_PATH DESTDIR

cmake --install "$build" --prefix "$folder/first" >"$folder/log" || { cat "$folder/log"; exit 1; }
mv "$folder/first" "$folder/a tree of weft"
"$source/tests/install/check_tree.sh" "$source" "$folder/a tree of weft" "$3" "$4"
