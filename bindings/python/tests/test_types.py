"""A strict type checker finds mistakes, and accepts the examples of docs/python.md."""

import pathlib
import re
import sys
import textwrap

import pytest

import weft

api = pytest.importorskip("mypy.api")
np = pytest.importorskip("numpy")
PAGE = pathlib.Path(__file__).parents[3] / "docs/python.md"

MISTAKES = """
weft.init(timeot=3)
weft.plan("f32[4]", mesh, "S(0)", "R", minimise="time")
weft.plan("f32[4]", mesh, "S(0)", "R", minimize="speed")
weft.save("a", {}, overwrite=True)
weft.save_begin("a", {}, jbos=1)
weft.reshard("a", "b", dryrun=True)
ops.check("mm", [], exakt=True)
weft.FSDP(context, mesh, "dp").group([], shards="dp")
weft.redistribute([1, 2], mesh, "S(0)", "R")
weft.Schedule("gpip", 2, 2)
weft.Comm(context).all_reduce([1.0])
weft.Comm(context).all_reduce(x, op="add")
weft.Comm(context).collective("allreduce", x, x)
weft.Comm(context).support("all_reduce", "f32", "add")
weft.Tensor(context, "f32[4] R")
weft.Tensor.wrap(context, weft.spec("f32[4] R", mesh), 3)
weft.Checkpoint("x").read("a", ofset=(1,))
weft.Checkpoint("x").read_into("a", [1])
weft.Context(timeout="3")
weft.Symm(weft.Comm(context), 8).put(x, 0, op="sum")
weft.Context(simulated_ranks=2).dump_to("x")
""".strip().splitlines()

RIGHT = """
y: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = weft.redistribute(x, mesh, "S(0)", "R")
view: memoryview = weft.redistribute(b"abcd", "1", "S(0)", "R")
weft.save("a", {}, replace=True, metadata={"k": "v"}, context=context)
group = weft.FSDP(context, weft.mesh("dp=1"), "dp").group([], shard="dp")
whole = np.from_dlpack(group.parameter(0))
weft.Comm(context).all_reduce(x, op="max")
weft.Comm(context).all_reduce(memoryview(b"").cast("B"))
"""


def errors_of(folder, program):
    """Line -> the errors of the type checker."""
    path = folder / "program.py"
    path.write_text(program)
    options = ["--strict", "--no-error-summary", "--no-incremental", "--python-executable", sys.executable]
    found, problems, _ = api.run([*options, str(path)])
    assert not problems, problems
    lines = [re.match(r".*program\.py:(\d+): error: (.*)", line) for line in found.splitlines()]
    return {int(match[1]): match[2] for match in lines if match}


@pytest.fixture(autouse=True)
def package(monkeypatch):
    """mypy finds an installed package by itself, and refuses its folder as a path."""
    folder = pathlib.Path(weft.__file__).parents[1]
    if folder.name != "site-packages":
        monkeypatch.setenv("MYPYPATH", str(folder))


def test_mistakes_are_found(tmp_path):
    head = ["import numpy as np", "import weft", "from weft import ops", 'context = weft.init(); mesh = weft.mesh("2")', "x = np.ones(4, np.float32)"]
    found = errors_of(tmp_path, "\n".join([*head, *MISTAKES, RIGHT]))
    lines = range(len(head) + 1, len(head) + 1 + len(MISTAKES))
    assert [MISTAKES[line - len(head) - 1] for line in lines if line not in found] == []
    assert {line: text for line, text in found.items() if line not in lines} == {}


def test_the_examples_of_the_page_are_typed(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    blocks = [block for block in blocks if "import torch" not in block]
    given = "from weft import ops\narray = np.ones((4, 4), np.float32)\na = b = weft.Tensor(context, weft.spec('f32[4,4] R', '1'))\n"
    given += "def train_one_step() -> None: ...\n"
    others = [f"def block_{number}() -> None:\n{textwrap.indent(block, '    ')}" for number, block in enumerate(blocks[1:])]
    assert len(blocks) >= 6 and "import weft" in blocks[0]
    assert errors_of(tmp_path, blocks[0] + given + "\n".join(others)) == {}


def test_names_of_schedules_are_those_that_weft_knows():
    from weft import _schedules

    assert list(_schedules._Name.__args__) == weft.Schedule.known()
