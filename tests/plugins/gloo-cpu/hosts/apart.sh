#!/usr/bin/env bash
# Two ranks of one host that may not read each other's memory, as they belong to two users: tensors
# are packed and go through Gloo.
#
#   apart.sh WEFT CHECK   where CHECK is redistribute_check; exits 77, with the reason, where this
#                         process may not start others as another user
set -u
weft=$1
other_user=(setpriv --reuid=65534 --clear-groups)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 0
chmod 777 "$work"
"${other_user[@]}" test -x "$2" 2>"$work/why" || {
    echo "skipped: another user cannot be tried here: $(cat "$work/why")"
    exit 77
}
# shellcheck disable=SC2016
WEFT_TEST_CASES=100 WEFT_LOG=info "$weft" run -n 2 --timeout 900 bash -c '
    if [[ $WEFT_RANK == 1 ]]; then exec "$@"; else exec "${@: -2}"; fi' \
    rank "${other_user[@]}" "$2" "$work/board" >"$work/log" 2>&1
code=$?
cat "$work/log"
if ((code == 0)) && ! grep -q "cannot share memory with rank" "$work/log"; then
    echo "not so: the ranks are apart"
    code=1
fi
exit "$code"
