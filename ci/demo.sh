#!/usr/bin/env bash
# demo.sh - build weft and show what it does, on a fresh Debian or Ubuntu.
source "$(dirname "$0")/lib.sh"
weft=build/demo/bin/weft

info()
{
    echo "Which plugins serve on this machine:"
    "$weft" info
}

plan()
{
    echo "How a matrix gets from rows over dp to columns over tp:"
    "$weft" plan --mesh dp=2,tp=4 --shape 4096x4096 --from "S(0),R" --to "R,S(1)"
}

redistribute()
{
    echo "The same on eight ranks of this machine, every element checked:"
    "$weft" run -n 8 build/demo/bin/redistribute
}

conform()
{
    echo "The conformance kit proves the plugin that served:"
    "$weft" conform gloo-cpu
}

part packages need build
part build build release build/demo -DWEFT_BUILD_TESTS=OFF
part info info
part plan plan
part redistribute redistribute
part conform conform
finish ci/demo.sh
