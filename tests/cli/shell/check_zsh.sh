#!/usr/bin/env bash
# Does zsh complete weft's command lines?  Usage: check_zsh.sh WEFT
#
# zsh completes only at a terminal, so a pseudo-terminal (zsh's own zpty) types for us.
set -euo pipefail
weft=$1
if ! command -v zsh >/dev/null; then
    echo "skipped: zsh is not installed"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$weft" completion zsh >"$folder/_weft"
zsh -n "$folder/_weft"

cat >"$folder/type.zsh" <<'ZSH'
# type.zsh FOLDER LINE: print what completing LINE shows.
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell "PS1=pro''mpt; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=0; LINES=60; unsetopt menu_complete auto_menu"
zpty -r shell shown '*prompt*' # the line editor listens from here on
zpty -w -n shell "$2"$'\t'$'\t'
zpty -w -n shell $'\C-u'
zpty -w shell "print fini''shed"
zpty -r shell shown '*finished*'
print -r -- $shown
zpty -d shell
ZSH

failed=0
expect()
{
    local line=$1 word shown
    shift
    shown=$(timeout 20 zsh -f "$folder/type.zsh" "$folder" "$line" | tr -d '\r')
    for word in "$@"; do
        if [[ $shown != *"$word"* ]]; then
            echo "\"$line\" should offer $word, shows:"
            echo "$shown"
            failed=1
        fi
    done
}

mapfile -t commands < <("$weft" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
expect "weft " "${commands[@]}"
expect "weft version --" --json --help
expect "weft completion " bash zsh
expect "weft run -" "-n " --ranks
expect "weft bench " layout calibrate coll
expect "weft bench coll --m" --min-bytes --max-bytes
exit $failed
