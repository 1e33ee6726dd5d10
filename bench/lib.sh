# lib.sh - what scripts of comparisons share.  Sourced, not run.
# shellcheck shell=sh disable=SC2034

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
build=$root/build
python=python3
json=
gpu=

# begin NAME: make $work, a folder that is removed at the end; say prints a line with NAME.
begin() {
    bench=$1
    work=$(mktemp -d "${TMPDIR:-/tmp}/weft-$bench.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM
}
say() { echo "$bench: $*" >&2; }

# take_option OPTION [VALUE]: an option of the tables of collectives; $taken is the number of words that it has.
take_option() {
    taken=2
    case $1 in
    --json) json=--json taken=1 ;;
    --rounds) rounds=$2 ;;
    --budget-ms) budget_ms=$2 ;;
    --build) build=$2 ;;
    --ranks) ranks_list=$2 ;;
    *) return 1 ;;
    esac
}
# leave_out NAME REASON: the table has a line about it.
leave_out() { say "$1 left out: $2"; echo "$1: $2" >>"$work/left-out"; }

# build_weft PROGRAM [OPTION...]: build weft in $build with the options, if it has no PROGRAM or no tool.
build_weft() {
    if [ -x "$build/$1" ] && [ -x "$build/bin/weft" ]; then return; fi
    shift
    say "building weft in $build"
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DWEFT_BUILD_TESTS=OFF "$@" >&2
    cmake --build "$build" -j "$(nproc)" >&2
}

has_torch() { "$1" -c 'import torch.distributed.tensor' >/dev/null 2>&1; }

# Set $python to one that has PyTorch, which is installed into a virtual environment if need be.
find_torch() {
    if has_torch "$python"; then return 0; fi
    venv=$build/torch-venv
    if ! has_torch "$venv/bin/python"; then
        say "installing PyTorch from PyPI into $venv"
        "$python" -m venv "$venv" >"$work/pip.log" 2>&1 &&
            { "$venv/bin/pip" install -q torch numpy --index-url https://download.pytorch.org/whl/cpu ||
                "$venv/bin/pip" install -q torch numpy; } >>"$work/pip.log" 2>&1 || return 1
        has_torch "$venv/bin/python" || return 1
    fi
    python=$venv/bin/python
}
# Say why find_torch has failed.
say_without_torch() { say "without PyTorch, which could not be installed: $(tail -n 1 "$work/pip.log" 2>/dev/null)"; }

# on_ranks N PROGRAM ARGUMENT...: run PROGRAM of weft as N ranks on gloo-cpu; with --gpu on one device over the
# backend that WEFT_BACKEND names (nccl) and PyTorch's NCCL, so that both sides use one.
on_ranks() {
    ranks=$1
    shift
    if [ -n "$gpu" ]; then
        WEFT_BACKEND=${WEFT_BACKEND:-nccl} WEFT_SHARE_GPU=1 WEFT_NCCL_LIB=${WEFT_NCCL_LIB:-$(wheel_nccl)} \
            "$build/bin/weft" run -n "$ranks" --no-prefix "$@"
    else
        WEFT_BACKEND=gloo-cpu "$build/bin/weft" run -n "$ranks" --no-prefix "$@"
    fi
}
wheel_nccl() {
    "$python" -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + "/lib/libnccl.so.2")' 2>/dev/null
}
