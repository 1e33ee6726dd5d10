"""Tensors on simulated ranks and on ranks that are processes."""

import gc
import weakref

import pytest

import weft


def test_moves_keep_the_elements(simulated):
    w = weft.Tensor(simulated, weft.spec("f32[6,4] S(0),S(1)", "dp=2,tp=2"), "w")
    w.normal(42)
    moved = w.move("R,S(0)")
    least = w.move("R,S(0)", minimize="memory", memory_limit=1 << 20)
    assert least.spec == moved.spec and w.compare(least)["equal"]
    assert (moved.spec.placements, moved.name) == ("R,S(0)", "w")
    assert w.compare(moved)["equal"]
    moved.fill(0)
    difference = w.compare(moved)
    assert not difference["equal"] and difference["largest"] > 1
    w.move_into(moved)
    assert w.compare(moved)["equal"] and "f32[6,4] R,S(0)" in moved.text()


def test_random_bits_do_not_depend_on_the_layout(simulated):
    draws = {
        "uniform": "f32", "normal": "f32", "truncated_normal": "f64", "bernoulli": "i8",
        "dropout": "f32", "integers": "i64",
    }  # fmt: skip
    for draw, dtype in draws.items():
        tensors = [
            weft.Tensor(simulated, weft.spec(f"{dtype}[5,7] {placements}", "2x2"))
            for placements in ("S(0),S(1)", "R,R", "O(1),S(1)")
        ]
        for tensor in tensors:
            getattr(tensor, draw)(7, offset=3)
        assert all(tensors[0].compare(tensor)["equal"] for tensor in tensors[1:]), draw


def test_views_share_memory(simulated):
    w = weft.Tensor(simulated, weft.spec("f32[6,4] R,S(0)", "2x2"))
    w.uniform(1)
    assert str(w.narrow(1, 0, 2).transpose(0, 1).spec) == "f32[2,6] R,S(1)"
    assert w.reshape((2, 3, 4)).spec.shape == (2, 3, 4)
    with pytest.raises(weft.InvalidError):
        w.reshape((5, 5))


def test_a_context_in_use_is_not_closed(simulated):
    tensor = weft.Tensor(simulated, weft.spec("f32[4] R", "4"))
    with pytest.raises(RuntimeError, match="1 of its objects are in use: weft.Tensor"):
        simulated.close()
    del tensor
    gc.collect()


def test_an_exception_of_a_block_is_not_replaced():
    with pytest.raises(KeyError):
        with weft.Context(simulated_ranks=2) as context:
            tensor = weft.Tensor(context, weft.spec("f32[4] R", "2"))
            raise KeyError(tensor.name)
    del tensor
    context.close()


def test_memory_is_shared_with_numpy(alone):
    np = pytest.importorskip("numpy")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensor = weft.Tensor.wrap(alone, weft.spec("f32[3,4] R", "1"), x)
    tensor.fill(3)
    assert (x == 3).all()
    shared = np.from_dlpack(tensor)
    assert shared.ctypes.data == x.ctypes.data
    del tensor
    shared[0, 0] = 5
    assert x[0, 0] == 5
    del shared
    own = weft.Tensor(alone, weft.spec("f64[2,2] R", "1"))
    own.fill(2)
    kept = np.from_dlpack(own)
    del own
    gc.collect()
    assert (kept == 2).all()
    del kept
    gc.collect()


def test_numpy_reads_a_tensor_as_an_array(alone):
    np = pytest.importorskip("numpy")
    tensor = weft.Tensor(alone, weft.spec("f32[2,3] R", "1"))
    tensor.fill(3)
    array = np.asarray(tensor)
    assert array.dtype == np.float32 and array.shape == (2, 3) and (array == 3).all()
    array[0, 0] = 5
    assert np.from_dlpack(tensor)[0, 0] == 5
    copied, wide = np.array(tensor), np.asarray(tensor, dtype=np.float64)
    array[0, 0] = 6
    assert copied[0, 0] == wide[0, 0] == 5 and wide.dtype == np.float64
    assert np.array_equal(np.add(tensor, tensor), 2 * array)
    with pytest.raises(ValueError, match="copy=False forbids it"):
        tensor.__array__(np.float64, copy=False)
    tensor.fill(1)
    assert (array == 1).all()
    with pytest.raises(TypeError, match="NumPy has no dtype for bf16"):
        np.asarray(weft.Tensor(alone, weft.spec("bf16[2] R", "1")))
    del tensor, array
    gc.collect()


def test_tensors_that_outlive_their_context_are_named():
    with pytest.raises(RuntimeError, match=r"1 of its objects are in use: weft.Tensor \S+\[\S*\] \S+; delete them first.*`del x`"):
        with weft.Context() as context:
            tensor = weft.Tensor(context, weft.spec("f32[3] R", "1"))
    del tensor
    context.close()


def test_an_array_of_simulated_ranks_is_one_shard_or_the_whole_tensor(simulated):
    np = pytest.importorskip("numpy")
    tensor = weft.Tensor(simulated, weft.spec("f32[6,2] S(0)", "4"))
    tensor.fill(3)
    partial = weft.Tensor(simulated, weft.spec("f32[2] P(sum)", "4"))
    for read in (np.asarray, np.from_dlpack):
        for split in (tensor, partial):
            with pytest.raises(TypeError, match=r"each of 4 simulated ranks.*tensor.local\(rank\).*tensor.full\(\)"):
                read(split)
        assert read(tensor.full()).shape == (6, 2)
        for rank, rows in enumerate((2, 2, 2, 0)):
            shard = tensor.local(rank)
            assert shard.shape == read(shard).shape == (rows, 2) and (rank == 3 or shard.offset == (2 * rank, 0))
    np.asarray(tensor.local(2))[1, 1] = 7
    assert np.asarray(tensor.full())[5, 1] == 7
    kept = np.asarray(tensor.local(rank=1))
    del tensor, partial, split, shard
    gc.collect()
    assert (kept == 3).all()
    del kept


