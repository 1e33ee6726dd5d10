#!/usr/bin/env bash
# Is the manual page clean roff, and does it name every command, option and variable?
# Usage: check_man.sh WEFT
set -euo pipefail
weft=$1
if ! command -v groff >/dev/null; then
    echo "skipped: groff is not installed"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
"$weft" man >"$folder/weft.1"
groff -man -Tutf8 -ww -rLL=200n "$folder/weft.1" 2>"$folder/complaints" |
    sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g; s/[‐−]/-/g' >"$folder/page"
if [[ -s $folder/complaints ]]; then
    cat "$folder/complaints"
    failed=1
fi
wants()
{
    if ! grep -qF -- "$1" "$folder/page"; then
        echo "the manual page does not hold: $1"
        failed=1
    fi
}
while read -r command; do
    wants "weft $command"
    while read -r option; do wants "$option"; done < <("$weft" "$command" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' | grep -v '^--help')
done < <("$weft" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
while read -r bench; do
    wants "weft bench $bench"
    while read -r option; do wants "$option"; done < <("$weft" bench "$bench" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' | grep -v '^--help')
done < <("$weft" bench --help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep -v '^weft$')
wants "-n N"
if grep -q -- '--n N' "$folder/page"; then
    echo "the manual page has --n for -n"
    failed=1
fi
wants WEFT_BACKEND
wants "EXIT STATUS"
exit $failed
