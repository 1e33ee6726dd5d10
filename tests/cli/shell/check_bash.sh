#!/usr/bin/env bash
# Does bash complete weft's command lines?  Usage: check_bash.sh WEFT
set -euo pipefail
weft=$1
source <("$weft" completion bash)
failed=0
# shellcheck disable=SC2317 # the completion calls it; the shell's own works at a prompt alone
compopt() { :; }

# completes "LINE": what bash would offer at the end of LINE, in COMPREPLY.
completes()
{
    local IFS=' '
    read -ra COMP_WORDS <<<"$1"
    if [[ $1 == *' ' ]]; then COMP_WORDS+=(""); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _weft
}

expect()
{
    local line=$1 word
    shift
    completes "$line"
    for word in "$@"; do
        if [[ " ${COMPREPLY[*]} " != *" $word "* ]]; then
            echo "\"$line\" should offer $word, offers: ${COMPREPLY[*]}"
            failed=1
        fi
    done
}

expect_only()
{
    expect "$@"
    if ((${#COMPREPLY[@]} != $# - 1)); then
        echo "\"$1\" should offer ${*:2} alone, offers: ${COMPREPLY[*]}"
        failed=1
    fi
}

mapfile -t commands < <("$weft" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
if ((${#commands[@]} < 4)); then
    echo "weft --help lists only: ${commands[*]}"
    failed=1
fi
expect "weft " "${commands[@]}" --help --version
expect_only "weft vers" version
expect_only "weft version --j" --json
expect_only "weft completion z" zsh
expect_only "weft nosuch "
for command in "${commands[@]}"; do
    mapfile -t options < <("$weft" "$command" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')
    expect "weft $command --" "${options[@]}"
done
expect_only "weft run -n" -n
expect "weft run -" -n --help
expect "weft redistribute -" -n --mesh
expect_only "weft redistribute -n "
mapfile -t benches < <("$weft" bench --help | sed -n 's/^  \([a-z]*\) .*/\1/p' | grep -v '^weft$')
if ((${#benches[@]} < 5)); then
    echo "weft bench --help lists only: ${benches[*]}"
    failed=1
fi
expect "weft bench " "${benches[@]}" --help
expect_only "weft bench ca" calibrate
for bench in "${benches[@]}"; do
    mapfile -t options < <("$weft" bench "$bench" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')
    expect "weft bench $bench --" "${options[@]}"
done
expect_only "weft bench coll --max" --max-bytes
exit $failed
