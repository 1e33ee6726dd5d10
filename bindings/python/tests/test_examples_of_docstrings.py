"""The examples in docstrings run."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["weft", "weft._weft", "weft.ops", "weft.torch._dtensor"])
def test_docstrings(name):
    if "torch" in name:
        pytest.importorskip("torch")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
