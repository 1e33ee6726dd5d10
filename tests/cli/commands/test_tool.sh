#!/usr/bin/env bash
# Common parts of all commands: one vocabulary of options, exit codes, progress on a terminal.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
export WEFT_BACKEND=gloo-cpu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# ---- options: one name and one letter for each notion, the same words everywhere ----
commands() {
    "$weft" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'
    "$weft" bench --help | sed -n 's/^  \([a-z]*\) .*/bench \1/p' | grep -v 'bench weft'
}
commands | while read -r -a command; do
    "$weft" "${command[@]}" --help | sed -n '/^options:/,/^$/p' | sed -n 's/^  -/-/p'
done >"$here/options"
check=$((check + 6))
if ! [ -s "$here/options" ]; then not_so "the help pages have options"; fi
if grep -E -- '--ranks|^-n' "$here/options" | grep -qv -- '^-n, --ranks N '; then
    not_so "-n is --ranks, everywhere: $(grep -E -- '--ranks|^-n' "$here/options")"
fi
if [[ $(grep -c -- '^-n, --ranks N ' "$here/options") -lt 8 ]]; then not_so "--ranks is an option of eight commands"; fi
for option in mesh to-mesh shape dtype from to placements backend json svg costs seed; do
    if [[ $(grep -- "^--$option " "$here/options" | sort -u | wc -l) != 1 ]]; then
        not_so "--$option has one help text: $(grep -- "^--$option " "$here/options" | sort | uniq -c)"
    fi
done
# An option takes the same kind of value wherever it is, or none everywhere.
while read -r name; do
    kinds=$(sed -n "s/^\(-., \)\?--$name\( [^ ]*\)\? .*/\2/p" "$here/options" | sort -u | wc -l)
    if [[ $kinds != 1 ]]; then not_so "--$name has one meaning: $(grep -- "--$name " "$here/options")"; fi
done < <(sed -n 's/^\(-., \)\?--\([a-z-]*\) .*/\2/p' "$here/options" | sort -u)
# What an option means is said in one text, but for its default and what it depends on the command.
texts() { sed -n "s/^\(-., \)\?--$1 \([^ ]* \)\? *//p" "$here/options" | sed 's/ (default: .*//' | sort -u; }
while read -r name; do
    case $name in
    budget-ms | counts | hosts | layout | max-bytes | memory-limit | output | rank | ranks | threads) continue ;;
    esac
    if [[ $(texts "$name" | wc -l) != 1 ]]; then not_so "--$name has one meaning: $(texts "$name")"; fi
done < <(sed -n 's/^\(-., \)\?--\([a-z-]*\) .*/\2/p' "$here/options" | sort -u)
fails 2 'unknown option --memory; did you mean --memory-limit?' "$weft" reshard a b --memory 1M
fails 2 'unknown option --memory; did you mean --buffers?' "$weft" bench coll --memory malloc
if grep -qE -- '^--(ms|n|np|nranks|nproc|procs|devices|type|source|target|src|dst|plugin|format|file) ' "$here/options"; then not_so "an old option is back"; fi
fails 2 'unknown option --n; did you mean --ranks?' "$weft" redistribute --n 4
fails 2 'unknown option --np; did you mean --ranks?' "$weft" run --np 4 true
contains ': 4' sh -c "'$weft' run -n 1 sh -c 'echo : \$WEFT_SIZE' && '$weft' run --ranks 4 sh -c 'echo : \$WEFT_SIZE'"
contains ': 3' "$weft" run -n3 sh -c 'echo : $WEFT_SIZE'
fails 2 'unknown option -np; did you mean --ranks?' "$weft" run -np 4 true
fails 2 'unknown option -x4' "$weft" run -x4 true
contains ': 2' "$weft" run --ranks=2 sh -c 'echo : $WEFT_SIZE'
json "$weft" info --backend gloo-cpu --json -- 'it["comm"] == "gloo-cpu" and it["backend_from"] == "the backend option"'
fails 1 'nosuch' "$weft" info --backend nosuch
fails 1 'nosuch' "$weft" why --backend nosuch

