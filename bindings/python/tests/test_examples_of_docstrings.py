"""The examples in docstrings run."""

import doctest
import importlib
import pathlib

import pytest

import weft

ROOT = pathlib.Path(weft.__file__).parent
NAMES = [
    ".".join(("weft", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


def test_some_modules_have_examples():
    assert {"weft", "weft.ops", "weft._layouts"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_docstrings(name):
    if "torch" in name:
        pytest.importorskip("torch")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
