#!/usr/bin/env bash
# `weft op`.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
op() { "$weft" op "$@"; }

is 'mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b; same a b
  It reads a and b, and writes c.
  Along each mesh axis, all ranks do the same (all tensors are R), or they
  - split m: a and c are split, b is R
  - split k: a and b are split, c is P(sum)
  - split n: b and c are split, a is R
  - take contributions: a is P(sum) or P(avg), b is R, c is the same (it is linear in finite numbers)
  - take contributions: b is P(sum) or P(avg), a is R, c is the same (it is linear in finite numbers)
  Contributions must stay finite: an infinity in one, as of a quotient by 0, can make their sum NaN.
  a and b have one dtype, unless the call permits several.' op mm
contains '  - split v: x and w are split, t is R, l and z are P(sum); a lookup outside of the part gives 0' op nll_loss
contains '  It applies if reduction is mean and weighted is 1.' op nll_loss
contains '  - split k: x and w are split, b and y are P(sum)' op linear
contains '  These are never split: d, t' op sdpa
contains 'relu_ writes its first output in the memory of its first input' op relu_
contains 'The signature depends on shapes' op aten.view.default
contains 'softmax' op --list
contains '    mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b; same a b' op --all-rules
json op mm --mesh dp=2,tp=4 --input 'f32[64,32] S(0),S(1)' --input 'f32[32,16] R,S(0)' --json -- \
    'it["op"] == "mm" and it["rule"].startswith("mm: ") and it["strategies"] == []' \
    'it["chosen"]["inputs"] == ["f32[64,32] S(0),S(1)", "f32[32,16] R,S(0)"]' \
    'it["chosen"]["outputs"] == ["f32[64,16] S(0),P(sum)"] and it["chosen"]["moves"] == []' \
    'it["chosen"]["cost_ns"] == 0' \
    'it["gradients"] == ["f32[64,32] S(0),S(1)", "f32[32,16] P(sum),S(0)"]' \
    'it["output_gradients"] == ["f32[64,16] S(0),R"]'
json op mm --mesh 4 --input 'f32[64,32] S(1)' --input 'f32[32,16] S(1)' --strategies --json -- \
    'len(it["strategies"]) == 8' \
    'it["strategies"][2] == {"inputs": ["f32[64,32] S(1)", "f32[32,16] S(0)"], "outputs": ["f32[64,16] P(sum)"], "cost_ns": it["chosen"]["cost_ns"]}' \
    'it["chosen"]["moves"][0]["input"] == 1 and it["chosen"]["moves"][0]["to"] == "f32[32,16] S(0)"' \
    'it["chosen"]["moves"][0]["bytes"] > 0 and min(s["cost_ns"] for s in it["strategies"] if s["cost_ns"] is not None and "P(sum)" not in s["inputs"][0] + s["inputs"][1]) == it["chosen"]["cost_ns"]'
json op reshape --mesh 3 --attr shape=6,4 --input='f32[2,3,4] S(1)' --check --json -- \
    'it["chosen"]["outputs"] == ["f32[6,4] SS(0,2)"]'
json op sum --mesh 2 --attr dims=[1] --attr keepdim=true --input 'f32[4,6] S(0)' --json -- \
    'it["chosen"]["outputs"] == ["f32[4,1] S(0)"]'
json op linear --mesh 2 --input 'f32[4,6] S(0)' --input 'f32[8,6] R' --input - --json -- \
    'it["chosen"]["inputs"] == ["f32[4,6] S(0)", "f32[8,6] R", None] and it["gradients"][2] is None'
contains 'gradient of output 0: f32[64,16] R' op mm --mesh 4 --input 'f32[64,32] S(1)' --input 'f32[32,16] S(0)'
contains 'input 1: f32[32,16] S(0), moved from S(1) in ' op mm --mesh 4 --input 'f32[64,32] S(1)' --input 'f32[32,16] S(1)'
fails 1 'b must be S(0); the cheapest fix moves b from S(1) to S(0)' \
    op mm --mesh tp=4 --input 'f32[64,32] S(1)' --input 'f32[32,16] S(1)' --check