# ---- arguments: a command refuses the ones that it does not take ----
check=$((check + 1))
if [[ $(commands | wc -l) -lt 20 ]]; then not_so "twenty commands: $(commands)"; fi
while read -r -a command; do
    case ${command[*]} in
    run) continue ;; # its arguments are the program's
    bench) fails 2 'there is no benchmark "stray"' "$weft" bench stray && continue ;;
    caps | conform | why) words=(gloo-cpu stray) ;;
    completion) words=(bash stray) ;;
    costs) words=(cpu stray) ;;
    op) words=(mm stray) ;;
    check | model | reorder | step) words=(graph stray) ;;
    schedule) words=(zbv stray) ;;
    inspect) words=(checkpoint stray) ;;
    reshard | verify) words=(checkpoint checkpoint stray) ;;
    status) words=(1 stray) ;;
    trace) words=(file stray) ;;
    layout) words=(--mesh 2 --shape 4 --placements R stray) ;;
    plan | sim | redistribute) words=(--mesh 2 --shape 4 --from R --to R stray) ;;
    *) words=(stray) ;;
    esac
    usage=$("$weft" "${command[@]}" --help | grep '^usage: ')
    fails 2 "weft ${command[*]}: unexpected argument \"stray\"
$usage" "$weft" "${command[@]}" "${words[@]}"
done < <(commands)
fails 2 'unexpected argument "gloo-cpu"' "$weft" conform --levels gloo-cpu
fails 2 'unexpected argument ""' "$weft" version ""
fails 2 'unexpected argument "--json"' "$weft" version -- --json
fails 2 'unexpected argument "stray"' "$weft" --version stray
is "$("$weft" plan --help)" "$weft" help plan
is "$("$weft" bench coll --help)" "$weft" help bench coll
fails 2 'there is no command and no topic "nosuch"' "$weft" help nosuch

# ---- help: pages of the manual, topics, suggestions ----
root=$(dirname "$0")/../../..
while read -r -a command; do
    pages=$("$weft" "${command[@]}" --help | sed -n 's/^manual: //p')
    check=$((check + 1))
    if [[ -z $pages ]]; then not_so "the help of ${command[*]} names a page"; fi
    for page in ${pages//,/}; do
        if ! [[ -f $root/$page ]]; then not_so "the help of ${command[*]} names $page"; fi
        [[ $page == docs/cli.md ]] || continue
        heading=${command[*]}
        if ! grep -q "^## weft $heading\( \|$\)" "$root/$page"; then not_so "$page has a section about $heading"; fi
    done
done < <(commands && echo bench)
for topic in spec graph layout rules costs; do
    contains "
manual: docs/" "$weft" help "$topic"
done
contains 'TOPIC is spec, graph, layout, rules or costs.' "$weft" --help
contains 'usage: weft layout' "$weft" help layout
contains 'the layouts of all tensors of a checkpoint' "$weft" help layout
for kind in layouts rules; do
    topic=${kind/layouts/layout}
    for file in "$root/$kind"/*; do
        name=$(basename "$file")
        contains "${name%.*}" "$weft" help "$topic"
    done
done
# What a topic shows in the format is read as it says.
format() { "$weft" help "$1" | sed -n "/^$1 - /,\$p" | sed -n 's/^    //p'; }
while read -r mesh; do
    expect 0 "" "$weft" layout -n 32 --mesh "$mesh" --placements "f32[8] $(if [[ $mesh == *[x,]* ]]; then echo R,R; else echo R; fi)"
done < <(format spec | sed -n 's/^\([a-z0-9][^ ]*[0-9]\)  .*/\1/p')
while read -r placement; do
    case $placement in
    "S(0)[1]") expect 0 "" "$weft" layout --mesh 2x2 --placements "f32[48] S(0)[1],S(0)[0]" ;;
    G*) expect 0 "" "$weft" layout --mesh 4 --placements "f32[7] $placement" ;;
    *) expect 0 "" "$weft" layout --mesh 4 --placements "f32[48] $placement" ;;
    esac
