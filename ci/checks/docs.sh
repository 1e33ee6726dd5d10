#!/usr/bin/env bash
# docs.sh - are the documents that programs write the ones they would write now?
# Usage: docs.sh BUILD [--fix]
#
# docs.list beside this script has a line `file: command` for each; $BUILD is the build folder.
source "$(dirname "$0")/../lib.sh"
export BUILD=${1:?usage: docs.sh BUILD [--fix]}
fix=${2:-}
bad=0 count=0
while IFS=: read -r file command; do
    if [[ -z $file || $file == \#* ]]; then continue; fi
    count=$((count + 1))
    new=$(mktemp)
    bash -euc "$command" >"$new" || die "$file: its command failed: $command"
    if [[ $fix == --fix ]]; then
        cat "$new" >"$file"
    elif ! diff -u --label "$file" --label "as generated" "$file" "$new"; then
        bad=1
    fi
    rm -f "$new"
done <ci/checks/docs.list
ci/evidence.py --check
if ((bad)); then die "ci/checks/docs.sh $BUILD --fix mends this"; fi
echo "docs: $count generated documents are current"
