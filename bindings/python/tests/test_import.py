"""What `import weft` loads.  Each of its processes pays for it, so that few modules of Python come with it."""

import subprocess
import sys

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
