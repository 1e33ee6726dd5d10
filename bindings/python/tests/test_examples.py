"""The examples in examples/python run."""

import pathlib
import subprocess
import sys

import pytest

import weft

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/python"
TOOL = pathlib.Path(weft.__file__).parent / "bin" / "weft"


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_pictures(tmp_path):
    output = run(sys.executable, EXAMPLES / "pictures.py", tmp_path)
    assert "moved: True" in output and (tmp_path / "plan.svg").read_text().startswith("<svg")


def test_trainer_and_server():
    pytest.importorskip("numpy")
    output = run(TOOL, "run", "-n", "4", "--", sys.executable, EXAMPLES / "trainer_server.py")
    assert "(64, 24) of (64, 48) after 3 steps, each element 6" in output


def test_loading(tmp_path):
    pytest.importorskip("numpy")
    output = run(TOOL, "run", "-n", "2", "--", sys.executable, EXAMPLES / "load_checkpoint.py", tmp_path)
    assert "layers.0.o_proj.weight f32[8,8] S(1), shard (8, 4)" in output and "differs in: []" in output


def test_fsdp_to_tensor_parallel():
    pytest.importorskip("torch")
    output = run(
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        EXAMPLES / "fsdp_to_tp.py")  # fmt: skip
    assert "equals FSDP; this rank has up.weight (128, 64)" in output


def test_fsdp_by_hooks():
    pytest.importorskip("torch")
    output = run(TOOL, "run", "-n", "3", "--", sys.executable, EXAMPLES / "fsdp_hooks.py")
    assert "on 3 ranks the parameters equal those of one process" in output
