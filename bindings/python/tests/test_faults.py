"""Interrupts, ranks that fail while others wait, and two libraries in one process."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

import weft

pytest.importorskip("numpy")

LIMIT = 100  # seconds: a wait that is not interrupted lasts longer than any load can delay an interrupt

# Background jobs of a shell, and the programs that they start, ignore SIGINT.
HEED_INTERRUPTS = "signal.signal(signal.SIGINT, signal.default_int_handler)"


def start(tmp_path, body, ranks=2):
    """Processes that run a program as ranks of one job; its lines are read from their output."""
    script = tmp_path / "program.py"
    head = f"""
        import os, signal, sys, time
        import numpy as np, weft
        {HEED_INTERRUPTS}
        rank = int(sys.argv[1])
        context = weft.init("gloo-cpu", rank=rank, size={ranks}, rendezvous=sys.argv[2], timeout={LIMIT})
        world = weft.Comm(context)
        def say(text): print(text, flush=True)
    """
    script.write_text(textwrap.dedent(head) + textwrap.dedent(body))
    return [
        subprocess.Popen(
            [sys.executable, script, str(rank), f"unix:weft-faults-{os.getpid()}-{tmp_path.name}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.PIPE, text=True)
        for rank in range(ranks)
    ]  # fmt: skip


def read_until(process, text):
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return
    raise AssertionError("".join(seen))


def finish(processes):
    """Let ranks that wait for a line go on; the outputs of all."""
    for process in processes:
        if process.poll() is None:
            process.stdin.write("\n")
            process.stdin.flush()
    return [process.communicate(timeout=LIMIT)[0] for process in processes]


CALLS = {
    "a collective": "world.all_reduce(np.ones(4))",
    "a move": 'weft.redistribute(np.ones(4), "2", "S(0)", "R", shape=(8,))',
    "a new communicator": "world.split(0)",
    "a text": 'weft.Tensor(context, weft.spec("f32[8] S(0)", "2")).text()',
    "a wrapped tensor": 'weft.Tensor.wrap(context, weft.spec("f64[8] S(0)", "2"), np.ones(4), agree=True)',
    "a stream": "stream = weft.Stream(context); world.barrier(stream=stream); context.wait(stream)",
}


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_ends_a_wait(tmp_path, call):
    body = f"""
        if rank == 0:
            try:
                say("waits")
                {CALLS[call]}
            except KeyboardInterrupt:
                say("interrupted")
                stream = None
                try: world.barrier()
                except weft.AbortedError: say("aborted")
        else:
            sys.stdin.readline()
            try: world.barrier()
            except weft.Error as error: say(f"{{type(error).__name__}}: {{error}}")
    """
    processes = start(tmp_path, body)
    read_until(processes[0], "waits")
    for _ in range(200):  # the first may arrive before the call has begun to wait
        processes[0].send_signal(signal.SIGINT)
        try:
            processes[0].wait(0.5)
            break
        except subprocess.TimeoutExpired:
            pass
    outputs = finish(processes)
    assert "interrupted" in outputs[0], outputs
    assert "aborted by rank 0" in outputs[1] or "rank 0" in outputs[1], outputs


def test_an_interrupt_ends_init(tmp_path):
    """The other rank never joins.  The wait that is left behind does not keep the process."""
    body = f"""
        import os, signal, threading, time, weft
        {HEED_INTERRUPTS}
        def interrupt():
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            weft.init("gloo-cpu", rank=1, size=2, rendezvous="unix:weft-init-{os.getpid()}", token="0123456789abcdef")
        except KeyboardInterrupt:
            print("interrupted")
        context = weft.Context("gloo-cpu", rank=0, size=1)
        print(context.size)
        context.close()
    """
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "WEFT_JOIN_TIMEOUT": str(LIMIT)}, capture_output=True, text=True,
        timeout=LIMIT, check=False)  # fmt: skip
    assert done.stdout == "interrupted\n1\n" and done.returncode == 0, done


def test_a_handler_of_the_program_decides(tmp_path):
    body = """
        if rank == 0:
            seen = []
            signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
            say("waits")
            x = np.ones(4)
            world.all_reduce(x)
            say(f"sum {x[0]:.0f}, signals {len(seen)}")
        else:
            sys.stdin.readline()
            world.all_reduce(np.ones(4))
    """
    processes = start(tmp_path, body)
    read_until(processes[0], "waits")
    processes[0].send_signal(signal.SIGINT)
    outputs = finish(processes)
    assert "sum 2, signals 1" in outputs[0], outputs


def test_an_exception_of_a_rank_ends_the_others(tmp_path):
    body = """
        if rank == 1:
            sys.stdin.readline()
            raise KeyError("lost")
        say("waits")
        try: world.all_reduce(np.ones(4))
        except weft.Error as error: say(f"{type(error).__name__}: {error}")
    """
    processes = start(tmp_path, body, ranks=3)
    read_until(processes[0], "waits")
    outputs = finish(processes)
    assert "KeyError: 'lost'" in outputs[1]
    for output in (outputs[0], outputs[2]):
        assert "PeerError" in output and "rank 1" in output, outputs


def test_an_abort_reaches_all_communicators(tmp_path):
    body = """
        part = world.split(0)
        if rank == 1:
            sys.stdin.readline()
            context.abort()
        say("waits")
        try: part.all_reduce(np.ones(4))
        except weft.AbortedError as error: say(f"aborted: {error}")
    """
    processes = start(tmp_path, body)
    read_until(processes[0], "waits")
    outputs = finish(processes)
    assert all("aborted by rank 1" in output for output in outputs), outputs


def test_a_program_that_ends_can_join_a_job(tmp_path):
    """Python 3.12 and later start no threads then."""
    program = tmp_path / "program.py"
    program.write_text("import atexit, weft\natexit.register(lambda: print('ranks', weft.init('gloo-cpu').size))\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.returncode, done.stdout) == (0, "ranks 1\n"), done.stderr


def test_a_second_library_is_refused(tmp_path):
    own = next(
        pathlib.Path(line.split()[-1])
        for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
        if "libweft.so" in line
    )
    other = tmp_path / "libweft.so"
    shutil.copy(own, other)
    program = f"""
        import ctypes, weft
        ctypes.CDLL({str(other)!r})
        try: weft.Context()
        except ImportError as error: print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert "two copies of libweft" in done.stdout and str(other) in done.stdout


def test_objects_that_are_not_arrays_are_refused(alone):
    with pytest.raises(TypeError, match="list is not an array"):
        weft.redistribute([1, 2], "1", "S(0)", "R", context=alone)
