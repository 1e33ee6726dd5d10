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
    check | reorder | step) words=(graph stray) ;;
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
fails 2 'unknown command "nosuch"' "$weft" help nosuch

# ---- exit codes ----
expect 0 "weft" "$weft" version
expect 1 "cannot become" "$weft" plan --mesh 2 --shape 4 --from "P(min)" --to "P(max)"
expect 2 "unknown option" "$weft" plan --nonsense
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
is "" bash -c '"$@" 2>&1 >/dev/null' - "$weft" "${long[@]}"
finish
