#!/usr/bin/env bash
# WEFT_METRICS: files that a parser of the text format accepts, and folders that cannot be used.
source "$(dirname "$0")/../../support/lib.sh"
weft=$1
rank=$2
export WEFT_BACKEND=gloo-cpu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/metrics"
run() { "$weft" run -n 4 "$rank" behind "$folder"; }

touch "$folder/end"
WEFT_METRICS=$folder/metrics is '' run
check=$((check + 1))
python3 - "$folder/metrics" <<'PYTHON' || not_so "metrics are right"
import pathlib, re, sys
LINE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\} ([-+0-9.e]+|\+Inf)')
series = {}
files = sorted(pathlib.Path(sys.argv[1]).iterdir())
assert [re.fullmatch(r"weft\.[0-9a-f]{16}\.(\d)\.prom", f.name)[1] for f in files] == list("0123"), files
for file in files:
    types, closed, current = {}, set(), None
    text = file.read_text()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split()
            assert current not in types, line
            types[current] = kind
            continue
        match = LINE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        base = re.sub("_(bucket|sum|count)$", "", name) if types[current] == "histogram" else name
        assert base == current, line  # the lines of a metric stand together
        key = (name, labels)
        assert key not in series, key  # no two ranks have the same labels
        series[key] = float(value)
        if types[current] == "counter":
            assert name.endswith("_total") and float(value) >= 0
def find(name, **labels):
    return [value for (n, text), value in series.items() if n == name and
            all(f'{k}="{v}"' in text.split(",") for k, v in labels.items())]
for rank in range(4):
    one = dict(rank=rank, comm="world", op="all-reduce")
    assert find("weft_operations_total", **one) == [4], series
    assert find("weft_bytes_total", direction="sent", **one) == [4 << 20]
    buckets = find("weft_operation_seconds_bucket", size=1 << 20, **one)
    assert len(buckets) == 26 and buckets == sorted(buckets) and buckets[-1] == 4
    assert find("weft_operation_seconds_count", size=1 << 20, **one) == [4]
    assert find("weft_operation_seconds_sum", size=1 << 20, **one)[0] > 0
    assert find("weft_inflight_operations", rank=rank) == [0]
PYTHON

# A folder that does not exist: one warning of each rank, and the job goes on.
check=$((check + 1))
lines=$(WEFT_METRICS=$folder/missing run 2>&1) || not_so "the job ended with $?"
[[ $(grep -c "WEFT_METRICS: the folder $folder/missing cannot be opened: No such file" <<<"$lines") == 4 ]] ||
    not_so "one warning of each rank: $lines"
finish
