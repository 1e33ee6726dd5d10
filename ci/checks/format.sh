#!/usr/bin/env bash
# format.sh - is every C and C++ file as clang-format writes it, the generated headers of C++ too?  With --fix, make it so.
source "$(dirname "$0")/../lib.sh"
tool=$(llvm_tool clang-format) || skip "clang-format $llvm_version not found; other versions format differently"
mapfile -t files < <(project_files '*.c' '*.h' '*.hpp' '*.hpp.in' '*.cc' '*.cu')
if [[ ${1:-} == --fix ]]; then
    exec "$tool" -i "${files[@]}"
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 50 -P "$jobs" "$tool" --dry-run -Werror || die "ci/checks/format.sh --fix mends this"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python3 api/describe.py "$made/weft-api.json" 0 ./*/include/weft/*.h
generated() # LIBRARY TEMPLATE...
{
    python3 api/cpp.py "$made/weft-api.json" "$1" "$made/hpp" "${@:2}"
    "$tool" --dry-run -Werror --assume-filename=core/include/weft/weft.hpp <"$made/hpp" ||
        die "api/cpp_text.py writes the C++ header of $1 in another form than clang-format"
}
generated weft core/include/weft.hpp.in
generated weft_file files/include/file.hpp.in core/include/weft.hpp.in
generated weft_parallel parallel/include/parallel.hpp.in core/include/weft.hpp.in
generated weft_feed feed/include/feed.hpp.in core/include/weft.hpp.in
echo "format: ${#files[@]} files as clang-format $llvm_version writes them"
