#!/usr/bin/env bash
# format.sh - is every C and C++ file as clang-format writes it?  With --fix, make it so.
source "$(dirname "$0")/../lib.sh"
tool=$(llvm_tool clang-format) || skip "clang-format $llvm_version not found; other versions format differently"
mapfile -t files < <(project_files '*.c' '*.h' '*.hpp' '*.cc' '*.cu')
if [[ ${1:-} == --fix ]]; then
    exec "$tool" -i "${files[@]}"
fi
"$tool" --dry-run -Werror "${files[@]}" || die "ci/checks/format.sh --fix mends this"
echo "format: ${#files[@]} files as clang-format $llvm_version writes them"
