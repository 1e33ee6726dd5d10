#!/usr/bin/env bash
# wheels.sh - build the Python package's wheels, for glibc 2.28 or newer, with zig's compiler from PyPI.
#
#   ci/wheels.sh OUT [ARCHITECTURE...]     ARCHITECTURE: x86_64 aarch64; both unless named
#
# The machine's own architecture does not matter.  gloo-cpu is without the Gloo library here, which needs the C++ library
# of the machine that built it; between hosts it takes UCX.
source "$(dirname "$0")/lib.sh"
(($# >= 1)) || die "usage: ci/wheels.sh OUT [ARCHITECTURE...]"
mkdir -p "$1"
out=$(realpath "$1")
architectures=("${@:2}")
if ((${#architectures[@]} == 0)); then architectures=(x86_64 aarch64); fi
need build python
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check wheel ziglang ||
    skip "pip does not offer wheel and ziglang here"
zig=$("$environment/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')

# The headers of Python and UCX are the system's, those of the C library zig's.  Python's say which of the system's folders
# they want by the name of the architecture.
wheel_for()
{
    local architecture=$1 made=$environment/$1 include=$environment/include file
    mkdir -p "$include"
    ln -sfn "/usr/include/$(uname -m)-linux-gnu" "$include/$architecture-linux-gnu"
    local settings=(cmake.define.CMAKE_CXX_COMPILER=NOTFOUND install.strip=false
        cmake.define.CMAKE_C_FLAGS="-idirafter $include -idirafter /usr/include"
        cmake.define.CMAKE_SHARED_LINKER_FLAGS=-s cmake.define.CMAKE_MODULE_LINKER_FLAGS=-s cmake.define.CMAKE_EXE_LINKER_FLAGS="-s -pie"
        build-dir="$environment/build-$architecture")
    if [[ $architecture != "$(uname -m)" ]]; then
        settings+=(cmake.define.CMAKE_SYSTEM_NAME=Linux cmake.define.CMAKE_SYSTEM_PROCESSOR="$architecture")
    fi
    CC="$zig cc -target $architecture-linux-gnu.2.28" "$environment/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
        -w "$made" "${settings[@]/#/--config-settings=}" .
    "$environment/bin/python" -m wheel tags --remove --platform-tag "manylinux_2_28_$architecture" "$made"/*.whl >/dev/null
    file=$(echo "$made"/*.whl)
    ci/checks/wheel.py "$file" "$root" "$environment"
    cp "$file" "$out"
}

for architecture in "${architectures[@]}"; do wheel_for "$architecture"; done
