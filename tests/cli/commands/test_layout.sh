#!/usr/bin/env bash
# `weft layout` and `weft bench layout`.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
layout() { "$weft" layout "$@"; }

json layout --mesh 2x2 --shape 7x5 --placements 'S(0),S(1)' --json -- \
    'it["mesh"] == "2x2" and it["shape"] == [7, 5] and it["dtype"] == "f32"' \
    'it["placements"] == [{"kind": "shard", "dim": 0, "turn": 0}, {"kind": "shard", "dim": 1, "turn": 0}]' \
    '[r["rank"] for r in it["ranks"]] == [0, 1, 2, 3]' \
    'it["ranks"][1] == {"rank": 1, "coord": [0, 1], "shape": [4, 2], "offset": [0, 3], "elements": 8, "runs": [[[0, 4]], [[3, 2]]], "copy": None, "contribution": None}' \
    'it["ranks"][2]["runs"] == [[[4, 3]], [[0, 3]]] and it["ranks"][3]["offset"] == [4, 3]'
json layout --mesh 4@0-6:2 --shape 9 --placements 'SS(0,2)' --rank 4 --json -- \
    'it["placements"] == [{"kind": "strided", "dim": 0, "turn": 0, "factor": 2}] and len(it["ranks"]) == 1' \
    'it["ranks"][0]["coord"] == [2] and it["ranks"][0]["runs"] == [[[4, 1], [7, 1]]]'
json layout --mesh dp=3,tp=1@1,3,5 --shape 2 --placements 'S(0)[1],S(0)[0]' --rank 5 --json -- \
    'it["placements"][0]["turn"] == 1 and it["ranks"][0]["runs"] == [[]] and it["ranks"][0]["offset"] == [2]'
json layout --mesh 2x2 --shape 4,6 --placements 'R,P(max)' --rank 9 --dtype bf16 --json -- \
    'it["dtype"] == "bf16" and it["ranks"][0]["coord"] is None and it["ranks"][0]["offset"] == [4, 6]' \
    'it["ranks"][0]["copy"] is None and it["ranks"][0]["contribution"] is None'

# A size * takes the ranks that the other axes leave.
json layout -n 6 --mesh 'dp=2,tp=*' --shape 6 --placements 'R,S(0)' --json -- 'it["mesh"] == "dp=2,tp=3"' \
    'len(it["ranks"]) == 6'
fails 2 '--mesh is "*"; a size * needs the number of ranks' layout --mesh '*' --shape 4 --placements R

# Contributions and copies differ in JSON, in the table, in the grid and in the drawing.
json layout --mesh 2 --shape '[]' --placements P --json -- \
    'it["placements"] == [{"kind": "partial", "reduction": "sum"}]' \
    '[r["contribution"] for r in it["ranks"]] == [[0, 2], [1, 2]]' 'all(r["copy"] is None for r in it["ranks"])'
json layout --mesh 2x2 --shape 4x6 --placements 'O(1),G(1;4,2)' --json -- \
    'it["placements"] == [{"kind": "owner", "owner": 1}, {"kind": "sizes", "dim": 1, "turn": 0, "sizes": [4, 2]}]' \
    '[r["shape"] for r in it["ranks"]] == [[0, 4], [0, 2], [4, 4], [4, 2]]'
json layout --mesh 2 --shape 8 --placements 'B(0;5,0,3)' --json -- \
    'it["placements"] == [{"kind": "parts", "dim": 0, "turn": 0, "sizes": [5, 3]}]' \
    '[r["runs"] for r in it["ranks"]] == [[[[0, 3], [5, 2]]], [[[3, 2], [7, 1]]]]'
json layout --mesh 2 --shape '[]' --placements 'O(1)' --json -- '[r["elements"] for r in it["ranks"]] == [0, 1]'
json layout --mesh 2 --shape 5x3 --placements 'S(0)' --json -- '[r["elements"] for r in it["ranks"]] == [9, 6]'
contains '  0  2  2  2  2  3  3' layout --mesh 2x2 --shape 1x6 --placements 'O(1),G(1;4,2)'
contains '0      0,0        [0]              [4]              nothing ' layout --mesh 2x2 --shape 4 --placements 'O(1),R'
contains '>2<' layout --mesh 4 --shape 4x6 --placements 'O(2)' --svg -
fails 2 'placement 0, G(0;3,3,1,1): the sizes add up to 8, but there are 7 indices of dimension 0' \
    layout --mesh 4 --shape 7 --placements 'G(0;3,3,1,1)'
