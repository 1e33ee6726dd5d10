#!/usr/bin/env python3
"""Operators of weft against what PyTorch 2.15 answers: test_ops_parity.py LIBWEFT RECORDS.jsonl.gz

For every recorded call: each of PyTorch's strategies is among weft's, weft needs no move where
PyTorch needs none, and weft's choice does not cost more.  Differences need a reason below; one that
has none fails the test.  docs/operators.md lists the reasons."""
import collections
import gzip
import json
import re
import sys

import records
import weftlib

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
    op, dtypes = record["op"], [one[1] for one in record["in"]]
    used = partials(inputs) | partials(outputs)
    whole = all(INTEGER.match(one) for one in dtypes)
    table = [
        (whole and "avg" in used, "an average of integers truncates"),
        (mixes(inputs) or mixes(outputs), "kinds of partials that do not mix"),
        (any(k.startswith("norm") for k in used), "a norm is a power sum, its reduction and a root"),
        (op in ("vector_norm", "norm") and used, "the absolute value of a partial"),
        (op in ("nan_to_num", "nansum") and used, "a NaN in one contribution"),
        (op == "view_dtype" and used, "bits of a contribution"),
        (op.startswith("fft") and used & {"max", "min"}, "complex numbers have no order"),
        (op == "view_as_real" and used & {"max", "min"}, "complex numbers have no order"),
        (op == "scaled_mm" and len(partials(inputs)) > 0, "a product of two sums"),
        (op == "fill_" and "sum" in used, "each contribution would be the value"),
        (op in ("index_copy", "scatter", "index_put") and used, "duplicates among the indices"),
        (op == "logsumexp", "the output's dimension is shifted there"),
        (op == "cast" and used & {"sum", "avg"}, "integers wrap in their own dtype"),
    ]  # fmt: skip
    for holds, reason in table:
        if holds:
            return reason
    return None


def why_no_free_way(record):
    """Why a way that was found by values is not one of weft's; None: there is no reason."""
    op = record["op"]
    table = {
        "true for the values tried": {"cast", "nan_to_num", "nansum", "vector_norm", "norm", "prod", "nll_loss",
                                      "index_add", "scatter_add", "exp"},
        "a NaN outside of the domain": {"sqrt", "log", "log1p", "log2", "rsqrt"},
        "duplicates among the indices": {"scatter", "index_copy", "index_put"},
        "parts of other sizes": {"slice"},
    }  # fmt: skip
    for reason, operators in table.items():
        if op in operators:
            return reason
    return None


def fail(record, what, detail):
    failures.append(f"{record['op']} {record['id']}: {what}: {detail}")


def note(record, reason, what, detail):
    if reason is None:
        fail(record, what, detail)
    else:
        reasons[f"{what}: {reason}"] += 1


def agrees(theirs, ours):
    return all(a is None or b is None or a == b for a, b in zip(theirs, ours))


def check_strategies(record, order, found):
    for outputs, inputs in record.get("strategies", []):
        outputs = outputs if isinstance(outputs, list) else [outputs]
        inputs = inputs if inputs is not None else outputs * len(record["in"])
        wanted = [translate(inputs[i], True) if i is not None and i < len(inputs) else None for i in order]
        results = [translate(one) for one in outputs]
        counts["strategies"] += 1
        if any(agrees(wanted, one[0]) and agrees(results, one[1]) for one in found):
            counts["strategies found"] += 1
        else:
            note(record, why_different(record, inputs, outputs), "no such strategy", (inputs, outputs))


def check_moves(weft, record, call):
    given = [one[2] for one in record["in"]]
    if record["refused"] or record.get("to") != given:
        return
    counts["without moves there"] += 1
    try:
        weft.run("weft_op_check", call)
        counts["without moves here"] += 1
    except weftlib.Refused as error:
        why = "wrong there" if record.get("e2e") in ("wrong", "crash") else why_different(record, given, [])
        if why is None and record["op"] in ("norm", "vector_norm"):
            why = "a norm is a power sum, its reduction and a root"
        note(record, why, "needs a move", str(error)[:200])


def check_cost(weft, record, call, mesh, found):
    """weft's choice costs no more than PyTorch's, if that is one of weft's strategies."""
    if record["refused"] or "to" not in record or any("P(norm" in one or "MP" in one for one in record["to"]):
        return
    targets = [translate(one) for one in record["to"]]
    if not any(agrees(targets, one[0]) for one in found):
        return
    try:
        theirs = sum(weft.move_cost(weft.spec(mesh, shape, dtype, translate(source)), weft.spec(mesh, shape, dtype, to))
                     for (shape, dtype, source), to in zip(record["in"], targets))  # fmt: skip
    except weftlib.Refused:
        reasons["no cost: a partial becomes one of another kind, in two plans"] += 1
        return
    try:
        ours = weft.run("weft_op_propose", call)
    except weftlib.Refused as error:
        fail(record, "no proposal", str(error)[:200])
        return
    counts["costs"] += 1
    if ours[4] > theirs:
        fail(record, "costs more", (ours, theirs, targets))


def check_free(weft, record, call):
    if "free" not in record:
        return
    counts["free there"] += 1
    try:
        weft.run("weft_op_check", call)
        counts["free here"] += 1
    except weftlib.Refused as error:
        note(record, why_no_free_way(record), "not free", str(error)[:200])


def check_record(weft, record):
    reason = records.why_not(record)
    if reason is not None:
        reasons[f"not one operator: {reason}"] += 1
        return
    mesh, name = weft.mesh(record["mesh"]), records.name_of(record)
    outputs = records.outputs_of(record, name)
    try:
        specs = [weft.spec(mesh, shape, dtype, translate(text)) for shape, dtype, text in record["in"]]
    except weftlib.Refused:
        reasons["no such layout: " + ("mixed partials" if mixes([one[2] for one in record["in"]]) else "norms")] += 1
        return
    order = records.inputs_of(record)
    call = weftlib.call_of(name, mesh, [specs[i] if i is not None else None for i in order],
                           records.attrs_of(record, record.get("out_meta") or []), outputs)  # fmt: skip
    counts["calls"] += 1
    try:
        found = weft.strategies(call)
    except weftlib.Refused as error:
        if record["refused"]:
            counts["refused by both"] += 1
        else:
            fail(record, "refused", str(error)[:200])
        return
    check_strategies(record, order, found)
    check_moves(weft, record, call)
    check_cost(weft, record, call, mesh, found)
    check_free(weft, record, call)


def main():
    weft = weftlib.Weft(sys.argv[1])
    with gzip.open(sys.argv[2], "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if len(sys.argv) > 3 and record["op"] not in sys.argv[3:]:
                continue
            check_record(weft, record)
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
