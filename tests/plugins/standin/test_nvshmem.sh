#!/usr/bin/env bash
# test_nvshmem.sh WEFT GPU_RANK STANDINS - failures of NVSHMEM and weft's messages.  STANDINS is the folder of the
# simulated libraries.
source "$(dirname "$0")/nvshmem_lib.sh"

# alone CODE TEXT VARIABLE=VALUE...: a single rank cannot start, and its error has TEXT.
alone() { local code=$1 text=$2; shift 2; expect "$code" "$text" env "$@" "$program" split; }

# The library, its bootstrap module, kernels, a device: each missing in turn.
alone 11 "WEFT_NVSHMEM_LIB=/nowhere/libnvshmem_host.so.3 cannot be opened" WEFT_NVSHMEM_LIB=/nowhere/libnvshmem_host.so.3
alone 11 "libnvshmem_host.so.3 not found in /dev, the folder that WEFT_NVSHMEM_LIB names" WEFT_NVSHMEM_LIB=/dev
alone 11 "has no function nvshmemx_get_uniqueid; NVSHMEM 3 is needed" "WEFT_NVSHMEM_LIB=$standins/nvidia/libcuda.so.1"
cp "$standins/nvidia/libnvshmem_host.so.3" "$folder"
alone 11 "the bootstrap library of NVSHMEM, nvshmem_bootstrap_uid.so.3, cannot be opened" \
    "WEFT_NVSHMEM_LIB=$folder"
alone 11 "the bootstrap library of NVSHMEM, /nowhere/uid.so, cannot be opened" \
    NVSHMEM_BOOTSTRAP_UID_PLUGIN=/nowhere/uid.so
mkdir "$folder/open" && cp "$standins/nvidia/nvshmem_bootstrap_uid.so.3" "$folder/open" && chmod 0777 "$folder/open"
alone 11 "cannot be opened: $folder/open belongs to user $(id -u) and has mode 0777" \
    "NVSHMEM_BOOTSTRAP_UID_PLUGIN=$folder/open/nvshmem_bootstrap_uid.so.3"
ln -s "$folder/open/nvshmem_bootstrap_uid.so.3" "$folder" # beside the library
alone 11 "the bootstrap library of NVSHMEM, nvshmem_bootstrap_uid.so.3, cannot be opened: $folder/" \
    "WEFT_NVSHMEM_LIB=$folder"
rm "$folder/nvshmem_bootstrap_uid.so.3"
# A long path works: the module is found beside the library.
deep=$folder/$(printf 'a%.0s' {1..120})/$(printf 'b%.0s' {1..120})
mkdir -p "$deep" && cp "$standins/nvidia/libnvshmem_host.so.3" "$standins/nvidia/nvshmem_bootstrap_uid.so.3" "$deep"
alone 0 "as expected: OK" "WEFT_NVSHMEM_LIB=$deep"
# The stand-in makes no file with a name, so that none stays where a rank is killed.
expect 1 "" grep -c shm_open "$standins/nvidia/libnvshmem_host.so.3"
alone 11 "no NVIDIA device is present" STANDIN_DEVICES=0
# Also for the conformance kit, whichever cases it is asked for.
expect 1 "WEFT_NVSHMEM_LIB=/nowhere cannot be opened" env WEFT_NVSHMEM_LIB=/nowhere "$weft" conform nvshmem --ranks 2 --only "errors/timeout/*"
alone 11 "no kernels for Stand-in CUDA device 0" WEFT_NVSHMEM_KERNELS=/dev/null

# ranks N TEXT VARIABLE=VALUE...: the first communicator cannot be made, on any of N ranks.
cannot_begin()
{
    local n=$1 text=$2 have told
    shift 2
    check=$((check + 1))
    have=$(env "$@" "$weft" run -n "$n" --keep-going --timeout 900 "$program" split 2>&1)
    told=$(grep -c "$text" <<<"$have")
    if ((told < n)) || [[ $have == *"as expected"* ]]; then not_so "$told of $n ranks say \"$text\": $have"; fi
}
cannot_begin 2 "start the CUDA MPS daemon" STANDIN_LIMITED=1
cannot_begin 2 "NVSHMEM could not be initialized (code 7)" STANDIN_BEGIN=7
cannot_begin 2 "NVSHMEM cannot allocate 2147483648 bytes of symmetric memory" STANDIN_HEAP=1048576
cannot_begin 2 "WEFT_NVSHMEM_HEAP is \"64K\"; expected a size of at least 1M" WEFT_NVSHMEM_HEAP=64K
cannot_begin 2 "cannot load from and store to the memory of rank" STANDIN_FAR=1

