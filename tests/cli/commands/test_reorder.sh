#!/usr/bin/env bash
# `weft reorder`: compute hides communication.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
example=$(dirname "$0")/../../../examples/graphs/gathers.graph
graph=$(mktemp)
trap 'rm -f "$graph"' EXIT
reorder() { "$weft" reorder "$@"; }
write() { printf '%s\n' "$@" >"$graph"; }

# Gathers of later layers are hidden; the first gather and the last reduction cannot be.
json reorder "$example" --json -- 'it["pass"] == "iterative" and it["peak_after"] == it["peak_before"]' \
    'it["exposed_after_ns"] < it["exposed_before_ns"] / 2 and it["time_after_ns"] < it["time_before_ns"]' \
    '[one["comm"] for one in it["collectives"]] == ["dp"] * 6 and it["collectives"][0]["line"] == 11' \
    'it["collectives"][1]["exposed_before_ns"] > 0 and it["collectives"][1]["exposed_after_ns"] == 0' \
    'it["collectives"][1]["moves_up"] > 0 and it["collectives"][1]["limit_up"] == "hidden"' \
    'sorted(it["order"]) == it["order"][:4] + sorted(it["order"][4:]) and len(it["order"]) == 25'
for pass in raise sink list; do
    json reorder "$example" --pass $pass --memory-limit 1G --json -- "it['pass'] == '$pass'" 'it["time_after_ns"] <= it["time_before_ns"]'
done
contains 'ended by: memory' reorder "$example"
# A limit below the given order, and a pass without a limit, are said.
contains 'note: the order needs 160.0 MiB, more than --memory-limit 1.0 MiB; the given order needs more than that too' \
    reorder "$example" --memory-limit 1M
contains 'more than --memory-limit 162.0 MiB; this pass does not limit memory' reorder "$example" --pass raise --memory-limit 162M
json reorder "$example" --memory-limit 1M --json -- 'it["memory_limit"] == 1 << 20'
json reorder "$example" --json -- 'it["memory_limit"] is None'
lacks 'note:' reorder "$example"
contains 'note: no line has `start`' reorder "$(dirname "$example")/llama-8b.graph"
is "$(reorder "$example")" bash -c "'$weft' reorder - <'$example'"
# The same graph can be checked.
expect 0 'wait(g1)' "$weft" check --strict "$example"

# Times, sizes, communicators and freed tensors that clauses give.
write 'mesh tp=2' 'input x f32[8] S(0) ; alloc 1K' 'a = relu(x) ; time 1.5us ; alloc 2K ; free x' \
    'b = relu(a) ; time 2 ms ; comm ring' 'output b'
json reorder "$graph" --json -- 'it["time_before_ns"] == 1500 + 2000000 and it["exposed_before_ns"] == 2000000' \
    'it["peak_before"] == 3 * 1024 and it["collectives"] == []'
# Of a line that computes and moves its inputs or its result, the moves alone are exposed, in every order.
for line in 'y = relu(x) ; to R' 'y = mm(x, x)'; do
    write 'mesh tp=2' 'input x f32[8,8] S(0)' 'input z f32[8,8] S(0)' "$line" 'h = start(z) ; to R ; time 1us' 'v = wait(h)' 'output v'
    moves=$(reorder "$graph" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["exposed_before_ns"])')
    ((moves > 1000)) || not_so "$line communicates"
    write 'mesh tp=2' 'input x f32[8,8] S(0)' 'input z f32[8,8] S(0)' "$line ; time 1ms" 'h = start(z) ; to R ; time 1us' 'v = wait(h)' 'output v'
    for pass in iterative raise sink list; do
        json reorder "$graph" --pass $pass --json -- "it['exposed_before_ns'] == it['exposed_after_ns'] == $moves" \
            "it['time_before_ns'] == it['time_after_ns'] == $moves + 1000000"
    done
done
# A send that the text marks as communication is not passed by a start.
write 'mesh tp=2' 'input x f32[8] S(0)' 'a = relu(x) ; time 1ms' 's = relu(a) ; comm ring ; time 1us' \
    'h = start(x) ; to R ; time 1ms' 'y = wait(h)' 'output y' 'output s'
json reorder "$graph" --json -- 'it["order"].index(4) < it["order"].index(5)' \
    'it["collectives"][0]["limit_up"] == "synchronous communication"'
# A start with a guard stays behind it.
write 'mesh tp=2' 'input x f32[8] S(0)' 'input v f32[8] S(0)' 'a = relu(v) ; time 1ms' 'h = start(x, a) ; to R ; time 1ms' \
    'y = wait(h)' 'output y'
json reorder "$graph" --json -- 'it["order"].index(4) < it["order"].index(5)' 'it["collectives"][0]["limit_up"] != "hidden"'

write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R' 'y = relu(h)'
fails 1 'graph line 4: h is started, and not waited for yet' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'y = wait(x)'
fails 1 'graph line 3: x is not the result of a start' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'y = start(x)'
fails 1 'graph line 3: a start is written h = start(x) ; to S(0)' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R'
fails 1 'graph line 3: no line waits for h' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R' 'y = wait(h)' 'z = wait(h)'
fails 1 'graph line 5: line 4 waits for h already' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to R' 'y = wait(h) ; free h'
fails 1 'graph line 4: h is started; free the result of its wait' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'a = relu(x)' 'b = relu(x) ; free x' 'c = add(a, b) ; free a, b' 'output c'
json reorder "$graph" --pass list --json -- 'it["order"].index(3) < it["order"].index(4) < it["order"].index(5)'
write 'mesh tp=2' 'input x f32[8] S(0)' 'h = start(x) ; to S(0)' 'y = wait(h)'
fails 1 'graph line 3: the start moves nothing' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'a = relu(x) ; free x' 'b = relu(x)'
fails 1 'line 3 frees x' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'a = relu(x) ; time 5 weeks'
fails 1 'expected a time below 1000 s' reorder "$graph"
write 'mesh tp=2' 'input x f32[8] S(0)' 'a = relu(x) ; alloc much'
fails 1 'expected a size' reorder "$graph"
fails 2 'give a file with a graph' reorder
fails 2 '--pass is iterative, raise, sink or list, not up' reorder "$graph" --pass up
fails 1 'no line gives the mesh' reorder /dev/null
finish
