"""Numbers that are out of range are refused; none is taken modulo a power of 2."""

import math

import pytest

import weft

np = pytest.importorskip("numpy")

OUT_OF_64 = (-1, 2**64, 2**64 + 16)
OUT_OF_32 = (-1, 2**32, 2**32 + 1)


def refused(call, *arguments, **words):
    with pytest.raises(ValueError, match="is out of range; expected a number from 0 to"):
        call(*arguments, **words)


def test_numbers_of_symmetric_memory(alone):
    comm = weft.Comm(alone)
    for number in OUT_OF_64:
        refused(weft.Symm, comm, number)
    for number in OUT_OF_32:
        refused(weft.Symm, comm, 64, number)
    with weft.Symm(comm, 64) as symm:
        array = np.zeros(4, np.float32)
        for number in OUT_OF_64:
            refused(symm.put, array, 0, number)
            refused(symm.put, array, 0, signal=(0, number))
            refused(symm.get, 0, array, number)
            refused(symm.signal, 0, 0, number)
            refused(symm.wait, 0, 0, number)
            refused(symm.test, 0, 0, number)
        for number in OUT_OF_32:
            refused(symm.put, array, 0, signal=(number, 1))
            refused(symm.signal, 0, number, 1)
            refused(symm.wait, 0, number, 1)
            refused(symm.test, 0, number, 1)
        with pytest.raises(OverflowError):
            symm.memory(2**32)
        symm.put(array, 0, 0, signal=(1, 2**64 - 1))
        assert symm.test(0, 1, 2**64 - 1, "==")
    del symm, comm


def test_numbers_of_overlaps(alone):
    mesh = weft.mesh("tp=1")
    for number in OUT_OF_64:
        refused(weft.Overlap, alone, mesh, "tp", number)
    overlap = weft.Overlap(alone, mesh, "tp", 4096)
    spec = weft.spec("f32[4,4] S(0)", mesh)
    tensor = weft.Tensor(alone, spec)
    for number in OUT_OF_64:
        refused(overlap.gather, tensor, print, flops=number)
        refused(overlap.reduce_scatter, tensor, print, flops=number)
        refused(overlap.predict, spec, flops=number)
    overlap.close()
    del overlap, tensor


def test_numbers_of_other_calls(alone):
    nodes = [weft.Node(time=100)]
    for number in OUT_OF_64:
        refused(weft.reorder, nodes, memory_limit=number)
        refused(weft.reorder, [weft.Node(time=number)])
        refused(weft.reorder, [weft.Node(alloc=number)])
    comm = weft.Comm(alone)
    with pytest.raises(ValueError, match="out of range"):
        comm.create([2**32])
    with pytest.raises(ValueError, match="axis is 4294967296, which is out of range"):
        weft.style_layouts("row", "weight", weft.spec("f32[8,8] R", "tp=2"), 2**32)
    del comm


def test_time_limits(alone):
    comm = weft.Comm(alone)
    with weft.Symm(comm, 64) as symm:
        for call in (
            lambda timeout: weft.Context(timeout=timeout),
            lambda timeout: comm.split(0, timeout=timeout),
            lambda timeout: comm.create([0], timeout=timeout),
            lambda timeout: symm.wait(0, 0, 0, timeout=timeout),
        ):
            for timeout in (-3, -1e-9, math.nan):
                with pytest.raises(ValueError, match=rf"timeout is {timeout}; expected a number of seconds, 0 for"):
                    call(timeout)
            for timeout in (0, 1e-10, 2.5, 1e300, math.inf):
                call(timeout)
    del call, symm, comm


def test_waits_without_a_limit(alone):
    stream = weft.Stream(alone)
    for timeout in (None, 1e300, math.inf):
        weft.Work(alone, stream).wait(timeout)
    del stream