fails 1 'did you mean softmax?' op sofmax
fails 1 'did you mean softmax?' op sofmax --mesh 2 --input 'f32[4] R'
fails 1 'factor k is 4 in dimension 1 of a, and 5 in dimension 0 of b' \
    op mm --mesh 2 --input 'f32[8,4] R' --input 'f32[5,6] R'
fails 1 'operator sum: it has no attribute dim; the attributes of its rules: dims' \
    op sum --mesh 2 --attr dim=0 --input 'f32[8,4] S(0)'
fails 1 'the call has attribute dim twice' \
    op softmax --mesh 2 --attr dim=0 --attr dim=1 --input 'f32[8,4] R'
fails 2 'give the name of an operator' op
fails 2 'give the mesh with --mesh' op mm --input 'f32[8,4] R' --input 'f32[4,6] R'

# A rule of one's own, shapes of outputs, and prices of outputs.
contains '  - split b: x and y are split' op shifted --rule 'shifted: x[a b] -> y[a b]; whole a; pass x'
contains 'output 0: f32[4,4] S(1)' \
    op shifted --rule 'shifted: x[a b] -> y[a b]; whole a; pass x' --mesh 2 --input 'f32[4,4] S(1)'
contains 'output 0: c64[4,5] S(0)' \
    op rfft --mesh 2 --attr dims=[1] --input 'f32[4,8] S(0)' --out 'c64[4,5]'
contains 'output 0: f32[4,4,2] S(0)' \
    op unfold --mesh 2 --attr dim=0 --attr size=2 --attr step=2 --input 'f32[8,4] S(0)'
contains 'output 0: f32[4096,4096] P(sum)' \
    op mm --mesh 4 --input 'f32[4096,64] S(1)' --input 'f32[64,4096] R'
contains 'output 0: f32[4096,4096] S(0)' \
    op mm --price-partials --mesh 4 --input 'f32[4096,64] S(1)' --input 'f32[64,4096] R'
fails 1 'input a is f32, and b is bf16' op mm --mesh 2 --input 'f32[4,4] R' --input 'bf16[4,4] R'
contains 'output 0: f32[4,4] R' op mm --mixed-dtypes --mesh 2 --input 'f32[4,4] R' --input 'bf16[4,4] R'
json op mm --mesh 4 --input 'f32[64,64] S(1)' --input 'f32[64,64] S(0)' --want 'f32[64,64] R' --json -- \
    'it["chosen"]["outputs"] == ["f32[64,64] P(sum)"] and it["chosen"]["output_ns"] > 0'
fails 1 'summ is not a clause; did you mean sum?' op f --rule 'f: x[a b] -> y[a]; summ b'
fails 1 'found the end of the line' op f --rule 'f: x[a]'
fails 1 'A is a group of dimensions' op f --rule 'f: x[A] -> y[A]'
fails 1 'operator mm has 1 output, and --want is given 2 times' op mm --mesh 2 \
    --input 'f32[4,4] S(0)' --input 'f32[4,4] S(0)' --want 'f32[4,4] R' --want 'f32[4,4] R'
fails 1 'the spec that is wanted of output 0 is f32[4] on a mesh of 2 ranks' op mm --mesh 2 \
    --input 'f32[4,4] S(0)' --input 'f32[4,4] S(0)' --want 'f32[4] R'
fails 1 '--out takes a dtype and a shape' op relu --mesh 2 --input 'f32[4] R' --out '4,4'
fails 1 'more than the 262144 that weft compares; merge axes' op mm --strategies --mesh 2x2x2x2x2x2x2 \
    --input 'f32[64,64] R,R,R,R,R,R,R' --input 'f32[64,64] R,R,R,R,R,R,R'
fails 2 'expected --attr NAME=VALUE' op sum --mesh 2 --attr dims --input 'f32[4] R'

