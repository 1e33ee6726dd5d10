#!/usr/bin/env python3
"""Does `weft step` agree with published runs?  Usage: published.py WEFT [--page]

Each row of tests/data/published_runs.csv is a model and options, which `weft step` simulates with the table of the row.
Rows on which a table was fitted are printed and count in no mean.  Of the others of each table, the mean error is at most
5 % and each error at most 12 %, but for the rows of BEYOND, which exceed it; the rows of a source are in the published
order, but for UNORDERED; the memory of the rows that have it is within 3 %; and the source of the table states the errors
that are found.  --page prints docs/training/predicted-runs.md.
"""
import csv
import json
import pathlib
import subprocess
import sys
from types import SimpleNamespace

TABLES = ("a100-80", "h100")
MEAN, EACH, MEMORY = 5, 12, 3  # percent
# Rows that exceed EACH, and pairs in the wrong order: nothing was tuned for them.
BEYOND = {"MPT 7 B no recompute on 256", "MPT 7 B no recompute on 512"}
UNORDERED = {("MPT 7 B no recompute on 128", "MPT 7 B no recompute on 8")}
NUMBERS = ("dp", "pp", "tp", "batch", "microbatch", "chunks")
GIB = 1 << 30
DATA = pathlib.Path(__file__).parents[1] / "data"


def read_rows():
    path = DATA / "published_runs.csv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    rows = []
    for fields in csv.DictReader(lines):
        row = SimpleNamespace(**fields)
        for name in NUMBERS:
            setattr(row, name, int(fields[name]))
        row.seconds, row.gib = float(row.seconds), float(row.gib) if row.gib else None
        rows.append(row)
    return rows


def json_of(*command, text=None):
    done = subprocess.run(command, capture_output=True, text=True, input=text)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)


def simulate(weft, row):
    """Set what weft predicts for ROW."""
    model = (f"model {row.template} layers={row.layers} hidden={row.hidden} heads={row.heads} "
             f"vocabulary={row.vocabulary} sequence={row.sequence} {row.more}")
    options = row.options.split()
    if "--costs" not in options:
        options += ["--costs", row.table]
    options = [str(DATA / "a100-80-4-nics.costs") if word == "4-nics" else word for word in options]
    schedule = ["interleaved", "--chunks", str(row.chunks)] if row.chunks > 1 else ["1f1b"]
    found = json_of(weft, "step", "-", "--mesh", f"pp={row.pp},dp={row.dp},tp={row.tp}/8", "--batch", str(row.batch),
                    "--microbatch", str(row.microbatch), *options, "--json", "--schedule", *schedule, text=model)
    row.found = found["time_ns"] / 1e9
    row.found_gib = found["peak_bytes"] / GIB
    row.error = 100 * (row.found / row.seconds - 1)


def simulate_all(weft, rows):
    for row in rows:
        simulate(weft, row)


def name_of(row):
    return f"{row.source} {row.model} {row.variant} on {row.dp * row.pp * row.tp}"


def order_problems(rows):
    for i, a in enumerate(rows):
        for b in rows[:i]:
            if a.source == b.source and (a.seconds - b.seconds) * (a.found - b.found) < 0 \
                    and (name_of(a), name_of(b)) not in UNORDERED:
                yield f"{name_of(a)} and {name_of(b)} are in the wrong order"


def summary(rows):
    """Count, mean and largest error of the rows that are predicted."""
    errors = [abs(row.error) for row in rows if row.use == "check"]
    return len(errors), sum(errors) / len(errors), max(errors)


def stated(rows):
    count, mean, most = summary(rows)
    return f"{count} other runs: mean error {mean:.1f} %, at most {most:.1f} %"


def problems(table, rows, source):
    """What is wrong with ROWS of TABLE, whose source is SOURCE."""
    _, mean, _ = summary(rows)
    if mean > MEAN:
        yield f"the mean error of {table} is {mean:.2f} %, more than {MEAN}"
    for row in rows:
        if (abs(row.error) > EACH) != (name_of(row) in BEYOND):
            yield f"{name_of(row)} is off by {row.error:.1f} %; at most {EACH}, and more for those of BEYOND"
        if row.gib and abs(row.found_gib / row.gib - 1) * 100 > MEMORY:
            yield f"{row.model} holds {row.found_gib:.1f} GiB, not within {MEMORY} % of {row.gib}"
    yield from order_problems(rows)
    if stated(rows) not in source:
        yield f"the source of {table} is \"{source}\", and does not state \"{stated(rows)}\""


USES = {"scale": "rate fitted", "curve": "curve fitted", "check": ""}

