#!/usr/bin/env bash
# manual.sh - the manual as a site, whose search works without a server: open OUT/site/index.html.
# Usage: manual.sh OUT
#
# It needs Python and Material for MkDocs 9.  If $PYTHON (python3 if not set) has no such package, the script makes a
# virtual environment in OUT/venv and installs it there, with mini-racer, which asks the site's search questions.
source "$(dirname "$0")/lib.sh"
out=$(realpath -m "${1:?usage: manual.sh OUT}")
python=${PYTHON:-python3}
mkdir -p "$out"
if ! "$python" -c 'import material' 2>/dev/null; then
    if [[ ! -x $out/venv/bin/mkdocs ]]; then
        "$python" -m venv "$out/venv"
        "$out/venv/bin/pip" install --quiet 'mkdocs-material>=9,<10' mini-racer
    fi
    python=$out/venv/bin/python
fi
version=$(sed -n 's/^project(weft VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
python3 api/describe.py "$out/weft-api.json" "$version" {core,files,parallel,feed}/include/weft/*.h
python3 ci/manual/stage.py . "$out/weft-api.json" "$out"
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --quiet --strict --config-file "$out/mkdocs.yml"
python3 ci/manual/links.py "$out/site"
"$python" ci/manual/search.py "$out/site"
echo "manual: $out/site/index.html"
