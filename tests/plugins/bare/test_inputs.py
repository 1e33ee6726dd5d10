#!/usr/bin/env python3
"""test_inputs.py WEFT CHECK BOARD SOAK - the input that a failing random test prints is a line for
tests/data/known.txt.

Runs CHECK, which is redistribute_check, on a plugin whose packed copies do nothing.  SOAK, which is
ci/soak.py, must find the input of the case in its output, and WEFT must be able to run it.
"""
import importlib.util
import os
import shlex
import subprocess
import sys


def load_soak(path):
    spec = importlib.util.spec_from_file_location("soak", path)
    soak = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(soak)
    return soak


def main():
    weft, check, board, soak = sys.argv[1:]
    environment = dict(os.environ, WEFT_TEST_SEED="1")
    failing = subprocess.run([weft, "run", "-n", "2", "--no-prefix", "--timeout", "500", check, board, "100"],
                             env=environment, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    print(failing.stdout)
    if failing.returncode == 0 or "packed and not, the bits differ" not in failing.stdout:
        sys.exit("the defect was not found")
    lines = load_soak(soak).known_lines("test", 1, 3, failing.stdout)
    inputs = [line for line in lines if line.startswith("weft redistribute -n 2 ")]
    if lines[0] != "seed test 1 3" or len(inputs) != 1:
        sys.exit(f"the lines for tests/data/known.txt are {lines}")
    sound = dict(environment, WEFT_BACKEND="gloo-cpu")
    subprocess.run([weft] + shlex.split(inputs[0])[1:], env=sound, check=True)


if __name__ == "__main__":
    main()
