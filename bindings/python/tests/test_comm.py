"""Collectives and messages on arrays."""

import pytest

pytest.importorskip("numpy")


def test_collectives_equal_numpy(ranks):
    ranks(3, """
        import numpy as np, weft
        context = weft.init()
        world = weft.Comm(context)
        rank, size = world.rank, world.size
        everyone = [np.arange(6, dtype=np.float32) * (r + 1) for r in range(size)]
        mine = everyone[rank].copy()
        world.all_reduce(mine)
        assert np.array_equal(mine, sum(everyone))
        out = np.empty_like(mine)
        world.all_reduce(everyone[rank], out, "max")
        assert np.array_equal(out, np.maximum.reduce(everyone))
        gathered = np.empty((size, 6), np.float32)
        world.all_gather(everyone[rank], gathered)
        assert np.array_equal(gathered, np.stack(everyone))
        part = np.empty(2, np.float32)
        world.reduce_scatter(everyone[rank], part)
        assert np.array_equal(part, sum(everyone)[2 * rank:2 * rank + 2])
        swapped = np.empty(6, np.float32)
        world.all_to_all(everyone[rank], swapped)
        assert np.array_equal(swapped, np.concatenate([e[2 * rank:2 * rank + 2] for e in everyone]))
        token = everyone[rank].copy()
        world.broadcast(token, root=2)
        assert np.array_equal(token, everyone[2])
        counts = [1, 2, 3]
        joined = np.empty(6, np.float32)
        world.all_gather_v(everyone[rank][:counts[rank]].copy(), joined, counts)
        assert np.array_equal(joined, np.concatenate([e[:c] for e, c in zip(everyone, counts)]))
        world.barrier()
        with world.group():
            received = np.empty(6, np.float32)
            world.send(everyone[rank], (rank + 1) % size)
            world.receive(received, (rank - 1) % size)
        assert np.array_equal(received, everyone[(rank - 1) % size])
        pair = world.create([0, 2])
        assert (pair is None) == (rank == 1)
        if pair is not None:
            assert (pair.rank, pair.size) == (rank // 2, 2)
            assert [pair.world_rank(r) for r in range(2)] == [0, 2] and pair.find_rank(1) is None
        assert world.same_host(0, 2) and world.support("all_reduce", "f32") == "native"
        world.check()
        assert "send" in world.report(), world.report()
        assert context.device["memory_total"] > 0 and context.memory["bytes"] == 0
        context.clear_moves()
        line = world.along(weft.mesh("tp=3"), "tp")
        assert line.size == 3
    """)


def test_arrays_of_other_sizes_are_refused(ranks):
    ranks(1, """
        import numpy as np, weft
        world = weft.Comm(weft.init())
        for call, text in (
            (lambda: world.all_reduce(np.ones(3), np.ones(4)), "3 elements and recv 4"),
            (lambda: world.all_reduce(np.ones(3), np.ones(3, np.float32)), "send is of f64"),
            (lambda: world.all_reduce(np.ones((4, 4))[:, 0]), "not contiguous"),
            (lambda: world.collective("all_reduc"), "expected one of: all_reduce"),
            (lambda: world.all_reduce(np.ones(3), op="mean"), "expected one of: sum"),
            (lambda: world.all_to_all_v(np.ones(3), [-1], np.ones(3), [3]), "-1, which is out of range"),
            (lambda: world.send(np.ones(3), 0, tag=2**32), "tag is 4294967296, which is out of range"),
            (lambda: world.all_gather_v(np.ones(3), np.ones(3), [4]), "recv 3; this rank needs 4 and 4"),
            (lambda: world.all_gather_v(np.ones(0), np.ones(3), [3]), "send has 0 elements and recv 3; this rank needs 3 and 3"),
            (lambda: world.reduce_scatter_v(np.ones(3), np.ones(0), [3]), "send has 3 elements and recv 0; this rank needs 3 and 3"),
        ):
            try:
                call()
            except ValueError as error:
                assert text in str(error), error
            else:
                raise AssertionError(text)
    """)


def test_a_message_needs_an_array(ranks):
    ranks(1, """
        import weft
        world = weft.Comm(weft.init())
        for call in (lambda: world.send(None, 0), lambda: world.receive(None, 0), lambda: world.all_reduce(None)):
            try:
                call()
            except TypeError as error:
                assert "None" in str(error), error
            else:
                raise AssertionError(call)
    """)


