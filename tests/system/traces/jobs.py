"""Runs the program of the tests, with a trace in a folder of its own."""
import os
import subprocess
import sys
import tempfile

weft, rank_program = sys.argv[1:3]
has_gloo = os.path.exists(os.path.join(os.path.dirname(weft), "../lib/weft/libweft_gloo.so"))
folder = tempfile.mkdtemp(prefix="weft-trace-")
base = {k: v for k, v in os.environ.items()
        if not k.startswith("WEFT_") or k.startswith("WEFT_TEST_")}
# ThreadSanitizer leaves little address space for the shared heap.
base.update(WEFT_BACKEND="gloo-cpu", WEFT_TIMEOUT="120", WEFT_CPU_HEAP="96M")


def call(command, code=0, text="", **environment):
    """Run COMMAND, which exits with CODE and prints TEXT; returns what it prints."""
    done = subprocess.run(command, env={**base, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=200)
    assert done.returncode == code, f"{command}: exit code {done.returncode}: {done.stdout}"
    assert text in done.stdout, f"{command} does not print {text!r}: {done.stdout}"
    return done.stdout


def run_ranks(ranks, *arguments, hosts=False, **environment):
    """The program on RANKS processes; HOSTS: every second one pretends to be on another host."""
    command = [weft, "run", "-n", str(ranks), "--timeout", "120"]
    if hosts:
        command += ["sh", "-c", 'WEFT_HOST_ID=host$((WEFT_RANK % 2)) exec "$0" "$@"']
        environment["WEFT_GLOO_INTERFACE"] = "lo"
    return call(command + [rank_program, *arguments], **environment)
