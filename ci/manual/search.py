#!/usr/bin/env python3
"""Repair the search of a built site, and ask it questions: search.py SITE

The library of the search, lunr, takes two different sets of words for one if a word has digits: it names a set by its
characters and numbers without anything between them.  Such a search knows beginnings of words that no page has, and fails
on them.  A comma behind each number repairs it.  The questions need the package mini-racer, a JavaScript engine."""
import json
import pathlib
import re
import string
import sys

# What a reader types, and the page that answers it; one of the first three results must be it.
QUESTIONS = {
    "weft_tensor_move": "api/weft_tensor_move.html",
    "S(0)[1]": "layouts.html#placements",
    "choose a backend": "backends/choose.html",
    "which backend": "backends/choose.html",
    "WEFT_ERR_PEER": "errors.html",
    "hang": "tutorials/hang.html",
    "weft status": "cli.html#weft-status-pidjobfile",
    "share of a step": "observability.html#what-share-of-a-step-is-weft",
    "sharded parameters": "training/fsdp.html",
    "checkpoint": "checkpoints.html",
    "write a plugin": "start/plugin.html",
    "writing plugins": "writing-a-plugin.html",
}
NAMED = re.compile(r"(\w)=\1\+(\w)\+(\w)\.id\b")
REPAIRED = re.compile(r'(\w)=\1\+(\w)\+(\w)\.id\+","')
WORKER = """
var handler, answer, warnings = [], self = globalThis, location = {href: "file:///"};
var console = {log() {}, warn(...words) { warnings.push(words.join(" ")); }};
var addEventListener = (kind, call) => { handler = call; }, postMessage = message => { answer = message; };
"""


def repair(worker):
    text = worker.read_text(encoding="utf-8")
    if REPAIRED.search(text):
        return
    text, count = NAMED.subn(r'\1=\1+\2+\3.id+","', text)
    if count != 1:
        sys.exit(f"{worker.name} has {count} places where lunr names a set of words, not 1")
    worker.write_text(text, encoding="utf-8")


def answers(site, worker, questions):
    """The pages that the search of SITE finds for each question, best first, and what it complained of."""
    from py_mini_racer import MiniRacer
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    engine = MiniRacer()
    engine.eval(WORKER)
    engine.eval(worker.read_text(encoding="utf-8"))
    start = {"config": index["config"], "docs": index["docs"], "options": {"suggest": True}}
    engine.eval(f"handler({json.dumps({'data': {'type': 0, 'data': start}})})").get()
    for question in questions:
        engine.eval(f"handler({json.dumps({'data': {'type': 2, 'data': question}})})").get()
        found = json.loads(engine.eval("JSON.stringify((answer.data.items || []).map(items => items.map(one => one.location)))"))
        yield question, found, json.loads(engine.eval("JSON.stringify(warnings.splice(0))"))


def check(site, worker):
    beginnings = [*string.ascii_lowercase, *string.digits, "we", "wef", "weft", "weft run", "weft in python"]
    problems = []
    for question, found, warnings in answers(site, worker, [*QUESTIONS, *beginnings]):
        problems.extend(f"{question}: {warning}" for warning in warnings)
        wanted = QUESTIONS.get(question)
        first = [location for group in found[:3] for location in group]
        if wanted and wanted not in first:
            problems.append(f"{question}: {wanted} is not among the first results: {', '.join(first)}")
        if not found:
            problems.append(f"{question}: nothing is found")
    print("\n".join(problems))
    print(f"search: {len(QUESTIONS)} questions, {len(beginnings)} beginnings of words")
    return 1 if problems else 0


def main():
    site = pathlib.Path(sys.argv[1])
    worker, = (site / "assets/javascripts/workers").glob("search.*.min.js")
    repair(worker)
    try:
        import py_mini_racer  # noqa: F401
    except ImportError:
        print("search: repaired; asked nothing, because mini-racer is not installed")
        return 0
    return check(site, worker)


if __name__ == "__main__":
    sys.exit(main())
