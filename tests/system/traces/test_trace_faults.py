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
    open("other", "w").write("precious")  # as another user may do in a shared folder
    os.symlink("other", "link.0")
    os.symlink("other", "counts.0")
    said = jobs.call([jobs.rank_program], WEFT_TRACE="link", WEFT_COUNTS="counts")
    assert "link.0 cannot be written: it is a symbolic link" in said, said
    assert "counts.0 cannot be written: it is a symbolic link" in said, said
    assert open("other").read() == "precious"
    os.mkfifo("fifo.0")
    jobs.call([jobs.rank_program], WEFT_COUNTS="fifo", text="WEFT_COUNTS: ")
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
    jobs.call([jobs.weft, "trace", "killed.1"], text="killed.1 has no end: the rank ended early")
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
    said = jobs.call([jobs.weft, "trace", "good.0"])
    assert "has no end" not in said, said
    merge = [jobs.weft, "trace", "merge"]
    for length in (1, 2, len(whole) - 1):
        open("cut", "wb").write(whole[:length])
        said = jobs.call([jobs.weft, "trace", "cut"], code=1)
        assert "cut, byte " in said and "ends after the file's end" in said, said
        jobs.call([*merge, "cut", "good.1", "-o", "x"], code=1, text="cut, byte ")
    open("empty", "wb").close()
    jobs.call([jobs.weft, "trace", "empty"], code=1, text="empty is not a trace of weft; WEFT_TRACE writes traces")
    open("foreign", "w").write('{"traceEvents": []}\n')
    jobs.call([jobs.weft, "trace", "foreign"], code=1, text="foreign is not a trace of weft; WEFT_TRACE")
    jobs.call([*merge, "good.0", "foreign", "-o", "x"], code=1, text="foreign is not a trace of weft")
    open("pickle", "wb").write(b"\x80\x02}q\x00")
    jobs.call([jobs.weft, "trace", "pickle"], code=1, text="pickle is not a trace of weft; WEFT_TRACE")
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
    jobs.call([jobs.weft, "trace", "good.0", "good.1"], code=2, text="to join files: weft trace merge FILE... -o FILE")
    os.link("good.1", "linked.1")
    for output in ("good.0", "./good.1", "linked.1"):
        said = jobs.call([*merge, "good.0", "good.1", "-o", output], code=1)
        assert f"-o {output} would overwrite good." in said, said
    assert open("good.0", "rb").read() == whole
    assert not os.path.exists("x")
    os.symlink("/dev/full", "device")  # not a file that an incomplete merge may remove
    jobs.call([*merge, "good.0", "-o", "device"], code=3, text="No space left")
    assert os.path.islink("device")
    jobs.call([*merge, "good.1", "-o", "one"], text="1 of 2 ranks, on the clock of the rendezvous")


def message(*fields):
    """Encode (number, value) pairs: numbers, bytes and texts."""
    out = b""
    for number, value in fields:
        def put(n):
            return bytes([n & 127 | 128]) + put(n >> 7) if n > 127 else bytes([n])
        if isinstance(value, int):
            out += put(number << 3) + put(value)
        else:
            out += put(number << 3 | 2) + put(len(value)) + value
    return out


def write_hostile(path, rank, job, name):
    """A trace of RANK whose JOB, and whose plan, slice and label (NAME), are any bytes."""
    def notes(**given):
        return [(4, message((10, key.encode()), (3, value) if isinstance(value, int) else (6, value)))
                for key, value in given.items()]
    events = [message((9, 3), (11, 1), (23, b"weft trace"),
                      *notes(format=1, rank=rank, size=2, job=job))]
    for step in 0, 1:
        events += [message((9, 1), (11, 1), (23, name), *notes(plan=name, label=name, step=step)),
                   message((9, 2), (11, 1))]
    packets = [message((1, message((8, 1000 + i), (10, 1), (11, event))))
               for i, event in enumerate(events)]
    packets.append(message((1, message((10, 1), (12, message((1, message((1, 1), (2, name)))))))))
    event = message((9, 1), (11, 1), (3, 1), (23, name))
    packets.append(message((1, message((8, 2000), (10, 1), (11, event)))))
    packets.append(message((1, message((8, 2001), (10, 1), (11, message((9, 2), (11, 1)))))))
    open(path, "wb").write(b"".join(packets))


def is_shown(said):
    return not [c for c in said if c < " " and c != "\n" or "\x7f" <= c < "\xa0" or c == "\u202e"]


def check_hostile():
    """Texts and names of files do not control the terminal."""
    text = "\x1b[31m\x9b2J\u202e\r\x07 gr\xf6\xdfe\n".encode() + b"\xff\x9b"
    write_hostile("hostile.0", 0, text, text)
    write_hostile("hostile.1", 1, text + b"x" * 70000, text)
    write_hostile("hostile.2", 1, b"j" * 64, text * 1000)
    write_hostile("h\x1b[2J\u202e", 1, text, text)
    for command in (["hostile.0"], ["--json", "hostile.0"], ["hostile.2"], ["h\x1b[2J\u202e"],
                    ["--json", "h\x1b[2J\u202e"]):
        said = jobs.call([jobs.weft, "trace", *command])
        assert is_shown(said) and "gr\xf6\xdfe" in said, repr(said)
    merge = [jobs.weft, "trace", "merge", "-o", "x\x1b[2J"]
    for other in "hostile.1", "hostile.2":
        said = jobs.call([*merge, "hostile.0", other], code=1, text="different jobs, ?[31m")
        assert is_shown(said) and "?[31m" in said, repr(said)
    assert "and " + 63 * "j" in said, said
    said = jobs.call([*merge, "hostile.0", "h\x1b[2J\u202e"], text="no clock offset")
    assert is_shown(said), repr(said)
    said = jobs.call([jobs.weft, "trace", "missing\x1b[2J"], code=3)
    assert is_shown(said), repr(said)


os.chdir(jobs.folder)
check_hostile()
check_unwritable()
check_full()
check_twice()
check_killed()
check_refused()
shutil.rmtree(jobs.folder)
