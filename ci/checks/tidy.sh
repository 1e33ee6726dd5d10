#!/usr/bin/env bash
# tidy.sh - clang-tidy over the library, the plugins and the tool.  Usage: tidy.sh BUILD [--quick|--all]
#
# A file that was clean is not looked at again until it, a header it includes, or .clang-tidy changes.
# --quick leaves out the analyzer, which takes seconds per file.
source "$(dirname "$0")/../lib.sh"
folder=${1:?usage: tidy.sh BUILD [--quick|--all]}
tool=$(llvm_tool clang-tidy) || skip "clang-tidy $llvm_version not found; other versions judge differently"

checks=""
if [[ ${2:-} == --quick ]]; then checks="-clang-analyzer-*"; fi
export checks tool folder clean=$root/build/tidy-clean
mkdir -p "$clean"

# The files of this build, each with the build's command for it up to its -o.  What CMake left out for want of a vendor's
# headers has no command.
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
mapfile -t files < <(python3 - "$folder" "$commands" <<'PYTHON'
import json, os, shlex, sys
folders = ("core/", "files/", "parallel/", "feed/", "cli/", "kit/", "plugins/", "examples/")
entries = {os.path.relpath(e["file"]): e for e in json.load(open(sys.argv[1] + "/compile_commands.json"))}
for name in sorted(name for name in entries if name.startswith(folders)):
    words = shlex.split(entries[name]["command"])
    command = shlex.join(["cd", entries[name]["directory"]]) + " && " + shlex.join(words[: words.index("-o")])
    with open(os.path.join(sys.argv[2], name.replace("/", "@")), "w") as out:
        out.write(command + " -E -C " + shlex.quote(os.path.abspath(name)) + "\n")
    print(name)
PYTHON
)
export commands

tidy_one()
{
    local file=$1 key
    key=$({ echo "$checks"; cat .clang-tidy; bash "$commands/${file//\//@}"; } | sha256sum | cut -c1-40)
    if [[ -e $clean/$key ]]; then return; fi
    if "$tool" --quiet --checks="$checks" -p "$folder" --extra-arg=-UNDEBUG \
        --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' "$file" 2> >(grep -v 'warnings generated' >&2); then
        touch "$clean/$key"
    else
        return 1
    fi
}
export -f tidy_one

printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" bash -euc 'tidy_one "$1"' tidy
echo "tidy: ${#files[@]} files, nothing to complain about"
