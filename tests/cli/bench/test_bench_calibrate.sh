#!/usr/bin/env bash
# `weft bench calibrate`: a table that weft reads back, that plans follow, and that ranks compare.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
export WEFT_BACKEND=gloo-cpu
calibrate() { "$weft" bench calibrate --budget-ms 1 "$@"; }
pair=(--mesh 2 --shape 64x64 --from "S(0)" --to "S(1)")

is "wrote $here/two, for WEFT_COSTS=$here/two or --costs $here/two" calibrate --output "$here/two"
contains "2 ranks on 1 host" cat "$here/two"
contains "between hosts: not measured, as in table cpu" cat "$here/two"
contains "name gloo-cpu-calibrated" cat "$here/two"
contains "one-sided yes" cat "$here/two"
lacks "flops and memory: not measured" cat "$here/two"
# the rates of compute are those of this machine, not those of the table cpu
rates=$(grep -E '^(flops|memory) [1-9][0-9]*$' "$here/two")
is 2 wc -l <<<"$rates"
check=$((check + 1))
[[ $rates != $'flops 20000\nmemory 100000' ]] || not_so 'calibrate does not measure compute'
contains "weft-cost 2" calibrate --ranks 3
expect 0 "predicted" "$weft" plan "${pair[@]}" --costs "$here/two"
expect 0 "by the cost table gloo-cpu-calibrated" "$weft" plan "${pair[@]}" --costs "$here/two"
WEFT_COSTS=$here/two expect 0 "predicted" "$weft" plan "${pair[@]}"
WEFT_COSTS=$here/two expect 0 "is right" "$weft" redistribute "${pair[@]}" --iters 2
contains "2 ranks on 1 host" "$weft" run -n 2 "$weft" bench calibrate --budget-ms 1

# every printed price is used
sed 's/^exchange within .*/exchange within 1234567890 0 1/; s/^all-to-all within .*/all-to-all within 2345678901 0 1/' \
    "$here/two" >"$here/dear"
expect 0 "1.2 s predicted" "$weft" plan "${pair[@]}" --costs "$here/dear" --planner exchange
expect 0 "1. all-gather" "$weft" plan "${pair[@]}" --costs "$here/dear"

# ranks that plan by different tables do not begin
each_its_costs() { "$weft" run -n 2 sh -c "WEFT_COSTS=\$0/\$WEFT_RANK exec \"\$@\"" "$here" "$@"; }
cp "$here/two" "$here/0"
cp "$here/two" "$here/1"
expect 0 "all_reduce" each_its_costs "$weft" bench coll --budget-ms 1 --sizes 8
cp "$here/dear" "$here/1"
expect 1 "ranks have different settings that must be equal" \
    each_its_costs "$weft" bench coll --budget-ms 1 --sizes 8
expect 1 "WEFT_COSTS" each_its_costs "$weft" bench coll --budget-ms 1 --sizes 8

echo "weft-cost 1" >"$here/short"
expect 2 "is missing" "$weft" plan "${pair[@]}" --costs "$here/short"
WEFT_COSTS=$here/short expect 1 "WEFT_COSTS" "$weft" redistribute "${pair[@]}" --costs cpu --iters 1
expect 2 "is neither a built-in cost table (default (which is h100), h100," \
    "$weft" plan "${pair[@]}" --costs "$here/none"
# a file that is not a table is refused at once, with a message
for other in "$here" /dev/zero; do
    expect 2 "$other is not a regular file; a cost table is a regular file" \
        timeout 300 "$weft" plan "${pair[@]}" --costs "$other"
    WEFT_COSTS=$other expect 1 "WEFT_COSTS: $other is not a regular file" \
        timeout 300 "$weft" redistribute "${pair[@]}" --costs cpu --iters 1
done
truncate -s 1M "$here/zeros"
expect 2 "bytes that are not text" "$weft" plan "${pair[@]}" --costs "$here/zeros"
yes '# a comment' | head -c 1048577 >"$here/long"
expect 2 "has more than 1048576 bytes" "$weft" plan "${pair[@]}" --costs "$here/long"
printf 'weft-cost 1\nname here\nwhat is this\nand this\n' >"$here/text"
expect 2 'line 3 "what is this"' "$weft" plan "${pair[@]}" --costs "$here/text"
lacks "and this" "$weft" plan "${pair[@]}" --costs "$here/text"
expect 3 "No such file" calibrate --output "$here/none/x"
expect 2 "--hosts" calibrate --hosts 3
expect 0 "example:" calibrate --help
finish
