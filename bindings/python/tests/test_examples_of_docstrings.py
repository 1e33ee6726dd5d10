"""The examples in docstrings run."""

import doctest
import importlib
import importlib.util
import inspect
import pathlib

import pytest

import weft

ROOT = pathlib.Path(weft.__file__).parent
NAMES = [
    ".".join(("weft", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8") and ("torch" not in path.parts or importlib.util.find_spec("torch"))
]


def examples():
    """The examples of the modules, and of their classes and functions.  `__module__` of these may be `weft`."""
    seen = set()
    for name in NAMES:
        module = importlib.import_module(name)
        yield from doctest.DocTestFinder(recurse=False).find(module, name, module=False)
        for thing in vars(module).values():
            own = inspect.isclass(thing) or inspect.isfunction(thing)
            if own and thing.__module__.startswith("weft") and id(thing) not in seen:
                seen.add(id(thing))
                yield from doctest.DocTestFinder().find(thing, thing.__name__, module=False, globs=dict(vars(module)))


EXAMPLES = [test for test in examples() if test.examples]


def test_some_modules_have_examples():
    assert {"weft", "weft.ops", "weft._layouts"} <= set(NAMES) and len(EXAMPLES) > 20


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda test: test.name)
def test_docstrings(test):
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.tries > 0 and runner.failures == 0
