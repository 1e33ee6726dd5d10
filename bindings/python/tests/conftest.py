"""Tests in one process, and tests whose body runs as several ranks."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import weft

os.environ.setdefault("WEFT_BACKEND", "gloo-cpu")  # also on a machine with a device
TOOL = pathlib.Path(weft.__file__).parent / "bin" / "weft"


@pytest.fixture
def ranks(tmp_path):
    """Run a program as several ranks; it fails the test with the output of the rank that failed."""

    def run(count, program, timeout=120, **variables):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        done = subprocess.run(
            [TOOL, "run", "-n", str(count), "--", sys.executable, script], env={**os.environ, **variables},
            capture_output=True, text=True, timeout=timeout, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def device():
    """The variables of a process that uses a simulated CUDA device, whose memory is the heap."""
    folder = pathlib.Path(os.environ.get("WEFT_STANDIN", pathlib.Path(weft.__file__).parents[2] / "tests/plugins/standin"))
    files = {"WEFT_CUDA_LIB": folder / "nvidia/libcuda.so.1", "WEFT_NCCL_LIB": folder / "nvidia/libnccl.so.2"}
    if not all(path.exists() for path in files.values()):
        pytest.skip(f"no simulated device is built in {folder}")
    image = pathlib.Path(__file__).parents[3] / "plugins/kernels/weft_kernels.cu"
    variables = {name: str(path) for name, path in files.items()}
    return {**variables, "WEFT_NCCL_KERNELS": str(image), "WEFT_BACKEND": "nccl", "WEFT_LOG": "error"}


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
