#!/usr/bin/env bash
# serve.sh WEFT SERVE - the example: a training job and two serving jobs in other layouts.
set -euo pipefail
weft=$1 serve=$2
address=unix:weft-test-serve-$$ token=0123456789abcdef
jobs=()

"$weft" run -n 2 --timeout 60 "$serve" train "$address" "$token" 20 5 &
jobs+=($!)
"$weft" run -n 3 --timeout 60 "$serve" columns "$address" "$token" 20 &
jobs+=($!)
"$weft" run -n 2 --timeout 60 "$serve" rows "$address" "$token" 20
for job in "${jobs[@]}"; do
    wait "$job"
done
