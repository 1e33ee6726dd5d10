#!/usr/bin/env bash
# An installed tree is complete, its tool runs, and small programs are built against it by CMake and by pkg-config.
# Usage: check_tree.sh SOURCE TREE CC CXX
set -euo pipefail
source=$1 tree=$2
export CC=$3 CXX=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset LD_LIBRARY_PATH DESTDIR

for file in bin/weft include/weft/weft.h include/weft/weft.hpp include/weft/file.hpp include/weft/parallel.hpp include/weft/feed.hpp include/weft/weft_plugin.h \
    share/doc/weft/README.md share/doc/weft/docs/engine-guide.md share/doc/weft/examples/weights/weights.c share/doc/weft/examples/tensor/tensor.c \
    share/bash-completion/completions/weft share/zsh/site-functions/_weft share/weft/plugin-kit/plug_host.h \
    share/weft/weft-api.json; do
    if [[ ! -s $tree/$file ]]; then
        echo "not installed: $file"
        exit 1
    fi
done
for page in man1/weft.1 man3/weft_init.3; do
    if [[ ! -s $tree/share/man/$page && ! -s $tree/share/man/$page.gz ]]; then
        echo "not installed: the manual page $page"
        exit 1
    fi
done
echo "-- links of the documents lead to installed files"
python3 - "$tree/share/doc/weft" <<'PYTHON'
import pathlib, re, sys
pages = sorted(pathlib.Path(sys.argv[1]).rglob("*.md"))
links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", page.read_text())]
dead = [f"{page}: {link}" for page, link in links if "://" not in link and not (page.parent / link).exists()]
if dead or not any("include/weft/" in link for _, link in links):
    sys.exit("\n".join(dead) or "no document links to a header")
PYTHON
echo "-- help names the installed pages"
for help in 'status --help' 'help spec' 'bench --help'; do
    read -r -a words <<<"$help"
    page=$("$tree/bin/weft" "${words[@]}" | sed -n 's/^manual: //p')
    if [[ $page != "$(realpath "$tree/share/doc/weft/docs")"/* || ! -s ${page%%,*} ]]; then
        echo "weft $help names $page"
        exit 1
    fi
done

pc=$(find "$tree" -name weft.pc)
libdir=$(dirname "$(dirname "$pc")")

# loads_only PROGRAM LIBRARIES: of weft's libraries, PROGRAM loads these.
loads_only()
{
    local found
    found=$(ldd "$1" | grep -o 'libweft[a-z_]*\.so' | sort -u | xargs)
    if [[ $found != "$2" ]]; then
        echo "$1 loads $found; expected $2"
        exit 1
    fi
}
"$tree/bin/weft" version

echo "-- the plugin kit compiles by itself"
for file in "$tree"/share/weft/plugin-kit/{,kit/}*.c; do
    "$CC" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I "$tree/share/weft/plugin-kit" \
        -I "$tree/include/weft" "$file"
done

for header in weft.hpp file.hpp parallel.hpp feed.hpp; do
    echo "-- $header compiles by itself"
    echo "#include <weft/$header>" >"$folder/hpp.cc"
    "$CXX" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I "$tree/include" "$folder/hpp.cc"
done

echo "-- by find_package"
cmake -S "$source/tests/install/cmake_package" -B "$folder/package" -DCMAKE_PREFIX_PATH="$tree" >"$folder/log" ||
    { cat "$folder/log"; exit 1; }
cmake --build "$folder/package" >"$folder/log" || { cat "$folder/log"; exit 1; }
"$folder/package/program" | grep -q 'weft [0-9.]*: a timeout is "the time limit passed"'
"$folder/package/inspect" | grep -q '^ERR_NOT_FOUND: weft_checkpoint_open: .*model.safetensors'
loads_only "$folder/package/program" libweft.so
loads_only "$folder/package/inspect" "libweft.so libweft_file.so"
loads_only "$folder/package/finetune" "libweft.so libweft_file.so libweft_parallel.so"
if nm -D --defined-only "$libdir/libweft.so" | grep -E ' weft_(op|fsdp|cp|clip|experts|overlap|pipeline|schedule|save|load)_'; then
    echo "libweft has functions of another library"
    exit 1
fi

echo "-- by pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
# flags WORD...: what pkg-config prints for them, as an array.  It quotes for the shell.
flags() { eval "flags=($(pkg-config "$@"))"; }
flags --cflags --libs weft
"$CC" -o "$folder/program" "$source/tests/install/program.c" "${flags[@]}" \
    -Wl,-rpath,"$libdir"
"$folder/program" | grep -q 'weft [0-9.]*: a timeout is "the time limit passed"'
flags --cflags --libs weft-file
"$CC" -o "$folder/inspect" "$source/tests/install/inspect.c" "${flags[@]}" \
    -Wl,-rpath,"$libdir"
"$folder/inspect" | grep -q '^ERR_NOT_FOUND: weft_checkpoint_open: .*model.safetensors'

echo "-- the installed examples"
flags --cflags weft
for example in cuda dlpack draws elastic embed hello meshes overlap recover redistribute samplesort symmetric watchdog \
    weights zero; do
    "$CC" -std=gnu17 -Wall -Wextra -Werror -fsyntax-only "$tree/share/doc/weft/examples/$example/$example.c" "${flags[@]}"
done

echo "-- a program that loads a checkpoint, trains a step of FSDP on two ranks and saves"
flags --cflags --libs weft-file weft-parallel weft-feed
"$CC" -std=gnu17 -o "$folder/finetune" "$tree/share/doc/weft/examples/finetune/finetune.c" "${flags[@]}" -lm \
    -Wl,-rpath,"$libdir"
"$source/tests/system/store/finetune.sh" "$tree/bin/weft" "$folder/finetune" 2
[[ $(pkg-config --modversion weft) == $("$folder/program" | sed 's/^weft \([0-9.]*\).*/\1/') ]]
