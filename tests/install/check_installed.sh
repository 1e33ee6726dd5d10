#!/usr/bin/env bash
# Install into a temporary folder, move it, and build a small program against it both ways.
# Usage: check_installed.sh SOURCE BUILD CC CXX
set -euo pipefail
source=$1 build=$2
export CC=$3 CXX=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset LD_LIBRARY_PATH DESTDIR

cmake --install "$build" --prefix "$folder/first" >"$folder/log" || { cat "$folder/log"; exit 1; }
mv "$folder/first" "$folder/tree"
tree=$folder/tree

for file in bin/weft include/weft/weft.h include/weft/weft.hpp include/weft/weft_plugin.h share/man/man1/weft.1 \
    share/doc/weft/README.md share/doc/weft/docs/engine-guide.md share/doc/weft/examples/weights/weights.c share/doc/weft/examples/tensor/tensor.c \
    share/bash-completion/completions/weft share/zsh/site-functions/_weft share/weft/plugin-kit/plug_host.h; do
    if [[ ! -s $tree/$file ]]; then
        echo "not installed: $file"
        exit 1
    fi
done
pc=$(find "$tree" -name weft.pc)
libdir=$(dirname "$(dirname "$pc")")
"$tree/bin/weft" version

echo "-- the plugin kit compiles by itself"
for file in "$tree"/share/weft/plugin-kit/plug_*.c; do
    "$CC" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I "$tree/include/weft" "$file"
done

echo "-- weft.hpp compiles by itself"
echo '#include <weft/weft.hpp>' >"$folder/hpp.cc"
"$CXX" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I "$tree/include" "$folder/hpp.cc"

echo "-- by find_package"
cmake -S "$source/tests/install/cmake_package" -B "$folder/package" -DCMAKE_PREFIX_PATH="$tree" >"$folder/log" ||
    { cat "$folder/log"; exit 1; }
cmake --build "$folder/package" >"$folder/log" || { cat "$folder/log"; exit 1; }
"$folder/package/program" | grep -q 'weft [0-9.]*: a timeout is "the time limit passed"'

echo "-- by pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2046 # words are what pkg-config prints
"$CC" -o "$folder/program" "$source/tests/install/program.c" $(pkg-config --cflags --libs weft) \
    -Wl,-rpath,"$(pkg-config --variable=libdir weft)"
"$folder/program" | grep -q 'weft [0-9.]*: a timeout is "the time limit passed"'

echo "-- the installed examples"
for example in hello overlap redistribute weights; do
    # shellcheck disable=SC2046 # words are what pkg-config prints
    "$CC" -std=gnu17 -Wall -Wextra -Werror -fsyntax-only "$tree/share/doc/weft/examples/$example/$example.c" \
        $(pkg-config --cflags weft)
done
[[ $(pkg-config --modversion weft) == $("$folder/program" | sed 's/^weft \([0-9.]*\).*/\1/') ]]