done < <(format spec | sed -n 's/^\([A-Z][^ ]*\)  .*/\1/p')
format graph | grep -v '^xN\|^to P\|^out f\|^keep\|^memory\|^mixed\|^recompute\|^flops' >"$here/topic.graph"
contains 'layer_norm' "$weft" check "$here/topic.graph"
format costs >"$here/topic.costs"
contains 'by the cost table my-cluster' "$weft" plan --mesh 2 --from "f32[8] R" --to "S(0)" --costs "$here/topic.costs"
contains 'did you mean "help"?' bash -c '"$1" hlep 2>&1; true' - "$weft"
contains 'did you mean "graph"?' bash -c '"$1" help grpah 2>&1; true' - "$weft"

# ---- a whole spec is taken where placements are ----
is "$("$weft" layout --mesh 2x4 --shape 8x16 --dtype bf16 --placements 'S(0),R' --json)" \
    "$weft" layout --mesh 2x4 --placements 'bf16[8,16] S(0),R' --json
expect 1 '2 of 8 elements are lost' "$weft" lost --mesh 4 --placements 'f32[8] S(0)' --lost 1
both=(plan --mesh 2x2 --json)
same() { python3 -c 'import json, sys; it = json.load(sys.stdin); del it["plan_ns"]; print(it)'; }
is "$("$weft" "${both[@]}" --shape 8x16 --from 'S(0),R' --to 'R,S(1)' --to-dtype bf16 | same)" \
    bash -c '"$@" | python3 -c "import json, sys; it = json.load(sys.stdin); del it[\"plan_ns\"]; print(it)"' - \
    "$weft" "${both[@]}" --from 'f32[8,16] S(0),R' --to 'bf16[8,16] R,S(1)'
contains 'is right' "$weft" sim --mesh 2x2 --from 'i32[6,5] S(0),R' --to 'R,S(1)'
fails 2 '--from: "f32[8] R" is a whole spec; leave out --shape' "$weft" plan --mesh 2 --shape 8 --from 'f32[8] R' --to R
fails 2 'leave out --to-dtype' "$weft" plan --mesh 2 --from 'f32[8] R' --to 'f32[8] R' --to-dtype bf16
fails 2 '"s" is not a placement' "$weft" layout --mesh 2 --shape 8 --placements 's(0)'
fails 2 '--shape is missing; give it, or a whole spec such as "f32[8,16] S(0)"' "$weft" plan --mesh 2 --from 'S(0)' --to R

# ---- exit codes ----
expect 0 "weft" "$weft" version
expect 1 "cannot become" "$weft" plan --mesh 2 --shape 4 --from "P(min)" --to "P(max)"
expect 2 "unknown option" "$weft" plan --nonsense
fails 2 '--mesh is "2" and "4"; give one of them' "$weft" plan --mesh 2 --mesh=4 --shape 4 --from R --to R
fails 2 '--ranks is "2" and "3"' "$weft" run -n 2 -n3 true
expect 0 "" "$weft" plan --mesh 2 --mesh 2 --shape 4 --from R --to R
expect 3 "No such file" "$weft" layout --mesh 2 --shape 4 --placements R --svg "$here/none/x.svg"
expect 3 "no plugin can serve" "$weft" redistribute --mesh 2 --shape 4 --from R --to R --backend nosuch
if [[ -c /dev/full ]]; then
    expect 3 "standard output: No space left on device" sh -c "'$weft' env >/dev/full"
fi
# The limit of the size of files makes a command fail; SIGXFSZ would end it.
expect 3 "standard output: File too large" sh -c "ulimit -f 1; '$weft' env >'$here/env'"
expect 3 "rank-0.npy: File too large" bash -c "ulimit -f 0; '$weft' sim --mesh 2 --shape 4 --from R --to R --dump '$here'"

