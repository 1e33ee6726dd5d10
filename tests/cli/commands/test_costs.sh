#!/usr/bin/env bash
# `weft costs`: the tables, and the text of one.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
table=$(mktemp)
trap 'rm -f "$table"' EXIT
costs() { "$weft" costs "$@"; }

expect 0 "h100              553        346       1107        989  flops fitted on Nemotron-4" costs
contains "by rule, not checked: " costs
contains "dtensor             -          -          -          -  the constants of PyTorch's DTensor" costs
json costs --json -- '[one["name"] for one in it][:4] == ["h100", "h100-500w", "a100-80", "h200"]' \
    'it[0]["default"] and not any(one["default"] for one in it[1:])' \
    'all(one["source"] for one in it)' \
    '{one["name"] for one in it if "by rule, not checked" in one["source"]} == {"h200", "b200", "gb200", "mi300x"}' \
    'all(0 < one["flops_per_s"] < one["peak_flops_per_s"] for one in it if one["name"] not in ("cpu", "dtensor"))' \
    'all(0 < one["attention_flops_per_s"] < one["peak_flops_per_s"] for one in it if one["name"] not in ("cpu", "dtensor"))' \
    '{one["name"] for one in it if one["f8_flops_per_s"] == 0} == {"a100-80", "cpu", "dtensor"}' \
    '{one["name"]: (one["compute_beside"], one["moves_beside"]) for one in it}["h100"] == (15, 30)'
expect 0 "weft-cost 2" costs h100
is "$("$weft" costs h100)" costs default
contains "all-gather between 6600 2700 22222" costs h100
contains "domain within 72" costs gb200
# What is printed can be read again; a partial table inherits the rest.
"$weft" costs h200 >"$table"
expect 0 "$(cat "$table")" costs "$table"
printf 'weft-cost 2\nbase h100\nname mine\nmemory 300\n' >"$table"
contains "memory 300" costs "$table"
contains "flops 553000000" costs "$table"
json costs "$table" --json -- 'it["name"] == "mine" and it["source"] == "changed from the table h100"'
fails 2 "is neither a built-in cost table (default (which is h100), h100, h100-500w," costs h1000
printf 'weft-cost 2\nbase h100\nname mine\nflops 2000000000\n' >"$table"
fails 2 'more than the `peak` of 989000000' costs "$table"
# A group of 16 hosts sends through all 8 links of each host: faster than one link a rank.
printf 'weft-cost 2\nbase h100\nname own\nshares-links no\n' >"$table"
ns() {
    "$weft" plan --mesh "$1" --shape 67108864 --from "S(0)" --to R --costs "$2" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["cost_ns"])'
}
[ "$(ns 128/8 h100)" -lt "$(($(ns 128/8 "$table") / 4))" ] || not_so "the links of a host are not shared"
[ "$(ns 8/8 h100)" = "$(ns 8/8 "$table")" ] || not_so "links are shared within a host"
# 64 ranks of hosts of 4 are within one domain of 72, and 128 are not.
[ "$(ns 64/4 gb200)" = "$(ns 64/64 gb200)" ] || not_so "a domain has more than a host"
[ "$(ns 128/4 gb200)" -gt "$(ns 64/4 gb200)" ] || not_so "a domain has an end"
finish