json layout --mesh 2 --shape '[]' --placements R --json -- 'it["placements"] == [{"kind": "replicate"}]' \
    '[r["copy"] for r in it["ranks"]] == [[0, 2], [1, 2]]' 'all(r["contribution"] is None for r in it["ranks"])'
json layout --mesh 2x3 --shape 4 --placements 'R,P(avg)' --json -- \
    'it["ranks"][4]["copy"] == [1, 2] and it["ranks"][4]["contribution"] == [1, 3]'
is "the sum of 2 ranks' contributions is the tensor:
      0        1
   sum 0-1  sum 0-1

rank   coord      shape            offset           holds            runs
0      0          [2]              [0]              sum part 1/2     0-1
1      1          [2]              [0]              sum part 2/2     0-1" \
    layout --mesh 2 --shape 2 --placements P
contains "the max of 2 ranks' contributions is the tensor; 3 ranks hold a copy of each:" \
    layout --mesh 2x3 --shape 2 --placements 'P(max),R'
contains ' copy 2/3 of max part 1/2 ' layout --mesh 2x3 --shape 2 --placements 'P(max),R'
contains 'url(#partial)' layout --mesh 2x2 --shape 2x2 --placements 'P,S(0)' --svg -
contains '>sum 0,2<' layout --mesh 2x2 --shape 2x2 --placements 'P,S(0)' --svg -
lacks 'partial' layout --mesh 2x2 --shape 2x2 --placements 'R,S(0)' --svg -
contains 'url(#partial)' "$weft" plan --mesh 2 --shape 8x8 --from P --to R --svg -

is '2 ranks hold copies of each cell:
      0    1    2    3    4    5
  0  0,2  0,2  0,2  1,3  1,3  1,3
  1  0,2  0,2  0,2  1,3  1,3  1,3

rank   coord      shape            offset           holds            runs
0      0,0        [2,3]            [0,0]            copy 1/2         0-1 x 0-2
1      0,1        [2,3]            [0,3]            copy 1/2         0-1 x 3-5
2      1,0        [2,3]            [0,0]            copy 2/2         0-1 x 0-2
3      1,1        [2,3]            [0,3]            copy 2/2         0-1 x 3-5' \
    layout --mesh dp=2,tp=2 --shape 2x6 --placements 'R,S(1)'
is '   0  1  2  3  4  5  6
   0  0  3  1  1  4  2

rank   coord      shape            offset           holds            runs
0      0,0        [2]              [0]              values           0-1
1      0,1        [2]              [3]              values           3-4
2      0,2        [1]              [6]              values           6
3      1,0        [1]              [2]              values           2
4      1,1        [1]              [5]              values           5
5      1,2        [0]              [7]              values           none
the same with strides: SS(0,3),S(0)' \
    layout --mesh 2x3 --shape 7 --placements 'S(0)[1],S(0)[0]'

contains 'the same with turns: S(0)[1],S(0)[0]' layout --mesh 2x3 --shape 12 --placements 'SS(0,3),S(0)'
json layout --mesh 2x3 --shape 12 --placements 'SS(0,3),S(0)' --json -- \
    'it["with_turns"] == "S(0)[1],S(0)[0]"' '"with_strides" not in it'

fails 2 'mesh "2xx4", position 3: expected the size of an axis, found '"'x'" \
    layout --mesh 2xx4 --shape 4 --placements R
fails 2 'shape "4x-1", position 3' layout --mesh 2 --shape 4x-1 --placements R
fails 2 'placement 1, S(2): the tensor has 1 dimension' layout --mesh 2x2 --shape 4 --placements 'R,S(2)'
fails 2 'placement 2, P(max): it cannot be combined with P(sum) on axis 0' \
    layout --mesh 2x2x2 --shape 4 --placements 'P,R,P(max)'
