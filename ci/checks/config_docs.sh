#!/bin/sh
# docs/config.md says what core/config/knobs.def says.
#
#     ci/checks/config_docs.sh BUILD            compare, fail when they differ
#     ci/checks/config_docs.sh BUILD --write    renew docs/config.md
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
weft=${1:?usage: config_docs.sh BUILD_FOLDER [--write]}/bin/weft

if [ "${2:-}" = --write ]; then
    "$weft" env --markdown >"$root/docs/config.md"
    echo "docs/config.md written"
elif "$weft" env --markdown | diff -u "$root/docs/config.md" -; then
    echo "docs/config.md is current"
else
    echo "docs/config.md is not what core/config/knobs.def says; run" \
         "ci/checks/config_docs.sh BUILD_FOLDER --write" >&2
    exit 1
fi
