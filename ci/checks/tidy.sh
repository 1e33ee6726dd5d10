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

tidy_one()
{
    local file=$1 key
    key=$({ echo "$checks"; cat .clang-tidy; gcc_command "$file" -E -C; } | sha256sum | cut -c1-40)
    if [[ -e $clean/$key ]]; then return; fi
    if "$tool" --quiet --checks="$checks" -p "$folder" --extra-arg=-UNDEBUG \
        --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*' "$file" 2> >(grep -v 'warnings generated' >&2); then
        touch "$clean/$key"
    else
        return 1
    fi
}

# gcc_command FILE OPTIONS: what the build runs for FILE, up to its -o, with OPTIONS.
gcc_command()
{
    local file=$1
    shift
    python3 - "$folder" "$file" "$@" <<'PYTHON'
import json, os, shlex, subprocess, sys
folder, file, options = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
for entry in json.load(open(folder + "/compile_commands.json")):
    if entry["file"] == file:
        words = shlex.split(entry["command"])
        words = words[: words.index("-o")]
        sys.exit(subprocess.run(words + options + [file], cwd=entry["directory"]).returncode)
sys.exit(f"{file}: not in {folder}/compile_commands.json")
PYTHON
}
export -f tidy_one gcc_command

# Files of this build: what CMake left out for want of a vendor's headers has no compile command.
mapfile -t files < <(python3 - "$folder" <<'PYTHON'
import json, os, sys
names = {os.path.relpath(e["file"]) for e in json.load(open(sys.argv[1] + "/compile_commands.json"))}
print("\n".join(sorted(n for n in names if n.startswith(("core/", "cli/", "plugins/", "examples/")))))
PYTHON
)
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$jobs" bash -euc 'tidy_one "$1"' tidy
echo "tidy: ${#files[@]} files, nothing to complain about"