fails 2 'did you mean --placements' layout --mesh 2 --shape 4 --placement R
fails 2 '--shape is missing' layout --mesh 2 --placements R
fails 2 '--rank is "x"' layout --mesh 2 --shape 4 --placements R --rank x
fails 1 'more than two dimensions are split' \
    layout --mesh 2x2x2 --shape 4x4x4 --placements 'S(0),S(1),S(2)' --svg -
fails 3 'No such file or directory' layout --mesh 2 --shape 4 --placements R --svg /nowhere/at/all.svg

# Arguments that do not fit, or are missing, give a message.
contains '9      is not in the mesh and holds nothing' layout --mesh 2 --shape 4 --placements R --rank 9
contains '(cannot draw the layout: more than two dimensions are split)' \
    layout --mesh 2x2x2 --shape 4x4x4 --placements 'S(0),S(1),S(2)'
contains '(cannot draw the layout: the tensor has no elements)' layout --mesh 2 --shape 0x4 --placements 'S(0)'
contains '(cannot draw the layout: dimension 0 has more than 256 pieces)' \
    layout --mesh 2 --shape 4096 --placements 'SS(0,1024)'
contains '(cannot draw the layout: it is wider than the terminal or too tall' \
    layout --mesh 2x4 --shape 5000x8000 --placements 'S(0),SS(1,30)'
contains '... and 44 more; --rank R shows any, --json all' layout --mesh 300 --shape 300 --placements 'S(0)'
contains '0-2,6-8,12-14,18-20,24-26,30-32,...' layout --mesh 2 --shape 60 --placements 'SS(0,10)' --rank 0
contains 'the scalar' layout --mesh 2 --shape '[]' --placements R
contains '0 +31' layout --mesh 32x4 --shape 4 --placements 'R,S(0)'
contains ' 0,8,16,24 ' layout --mesh 4x8 --shape 8 --placements 'R,S(0)'

# A tensor with more dimensions is drawn if two of them are split, or fewer.
contains 'dimension 1; the others are whole:
   0  1  2  3
   0  0  1  1' layout --mesh 2 --shape 4x4x4 --placements 'S(1)'
contains 'dimensions 1 and 2; the others are whole:
         0    2048' layout --mesh 2x2 --shape 4x4096x4096 --placements 'S(1),S(2)'

# On a terminal cells are coloured, unless NO_COLOR says otherwise.
in_terminal() {
    python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$weft" layout --mesh 2 --shape 2 \
        --placements 'S(0)' </dev/null
}
contains $'\033[48;5;117;38;5;16m 0 \033[0m' in_terminal
check=$((check + 1))
if [[ $(NO_COLOR=1 in_terminal) == *$'\033'* ]]; then not_so "colour in spite of NO_COLOR"; fi

# The drawing is well-formed and has a rectangle per cell and one for the page.
rectangles() {
    layout "$@" --svg - | python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.stdin).getroot()
print(len(root.findall("{http://www.w3.org/2000/svg}rect")))'
}
is 2 rectangles --mesh 2 --shape '[]' --placements R
is 257 rectangles --mesh 256 --shape 4096 --placements 'S(0)'
is 9 rectangles --mesh 2x4 --shape 8x16 --placements 'S(0),S(1)'
is 13 rectangles --mesh dp=2,tp=4 --shape 24 --placements 'SS(0,3),S(0)'

is 65536 bash -c "'$weft' layout --mesh 256x256 --shape 8192x4096 --placements 'S(0),S(1)' --json |
    grep -o '\"rank\"' | wc -l"

is 9 bash -c "'$weft' bench layout --budget-ms 1 --json | grep -o median_ns | wc -l"
fails 2 'did you mean "layout"?' "$weft" bench layuot
contains 'queries about layouts, parsing and interning' "$weft" bench --help
fails 2 'usage: weft bench' "$weft" bench
contains 'under 200 ns' "$weft" bench layout --budget-ms 1
fails 2 '--budget-ms is "0"' "$weft" bench layout --budget-ms 0
fails 2 'unknown option --ms; did you mean --budget-ms?' "$weft" bench layout --ms 1
finish
