#!/usr/bin/env bash
# demo.sh - build weft and show what it does, on a fresh Debian or Ubuntu.
source "$(dirname "$0")/lib.sh"

weft=build/demo/bin/weft
example=build/demo/examples/libweft_plugin_example.so

part packages need build
part build build release build/demo -DWEFT_BUILD_TESTS=OFF
part "weft info" "$weft" info
part "weft plan" "$weft" plan --mesh 2x4 --shape 4096x4096 --from "S(0),R" --to "R,S(1)"
part "weft conform" "$weft" conform "$example"
finish ci/demo.sh
