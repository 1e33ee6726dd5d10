#!/usr/bin/env bash
# release.sh - the files of a release, made from the commit that is checked out; docs/releasing.md is the checklist.
#
#   ci/release.sh OUT [PART...]     PART: clean source packages wheel abi sums check; all of them unless named
#
# OUT gets the source archive, the Debian packages, the wheels, the record of the ABI and SHA256SUMS.  `clean` refuses a
# tree with changes, and a version whose section of CHANGELOG.md has no date.  `check` builds the archive and runs its
# tests.  The same commit and compiler give the same archive and packages.
source "$(dirname "$0")/lib.sh"
(($# >= 1)) || die "usage: ci/release.sh OUT [PART...]"
mkdir -p "$1"
out=$(realpath "$1")
shift
version=$(sed -n 's/^project(weft VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

clean()
{
    local changes
    changes=$(git status --porcelain)
    if [[ -n $changes ]]; then die "these files are not committed:"$'\n'"$changes"; fi
    grep -qE "^## ${version//./\\.} \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$" CHANGELOG.md ||
        die "CHANGELOG.md has no line \"## $version (YEAR-MONTH-DAY)\""
}

from_commit() { git archive --format=tar --prefix="weft-$version/" HEAD | gzip -9n >"$out/weft-$version.tar.gz"; }

from_tree() { ci/packages.sh "$out"; }

for_python() { ci/wheels.sh "$out"; }

recorded() { cp api/abi/libweft.abi "$out/libweft-$version.abi"; }

sums()
{
    cd "$out" || exit
    rm -f SHA256SUMS
    find . -type f -printf '%P\n' | sort | xargs sha256sum >"$root/build/SHA256SUMS"
    mv "$root/build/SHA256SUMS" .
    sha256sum --quiet -c SHA256SUMS
}

built()
{
    local folder
    folder=$(mktemp -d)
    need build test
    tar -x -f "$out/weft-$version.tar.gz" -C "$folder"
    cd "$folder/weft-$version" || exit
    CC=gcc CXX=g++ build release build/cpu-gcc
    run_tests --test-dir build/cpu-gcc
    rm -rf "$folder"
}

chosen=("$@")
if ((${#chosen[@]} == 0)); then chosen=(clean source packages wheel abi sums check); fi
for name in "${chosen[@]}"; do
    case $name in
    clean | sums) part "$name" "$name" ;;
    source) part source from_commit ;;
    packages) part packages from_tree ;;
    wheel) part wheel for_python ;;
    abi) part abi recorded ;;
    check) part check built ;;
    *) die "no such part: $name" ;;
    esac
done
finish ci/release.sh
