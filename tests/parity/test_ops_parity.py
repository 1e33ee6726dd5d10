#!/usr/bin/env python3
"""Operators of weft against what PyTorch answers: test_ops_parity.py [--old] WEFT RECORDS.jsonl.gz

`weft op --records` answers every recorded call.  Each of PyTorch's strategies is among weft's, weft
needs no move where PyTorch needs none, weft's choice does not cost more, and outputs have the same
shapes.  Differences need a reason below; one that has none fails the test.  docs/operators.md lists
the reasons.  --old: the records are those of PyTorch 2.11, which has defects that 2.15 has not."""
import collections
import gzip
import json
import re
import subprocess
import sys

INTEGER = re.compile(r"[iu]\d|bool")
counts = collections.Counter()
reasons = collections.Counter()
failures = []


def translate(text, is_input=False):
    """PyTorch's placements as weft writes them.  A masked partial is P(sum); the index beside it is R."""
    if text is None:
        return None
    return re.sub(r"MP\(sum,\d+\)", "R" if is_input else "P(sum)", text.replace("product", "prod"))


def partials(texts):
    return {kind for text in texts if text for kind in re.findall(r"P\((\w+)", text)}


def mixes(texts):
    """True if a tensor has partials of kinds that do not mix."""
    for text in texts:
        kinds = set(re.findall(r"P\((\w+)", text or ""))
        if len(kinds) > 1 and kinds != {"sum", "avg"}:
            return True
    return False


def why_different(record, inputs, outputs):
    """Why a strategy of PyTorch is not among weft's; None: there is no reason."""
    op, dtypes = record["op"].removeprefix("foreach_"), [one[1] for one in record["in"]]
    used = partials(inputs) | partials(outputs)
    whole = all(INTEGER.match(one) for one in dtypes)
    table = [
        (whole and "avg" in used, "an average of integers truncates"),
        (mixes(inputs) or mixes(outputs), "kinds of partials that do not mix"),
        (any(k.startswith("norm") for k in used), "a norm is a power sum, its reduction and a root"),
        (op in ("vector_norm", "norm") and used, "the absolute value of a partial"),
        (op in ("nan_to_num", "nansum") and used, "a NaN in one contribution"),
        (op == "mse_loss_backward" and any("S(" in (one or "") for one in inputs), "each part divides by its own count"),
        (op == "view_dtype" and used, "bits of a contribution"),
        (op.startswith("fft") and used & {"max", "min"}, "complex numbers have no order"),
        (op == "view_as_real" and used & {"max", "min"}, "complex numbers have no order"),
        (op == "scaled_mm" and len(partials(inputs)) > 0, "a product of two sums"),
        (op == "fill_" and "sum" in used, "each contribution would be the value"),
        (op in ("index_copy", "scatter", "index_put") and used, "duplicates among the indices"),
        (op == "item", "a contribution is not the number"),
        (op == "logsumexp", "the output's dimension is shifted there"),
        (op == "cast" and used & {"sum", "avg"}, "integers wrap in their own dtype"),
    ]  # fmt: skip
    for holds, reason in table:
        if holds:
            return reason
    return None


# Defects of PyTorch 2.11, by the operator and what differs.
STRATEGY, MOVE, ANSWER = "no such strategy", "needs a move", "not answered"
OLD = [
    ({"layer_norm_backward", "rms_norm_backward"}, {STRATEGY, MOVE}, "mean, rstd, weight and bias are not moved there"),
    ({"conv1d", "conv2d", "conv2d_backward"}, {MOVE}, "moves are ignored there"),
    ({"argmax", "argmin", "max_dim", "min_dim"}, {STRATEGY, MOVE}, "an index is not the maximum of indices"),
    ({"all", "any", "equal"}, {STRATEGY}, "truth values are P(min) and P(max) here"),
    ({"index", "index_select", "index_put", "index_add"}, {STRATEGY, MOVE}, "indices in parts lose a partial there"),
    ({"nll_loss", "nll_loss2d"}, {STRATEGY, MOVE}, "a mean of parts divides by local counts"),
    ({"constant_pad_nd"}, {STRATEGY}, "a number counts as a tensor there"),
    ({"cast"}, {STRATEGY, MOVE}, "the truth value of a minimum"),
    ({"view_as_complex"}, {STRATEGY, MOVE}, "complex numbers have no order"),
    ({"cumsum"}, {STRATEGY}, "a scan along a part"),
    ({"new_zeros", "new_ones"}, {STRATEGY}, "a constant that is made is not partial here"),
    ({"add"}, {"costs more"}, "a part becomes a contribution for nothing there"),
]  # fmt: skip
old = "--old" in sys.argv


