#!/usr/bin/env bash
# finetune.sh WEFT FINETUNE RANKS - a checkpoint of another program is loaded, trained on and saved: the loss falls, and the
# saved checkpoint is complete, has the program's names, and differs from the first one.
set -euo pipefail
weft=$1 finetune=$2 ranks=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail()
{
    echo "finetune.sh: $*"
    cat "$folder/out"
    exit 1
}

"$weft" run -n "$ranks" --timeout 60 "$finetune" "$folder/model" >"$folder/out" || fail "the program failed"
mapfile -t losses < <(sed -n 's/^.*step .* loss //p' "$folder/out")
((${#losses[@]} == 3)) || fail "there are not three losses"
awk "BEGIN { exit !(${losses[2]} < ${losses[0]}) }" || fail "the loss does not fall"
(($(grep -c 'bytes beside the training' "$folder/out") == ranks)) || fail "a rank wrote nothing"
for saved in tuned averaged; do
    "$weft" inspect "$folder/model/$saved.safetensors" >"$folder/inspected"
    for name in weight bias; do
        grep -qw "$name" "$folder/inspected" || fail "the tensor $name is missing in $saved.safetensors"
    done
done
kept=$(sed -n 's/^.*keeps \([0-9]*\) bytes of parameters.*/\1/p' "$folder/out" | awk '{ sum += $1 } END { print sum }')
((kept == 4 * (6 * 5 + 6))) || fail "the ranks keep $kept bytes of parameters"
grep -q '^\(.0. \)\?loss with averaged weights' "$folder/out" || fail "the averaged weights have no loss"