def test_a_process_has_the_shard_of_its_rank(ranks):
    ranks(2, """
        import weft

        with weft.Context() as context:
            tensor = weft.Tensor(context, weft.spec("f32[6] S(0)", "2"))
            assert tensor.local(context.rank).offset == (3 * context.rank,)
            try: tensor.local(1 - context.rank)
            except weft.UnsupportedError: pass
            else: raise AssertionError("no error")
            assert memoryview(bytearray(12)).nbytes == 12 and tensor.__dlpack_device__()[0] == 1
            del tensor
    """)


def test_an_array_with_its_own_tensor_is_freed_without_it(alone):
    np = pytest.importorskip("numpy")

    class Array(np.ndarray):
        """It has attributes."""

    array = np.zeros(3, np.float32).view(Array)
    array.tensor = weft.Tensor.wrap(alone, weft.spec("f32[3] R", "1"), array)
    freed = weakref.ref(array)
    del array.tensor, array
    assert freed() is None


def test_memory_is_shared_on_its_own_device_only(alone):
    tensor = weft.Tensor(alone, weft.spec("f32[4] R", "1"))
    assert tensor.__dlpack__(dl_device=(1, 0)) is not None
    with pytest.raises(BufferError, match=r"on device \(1, 0\), not on \(2, 0\)"):
        tensor.__dlpack__(dl_device=(2, 0))
    del tensor
    gc.collect()


def test_seeds_have_64_bits(alone):
    tensor = weft.Tensor(alone, weft.spec("f32[4] R", "1"))
    tensor.normal(2**64 - 1, 2**64 - 1)
    draws = ("uniform", "normal", "truncated_normal", "bernoulli", "dropout", "integers")
    for draw in (getattr(tensor, name) for name in draws):
        for seed, offset in ((-1, 0), (2**64, 0), (0, -1)):
            with pytest.raises(ValueError, match=r"is out of range; expected a number from 0 to 2\^64 - 1"):
                draw(seed, offset)
    del tensor, draw


def test_tensors_move_as_a_batch(simulated):
    on = weft.mesh("4")
    sources = [weft.Tensor(simulated, weft.spec(f"f32[{size},4] S(0)", on)) for size in (8, 5)]
    targets = [weft.Tensor(simulated, source.spec.with_("S(1)")) for source in sources]
    for number, source in enumerate(sources):
        source.normal(number)
    weft.move_into(sources, targets)
    for source, target in zip(sources, targets, strict=True):
        assert source.compare(target)["largest"] == 0
    for wrong in (sources[:1], []):
        with pytest.raises(ValueError, match="the list beside it"):
            weft.move_into(wrong, targets)
    with pytest.raises(TypeError):
        weft.move_into(sources, [3, 4])
    del sources, targets, source, target, wrong


def test_names_and_handles_of_the_vendor(alone):
    stream = weft.Stream(alone)
    stream.set_name("copies")
    assert weft.Work(alone, stream).native is None and weft.Comm(alone).native is None
    with pytest.raises(weft.UnsupportedError):
        weft.Work.wrap(alone, 1)
    del stream


def test_streams_and_works_of_calls(alone):
    tensor = weft.Tensor(alone, weft.spec("f32[4] R", "1"))
    stream = weft.Stream(alone)
    work = weft.Work(alone, stream)
    tensor.fill(2, stream)
    stream.wait()
    stream.wait(1)
    tensor.uniform(1, stream=stream)
    assert stream.test() is True and work.test() is True and not hasattr(stream, "close")  # other threads may use it
    work.close()
    with pytest.raises(RuntimeError, match="was closed"):
        work.test()
    with pytest.raises(TypeError, match="stream must be"):
        tensor.fill(1, "stream")
    del tensor, stream, work


def test_a_communicator_lives_as_long_as_those_that_it_lends(alone):
    assert not hasattr(weft.Comm, "close")  # it would end the communicators of its axes, which may be in use
    parts = weft.Comm(alone).split(0).along(weft.mesh("tp=1"), "tp")
    values = bytearray(8)
    parts.all_reduce(values)
    assert parts.context is alone and alone.world.size == 1 and parts.size == 1
    del parts


def test_buffers_of_other_sizes_are_refused(alone):
    tensor = weft.Tensor(alone, weft.spec("u8[4] R", "1"))
    tensor.from_host(b"abcd")
    for wrong in (bytearray(3), bytearray(0)):
        with pytest.raises(weft.InvalidError):
            tensor.to_host(wrong)
    with pytest.raises((TypeError, BufferError)):
        tensor.to_host(b"1234")  # it cannot be written
    with pytest.raises(TypeError):
        tensor.from_host(3)
    with pytest.raises(ValueError, match="seed"):
        super(weft.Tensor, tensor).uniform((-1, 0), 0, 1)
    with pytest.raises(ValueError, match="at most 2"):
        super(weft.Tensor, tensor).uniform((1, 2, 3), 0, 1)
    assert alone.moves["bound"] >= 0 and alone.memory["pieces"] == 1
    del tensor