def why_old(record, what):
    """Why an answer of PyTorch 2.11 differs; None: there is no reason."""
    if not old:
        return None
    if record["op"].endswith("_") and what in (STRATEGY, ANSWER):
        return "memory that is written in place is never moved"
    for operators, kinds, reason in OLD:
        if record["op"] in operators and what in kinds:
            return reason
    return None


def why_no_free_way(record):
    """Why a way that was found by values is not one of weft's; None: there is no reason."""
    op, params = record["op"], record.get("params") or {}
    table = [
        (op == "vector_norm" and params.get("ord") == 0, "a count of numbers that are not 0; none that was tried is"),
        (op == "cast" and params.get("dtype") == "bool", "a number that is not 0 is true; none that was tried is 0"),
        (op in ("nan_to_num", "nansum"), "a NaN in one contribution"),
        (op in ("sqrt", "log", "log1p", "log2", "rsqrt"), "a contribution outside of the domain is a NaN"),
        (op in ("scatter", "index_copy", "index_put", "index_add"), "duplicates among the indices"),
        (op == "prod", "a product is not monotone in its factors; it rounds to 0 or keeps its sign here"),
        (op == "exp", "the exponential of a contribution overflows"),
        (op == "nll_loss" and params.get("reduction") == "mean", "a mean of parts divides by local counts"),
        (op == "nll_loss", "weights may be negative"),
        (op == "slice", "the parts of a slice with a step need not be those of a split"),
    ]  # fmt: skip
    return next((reason for holds, reason in table if holds), None)


def fail(record, what, detail):
    failures.append(f"{record['op']} {record['id']}: {what}: {detail}")


def note(record, reason, what, detail):
    reason = reason or why_old(record, what)
    if reason is None:
        fail(record, what, detail)
    else:
        reasons[f"{what}: {reason}"] += 1


def agrees(theirs, ours):
    return all(a is None or b is None or a == b for a, b in zip(theirs, ours))


def check_strategies(record, recorded, found):
    for outputs, inputs in recorded:
        outputs = outputs if isinstance(outputs, list) else [outputs]
        inputs = inputs if inputs is not None else outputs * len(record["in"])
        wanted = [translate(one, True) for one in inputs]
        results = [translate(one) for one in outputs]
        counts["strategies"] += 1
        if any(agrees(wanted, one[0]) and agrees(results, one[1]) for one in found):
            counts["strategies found"] += 1
        else:
            note(record, why_different(record, inputs, outputs), "no such strategy", (inputs, outputs))


def check_moves(record, answer):
    given = [one[2] for one in record["in"]]
    if record["refused"] or record.get("to") != given:
        return
    counts["without moves there"] += 1
    if not answer["chosen"]["communicates"]:
        counts["without moves here"] += 1
        return
    why = "wrong there" if record.get("e2e") in ("wrong", "crash") else why_different(record, given, [])
    if why is None and record["op"] in ("norm", "vector_norm"):
        why = "a norm is a power sum, its reduction and a root"
    note(record, why, "needs a move", answer["chosen"]["moves"])


def check_cost(record, answer, found):
    """weft's choice costs no more than PyTorch's, if that is one of weft's strategies."""
    if record["refused"] or "to" not in record or any("P(norm" in one or "MP" in one for one in record["to"]):
        return
    targets = [translate(one) for one in record["to"]]
    costs = [one[2] for one in found if agrees(targets, one[0])]
    if not costs:
        return
    if costs[0] is None:
        reasons["no cost: a partial becomes one of another kind, in two plans"] += 1
        return
    counts["costs"] += 1
    if answer["chosen"]["cost_ns"] > costs[0]:
        note(record, None, "costs more", (answer["chosen"], costs[0], targets))