# ranks N COUNT TEXT SCENARIO VARIABLE=VALUE...: COUNT of N ranks say TEXT.
ranks()
{
    local n=$1 count=$2 text=$3 scenario=$4 have told
    shift 4
    check=$((check + 1))
    have=$(env "$@" "$weft" run -n "$n" --keep-going --timeout 900 "$program" "$scenario" 2>&1)
    told=$(grep -c "as expected: $text" <<<"$have")
    if ((told != count)) || [[ $have == *NOT* ]]; then not_so "$told ranks of $scenario say \"$text\", not $count: $have"; fi
}
ranks 3 2 "ERR_" killed
ranks 2 2 "ERR_INVALID.*plain host memory, which the device cannot use" host_pointer
ranks 1 1 "ERR_NO_MEMORY.*allocating 1125899906842624 bytes of device memory" no_memory
ranks 4 4 "OK" split
ranks 2 2 "OK" wrapped_stream
ranks 4 4 "OK" unrelated
ranks 2 1 "ERR_TIMEOUT.*rank 1 did not receive message 1 of rank 0.*reported by rank 0" sent_too_late WEFT_TIMEOUT=3
# Work on a stream that another rank never joins: no wait says that it was done.
for what in reduce receive barrier on_default; do
    ranks 2 1 "ERR_ABORTED.*world was aborted by rank 0" "aborted_$what"
done
ranks 2 1 "ERR_PEER.*rank 0 is gone" deserted
ranks 2 1 "ERR_TIMEOUT" released_early WEFT_TIMEOUT=5
ranks 2 1 "ERR_TIMEOUT" released_stuck WEFT_TIMEOUT=5
ranks 2 1 "ERR_TIMEOUT.*rank 0 did not reach operation" too_late WEFT_TIMEOUT=3
# With NVSHMEM's own collectives later work on the stream cannot be ended, but no rank waits for it.
ranks 4 4 "OK" split WEFT_NVSHMEM_COLLECTIVES=nvshmem
ranks 2 1 "ERR_TIMEOUT.*rank 0 did not reach operation" left_behind WEFT_TIMEOUT=3 WEFT_NVSHMEM_COLLECTIVES=nvshmem
cannot_begin 2 "WEFT_NVSHMEM_COLLECTIVES is \"nccl\"; expected weft or nvshmem" WEFT_NVSHMEM_COLLECTIVES=nccl
# An arena that is full: memory is the driver's then, and what peers read of it is copied.
expect 0 "every element" "$weft" redistribute -n 2 --mesh 2 --shape 300x300 --from "S(0)" --to "S(1)"
expect 0 "every element" env WEFT_NVSHMEM_HEAP=1M "$weft" redistribute -n 2 --mesh 2 --shape 500x500 --from "S(0)" --to "S(1)"
expect 3 "bytes of symmetric memory: of 917504 bytes" \
    env WEFT_NVSHMEM_HEAP=1M "$weft" redistribute -n 2 --mesh 2 --shape 2000x2000 --from "S(0)" --to "S(1)"
# Many tiles, which the blocks of a kernel take as they get to them; in one kernel, and in one for each width of words.
# Devices before 9.0 launch no kernel before the one in front has ended.
for capability in 80 90; do
    for shape in 1200x1200 1201x1203; do
        expect 0 "every element" env STANDIN_CAPABILITY=$capability "$weft" redistribute -n 2 --mesh 2 --shape $shape --from "S(0)" --to "S(1)"
        expect 0 "every element" env STANDIN_CAPABILITY=$capability "$weft" redistribute -n 2 --mesh 2 --shape $shape --from P --to "S(1)"
    done
done
finish
