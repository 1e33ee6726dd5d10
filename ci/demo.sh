#!/usr/bin/env bash
# demo.sh - build weft and show what it does, on a fresh Debian or Ubuntu.
source "$(dirname "$0")/lib.sh"

part packages need build
part build build release build/demo -DWEFT_BUILD_TESTS=OFF
part "weft info" build/demo/bin/weft info
finish ci/demo.sh