def check_free(record, answer):
    if "free" not in record:
        return
    counts["free there"] += 1
    if not answer["chosen"]["communicates"]:
        counts["free here"] += 1
        return
    note(record, why_no_free_way(record), "not free", answer["chosen"]["moves"])


def check_shapes(record, answer):
    """Outputs that both have are of the same shape; PyTorch returns the state of random numbers too."""
    ours = [one and json.loads(one[one.index("[") : one.index("]") + 1]) for one in answer["chosen"]["outputs"]]
    for index, (theirs, shape) in enumerate(zip(record.get("out_meta") or [], ours)):
        if theirs is None or (record["op"].startswith("sdpa") and index > 0):
            continue
        counts["shapes"] += 1
        if theirs[0] != shape:
            fail(record, "another shape", (index, theirs, shape))


def placements(specs):
    return [one and one.split("] ", 1)[1] for one in specs]


def strategies(listed):
    return [(placements(one["inputs"]), placements(one["outputs"]), one["cost_ns"]) for one in listed]


def why_not(record, error):
    """Why weft answers the record with an error; None: there is no reason."""
    op, given = record["op"].removeprefix("foreach_"), [one[2] for one in record["in"]]
    kinds = partials(given)
    table = [
        (record["refused"], "refused by both"),
        (record["aten"] == "composite" or op == "sdpa_math", "several operators"),
        (mixes(given), "no such layout: mixed partials"),
        (any("P(norm" in one for one in given), "no such layout: norms"),
        (op in ("index_bool", "nonzero"), "the size of the output depends on data"),
        (op == "bce_with_logits" and len(given) > 2, "a weighted loss"),
        ((op.startswith("fft") or op == "view_as_real") and kinds & {"max", "min"}, "complex numbers have no order"),
        (op == "fill_" and "sum" in kinds, "each contribution would be the value"),
        (op.startswith("fused_"), "the state of an optimizer is never moved"),
        (op in ("add_", "copy_") and len(kinds) > 1, "a partial becomes one of another kind, in two plans"),
    ]  # fmt: skip
    for holds, reason in table:
        if holds:
            return reason
    return None


def check_record(record, answer):
    if answer["id"] != record["id"]:
        fail(record, "another id", answer["id"])
    if "error" in answer:
        reason = why_not(record, answer["error"])
        note(record, reason, "not answered", answer["error"][:200])
        return
    counts["calls"] += 1
    check_shapes(record, answer)
    if record["aten"] == "composite":  # its strategies are those of its parts
        check_free(record, answer)
        return
    if record["op"] == "searchsorted":  # the rule has its tensors in another order
        return
    for recorded, listed in zip(record.get("lists", []), answer.get("strategies_list", [])):
        check_strategies(record, recorded, strategies(listed))
    found = strategies(answer["strategies"])
    order = [i for i, one in enumerate(answer["chosen"]["inputs"]) if one is not None]
    if "lists" not in record:
        found = [([one[0][i] for i in order], one[1], one[2]) for one in found]
        check_strategies(record, record.get("strategies", []), found)
    check_moves(record, answer)
    check_cost(record, answer, found)
    check_free(record, answer)


def main():
    tool, path, *only = [one for one in sys.argv[1:] if one != "--old"]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    if only:
        lines = [line for line in lines if json.loads(line)["op"] in only]
    command = [tool, "op", "--costs", "dtensor", "--records", "-"]
    done = subprocess.run(command, input="".join(lines), stdout=subprocess.PIPE, text=True, check=True)
    answers = done.stdout.splitlines()
    if len(answers) != len(lines):
        failures.append(f"{len(answers)} answers to {len(lines)} records")
    for line, answer in zip(lines, answers):
        check_record(json.loads(line), json.loads(answer))
    for key, count in sorted(counts.items()):
        print(f"{count:7} {key}")
    print("Differences with a reason:")
    for key, count in sorted(reasons.items()):
        print(f"{count:7} {key}")
    print(f"{len(failures)} differences without one")
    for text in failures[:50]:
        print("  ", text)
    sys.exit(1 if failures else 0)


main()
