#!/usr/bin/env bash
# weft_save and weft_load on ranks that are processes: a full disk, an I/O error or a kill on one rank is an error on
# all ranks, and there is nothing new at the path.
source "$(dirname "$0")/../../support/lib.sh"
export WEFT_BACKEND=gloo-cpu # also on a machine with a device
weft=$1 rank=$2 library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

# One rank gets the fault.
cat >faulty.sh <<'SH'
#!/usr/bin/env bash
which=$1 fault=$2
shift 2
if [[ ${WEFT_RANK:-${RANK:-}} == "$which" ]]; then export WEFT_TEST_FAULT=$fault LD_PRELOAD=$LIBRARY; fi
exec "$@"
SH
chmod +x faulty.sh
export LIBRARY=$library

faulty() # RANK FAULT HOW: the lines of all ranks
{
    "$weft" run --keep-going -n 4 ./faulty.sh "$1" "$2" "$rank" "$3" out 2>/dev/null
}

none_there()
{
    [[ ! -e out && ! -e out.weft-partial ]] || not_so "$1: there is something at the path"
    rm -rf out out.weft-partial
}

for how in save begin; do
    for fault in 0:fallocate:1:ENOSPC 0:pwrite:1:EIO 2:pwrite:1:ENOSPC 3:fdatasync:1:EIO 0:fsync:1:EIO 0:rename:1:EIO; do
        which=${fault%%:*}
        lines=$(faulty "$which" "${fault#*:}" "$how")
        [[ $(grep -c "ERR_SYSTEM.*rank $which:" <<<"$lines") == 4 ]] || not_so "$how, $fault: $lines"
        none_there "$how, $fault"
    done
    # a rank that is killed while it writes
    lines=$(faulty 2 pwrite:1:kill "$how")
    [[ $(grep -c "ERR_PEER.*rank 2" <<<"$lines") == 3 ]] || not_so "$how, killed: $lines"
    [[ ! -e out ]] || not_so "$how, killed: there is a checkpoint"
    # what it left does not hinder the next
    lines=$(faulty none x "$how")
    [[ $(grep -c "rank .: OK" <<<"$lines") == 4 ]] || not_so "$how: $lines"
    lines=$(faulty none x load)
    [[ $(grep -c "rank .: OK" <<<"$lines") == 4 ]] || not_so "load after $how: $lines"
    # a rank that does not see the checkpoint
    lines=$(cd / && "$weft" run --keep-going -n 4 bash -c '[[ $WEFT_RANK == 1 ]] || cd "$1"; exec "$2" load out' - \
        "$folder" "$rank" 2>&1)
    [[ $(grep -c "ERR_INVALID.*rank 1: weft_load: from" <<<"$lines") == 4 ]] || not_so "load on three ranks: $lines"
    [[ $lines == *"out: No such file"* ]] || not_so "the missing file is named: $lines"
    rm -rf out
done
finish
