"""Arrays in and out, on one rank and on several."""

import array
import ctypes
import sys

import pytest

import weft

np = pytest.importorskip("numpy")


def test_arrays_are_described(alone):
    assert weft.describe(np.zeros((3, 4), np.float16)) == ("f16", (3, 4))
    assert weft.describe(array.array("d", [1, 2])) == ("f64", (2,))
    assert weft.describe((ctypes.c_float * 3)()) == ("f32", (3,)) and weft.describe((ctypes.c_int64 * 2)()) == ("i64", (2,))
    assert weft.describe(bytearray(5)) == ("u8", (5,))
    with pytest.raises(TypeError, match="list is not an array"):
        weft.describe([1, 2])
    with pytest.raises(ValueError, match="at most 8"):
        weft.describe(np.zeros((1,) * 9))


def test_results_are_of_the_callers_kind(alone):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = weft.redistribute(x, "1", "S(0)", "S(1)", context=alone)
    assert type(y) is np.ndarray and np.array_equal(x, y)
    view = memoryview(bytearray(b"weft"))
    moved = weft.redistribute(view, "1", "S(0)", "R", context=alone)
    assert isinstance(moved, memoryview) and moved == view


def test_arrays_that_do_not_fit_are_refused(alone):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pytest.raises(ValueError, match=r"array is not contiguous.*numpy.ascontiguousarray\(x\)"):
        weft.redistribute(x.T, "1", "S(0)", "R", context=alone)
    with pytest.raises(ValueError, match="out is not contiguous.*copy it to this one afterwards"):
        weft.redistribute(x, "1", "S(0)", "R", out=np.empty((4, 3), np.float32).T, context=alone)
    with pytest.raises(ValueError, match=r"f32\[3,4\].*f32\[4,4\]"):
        weft.redistribute(x, "1", "S(0)", "R", (4, 4), context=alone)
    x.flags.writeable = False
    y = weft.redistribute(x, "1", "S(0)", "R", context=alone)
    assert np.array_equal(x, y)
    with pytest.raises(ValueError, match="out is read-only"):
        weft.redistribute(x, "1", "S(0)", "R", out=x, context=alone)


def test_masked_arrays_are_refused(alone):
    spec, tensor = weft.spec("f32[3] R", "1"), weft.Tensor(alone, weft.spec("f32[3] R", "1"))
    for masked in (np.ma.masked_array(np.ones(3, np.float32), mask=[1, 0, 0]), np.ma.ones(3, np.float32)):
        for call in (
            lambda: weft.redistribute(masked, "1", "S(0)", "R", context=alone),
            lambda: weft.redistribute(masked.data, "1", "S(0)", "R", out=masked, context=alone),
            lambda: weft.Tensor.wrap(alone, spec, masked),
            lambda: weft.Comm(alone).all_reduce(masked),
            lambda: tensor.from_host(masked),
            lambda: tensor.to_host(masked),
        ):
            with pytest.raises(ValueError, match=r"the array has a mask.*filled\(value\)"):
                call()
    filled = masked.filled(7)
    assert np.array_equal(weft.redistribute(filled, "1", "S(0)", "R", context=alone), filled)
    del tensor, call


def test_out_is_the_array_or_has_memory_of_its_own(alone):
    memory = np.arange(16, dtype=np.float32)
    first = memory[:12]
    for begin in (1, 4):
        with pytest.raises(ValueError, match="out overlaps a part of the array"):
            weft.redistribute(first, "1", "S(0)", "R", out=memory[begin : begin + 12], context=alone)
    assert np.array_equal(weft.redistribute(first, "1", "S(0)", "R", out=first, context=alone), memory[:12])
    weft.redistribute(memory[:8], "1", "S(0)", "R", out=memory[8:], context=alone)
    assert np.array_equal(memory[8:], memory[:8])


def test_shapes_and_placements_of_other_types(alone):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for shape in ([3, 4], np.array([3, 4]), (3, 4)):
        assert np.array_equal(weft.redistribute(x, "1", "S(0)", "R", shape, context=alone), x)
    for shape in (12, "3,4", [3.0, 4]):
        with pytest.raises(TypeError, match="shape must be the sizes of the whole tensor"):
            weft.redistribute(x, "1", "S(0)", "R", shape, context=alone)
    for ends in (("S(0)", None), ("S(0)", ["R"]), (["S(0)"], "R")):
        for shape in (None, (3, 4)):
            with pytest.raises(TypeError, match="must be placements in one str"):
                weft.redistribute(x, "1", *ends, shape, context=alone)


