# torch.sh - the Python of a comparison.  Sourced, not run: it uses $python, $build and $work, and say.
# shellcheck shell=sh disable=SC2154,SC2034

has_torch() { "$1" -c 'import torch.distributed.tensor' >/dev/null 2>&1; }

# Set $python to one that has PyTorch, which is installed into a virtual environment if need be.
find_torch() {
    if has_torch "$python"; then return 0; fi
    venv=$build/dtensor-venv
    if ! has_torch "$venv/bin/python"; then
        say "installing PyTorch from PyPI into $venv"
        "$python" -m venv "$venv" >"$work/pip.log" 2>&1 &&
            { "$venv/bin/pip" install -q torch numpy --index-url https://download.pytorch.org/whl/cpu ||
                "$venv/bin/pip" install -q torch numpy; } >>"$work/pip.log" 2>&1 || return 1
        has_torch "$venv/bin/python" || return 1
    fi
    python=$venv/bin/python
}

# The NCCL of PyTorch, so that both sides use one.
wheel_nccl()
{
    "$python" -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + "/lib/libnccl.so.2")' 2>/dev/null
}
