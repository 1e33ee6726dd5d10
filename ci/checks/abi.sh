#!/usr/bin/env bash
# abi.sh - what changed in the ABI that libweft promises, since api/abi/libweft.abi was recorded.
#
#   ci/checks/abi.sh          prints the changes; from version 1 on, a change fails
#   ci/checks/abi.sh --fix    records the ABI as it is; from version 1 on, what was recorded must stay
#
# It first checks itself: a function that is missing is a change.
#
# One record is for all architectures, because the public types have the same layout on all of them.  The check compares
# it with the ABI of this machine's architecture, and of others if a compiler for them is installed (gcc-x86-64-linux-gnu).
source "$(dirname "$0")/../lib.sh"
command -v abidiff >/dev/null || skip "abidiff not found (package abigail-tools)"
version=$(sed -n 's/^project(weft VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
recorded=api/abi/libweft.abi
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python3 api/describe.py "$made/weft-api.json" "$version" ./*/include/weft/*.h
python3 api/abi.py "$made/weft-api.json" "$made/libweft.c"

incompatible=8 # a bit of abidiff's exit status
abi_of() # COMPILER SOURCE: to $made/abi, which has a line for each function, type and member
{
    (cd "$made" && "$1" -std=c17 -g -O0 -fPIC -shared -I "$root/core/include" "$2" -o libweft.so)
    abidw --no-architecture --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --no-write-default-sizes \
        --type-id-style hash "$made/libweft.so" |
        python3 -c 'import re, sys; print(re.sub(
            r">\s+(<(?:parameter|return|var-decl|/data-member|/function-decl|/function-type|subrange|/array-type-def)\b)",
            r">\1", sys.stdin.read()), end="")' >"$made/abi"
}
differs() # OLD NEW: prints what changed; abidiff's exit status in $code
{
    code=0
    abidiff "$1" "$2" || code=$?
}

abi_of gcc libweft.c
mv "$made/abi" "$made/whole"
sed '/^int32_t weft_mesh_size(/,/^}/d' "$made/libweft.c" >"$made/without.c"
abi_of gcc without.c
differs "$made/whole" "$made/abi" >"$made/log"
if ((!(code & incompatible))) || ! grep -q weft_mesh_size "$made/log"; then die "a function that was removed is not found"; fi

grew() # OLD NEW
{
    ci/checks/abi_grew.py "$1" "$2"
}

# Growth is told from other changes: NEW may have more functions, members and enumerators, and OLD none that NEW lacks.
changed() # SED: a record that was changed so
{
    sed "$1" "$made/whole" >"$made/changed"
    if cmp -s "$made/changed" "$made/whole"; then die "the record has nothing to change for: $1"; fi
    if ! grew "$made/changed" "$made/whole" >"$made/log"; then die "growth is taken for a change: $1: $(<"$made/log")"; fi
    if grew "$made/whole" "$made/changed" >"$made/log"; then die "a change is taken for growth: $1"; fi
}
changed "/<function-decl name='weft_send'/d"
changed "/<data-member.*name='memory_limit'/d"
changed "/<enumerator name='WEFT_STEP_REDUCE'/d"
parameter="s/\\(<function-decl name='weft_send'.*\\) name='tag'/\\1 name='label'/"
sed "$parameter" "$made/whole" >"$made/changed"
if grew "$made/whole" "$made/changed" >"$made/log"; then die "a parameter that changed is taken for growth"; fi

if [[ ${1:-} == --fix ]]; then
    if [[ -e $recorded ]] && ((${version%%.*} >= 1)); then
        grew "$recorded" "$made/whole" || die "$recorded: what is promised was removed or changed"
    fi
    mkdir -p api/abi
    cp "$made/whole" "$recorded"
fi
for architecture in aarch64 x86_64; do
    compiler=gcc
    if [[ $architecture != "$(uname -m)" ]]; then compiler=$architecture-linux-gnu-gcc; fi
    if ! command -v "$compiler" >/dev/null; then continue; fi
    abi_of "$compiler" libweft.c
    differs "$recorded" "$made/abi"
    if ((code != 0 && ${version%%.*} >= 1)); then
        die "the ABI of libweft on $architecture differs from $recorded; if it only grew, ci/checks/abi.sh --fix records it"
    fi
    result="no change"
    if ((code != 0)); then result="changed, as above"; fi
    echo "abi: $architecture: $(grep -c '<elf-symbol' "$made/abi") stable functions, $result"
done
