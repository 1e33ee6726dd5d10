# env: every knob, its value, and where that comes from.
source "$(dirname "$0")/../../support/lib.sh"
tool=$1
weft() { "$tool" "$@"; }

expect 0 "WEFT_BACKEND=auto  (default)" weft env
WEFT_TIMEOUT=2.5 expect 0 "WEFT_TIMEOUT=2.5  (environment)" weft env
WEFT_TIMEOUT=soon expect 1 "WEFT_TIMEOUT is \"soon\"; expected seconds" weft env
WEFT_TIMEOUT= expect 0 "WEFT_TIMEOUT=300  (default)" weft env
WEFT_BAKEND=x expect 0 "weft does not know WEFT_BAKEND; did you mean WEFT_BACKEND?" weft env
# commands without a job warn, too
for command in "plan --from R --to S(0)" "sim --from R --to S(0)" "layout --placements S(0)"; do
    read -ra words <<<"$command --mesh 2 --shape 8"
    WEFT_BAKEND=x expect 0 "weft ${words[0]}: warning: weft does not know WEFT_BAKEND; did you mean WEFT_BACKEND?" \
        weft "${words[@]}"
    WEFT_BAKEND=x WEFT_LOG=error lacks "WEFT_BAKEND" weft "${words[@]}"
    WEFT_BACKEND=x lacks "does not know" weft "${words[@]}"
done
WEFT_COSTZ=x expect 1 "weft status: warning: weft does not know WEFT_COSTZ; did you mean WEFT_COSTS?" weft status 1
expect 0 "| \`WEFT_BACKEND\` | text |" weft env --markdown
json weft env --json -- 'it["knobs"][0]["name"] == "WEFT_BACKEND"' \
    'sorted(it) == ["knobs", "unknown"]' \
    'sorted(it["knobs"][0]) == ["default", "help", "name", "planning", "problem", "source", "type",
        "value"]'
WEFT_TIMEOUT=soon WEFT_BAKEND=x WEFT_BACKEND=$'a"b\nc' json weft env --json -- \
    '[k["name"] for k in it["knobs"] if k["problem"]] == ["WEFT_TIMEOUT"]' \
    'it["unknown"] == [{"name": "WEFT_BAKEND", "nearest": "WEFT_BACKEND"}]' \
    'it["knobs"][0]["value"] == "a\"b\nc"'
WEFT_CPU_HEAP=-1 expect 1 "WEFT_CPU_HEAP is \"-1\"; expected a number of bytes" weft env
# a bad value stops every command that needs it
WEFT_GLOO_STAGE=zz expect 1 "WEFT_GLOO_STAGE is \"zz\"; expected a number of bytes" \
    weft redistribute --mesh 2 --shape 8 --from R --to "S(0)"
WEFT_CPU_LEVEL=bogus WEFT_BACKEND=gloo-cpu expect 1 \
    "WEFT_CPU_LEVEL is \"bogus\"; expected sse2, avx2, avx512, neon or neon-bf16" \
    weft redistribute --mesh 2 --shape 8 --from R --to "S(0)"
WEFT_TIMEOUT=soon expect 1 "WEFT_TIMEOUT is \"soon\"" weft info
expect 0 "example:" weft env --help
expect 2 "did you mean --json?" weft env --jsn
finish
