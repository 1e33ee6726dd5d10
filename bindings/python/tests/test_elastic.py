"""Elastic jobs lose ranks and go on."""

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import TOOL

import weft

PROGRAM = """
    import array, os, signal, weft
    context = weft.init()
    first = context.rank
    seen = []
    for generation in weft.elastic(context):
        with generation:
            comm = weft.Comm(context)
            while generation.step < 6:
                if (first, generation.step) in {(1, 2), (0, 4)}:
                    os.kill(os.getpid(), signal.SIGKILL)
                generation.check()
                one = array.array("f", [1.0])
                comm.all_reduce(one)
                assert one[0] == context.size
                generation.step += 1
        seen.append((generation.number, generation.lost, generation.old_ranks))
        if len(seen) > 1:
            assert all(reason.startswith("is gone") for reason in generation.reasons), generation.reasons
        try:
            comm.all_reduce(array.array("f", [1.0]))
            assert generation.step == 6
        except weft.Error:
            assert generation.step < 6
    print("rank", first, context.rank, context.size, generation.step, seen)
"""


def run_elastic(tmp_path, count, program):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(program))
    return subprocess.run(
        [TOOL, "run", "-n", str(count), "--min", "1", "--timeout", "100", "--", sys.executable, script],
        env=dict(os.environ), capture_output=True, text=True, timeout=120, check=False)  # fmt: skip


def test_ranks_are_lost_one_after_the_other(tmp_path):
    done = run_elastic(tmp_path, 3, PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 2 0 1 6" in done.stdout, done.stdout + done.stderr
    assert "(1, (), (0, 1, 2)), (2, (1,), (0, 2)), (3, (0,), (1,))]" in done.stdout


ASKING = """
    import array, weft
    context = weft.init()
    asks = context.rank == 1
    for generation in weft.elastic(context):
        with generation:
            comm = weft.Comm(context)
            while generation.step < 100000 and generation.number == 1:
                if asks and generation.step == 3:
                    raise weft.AbortedError("the program wants another generation")
                try:
                    generation.check()
                except weft.AbortedError as error:
                    assert "generation 1 of the job ends" in str(error)
                    raise
                comm.all_reduce(array.array("f", [1.0]))
                generation.step += 1
    print("ended", generation.number, generation.lost)
"""


def test_a_rank_may_ask_for_the_next_generation(tmp_path):
    done = run_elastic(tmp_path, 2, ASKING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ended 2 ()") == 2, done.stdout + done.stderr


def test_an_error_of_the_program_is_not_caught(alone):
    with pytest.raises(ZeroDivisionError):
        for generation in weft.elastic(alone):
            with generation:
                _ = 1 / 0


def test_a_job_that_is_not_elastic_has_one_generation(alone):
    for generation in weft.elastic(alone, step=4):
        with pytest.raises(weft.PeerError), generation:
            raise weft.PeerError("rank 3 is gone")
    assert (generation.number, generation.step, generation.lost) == (0, 4, ())


GROWING = """
    import array, os, signal, weft
    context = weft.init()
    is_new, first = context.generation > 1, context.rank
    seen = []
    for generation in weft.elastic(context):
        seen.append(generation.number)
        with generation:
            comm = weft.Comm(context)
            if is_new and len(seen) == 1:
                assert generation.step >= 2 and -1 in generation.old_ranks, generation
                assert context.origin["step"] == generation.step
            while generation.step < 8:
                if not is_new and first == 1 and generation.step == 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                generation.check()
                one = array.array("f", [1.0])
                comm.all_reduce(one)
                assert one[0] == context.size
                if context.size == 2:  # without the newcomer, for which they wait
                    generation.grow()
                    continue
                generation.step += 1
                generation.grow()
    assert context.size == 3 and generation.step == 8
    print("is new" if is_new else "is old", context.rank)
"""


def test_a_lost_rank_is_replaced(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(GROWING))
    done = subprocess.run(
        [TOOL, "run", "-n", "3", "--min", "2", "--respawn", "--timeout", "100", "--", sys.executable, script],
        env=dict(os.environ), capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    # The newcomer has number 1 if it came in time for the first generation after the loss, otherwise the last number.
    assert done.stdout.count("is old") == 2 and done.stdout.count("is new") == 1, done.stdout + done.stderr