def test_a_group_keeps_the_arrays_of_its_calls(ranks):
    ranks(2, """
        import weakref
        import numpy as np, weft
        world = weft.Comm(weft.init())
        class Array(np.ndarray): pass
        count = 1 << 18  # memory that goes back to the system when the array is deleted
        received, reduced = np.empty(count), np.empty(count)
        with world.group():
            with world.group():
                sent = np.full(count, world.rank + 5.0).view(Array)
                alive = weakref.ref(sent)
                world.send(sent, 1 - world.rank)
                del sent
            assert alive() is not None
            world.receive(received, 1 - world.rank)
            weft.Comm(world.context).all_reduce(np.full(count, 7.0), reduced)
        assert (received == 6 - world.rank).all() and (reduced == 14).all()
        assert alive() is None
    """)


def test_an_exchange_returns_the_bytes_of_all_ranks(ranks):
    ranks(1, """
        import weft
        try:
            weft.Context(rank=0, size=2, exchange=lambda mine: 100 * mine)
        except weft.Error as error:
            assert "for" in str(error) and "of each of 2 ranks" in str(error), error
        else:
            raise AssertionError("a wrong exchange")
    """)


def test_a_context_ends_with_its_block(ranks):
    ranks(1, """
        import numpy as np, weft
        def work(context):
            weft.redistribute(np.ones(4), "1", "S(0)", "R", context=context)  # the context keeps layouts and tensors
            raise KeyError("mine")
        try:
            with weft.Context() as context:
                work(context)
        except KeyError:
            assert context.closed, context
        def fails(mine): raise OSError("no way to other ranks")
        try:
            weft.Context(rank=0, size=2, exchange=fails)
        except weft.InvalidError as error:
            assert "`exchange` failed" in str(error), error
        else:
            raise AssertionError("an exchange that fails")
    """)


def test_a_rank_that_ends_is_named(tmp_path):
    import os
    import subprocess
    import sys

    script = tmp_path / "program.py"
    script.write_text(
        "import sys, numpy as np, weft\n"
        "rank, place = int(sys.argv[1]), sys.argv[2]\n"
        "context = weft.init('gloo-cpu', rank=rank, size=2, rendezvous=place, timeout=20)\n"
        "world = weft.Comm(context)\n"
        "if rank == 1: raise KeyError('lost')\n"
        "try: world.all_reduce(np.ones(4))\n"
        "except weft.Error as error: print('survivor:', type(error).__name__, error.rank, error)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, script, str(rank), f"unix:weft-python-{os.getpid()}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(2)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert "survivor: PeerError 1 " in outputs[0] and "rank 1" in outputs[0], outputs
    assert "KeyError: 'lost'" in outputs[1]


def test_arrays_that_overlap_are_refused_unless_they_are_in_place(ranks):
    ranks(2, """
        import numpy as np
        import pytest
        import weft
        with weft.Context() as context:
            comm = weft.Comm(context)
            big, mine, other = np.arange(48, dtype=np.float32), slice(4 * comm.rank, 4 * comm.rank + 4), slice(2, 6)
            wrong = [
                lambda: comm.all_reduce(big[:40], big[8:]), lambda: comm.all_reduce(big[8:], big[:40]), lambda: comm.all_gather(big[other], big[:8]),
                lambda: comm.reduce_scatter(big[:8], big[other]), lambda: comm.all_to_all(big[:8], big[4:12]),
                lambda: comm.all_gather_v(big[other], big[:8], [4, 4]), lambda: comm.reduce_scatter_v(big[:8], big[other], [4, 4]),
                lambda: comm.all_to_all_v(big[:8], [4, 4], big[4:12], [4, 4]),
            ]
            if comm.rank == 0:
                wrong += [lambda: comm.reduce(big[:8], big[4:12]), lambda: comm.gather(big[other], big[:8]), lambda: comm.scatter(big[:8], big[other])]
            for call in wrong:
                with pytest.raises(ValueError, match="send overlaps a part of recv"):
                    call()
            assert (big == np.arange(48)).all()
            comm.all_reduce(big[:4], big[4:8])  # side by side
            comm.all_reduce(big[:4], big[:4])
            assert big[:8].tolist() == [0, 2, 4, 6, 0, 2, 4, 6], big
            big[:8] = comm.rank
            comm.all_gather(big[mine], big[:8])
            assert big[:8].tolist() == [0] * 4 + [1] * 4, big
            comm.all_gather_v(big[mine], big[:8], [4, 4])
            comm.all_to_all(big[:8], big[:8])
            assert big[:8].tolist() == [comm.rank] * 8, big
            comm.all_to_all_v(big[:8], [4, 4], big[:8], [4, 4])
            comm.reduce_scatter(big[:8], big[mine])
            assert big[mine].tolist() == [2 * comm.rank] * 4, big
            comm.reduce_scatter_v(big[:8], big[mine], [4, 4])
            comm.gather(big[mine], big[:8])
            comm.scatter(big[:8], big[mine])
            comm.reduce(big[:8], big[:8] if comm.rank == 0 else big[4:12])  # recv is used on the root only
            del comm, wrong, call
        """)
