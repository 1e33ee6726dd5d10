#!/usr/bin/env bash
# `weft lost`.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
lost() { "$weft" lost "$@"; }
some_lost() { lost "$@" || test $? -eq 1; }

is 'nothing is lost: the other ranks hold all 128 elements' \
    lost --mesh dp=2,tp=4 --shape 8x16 --placements 'R,S(1)' --lost 3,0
is '32 of 128 elements are lost, 128 B, in 1 shard; the first is [0,12]

rank   elements     indices
3      32           0-7 x 12-15' \
    some_lost --mesh dp=2,tp=4 --shape 8x16 --placements 'R,S(1)' --lost 3,7,1
json some_lost --mesh 4 --shape 9 --dtype bf16 --placements 'SS(0,2)' --lost 2,0,2 --json -- \
    'it["mesh"] == "4" and it["shape"] == [9] and it["dtype"] == "bf16" and it["placements"] == "SS(0,2)"' \
    'it["lost"] == [2, 0, 2] and it["elements"] == 5 and it["bytes"] == 10 and it["first"] == [0]' \
    'sorted(s["rank"] for s in it["shards"]) == [0, 2]' \
    '[s["runs"] for s in it["shards"] if s["rank"] == 0] == [[[[0, 2], [5, 1]]]]'
json lost --mesh 2x2 --shape 4 --placements 'R,S(0)' --lost 1 --json -- \
    'it["elements"] == 0 and it["bytes"] == 0 and it["first"] is None and it["shards"] == []'
# A contribution is lost with its only rank.
json some_lost --mesh 2 --shape 4 --placements P --lost 1 --json -- \
    'it["elements"] == 4 and it["shards"] == [{"rank": 1, "elements": 4, "runs": [[[0, 4]]]}]'
contains 'the scalar' some_lost --mesh 2 --shape '[]' --placements 'O(1)' --lost 1

# The mesh that follows, and the plan.
json lost --mesh dp=2,tp=4 --shape 8x16 --placements 'R,S(1)' --lost 3 --follow drop:dp --json -- \
    'it["elements"] == 0 and it["next"]["mesh"] == "dp=1,tp=4@3-6" and it["next"]["placements"] == "R,S(1)"' \
    'it["next"]["steps"] == 0 or it["next"]["bytes_received_max"] == 0'
json lost --mesh dp=2,tp=2 --shape 8x8 --placements 'R,S(1)' --lost 1 --follow replace --json -- \
    'it["next"] == {"mesh": "dp=2,tp=2", "placements": "R,S(1)", "steps": 1, "bytes_received_max": 128}'
contains 'the next mesh is 3, with S(0)' \
    lost --mesh dp=2,tp=2 --shape 9x8 --placements 'R,S(1)' --lost 1 --follow pack --to 'S(0)'
json some_lost --mesh 4 --shape 8 --placements 'S(0)' --lost 1 --follow pack --json -- 'it["next"] is None'
fails 2 '--follow is "shrink"; expected replace, drop:AXIS or pack' \
    lost --mesh 4 --shape 8 --placements R --lost 1 --follow shrink
fails 2 '--to' lost --mesh 4 --shape 8 --placements R --lost 1 --follow pack --to 'R,R'
fails 2 'no rank of the mesh is left' lost --mesh 2 --shape 8 --placements R --lost 0,1 --follow pack

fails 1 '' lost --mesh 2 --shape 4 --placements 'S(0)' --lost 1
fails 2 '--lost is missing' lost --mesh 2 --shape 4 --placements R
fails 2 '--lost is "1;2"; expected ranks, as in 3,5' lost --mesh 4 --shape 4 --placements R --lost '1;2'
fails 2 'expected a rank' lost --mesh 4 --shape 4 --placements R --lost ''
fails 2 'expected a rank' lost --mesh 4 --shape 4 --placements R --lost '1,'
fails 2 'expected a rank' lost --mesh 4 --shape 4 --placements R --lost '-1'
fails 2 '--lost: 5000000000 is not a rank' lost --mesh 4 --shape 4 --placements R --lost 5000000000
fails 2 'rank 9' lost --mesh 4 --shape 4 --placements R --lost 9
fails 2 '--shape' lost --mesh 4 --shape x --placements R --lost 1
finish
