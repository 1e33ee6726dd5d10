#!/usr/bin/env bash
# test_guards.sh WEFT GPU_RANK STANDINS - cases in which NVSHMEM would end the process, or wait without a limit:
# weft reports the reason and continues, or refuses on all ranks.  The simulated library behaves like the real one.
source "$(dirname "$0")/nvshmem_lib.sh"

# on RANK VARIABLE=VALUE PROGRAM...: only that rank has the variable.
cat >"$folder/on" <<'SCRIPT'
#!/usr/bin/env bash
if [[ $WEFT_RANK == "$1" ]]; then export "$2"; fi
shift 2
exec "$@"
SCRIPT
chmod +x "$folder/on"

# says N TEXT VARIABLE=VALUE... -- PROGRAM...: each of N ranks says TEXT, and none is ended by the library.
says()
{
    local n=$1 text=$2 have told settings=()
    shift 2
    while [[ $1 != -- ]]; do settings+=("$1"); shift; done
    shift
    check=$((check + 1))
    have=$(env "${settings[@]}" "$weft" run -n "$n" --keep-going --timeout 900 "$@" 2>&1)
    told=$(grep -c "^\[.*$text" <<<"$have")
    if ((told != n)) || [[ $have == *"NVSHMEM exits"* || $have == *NOT* || ($text == as* && $have == *"failed first"*) ]]; then
        not_so "$told of $n ranks say \"$text\": $have"
    fi
}

# Memory: the arena is as large as fits on the rank that has least, and nothing is begun where nothing does.
says 2 "as expected: OK" -- "$folder/on" 1 STANDIN_FREE=1500000000 "$program" split
says 2 "rank 1 has 1200000000 bytes of device memory for itself, but NVSHMEM needs 1350565888: 8388608 for the arena" \
    -- "$folder/on" 1 STANDIN_FREE=1200000000 "$program" split
says 2 "rank 1 has 2000000000 bytes of device memory for itself, but NVSHMEM needs 2415919104: 1073741824 for the arena" \
    WEFT_NVSHMEM_HEAP=1G -- "$folder/on" 1 STANDIN_FREE=2000000000 "$program" split
says 2 "has 1100000000 bytes of device memory for itself" STANDIN_DEVICES=1 WEFT_SHARE_GPU=1 STANDIN_FREE=2200000000 -- "$program" split
says 2 "as expected: OK" NVSHMEM_CUMEM_GRANULARITY=2M STANDIN_DEVICES=1 WEFT_SHARE_GPU=1 STANDIN_FREE=2200000000 -- "$program" split
# A program that records a stream when weft begins.
says 2 "the default stream cannot be used while another stream is captured" -- "$folder/on" 1 STANDIN_RECORDING=1 "$program" split
# More than NVSHMEM takes by itself.
says 2 "as expected: OK" WEFT_NVSHMEM_HEAP=130G STANDIN_MEMORY=200000000000 -- "$program" split
says 2 "NVSHMEM cannot allocate 139586437120 bytes of symmetric memory; .* NVSHMEM_MAX_MEMORY_PER_GPU" \
    WEFT_NVSHMEM_HEAP=130G STANDIN_MEMORY=200000000000 NVSHMEM_MAX_MEMORY_PER_GPU=100000000000 -- "$program" split
# A rank that fails while others wait inside the library says its own reason.
expect 11 "NVSHMEM cannot allocate 2147483648 bytes of symmetric memory" env WEFT_TIMEOUT=5 "$weft" run -n 2 --timeout 300 \
    "$folder/on" 1 STANDIN_HEAP=1000 "$program" split

# Ranks of a device at unequal steps.
cat >"$folder/devices" <<'SCRIPT'
#!/usr/bin/env bash
devices=($1)
export WEFT_DEVICE=${devices[$WEFT_RANK]}
shift
exec "$@"
SCRIPT
chmod +x "$folder/devices"
says 4 "ranks 0, 2 and 3 share the device .*: NVSHMEM needs equal steps between the ranks" WEFT_SHARE_GPU=1 \
    -- "$folder/devices" "0 1 0 0" "$program" split
says 4 "as expected: OK" WEFT_SHARE_GPU=1 -- "$folder/devices" "0 1 0 1" "$program" split

# Libraries that are not alike, and a file that is not a bootstrap module.
says 2 "rank 0 has NVSHMEM 3.4.5 and rank 1 has 3.4.6; all ranks must have the same version" -- "$folder/on" 1 STANDIN_NVSHMEM=30406 "$program" split
says 2 "libcuda.so.1 has no function nvshmemi_bootstrap_plugin_init: it is not a bootstrap module" \
    "NVSHMEM_BOOTSTRAP_UID_PLUGIN=$standins/nvidia/libcuda.so.1" -- "$program" split
says 2 "a program that must be on PATH" STANDIN_LIMITED=1 -- "$program" split

# NVSHMEM's own collectives.
export WEFT_NVSHMEM_COLLECTIVES=nvshmem
says 2 "as expected: OK" -- "$program" device_full
says 2 "1000000 bytes of device memory are free, but NVSHMEM may need 67108864" WEFT_LOG=warning -- "$program" device_full
says 2 "as expected: ERR_DEVICE" -- "$program" device_faulted
says 2 "as expected: ERR_INVALID.*the default stream cannot be used while another stream is captured" -- "$program" recording
says 2 "WEFT_NVSHMEM_COLLECTIVES=nvshmem and NVSHMEM_DISABLE_NVLS=0: with NVLS, NVSHMEM ends the process" NVSHMEM_DISABLE_NVLS=0 \
    -- "$program" split
finish