PAGE = """# Predicted and published runs

[tests/published](../../tests/published/published.py) writes this page, and fails if an error exceeds the bounds below.

| table | runs | mean error | largest error | the rate was fitted on |
|-------|-----:|-----------:|--------------:|------------------------|
{tables}

The mean and the largest error leave out the runs on which something was fitted. A table has one rate, which was fitted
on one run. The curve of the rate by the size of a product was fitted on the four runs with selective recompute, and all
tables share it. No row has a separate number.

For each table the test demands a mean of at most {mean_bound} %, at most {each_bound} % for each run, the published
order of the runs of a source, and memory within {memory_bound} %. **Two of {count} runs miss it**: MPT 7 B on 256 and 512
H100 takes up to 17 % longer than predicted, and its runs on 8 and 128, which differ by 1.6 %, are predicted equal. What
they have in common is the smallest model, whose gathers and reductions are hidden in the prediction. On 512 ranks the
published step is 10 % longer than on 8, and the predicted one 2 %: communication beside compute slows both, which the
simulator does not know. Nothing was tuned for it.

The test is not blind. A first round of the runs on A100 had a mean error of 5.4 %, with the batch as the first
dimension of activations. Megatron-LM has the sequence first, so that a gather along it copies nothing. The templates do
the same since then. The runs of N4 and L3 came after that: nothing but the rate was changed for them. Nothing at all
was changed for those of B and MPT.

| source | model | variant | GPUs = dp x pp x tp | published s | predicted s | error | published GiB | predicted GiB | |
|--------|-------|---------|---------------------|------------:|------------:|------:|--------------:|--------------:|-|
{rows}

K22 is Korthikanti et al. 2022 (arXiv 2205.05198), table 5 and figure 1; SC21 is Narayanan et al., SC'21, table 1; B is
BLOOM (bigscience, `tr11-176B-ml`); N4 is Nemotron-4 340 B (arXiv 2406.11704); L3 is Llama 3 405 B (arXiv 2407.21783),
table 4; MPT is llm-foundry's benchmarks. Their configurations are in
[published_runs.csv](../../tests/data/published_runs.csv): each row is a model of `weft model` and options of
`weft step`.

**What is assumed.** The gradients of SC21 are reduced in f16. With f32 the mean error of `a100-80` would be
{wide:.1f} %, and the largest {widest:.1f} %. The loss takes one pass over the logits for its value, and one for its
gradient. N4 and L3 have 8 stages a rank. Their gradients are reduced, and their parameters gathered, beside no compute;
MPT is predicted with `--fsdp`. B has dropout here, which it did not use, and its table has a quarter of the rate
between hosts. The first and the last rank of B and L3 have a layer less, as published. Flash attention takes the operations of the causal half, at the rate of the table.

**Left out**, of runs whose configuration and time are public: MT-NLG 530 B, OPT 175 B and the Megatron-LM baseline of
MegaScale (microbatch or recompute are not published); Llama 3 with 131,072 tokens (two versions of the paper print
different ranks); MPT on A100 with 40 GB (no table); TorchTitan 8 B (it computes every second product again, which no
option says) and 70 B (its table was fitted on 8 B); runs in fp8, of experts, and on TPU.

**What this does not show.** No run has experts, context parallel or fp8. Nothing else has been compared: `h100-500w` was
fitted on one run, with a graph that is not in this tree, and the tables by rule were fitted on no run. How far their
step times are off is not known.
"""


def row_of_table(table, rows):
    count, mean, most = summary(rows)
    fitted = next(row for row in rows if row.use == "scale")
    return f"| `{table}` | {count} | {mean:.1f} % | {most:.1f} % | {name_of(fitted)} |"


def row_of_run(row):
    gib = (f"{row.gib}", f"{row.found_gib:.1f}") if row.gib else ("", "")
    ranks = f"{row.dp * row.pp * row.tp} = {row.dp}x{row.pp}x{row.tp}"
    return (f"| {row.source} | {row.model} | {row.variant} | {ranks} | {row.seconds:.2f} | {row.found:.2f} "
            f"| {row.error:+.1f} % | {gib[0]} | {gib[1]} | {USES[row.use]} |")


def page(rows, wide):
    by_table = {table: [row for row in rows if row.table == table] for table in TABLES}
    _, wide_mean, wide_most = summary([row for row in wide if row.table == "a100-80"])
    return PAGE.format(tables="\n".join(row_of_table(table, own) for table, own in by_table.items()),
                       rows="\n".join(map(row_of_run, rows)), wide=wide_mean, widest=wide_most,
                       mean_bound=MEAN, each_bound=EACH, memory_bound=MEMORY, count=len(rows))


def main():
    weft, rows = sys.argv[1], read_rows()
    simulate_all(weft, rows)
    if "--page" in sys.argv:
        wide = read_rows()
        for row in wide:
            row.options = row.options.replace("--narrow-gradients", "")
        simulate_all(weft, wide)
        print(page(rows, wide), end="")
        return 0
    for row in rows:
        print(f"{name_of(row)}: {row.found:.2f} s, published {row.seconds}, {row.error:+.1f} %")
    wrong = []
    for table in TABLES:
        own = [row for row in rows if row.table == table]
        wrong += problems(table, own, json_of(weft, "costs", table, "--json")["source"])
        print(f"{table}: {stated(own)}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
