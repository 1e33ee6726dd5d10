#!/usr/bin/env bash
# interop.sh WEFT - safetensors, torch and numpy write checkpoints, weft reads them and writes others,
# and the packages read those.  With a second argument: use the checkpoints in that folder, and do not
# read weft's with the packages.
set -eu
weft=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [[ $# -lt 2 ]] && ! python3 -c 'import numpy, safetensors, torch' 2>/dev/null; then
    echo "interop: Python has no numpy, safetensors or torch here"
    exit 77
fi
cd "$folder"
if [[ $# -lt 2 ]]; then python3 "$here/write_theirs.py" theirs; else cp -r "$2" theirs; fi

cat >layout <<'END'
mesh tp=3
*.w       S(0)
*uneven   S(0)
both      S(1)
f8*       S(1)
*.bias    S(0)
*         R
END
"$weft" reshard theirs/plain.safetensors again.safetensors
cmp theirs/plain.safetensors again.safetensors
"$weft" reshard theirs/plain.safetensors ranks --layout layout
"$weft" reshard ranks hf --file-size 700
"$weft" reshard theirs/dcp dcp.safetensors
"$weft" reshard theirs/dcp-safetensors joined.safetensors
"$weft" verify theirs/plain.safetensors ranks
"$weft" verify theirs/plain.safetensors hf
if [[ $# -lt 2 ]]; then python3 "$here/read_ours.py" .; fi
