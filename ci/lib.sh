# lib.sh - what ci/test.sh, ci/demo.sh and the lanes share: packages, parts with a clock, builds.
# Sourced, not run.  Debian and Ubuntu; as root, or with sudo where something must be installed.
# shellcheck shell=bash

set -euo pipefail
export LC_ALL=C.UTF-8
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\n== %s\n' "$*"; }
die() { printf '\n%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
skip() { printf '%s: skipped: %s\n' "${0##*/}" "$*"; exit 77; }

minutes() { if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }

# part NAME COMMAND...: run it until a command of it fails, say how long it took, and remember the outcome.  Behind `||`
# bash would go on after a failure.
part_failed=() part_report=""
part()
{
    local name=$1 begin=$SECONDS code=0 end=passed
    shift
    say "$name"
    set +e
    (set -e; "$@")
    code=$?
    set -e
    if ((code == 77)); then end=skipped; elif ((code != 0)); then end=FAILED part_failed+=("$name"); fi
    part_report+="${part_report:+, }$name $(minutes $((SECONDS - begin)))"
    if [[ $end == skipped ]]; then part_report+=" (skipped)"; fi
    printf -- '-- %s: %s in %s\n' "$name" "$end" "$(minutes $((SECONDS - begin)))"
}

# The last line: how long each part took, and whether all passed, which is the exit status too.
finish()
{
    local verdict="all passed"
    if ((${#part_failed[@]})); then verdict="FAILED: ${part_failed[*]}"; fi
    printf '\n%s: %s (%s; %s in all)\n' "$1" "$verdict" "$part_report" "$(minutes $SECONDS)"
    ((${#part_failed[@]} == 0))
}

# ---- packages ----

as_root() { if ((EUID == 0)); then "$@"; else sudo "$@"; fi; }

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }

apt_try() { apt install --no-install-recommends "$@"; }

# apt_install PACKAGE...: one that ends in ? is left out, with a word, where it is not offered.
apt_install()
{
    if ! command -v apt-get >/dev/null; then
        die "these packages are missing, and there is no apt-get to install them: $*"
    fi
    if ((EUID != 0)) && ! command -v sudo >/dev/null; then
        die "run as root, or install sudo: these packages are missing: $*"
    fi
    local log wanted=() package
    log=$(mktemp)
    { apt update || { sleep 5 && apt update; }; } >"$log" 2>&1 || { cat "$log" >&2; die "apt-get update failed"; }
    for package in "$@"; do
        if [[ $package != *\? ]]; then
            wanted+=("$package")
        elif apt-cache show "${package%\?}" >/dev/null 2>&1; then
            wanted+=("${package%\?}")
        else
            echo "${package%\?} is not offered here; going on without it"
        fi
    done
    if ((${#wanted[@]} == 0)); then return; fi
    echo "installing ${wanted[*]}"
    if apt_try "${wanted[@]}" >"$log" 2>&1 || { sleep 5 && apt_try "${wanted[@]}" >"$log" 2>&1; }; then
        rm -f "$log"
        return
    fi
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install: ${wanted[*]} (its output is above)"
}

# need GROUP...: install what is missing of these groups, and nothing else.  Each line of a group
# is `package: command that succeeds when it is not needed`; `package?` may be missing.
need()
{
    local missing=() group package probe
    for group in "$@"; do
        if [[ $group == clang_runtime ]]; then need clang; fi
        while IFS=: read -r package probe; do
            if [[ -z $package ]]; then continue; fi
            if ! sh -c "$probe" >/dev/null 2>&1; then missing+=("$package"); fi
        done < <("packages_$group")
    done
    if ((${#missing[@]})); then apt_install "${missing[@]}"; fi
}

packages_build()
{
    cat <<'LIST'
gcc: command -v gcc
g++: command -v g++
libc6-dev: echo '#include <stdio.h>' | cpp
cmake: command -v cmake
ninja-build: command -v ninja
pkg-config: command -v pkg-config
python3: command -v python3
libgloo-dev?: test -e /usr/include/gloo/config.h
libucx-dev?: test -e /usr/include/ucp/api/ucp.h
LIST
}

packages_test()
{
    cat <<'LIST'
check: pkg-config --exists check
zsh: command -v zsh
groff-base: command -v groff
libgloo-dev: test -e /usr/include/gloo/context.h
iproute2: command -v ip
LIST
}

packages_clang()
{
    cat <<'LIST'
clang: command -v clang
lld?: command -v ld.lld
LIST
}

# The sanitizers' runtime libraries come apart from clang, under a name with its version.
packages_clang_runtime()
{
    local major package
    major=$(clang -dumpversion | cut -d. -f1)
    for package in "libclang-rt-$major-dev" "libclang-common-$major-dev"; do
        if apt-cache show "$package" >/dev/null 2>&1; then break; fi
    done
    echo "$package: echo 'int main(void){return 0;}' | clang -fsanitize=address -x c - -o /dev/null"
}

# AMD: headers of the runtime, and a clang that knows today's devices.
packages_rocm()
{
    cat <<'LIST'
libamdhip64-dev?: test -e /usr/include/hip/hip_runtime_api.h -o -e /opt/rocm/include/hip/hip_runtime_api.h
clang-19?: command -v clang-19 || test -x /opt/rocm/llvm/bin/clang
lld-19?: command -v ld.lld-19 || command -v ld.lld || test -x /opt/rocm/llvm/bin/ld.lld
LIST
}

packages_python()
{
    cat <<'LIST'
python3-dev: test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
python3-venv: python3 -c 'import ensurepip'
LIST
}

packages_deb()
{
    cat <<'LIST'
dpkg-dev: command -v dpkg-shlibdeps
file: command -v file
LIST
}

packages_roots()
{
    cat <<'LIST'
lintian: command -v lintian
mmdebstrap: command -v mmdebstrap
LIST
}

packages_coverage() { echo "gcovr: command -v gcovr"; }

packages_static()
{
    cat <<'LIST'
clang-format: command -v clang-format
clang-tidy: command -v clang-tidy
cppcheck: command -v cppcheck
abigail-tools: command -v abidiff
shellcheck: command -v shellcheck
binutils: command -v nm
git: command -v git
LIST
}

# ---- files and tools ----

# Files of the project, committed or about to be, that match the patterns.
project_files() { git ls-files -co --exclude-standard -- "$@" | while read -r f; do [[ -f $f ]] && echo "$f"; done | sort -u; }

# The version whose taste the sources follow; others format and judge differently.
llvm_version=14

# Path of an LLVM tool of that version; false if there is none.
llvm_tool()
{
    if command -v "$1-$llvm_version"; then return; fi
    command -v "$1" >/dev/null && "$1" --version | grep -q "version $llvm_version\." && command -v "$1"
}

# ---- builds ----

# Some machines set OMP_NUM_THREADS=1, which nproc takes for the number of processors.
jobs=${JOBS:-$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)}

# build PRESET FOLDER [-D...]: configure and build the tree, with warnings as errors.
build()
{
    local preset=$1 folder=$2
    shift 2
    mkdir -p "$folder"
    cmake --preset "$preset" -B "$folder" -DWEFT_WERROR=ON "$@" >"$folder/configure.log" 2>&1 ||
        { cat "$folder/configure.log" >&2; return 1; }
    cmake --build "$folder" -j "$jobs"
}

# Does a program built with clang and a sanitizer start here, behind the words of a command?
try_sanitizer()
{
    local sanitizer=$1 program code=0
    shift
    program=$(mktemp)
    echo 'int main(void) { return 0; }' | clang -fsanitize="$sanitizer" -x c - -o "$program" &&
        "$@" "$program" >/dev/null 2>&1 || code=1
    rm -f "$program"
    return $code
}

# Link with lld where clang has it: a lane links 460 programs, each of them in a third of the time.
use_lld()
{
    if echo 'int main(void) { return 0; }' | clang -fuse-ld=lld -x c - -o /dev/null 2>/dev/null; then
        export LDFLAGS=-fuse-ld=lld
    fi
}

leaks_can_be_seen() { try_sanitizer address env ASAN_OPTIONS=detect_leaks=1; }
tsan_runs() { try_sanitizer thread "$@"; }

# What random tests draw from (tests/support/seed.h); ci/lanes/soak draws others.
export WEFT_TEST_SEED=${WEFT_TEST_SEED:-20261115}

# run_tests CTEST-OPTIONS: most tests wait for ranks and time limits, so three of them run for each core.  With
# TRY_AGAIN, tests that fail run again.
run_tests()
{
    local command=(ctest --output-on-failure --no-tests=error -j "$((3 * jobs))" "$@") code=0 output
    echo "seed of the random tests: WEFT_TEST_SEED=$WEFT_TEST_SEED"
    if [[ -z ${TRY_AGAIN:-} ]]; then
        "${command[@]}"
        return
    fi
    output=$(mktemp)
    "${command[@]}" 2>&1 | tee "$output" || code=$?
    if ((code != 0)); then
        code=0
        try_again "$output" "$@" || code=$?
    fi
    rm -f "$output"
    return $code
}

# try_again OUTPUT CTEST-OPTIONS: run the tests that failed, as OUTPUT says, one after the other on a machine that then is
# idle.  What a sanitizer reports stays an error, and so do more than five failures.
most_again=5
try_again()
{
    local output=$1 failed
    shift
    failed=$(grep -cE '^[[:space:]]+[0-9]+ - .* \((Failed|Timeout|SEGFAULT|Subprocess aborted)\)' "$output") || return 1
    if ((failed > most_again)) || grep -qE '(Address|Leak|Thread)Sanitizer|runtime error:' "$output"; then return 1; fi
    say "$failed failed on the busy machine; again, alone"
    ctest --output-on-failure --rerun-failed "$@" | sed -uE 's/^[0-9]+% tests passed/again, alone: &/'
}

# count_tests LOG PARTS_FAILED: "N passed, N failed", added up from the summaries of CTest and pytest in LOG, and how many
# passed only when they ran alone.  Where a part failed without a test that did, the parts count.
count_tests()
{
    awk -v parts="$2" '
        /^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+/ { failed += $4; all += $NF }
        /^again, alone: [0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+/ { alone += $NF - $6 }
        /^([0-9]+ failed, )?[0-9]+ passed(, [0-9]+ skipped)?.* in [0-9.]+s/ {
            if ($2 == "failed,") { failed += $1; all += $1 + $3 } else { all += $1 }
        }
        END {
            failed -= alone
            if (failed == 0) { failed = parts; all += parts }
            if (alone > 0) { printf "%d passed only alone\n", alone }
            printf "%d passed, %d failed\n", all - failed, failed
        }' "$1"
}
