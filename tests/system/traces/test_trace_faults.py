"""A trace that cannot be written costs the job one message; a file that is none, one message."""
import os
import shutil

import jobs
import pftrace


def check_unwritable():
    os.mkdir("folder.0")
    said = jobs.call([jobs.rank_program], WEFT_TRACE="missing/file")
    assert said.count("WEFT_TRACE") == 1 and "missing/file.0 cannot be written" in said, said
    said = jobs.call([jobs.rank_program], WEFT_TRACE="folder")
    assert said.count("WEFT_TRACE") == 1 and "folder.0 cannot be written" in said, said
    os.mkfifo("fifo.0")
    said = jobs.call([jobs.rank_program], WEFT_TRACE="fifo")
    assert said.count("WEFT_TRACE") == 1 and "fifo.0 cannot be written" in said, said


def check_twice():
    """Two contexts of one rank do not write one file."""
    said = jobs.call([jobs.rank_program, "--twice"], WEFT_TRACE="twice")
    assert said.count("WEFT_TRACE") == 1 and "another context writes it" in said, said
    trace = pftrace.read("twice.0")
    assert sum(s.category == "all-reduce" for s in trace.slices) == 3


def check_killed():
    """The trace of a rank that was killed can be read, and merged with the others."""
    command = [jobs.weft, "run", "-n", "2", jobs.rank_program, "--killed"]
    jobs.call(command, code=137, WEFT_TRACE="killed")
    pftrace.read("killed.1", complete=False)
    jobs.call([jobs.weft, "trace", "killed.1"])
    said = jobs.call([jobs.weft, "trace", "merge", "killed.0", "killed.1", "-o", "killed"])
    assert "killed.1 has no end: rank 1 ended early" in said, said


def check_full():
    """The file cannot grow: it consists of whole packets, and the job succeeds."""
    said = jobs.call([jobs.rank_program, "--full"], WEFT_TRACE="full")
    size = os.path.getsize("full.0")
    assert said.count("WEFT_TRACE") == 1 and f"full.0 ends after {size} bytes" in said, said
    assert size > 0
    pftrace.read("full.0", complete=False)


def check_refused():
    """Files that weft trace refuses, by name and position."""
    jobs.run_ranks(2, WEFT_TRACE="good")
    jobs.run_ranks(2, WEFT_TRACE="other")
    whole = open("good.0", "rb").read()
    merge = [jobs.weft, "trace", "merge"]
    for length in (1, 2, len(whole) - 1):
        open("cut", "wb").write(whole[:length])
        said = jobs.call([jobs.weft, "trace", "cut"], code=1)
        assert "cut, byte " in said and "ends after the file's end" in said, said
        jobs.call([*merge, "cut", "good.1", "-o", "x"], code=1, text="cut, byte ")
    open("empty", "wb").close()
    jobs.call([jobs.weft, "trace", "empty"], code=1, text="empty, byte 0: weft did not write")
    open("foreign", "w").write('{"traceEvents": []}\n')
    jobs.call([jobs.weft, "trace", "foreign"], code=1, text="foreign, byte 0: ")
    jobs.call([*merge, "good.0", "foreign", "-o", "x"], code=1, text="foreign, byte 0: ")
    jobs.call([jobs.weft, "trace", "/dev/zero"], code=1, text="/dev/zero is not a regular file")
    jobs.call([*merge, "good.0", "other.1", "-o", "x"], code=1, text="different jobs")
    jobs.call([*merge, "good.0", "good.0", "-o", "x"], code=1, text="both of rank 0")
    jobs.call([*merge, "good.0", "good.1", "-o", "all"], text="2 of 2 ranks")
    jobs.call([*merge, "all", "good.1", "-o", "x"], code=1, text="merged already")
    jobs.call([*merge, "good.0", "nothing", "-o", "x"], code=3, text="nothing: ")
    jobs.call([*merge, "good.0", "-o", "missing/x"], code=3, text="missing/x: ")
    jobs.call([*merge, "good.0"], code=2, text="-o")
    jobs.call([*merge, "-o", "x"], code=2, text="files to merge")
    jobs.call([jobs.weft, "trace"], code=2, text="WEFT_TRACE")
    jobs.call([jobs.weft, "trace", "good.0", "good.1"], code=2, text="good.1")
    assert not os.path.exists("x")
    jobs.call([*merge, "good.1", "-o", "one"], text="1 of 2 ranks, on the clock of the rendezvous")


os.chdir(jobs.folder)
check_unwritable()
check_full()
check_twice()
check_killed()
check_refused()
shutil.rmtree(jobs.folder)
