#!/usr/bin/env bash
# text.sh - what holds for every text file: no trailing blanks, no tabs where .editorconfig says
# spaces, a newline at the end, no marks of a merge; shell scripts parse; links and paths in the documents lead somewhere.
source "$(dirname "$0")/../lib.sh"
bad=0
mapfile -t files < <(project_files | grep -v '^tests/fuzz/corpus/')

complain() { echo "$*"; bad=1; }

mapfile -t texts < <(grep -Il . "${files[@]}")
if grep -alPz '[^\n]\z' "${texts[@]}"; then complain "the files above have no newline at the end"; fi
if grep -nI '[[:blank:]]$' "${files[@]}"; then complain "the lines above end in blanks"; fi
if grep -nIE '^(<{7}|>{7}) ' "${files[@]}"; then complain "the lines above are marks of a merge"; fi
mapfile -t code < <(project_files '*.c' '*.h' '*.hpp' '*.hpp.in' '*.cc' '*.py' '*.cmake' '*.sh' '*.md')
if grep -nIP '\t' "${code[@]}"; then complain "the lines above hold tabs"; fi

while read -r script; do
    bash -n "$script" || bad=1
done < <(grep -lE '^#!.*\b(ba)?sh$' "${files[@]}")
if command -v shellcheck >/dev/null; then
    grep -lE '^#!.*\b(ba)?sh$' "${files[@]}" | xargs shellcheck || bad=1
else
    echo "text: shellcheck not found, scripts only parsed"
fi

while IFS=: read -r file link; do
    link=${link#](}
    link=${link%%[#)]*}
    if [[ -z $link || $link == *://* || $link == mailto:* ]]; then continue; fi
    if [[ ! -e $(dirname "$file")/$link ]]; then complain "$file: the link to $link leads nowhere"; fi
done < <(project_files '*.md' | xargs grep -HoE '\]\([^)]+\)' || true)

while IFS=: read -r file path; do
    path=${path//\`/}
    if [[ $path != *NAME* && ! -e $path ]]; then complain "$file names $path, which is not there"; fi
done < <(project_files '*.md' | xargs grep -HoE '`(core|cli|ci|tests|plugins|docs|examples|bench|cmake)/[A-Za-z0-9_./-]*`' || true)

if ((bad)); then exit 1; fi
echo "text: ${#files[@]} files"