# A tensor that no machine holds: the simulation says how much it needs, before it takes anything.
expect 3 "needs 14.6 PiB of memory (source 7.3 PiB, target 7.3 PiB, between steps 0 B)" \
    "$weft" sim --mesh 2 --shape 32000000x32000000 --from R --to R
fails 3 "is free; a smaller --shape takes the same steps" \
    "$weft" sim --mesh 2x2 --shape 32000000x32000000 --from "S(0),S(0)" --to "R,R"
expect 0 "is right" "$weft" sim --mesh 2x2 --shape 32x32 --from "S(0),S(0)" --to "R,R"

# ---- interrupted ----
interrupt() {
    python3 -c '
import re, signal, subprocess, sys, time
def catches(pid):
    status = open(f"/proc/{pid}/status").read()
    return int(re.search(r"SigCgt:\s*(\w+)", status).group(1), 16) >> (signal.SIGINT - 1) & 1
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while process.poll() is None and not catches(process.pid):
    time.sleep(0.01)
process.send_signal(signal.SIGINT)
sys.exit(process.wait())' "$@"
}
expect 130 "" interrupt "$weft" sim --mesh 16 --shape 1200x1200 --from P --to R
expect 130 "" interrupt "$weft" bench coll --budget-ms 60000 --sizes 16MiB

# ---- progress: on a terminal, after a second, and nowhere else ----
on_terminal() { python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$@" </dev/null; }
long=(bench coll --op broadcast --sizes 16MiB --budget-ms 1500) # at least that long
contains $'\r\033[K0 of 1 rows' on_terminal "$weft" "${long[@]}"
big=(--mesh 2 --shape 8192x4096 --from "S(0)" --to "S(1)")
contains ' s left' on_terminal "$weft" sim "${big[@]}"
contains ' s left' on_terminal "$weft" redistribute "${big[@]}" --backend gloo-cpu
contains ' of 5 rows, about ' on_terminal "$weft" bench batch --backend gloo-cpu --budget-ms 300
# Until a line has an estimate, or a plan is searched for; what follows would take long.
estimates() {
    python3 -c '
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
try:
    while b" s left" not in said and b"searching for" not in said and (more := os.read(terminal, 4096)):
        said += more
except OSError:  # the end of a terminal
    pass
os.kill(pid, signal.SIGKILL)
sys.stdout.write(said.decode(errors="replace"))' "$@"
}
python3 -c '
import json, struct, sys
index = {str(i): {"dtype": "F32", "shape": [4, 4], "data_offsets": [64 * i, 64 * i + 64]} for i in range(300)}
text = json.dumps(index).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + bytes(64 * 300))' "$here/many.safetensors"
printf 'mesh 4\n* S(0)\n' >"$here/rows.layout"
contains ' s left' estimates "$weft" cp --mesh cp=2048 --length 1048576 --mask causal --balance head-tail --json
contains ' of 3: ' estimates "$weft" schedule 1f1b --ranks 512 --microbatches 4096 --lower --csv
contains 'searching for the plan' estimates "$weft" plan --mesh 2x2x2x2x2x2x2x2 --shape 4099x4097x513x7 \
    --from 'S(0),S(1),S(2),P,S(3),S(0),S(1),S(2)' --to 'S(2),S(0),S(1),S(0),R,S(3),S(2),S(1)' --minimize bytes
contains ' of 300, about ' estimates "$weft" inspect "$here/many.safetensors" --layout "$here/rows.layout" --mesh 1048576
WEFT_TRACE="$here/t" "$weft" redistribute --mesh 2 --shape 64 --from R --to R --iters 1000 --backend gloo-cpu >/dev/null
python3 -c '
import sys
trace = open(sys.argv[1], "rb").read()
open(sys.argv[2], "wb").write(trace * (200000000 // len(trace)))' "$here/t.0" "$here/long"
contains ' s left' estimates "$weft" trace "$here/long"
rm "$here/long"
is "" bash -c '"$@" 2>&1 >/dev/null' - "$weft" "${long[@]}"
finish
