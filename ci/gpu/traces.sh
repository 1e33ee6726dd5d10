# traces.sh - what weft records of work on a device: traces with the device's times, ranges for NVIDIA's tools, and
# their cost.  Sourced by ci/gpu.sh.
# shellcheck shell=bash

# A trace of PROGRAM on N ranks, read by a decoder that shares no code with weft.
traced()
{
    local folder n=$1
    shift
    folder=$(mktemp -d)
    WEFT_TRACE=$folder/t ranks "$n" "$@" >"$folder/out" || { cat "$folder/out"; return 1; }
    "$weft" trace merge "$folder"/t.* -o "$folder/all.pftrace" >/dev/null || return 1
    python3 tests/system/traces/check_device.py "$folder" || return 1
    rm -rf "$folder"
}

# A tool that NVTX attaches hears every call.
ranges()
{
    local tool=$root/$tree/tests/libstandin_nvtx.so
    "${CC:-cc}" -std=gnu17 -O1 -fPIC -shared -o "$tool" tests/plugins/standin/nvtx.c tests/plugins/standin/ranges.c \
        -pthread || return 1
    NVTX_INJECTION64_PATH=$tool ranks 2 range_check nvtx "$tool"
}

# The same redistributions with a trace; gpu_report.py compares them with cost_2.
cost_traced()
{
    local folder
    folder=$(mktemp -d)
    WEFT_TRACE=$folder/t ranks 2 redistribute_cost "$(board)"
    rm -rf "$folder"
}

trace_parts()
{
    start_mps
    also traced_capture 60 "${self[@]}" traced 2 capture_check
    also traced_moves 60 "${self[@]}" traced 4 move_check
    also ranges 60 "${self[@]}" ranges
    all_done
    gpu_part trace_bench 60 "$weft" bench trace --ranks 2 --json
    gpu_part cost_traced_2 100 "${self[@]}" cost_traced
    end_mps
}