# Recorded calls: an answer for each line, also for those that are not records.
records=$(mktemp)
trap 'rm -f "$records"' EXIT
cat >"$records" <<'LINES'
{"id":"a","op":"softmax_backward","aten":"aten._softmax_backward_data.default","params":{"dim":-1},"args":[{"t":0},{"t":1},-1,{"dtype":"f32"}],"mesh":[2],"in":[[[8,12],"f32","P(sum)"],[[8,12],"f32","S(0)"]],"propagated":{"err":"ignored"}}

{"id":"b","op":"split","aten":"aten.split.Tensor","params":{"split_size":5,"dim":1},"mesh":[2,2],"in":[[[8,12],"f32","S(0),P(product)"]]}
{"id":"c","op":"foreach_neg","aten":"aten._foreach_neg.default","args":[[{"t":0},{"t":1}]],"mesh":[2],"in":[[[8,12],"f32","S(0)"],[[5,7],"f32","R"]]}
{"id":"d","op":"sofmax","aten":"aten.sofmax.default","mesh":[2],"in":[[[8],"f32","R"]]}
{"id":"e","op":"abs","aten":"aten.abs.default","mesh":[2],"in":[[[8],"f32","Q"]]}
{"id":"f","op":"diagonal","aten":"aten.diagonal.default","args":[{"t":0},1,0,2],"mesh":[2],"in":[[[4,6,5],"f32","S(1)"]]}
{"id":
LINES
answers() { op --records "$records" | python3 -c 'import json, sys; print(json.dumps([json.loads(line) for line in sys.stdin]))'; }
json answers -- 'len(it) == 7' '[one["id"] for one in it] == ["a", "b", "c", "d", "e", "f", None]' \
    'it[0]["op"] == "softmax_backward" and it[0]["rule"].startswith("softmax_bwd")' \
    'it[0]["chosen"]["outputs"] == ["f32[8,12] S(0)"] and it[0]["chosen"]["communicates"]' \
    'len(it[0]["strategies"]) == 4' \
    'it[1]["chosen"]["outputs"] == ["f32[8,5] S(0),P(prod)"] * 2 + ["f32[8,2] S(0),P(prod)"]' \
    'not it[1]["chosen"]["communicates"]' \
    'it[2]["strategies"] == [] and [len(one) for one in it[2]["strategies_list"]] == [7, 7]' \
    'it[2]["strategies_list"][1][2]["inputs"] == ["f32[5,7] S(1)"]' \
    '"did you mean softmax?" in it[3]["error"] and "chosen" not in it[3]' \
    '"\"Q\"" in it[4]["error"] or "Q" in it[4]["error"]' '"the record, byte 8" in it[6]["error"]' \
    'it[5]["chosen"]["outputs"] == ["f32[6,4] S(0)"]'
is "$(op --records "$records")" bash -c "'$weft' op --records - <'$records'"
fails 3 'No such file' op --records "$records.absent"
# sizes that need more than a line
sizes=$(seq -s, 1 400)
json op relu --mesh 400 --input "f32[80200] G(0;$sizes)" --check --json -- \
    "it[\"chosen\"][\"outputs\"] == [\"f32[80200] G(0;$sizes)\"]"

# --json prints one object, whatever is asked for; a rule of one's own is for every form.
json op mm --json -- 'it["op"] == "mm" and it["rules"] == ["mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b; same a b"]' \
    '"split k: a and b are split" in it["explanation"]'
json op --list --json -- '"softmax" in it["operators"] and "mm" in it["operators"]'
json op --all-rules --json -- '"mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b; same a b" in it["rules"]'
contains 'shifted' op --list --rule 'shifted: x[a b] -> y[a b]; whole a; pass x'
fails 2 'take no operator and no call' op --list mm
fails 2 'take no operator and no call' op --all-rules --mesh 2
fails 2 'take no operator and no call' op --records /dev/null mm
fails 2 'exclude each other' op --list --all-rules

# Attributes that are not what they seem.
for shape in '[24' '[24]x' '4,6]x' '[4,6' '99999999999999999999,'; do
    fails 1 'attribute shape must be a list of numbers' op reshape --mesh 2 --attr "shape=$shape" --input 'f32[4,6] S(0)'
done
fails 1 'attribute dims must be a dimension' op sum --mesh 2 --attr dims=99999999999999999999 --input 'f32[4] R'
fails 1 'attribute shape has the size -1 twice' op reshape --mesh 2 --attr shape=-1,-1 --input 'f32[4,6] R'
fails 1 'multiply to more than 2^63 - 1' op reshape --mesh 2 --attr shape=4294967296,4294967296 --input 'f32[4,6] R'
fails 1 'multiply to 0 without the -1, which no single size replaces' \
    op reshape --mesh 2 --attr shape=-1,0 --input 'f32[0,6] R'
attributes=()
for i in {1..33}; do attributes+=(--attr "a$i=1"); done
fails 2 'too many attributes: "a33=1"' op relu --mesh 2 "${attributes[@]}" --input 'f32[4] R'

# Records that lie.
cat >"$records" <<'LINES'
{"id":"a","op":"sum","params":{"dim":[1.5]},"mesh":[2],"in":[[[4,6],"f32","S(0)"]]}
{"id":"b","op":"sum","params":"x","mesh":[2],"in":[[[4,6],"f32","S(0)"]]}
{"id":"c","op":"sum","args":"x","mesh":[2],"in":[[[4,6],"f32","S(0)"]]}
{"id":"d","op":"narrow","aten":"composite","params":{"dim":0,"start":-1,"length":1},"mesh":[2],"in":[[[4,6],"f32","R"]]}
{"id":"e","op":"narrow","aten":"composite","params":{"dim":0,"start":3,"length":2},"mesh":[2],"in":[[[4,6],"f32","R"]]}
{"id":"f","op":"movedim","aten":"composite","params":{"src":[0,1],"dst":[1,2]},"mesh":[2],"in":[[[4,6,2],"f32","R"]]}
{"id":"g","op":"unflatten","aten":"composite","params":{"dim":9,"sizes":[2,3]},"mesh":[2],"in":[[[4,6],"f32","R"]]}
{"id":"h","op":"flatten","aten":"composite","params":{"start":1,"end":0},"mesh":[2],"in":[[[4,6],"f32","R"]]}
{"id":"i","op":"flatten","aten":"composite","mesh":[2],"in":[[[],"f32","R"]]}
{"id":"j","op":"layer_norm","aten":"aten.native_layer_norm.default","params":{"normalized_shape":[7]},"mesh":[2],"in":[[[4,6],"f32","R"]]}
{"id":"k","op":"relu","mesh":[2],"in":[[[4],"f32","MP(sum,"]]}
{"id":"l","op":"mine","mesh":[2],"in":[[[4,4],"f32","S(1)"]]}
LINES
printf '{"id":"m","op":"relu","mesh":[2],"in":[[[4],"f32","R"]]}\0 and more\n' >>"$records"
lies() {
    op --rule 'mine: x[a b] -> y[a b]; whole a; pass x' --records "$records" |
        python3 -c 'import json, sys; print(json.dumps([json.loads(line) for line in sys.stdin]))'
}
json lies -- 'len(it) == 13' 'it[0]["error"] == "\"dim\" must be a list of whole numbers"' \
    'it[1]["error"] == "\"params\" must be an object" and it[2]["error"] == "\"args\" must be a list"' \
    'it[3]["chosen"]["outputs"] == ["f32[1,6] R"]' '"outside of the size 4" in it[4]["error"]' \
    'it[5]["error"] == "\"src\" must be a dimension"' \
    'it[6]["error"] == "\"dim\" is 9, and the tensor has 2 dimensions"' \
    'it[7]["error"] == "\"start\" comes behind \"end\""' 'it[8]["chosen"]["outputs"] == ["f32[1] R"]' \
    '"end of the first tensor" in it[9]["error"]' '"is not a placement" in it[10]["error"]' \
    'it[11]["chosen"]["outputs"] == ["f32[4,4] S(1)"]' 'it[12] == {"id": None, "error": "the record has a NUL byte"}'
finish
