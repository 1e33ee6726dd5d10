#!/usr/bin/env bash
# test_locale.sh WEFT LIBRARY TEST...: texts in a locale whose numbers have a comma.
# Tests of the library pass in a program that has set this locale, and the tool prints the same as in the locale C.
source "$(dirname "$0")/../../support/lib.sh"
export WEFT_BACKEND=gloo-cpu # also on a machine with a device
weft=$1 library=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

# The system may have neither such a locale nor the sources of one. Warnings about missing categories make localedef
# fail with code 1, although it writes the locale.
printf 'LC_NUMERIC\ndecimal_point "<U002C>"\nthousands_sep "<U002E>"\ngrouping 3;3\nEND LC_NUMERIC\n' >"$folder/comma.source"
{
    printf '<code_set_name> ANSI_X3.4-1968\n<comment_char> %%\n<escape_char> /\n<mb_cur_min> 1\n<mb_cur_max> 1\nCHARMAP\n'
    for ((code = 0; code < 128; code++)); do printf '<U%04X> /x%02x\n' "$code" "$code"; done
    printf 'END CHARMAP\n'
} >"$folder/comma.map"
mkdir "$folder/locales"
localedef -c -i "$folder/comma.source" -f "$folder/comma.map" "$folder/locales/comma" >"$folder/log" 2>&1
[[ -e $folder/locales/comma/LC_NUMERIC ]] || { not_so "localedef: $(cat "$folder/log")"; finish; }
export LOCPATH=$folder/locales

for program; do
    check=$((check + 1))
    LC_ALL=comma LD_PRELOAD=$library "$program" >"$folder/log" 2>&1 || not_so "${program##*/}: $(tail -n 20 "$folder/log")"
done

equal() # ARGUMENT...: the tool's output does not depend on the locale
{
    check=$((check + 1))
    LC_ALL=C "$weft" "$@" >"$folder/plain" 2>&1 || not_so "weft $*: $(cat "$folder/plain")"
    LC_ALL=comma "$weft" "$@" >"$folder/comma" 2>&1 || not_so "weft $* with commas: $(cat "$folder/comma")"
    diff "$folder/plain" "$folder/comma" || not_so "weft $* depends on the locale"
    grep -q '[0-9]\.[0-9]' "$folder/plain" || not_so "weft $* prints no number with a point"
}
equal schedule 1f1b
equal layout --mesh 4 --shape 16x16 --placements 'S(0)' --svg -
finish
