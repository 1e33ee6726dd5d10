"""Tests in one process, and tests whose body runs as several ranks."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

import weft

TOOL = pathlib.Path(weft.__file__).parent / "bin" / "weft"


@pytest.fixture
def ranks(tmp_path):
    """Run a program as several ranks; it fails the test with the output of the rank that failed."""

    def run(count, program, timeout=120):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        done = subprocess.run(
            [TOOL, "run", "-n", str(count), "--", sys.executable, script],
            capture_output=True, text=True, timeout=timeout, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def simulated():
    """A context with four simulated ranks, closed after the test."""
    with weft.Context(simulated_ranks=4) as context:
        yield context


@pytest.fixture
def alone():
    """A context of one rank, closed after the test."""
    with weft.Context() as context:
        yield context
