"""What `import weft` loads.  Each of its processes pays for it, so that few modules of Python come with it."""

import importlib.util
import pkgutil
import subprocess
import sys

import pytest

import weft

# Those that weft or a user needs now and then, and what costs more than weft itself.
LATER = (
    "ast", "asyncio", "ctypes", "dataclasses", "importlib.metadata", "inspect", "json", "logging", "multiprocessing", "numpy",
    "pathlib", "pickle", "subprocess", "tempfile", "threading", "torch", "unittest", "weft._pictures", "weft.torch",
)  # fmt: skip

PROGRAM = """
import sys
before = set(sys.modules)
import weft
print(*sorted(set(sys.modules) - before), sep="\\n")
"""


def test_the_import_loads_no_module_that_is_needed_later():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    loaded = done.stdout.split()
    assert "weft._weft" in loaded
    assert not sorted(set(loaded) & set(LATER))


def modules():
    """All modules of the package but those that run a program, or that need a PyTorch that is not there."""
    names = ["weft", *(found.name for found in pkgutil.walk_packages(weft.__path__, "weft.", lambda name: None))]
    has_torch = importlib.util.find_spec("torch") is not None
    return [name for name in names if name != "weft.__main__" and (has_torch or not name.startswith("weft.torch"))]


@pytest.mark.parametrize("name", modules())
def test_all_that_a_module_lists_is_there(name):
    exec(f"from {name} import *", {})  # noqa: S102
