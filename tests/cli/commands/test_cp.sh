#!/usr/bin/env bash
# `weft cp`.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
cp_plan() { "$weft" cp "$@"; }

json cp_plan --mesh dp=2,cp=4 --axis cp --length 64 --mask causal --balance head-tail --json -- \
    'it["ranks"] == 4 and it["length"] == 64 and it["variant"] == "ring" and it["work_total"] == 2080' \
    'all(c["work"] == 520 for c in it["coordinates"]) and it["work_largest"] == 520' \
    'it["coordinates"][1]["runs"] == [[8, 8], [48, 8]]' \
    'it["coordinates"][1]["problems"][1] == {"step": 1, "source": 0, "query": 0, "queries": 16, "key": 0, "keys": 8, "mask": "full", "diagonal": 0}' \
    '[len(c["problems"]) for c in it["coordinates"]] == [4, 4, 4, 4]'
json cp_plan --mesh 2 --length 16 --mask causal --balance per-document --variant gather --documents 4,8,4 --json -- \
    'it["coordinates"][0]["runs"] == [[0, 1], [3, 3], [10, 3], [15, 1]]' \
    'all(p["source"] is None for p in it["coordinates"][0]["problems"])'
json cp_plan --mesh 3 --length 2 --json -- '[c["runs"] for c in it["coordinates"]] == [[[0, 1]], [[1, 1]], []]'

contains 'coordinate 1 holds 8-15,48-55, work 520' cp_plan --mesh 4 --length 64 --mask causal --balance head-tail
contains 'queries 0-3 x keys 0-3 window, diagonal 0' cp_plan --mesh 2 --length 8 --mask window --window 2
contains 'coordinate 2 holds nothing, work 0' cp_plan --mesh 3 --length 2

fails 2 'is not one of full, causal, window' cp_plan --mesh 2 --length 8 --mask blocks
fails 2 'is not a list of lengths' cp_plan --mesh 2 --length 8 --documents 4,x
fails 2 'add up to 7' cp_plan --mesh 2 --length 8 --documents 3,4
fails 2 'needs the variant GATHER' cp_plan --mesh 2 --length 8 --documents 4,4 --balance per-document
fails 2 '--length is missing' cp_plan --mesh 2
fails 2 'no axis' cp_plan --mesh dp=2 --axis cp --length 8
finish
