#!/usr/bin/env bash
# `weft schedule`: the order of work in a pipeline.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
file=$(mktemp --suffix=.csv)
trap 'rm -f "$file" "$file.waits.csv"' EXIT
schedule() { "$weft" schedule "$@"; }
write() { printf '%s\n' "$@" >"$file"; }

is '1f1b: 2 ranks, 2 stages, 3 microbatches, 12 actions
time 12, idle 25.0 %, at most 2 activations on a rank (F, I and W take 1, B takes 2)
rank 0    0F0 0F1 .   .   0B0 -   0F2 0B1 -   .   0B2 -' bash -c "'$weft' schedule 1f1b -n 2 --microbatches 3 | head -3"
json schedule zbv --ranks 4 --microbatches 16 --json -- 'it["makespan"] == 99 and it["peak"] == 8 and it["ranks"] == 4' \
    'it["schedule"] == "zbv" and it["stages"] == 8 and it["microbatches"] == 16 and it["busy"] == 4 * 96' \
    'abs(it["idle_share"] - 3 / 99) < 1e-9 and it["stage_ranks"] == [0, 1, 2, 3, 3, 2, 1, 0] and not it["lowered"]' \
    'len(it["timeline"]) == 4 and sum(len(one["actions"]) for one in it["timeline"]) == it["actions"]' \
    'it["timeline"][1]["actions"][0] == {"action": "1F0", "begin": 1, "end": 2}'
json schedule dualpipev --lower --reduce --json -- 'it["lowered"]' \
    'any(one.get("with_next") for one in it["timeline"][0]["actions"])' \
    'it["timeline"][3]["actions"][-1]["action"].endswith("REDUCE_GRAD")'
is '0F0,0SEND_F0,0RECV_B0,0B0
1RECV_F0,1F0,1B0,1SEND_B0' schedule gpipe -n 2 --microbatches 1 --lower --csv
is '0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0
1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0' schedule gpipe -n 2 --microbatches 1 --lower --csv --waits
fails 2 '--waits is for --csv' schedule gpipe --waits
fails 1 '--waits is for a schedule with sends; --lower adds them' schedule gpipe --csv --waits
contains 'Sends, receives and collectives are not drawn; --csv lists them.' schedule gpipe --lower
lacks 'are not drawn' schedule gpipe
# What is printed can be read, and gives the same.
for name in gpipe 1f1b interleaved looped-bfs zb1p zbv dualpipev; do
    schedule $name --csv --sharded --late-receives >"$file" || not_so "$name"
    is "$(cat "$file")" schedule "$file" --csv
    schedule $name --csv --waits --sharded --late-receives >"$file.waits.csv" || not_so "$name --waits"
    is "$(cat "$file")" schedule "$file.waits.csv" --csv
done
contains '<title>0F0: 0 to 1</title>' schedule zbv --svg -
contains 'class="idle"' schedule zbv --svg -
schedule zbv --svg "$file" || not_so '--svg FILE'
is '' python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$file"
contains 'too large for text' schedule gpipe -n 64 --microbatches 1024

write '0F0,0B0,0F1,0B1' '1F0,1F1,1B0,1B1'
fails 1 'rank 0, action 2 (0B0): it waits for 1B0 of rank 1, which waits for 0F1 of rank 0' schedule "$file"
fails 1 'the rank would hold 8, and its memory limit is 7' schedule gpipe --limit 7
fails 2 'did you mean zbv?' schedule zvb
fails 2 'dualpipev on 4 ranks needs at least 8 microbatches, not 4' schedule dualpipev --microbatches 4
fails 2 'give the name of a schedule, such as 1f1b, or a CSV file' schedule
write '0F0,0B0' '1F0,1B0'
is "$(schedule "$file" --csv)" bash -c "'$weft' schedule - --csv <'$file'"
for option in --ranks --chunks --microbatches; do
    fails 2 "$option is for a schedule by name" schedule "$file" $option 2
done
fails 1 'the text has no actions' schedule - </dev/null
fails 2 'give only one of' schedule zbv --json --csv
fails 2 '--ranks' schedule zbv --ranks 0
fails 3 'No such file' schedule /nonexistent/x.csv
json "$weft" bench schedule --budget-ms 1 --json -- 'len(it["rows"]) == 12' \
    'all(row["median_ns"] > 0 and row["limit_ns"] in (5 * 10**8, 2 * 10**8) for row in it["rows"])'
contains 'zbv, the same' "$weft" bench schedule --budget-ms 1
finish