def test_simulated_ranks_have_no_arrays(simulated):
    x = np.ones(2, np.float32)
    for _ in range(2):
        with pytest.raises(weft.UnsupportedError, match="the 4 ranks .* are simulated.*Tensor.move.*weft run -n 4"):
            weft.redistribute(x, "4", "S(0)", "R", context=simulated)
    with pytest.raises(weft.UnsupportedError, match="are simulated in one process.*move tensors"):
        weft.redistribute(x, "4", "S(0)", "R", (8,), context=simulated)


def test_shards_with_other_numbers_of_dimensions_are_named(ranks):
    ranks(3, """
        import numpy as np, weft
        context = weft.init()
        for dims in (2, 0):
            try:
                weft.redistribute(np.ones((2,) * (dims if context.rank == 2 else 1)), "3", "S(0)", "R")
            except weft.MismatchError as error:
                assert f"rank 0 has 1 dimensions, and that of rank 2 has {dims}" in str(error), error
            else:
                raise AssertionError(dims)
        assert weft.redistribute(np.ones((2,)), "3", "S(0)", "R").shape == (6,)
        assert weft.redistribute(np.array(4.0), "3", "P(sum)", "R") == 12
    """)


def test_layouts_of_many_shapes_are_forgotten(alone):
    for size in range(9000):
        weft.redistribute(np.zeros(size, np.int8), "1", "S(0)", "R", context=alone)
        assert len(alone._layouts) <= 4096


def test_ranks_move_their_shards(ranks):
    ranks(3, """
        import numpy as np, weft
        context = weft.init()
        whole = np.arange(7 * 5, dtype=np.float64).reshape(7, 5)
        x = np.array_split(whole, 3, 0)[context.rank].copy()
        y = weft.redistribute(x, "3", "S(0)", "R")
        assert np.array_equal(y, whole)
        uneven = whole[[0, 1, 5][context.rank]:[1, 5, 7][context.rank]].copy()
        assert np.array_equal(weft.redistribute(uneven, "3", "S(0)", "R"), whole)
        x = whole[[0, 3, 6][context.rank]:][:3].copy()
        columns = weft.redistribute(x, "3", "S(0)", "S(1)", (7, 5))
        specs = weft.spec("f64[7,5] S(0)", "3"), weft.spec("f64[7,5] S(1)", "3")
        move = weft.Move(context, specs[:1] * 2, specs[1:] * 2)
        outs = [np.empty_like(columns), np.empty_like(columns)]
        for _ in range(3):
            move([x, x + 1], outs)
        assert np.array_equal(outs[0], columns) and np.array_equal(outs[1], columns + 1)
    """)


def test_a_move_of_fixed_arrays_keeps_them(alone):
    move = weft.Move(alone, [weft.spec("f32[6] S(0)", "1")] * 2, [weft.spec("f32[6] R", "1")] * 2)
    assert move.scratch_bytes >= 0 and move.is_packed in (True, False) and weft.spec("f32[3,4] R", "1").elements == 12
    stream = weft.Stream(alone)
    alone.wait(stream)
    assert stream.test()
    sources, targets = [np.arange(6, dtype=np.float32) + i for i in range(2)], [np.zeros(6, np.float32) for _ in range(2)]
    fixed = move.fix(sources, targets)
    with pytest.raises(ValueError):
        sources[0].resize(100)  # its memory is in use
    for _ in range(2):
        sources[1] += 1
        fixed()
        assert np.array_equal(targets[0], sources[0]) and np.array_equal(targets[1], sources[1])
    with pytest.raises(ValueError, match="1 arrays; the move has 2"):
        move.fix(sources[:1], targets)
    with pytest.raises(ValueError, match="target is f32"):
        move.fix(sources, [np.zeros(5, np.float32)] * 2)
    del fixed, move, stream


def test_calls_do_not_grow_memory(alone):
    x = np.arange(6, dtype=np.float32)
    y = np.empty_like(x)

    def peak():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(1000):
        weft.redistribute(x, "1", "S(0)", "R", out=y, context=alone)
    before, references = peak(), sys.getrefcount(x)
    for _ in range(20000):
        weft.redistribute(x, "1", "S(0)", "R", out=y, context=alone)
    assert sys.getrefcount(x) == references and peak() - before < 512


def test_torch_is_not_imported():
    import subprocess

    program = "import sys, weft; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
