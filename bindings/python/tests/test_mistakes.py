"""What a new user gets wrong is answered in the words of Python, and never by silence."""

import errno
import re
import sys

import pytest

import weft
import weft.ops
from weft import _arrays, _errors

np = pytest.importorskip("numpy")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.safetensors"
    with weft.Writer(path, [("x", "f32", (4, 6))], metadata={"k": "v"}) as writer:
        writer.write("x", np.arange(24, dtype=np.float32).reshape(4, 6))
    return path


# ---- wrong data ----


@pytest.mark.parametrize("wrong", [((4, 6), np.float64), ((4, 6), np.int32), ((6, 4), np.float32), ((24,), np.float32), ((96,), np.int8)])
def test_a_checkpoint_is_not_read_to_an_array_of_another_kind(file, wrong):
    spec, target = weft.spec("f32[4,6] R", "1"), np.empty(*wrong)
    with weft.Checkpoint(file) as checkpoint:
        for read in (lambda: checkpoint.read("x", out=target), lambda: checkpoint.read_into("x", target),
                     lambda: checkpoint.read_shard("x", target, spec, 0)):  # fmt: skip
            with pytest.raises(ValueError, match=r"(target|out) is \w+\[[\d,]+\], but the \w+ .* is f32\[4,6\]; give such an array, or its bytes"):
                read()
        with pytest.raises(ValueError, match=r"f32\[2,3\]"):
            checkpoint.read_into("x", np.empty((3, 2), np.float32), (1, 0), (2, 3))


def test_a_checkpoint_is_read_to_bytes_and_to_arrays_that_fit(file):
    raw, box = np.empty(96, np.uint8), np.empty((2, 3), np.float32)
    with weft.Checkpoint(file) as checkpoint:
        checkpoint.read("x", out=raw)
        checkpoint.read_into("x", box, (1, 0), (2, 3))
        checkpoint.read_shard("x", whole := np.empty((4, 6), np.float32), weft.spec("f32[4,6] R", "1"), 0)
    assert (raw.view(np.float32) == np.arange(24)).all() and (box == [[6, 7, 8], [12, 13, 14]]).all() and whole[3, 5] == 23


def test_host_arrays_of_tensors_have_their_dtype_and_shape(alone):
    tensor = weft.Tensor(alone, weft.spec("f32[6,4] R", "1"))
    for wrong in (np.ones((6, 4), np.int32), np.ones((4, 6), np.float32), np.ones((6, 4)), np.ones(24, np.float32)):
        for copy in (tensor.from_host, tensor.to_host):
            with pytest.raises(ValueError, match=r"host is \w+\[[\d,]+\], but the shard of rank 0 is f32\[6,4\]"):
                copy(wrong)
    with pytest.raises(TypeError, match=r"host must be an array in host memory.*not \[1, 2\]"):
        tensor.from_host([1, 2])
    tensor.from_host(np.full((6, 4), 3, np.float32))
    tensor.to_host(raw := bytearray(96))
    assert raw == np.full(24, 3, np.float32).tobytes()
    half = weft.Tensor(alone, weft.spec("bf16[2] R", "1"))
    half.from_host(np.array([0x3F80, 0x4000], np.uint16))  # NumPy has no bf16: its bits
    half.to_host(bits := np.empty(2, np.uint16))
    assert bits.tolist() == [0x3F80, 0x4000]
    del tensor, half


def test_bits_stand_for_dtypes_that_numpy_does_not_have(alone):
    dtypes = (*_arrays.NUMPY_NAMES, "bf16", "f8e4m3", "f8e5m2")
    for dtype, code in ((dtype, code) for dtype in dtypes for code in "?bBhHiIqQefdFD"):
        tensor, host = weft.Tensor(alone, weft.spec(f"{dtype}[3] R", "1")), np.zeros(3, code)
        own = np.dtype(_arrays.NUMPY_NAMES.get(dtype) or f"u{weft.dtype_bytes(dtype)}")
        if host.dtype == own or code == "B" and own.itemsize == 1:
            tensor.from_host(host)
            tensor.to_host(host)
            continue
        for copy in (tensor.from_host, tensor.to_host):
            with pytest.raises((ValueError, weft.InvalidError)):
                copy(host)


def test_a_host_array_is_released_whether_it_fits_or_not(alone):
    tensor = weft.Tensor(alone, weft.spec("f32[2,3] R", "1"))
    fits, other = bytearray(24), bytearray(20)
    array, wrong = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    counts = [sys.getrefcount(each) for each in (array, wrong, tensor)]
    for copy in (tensor.from_host, tensor.to_host, lambda host: tensor.to_host(host, None), lambda host: tensor.from_host(stream=None, host=host)):
        copy(array)
        copy(fits)
        for one, error in ((wrong, "host is f32"), (wrong.T, "contiguous"), (other, "host has 20 bytes")):
            with pytest.raises((ValueError, BufferError), match=error):
                copy(one)
    fits.extend(b"x")  # not while it is exported
    other.clear()
    del copy
    assert [sys.getrefcount(each) for each in (array, wrong, tensor)] == counts
    array.flags.writeable = False
    tensor.from_host(array)
    with pytest.raises(ValueError, match="read-only"):
        tensor.to_host(array)
    for call in (lambda: tensor.to_host(), lambda: tensor.to_host(array, None, None), lambda: tensor.to_host(fits, hosts=fits)):
        with pytest.raises(TypeError, match=r"to_host\(\)"):
            call()


def test_host_arrays_of_simulated_ranks_have_all_shards(simulated):
    tensor = weft.Tensor(simulated, weft.spec("f32[4,2] S(0)", "4"))
    tensor.from_host(np.arange(8, dtype=np.float32))
    assert np.asarray(tensor.local(3)).tolist() == [[6, 7]]
    with pytest.raises(ValueError, match="host is f64"):
        tensor.from_host(np.arange(8, dtype=np.float64))
    del tensor


def test_a_rank_without_a_size_is_refused():
    with pytest.raises(ValueError, match="weft.Context: rank is 1, but size is not set; set both, or neither"):
        weft.Context(rank=1)


def test_numbers_out_of_range_are_refused(alone):
    tensor = weft.Tensor(alone, weft.spec("f32[4] R", "1"))
    for p in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="p is .*; expected a number above 0, or math.inf"):
            weft.clip_gradient_norm(alone, [tensor], 1e9, p=p)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="seed is"):
            weft.Random(seed)
    for wait in (weft.Stream(alone).wait, weft.Work(alone).wait):
        with pytest.raises(ValueError, match="timeout is -1; expected a number of seconds, None for no limit"):
            wait(-1)
    del tensor, wait


# ---- sentinels and figures of C ----


def test_indices_out_of_range_are_index_errors(alone):
    mesh, schedule, plan = weft.mesh("dp=2,tp=4"), weft.Schedule("gpipe", 2, 2), weft.AttentionPlan(weft.mesh("cp=2"), "cp", 8)
    for call, text in (
        (lambda: mesh.axis_size(9), r"axis is 9; weft.mesh\('dp=2,tp=4'\) has no such axis"),
        (lambda: mesh.axis_name(-1), "axis is -1"),
        (lambda: mesh.rank_at(99), "position is 99"),
        (lambda: schedule.rank_of(9), "stage is 9; <weft.Schedule gpipe, 2 ranks, 2 microbatches> has no such stage"),
        (lambda: weft.Comm(alone).world_rank(9), "rank is 9"),
        (lambda: weft.spec("f32[4] R,R", mesh).shard(-1), "rank is -1"),
        (lambda: weft.spec("f32[4] R,R", mesh).shard_bytes(-1), "rank is -1"),
        (lambda: plan.length(2), "coordinate is 2, but the axis has 2 ranks"),
        (lambda: plan.work(-1), "coordinate is -1"),
    ):
        with pytest.raises(IndexError, match=text):
            call()
    assert weft.Comm(alone).find_rank(9) is None and weft.Comm(alone).find_rank(0) == 0
    assert weft.spec("f32[8] S(0),R", mesh).shard_bytes(99) == 0  # a rank outside the mesh holds nothing


def test_axes_have_names_or_numbers():
    mesh = weft.mesh("dp=2,tp=4")
    assert mesh.axis_size("tp") == mesh.axis_size(1) == 4 and mesh.axis("dp") == 0
    assert str(mesh.unflatten("tp", [2, 2], ["a", "b"])) == str(mesh.unflatten(1, [2, 2], ["a", "b"])) == "dp=2,a=2,b=2"
    with pytest.raises(ValueError, match=r"names must be given, one for each of \[2, 2\]"):
        mesh.unflatten(1, [2, 2])
    assert mesh.slice(1, 5) == mesh.slice("tp", 5) == mesh.slice("1", 5)
    assert weft.FSDP.shard_spec(weft.spec("f32[8,3] R", "dp=4"), 0).placements == "S(0)"
    assert weft.AttentionPlan(weft.mesh("cp=2"), 0, 8).ranks == 2
    assert 7 in mesh and 8 not in mesh and "tp" not in mesh


def test_figures_are_those_of_python(alone, file):
    assert "host_memory" in alone.device["features"]
    assert weft.plan("f32[8,8]", "dp=2,tp=4", "R,S(1)", "R,R").steps[0]["axes"] == ("tp",)
    assert weft.plan("f32[8,8]", "2x4", "R,S(1)", "R,R").step(0)["axes"] == (1,)
    assert [step["kind"] for step in weft.plan("f32[8]", "2", "S(0)", "R")] == ["all-gather"]
    with weft.Checkpoint(file) as checkpoint:
        assert checkpoint.metadata == {"k": "v"} and checkpoint.info["metadata_count"] == 1 and checkpoint.unlisted == []
        assert "metadata" not in checkpoint.info and "unlisted" not in checkpoint.info
    assert weft.CostTable("dtensor").compute_ns(1, 1) is None and weft.CostTable("default").compute_ns(10**9, 1) > 0
    costs = weft.CostTable("h100")
    assert costs.attention_flops < costs.flops < costs.f8_flops and (costs.compute_beside, costs.moves_beside) == (15, 30)
    assert weft.plan("f32[8]", "2", "S(0)", "R").info["step_count"] == 1
    assert weft.Stream(alone).native is None and weft.Comm(alone).native is None
    with weft.trace(alone) as trace:
        weft.save(file, {"x": weft.Tensor(alone, weft.spec("f32[4] R", "1"))}, replace=True, context=alone)
    assert [(one["label"], one["peer"], one["error"]) for one in trace.records if one["operation"] == "save"] == [("weft.save", None, None)]


# ---- the texts of errors ----


@pytest.mark.parametrize(("text", "spoken"), [
    ("weft_save: names is NULL", "weft.save: names is None"),
    ("weft_fsdp_reshard is missing", "weft.FSDPGroup.reshard is missing"),
    ("weft_init: weft_init_options.rank is 0 and .size is 2; set .exchange or .threads", "weft.Context: rank is 0 and size is 2; set exchange"),
    ("weft_op_check: weft_op_call.name is NULL", "weft.ops.check: name is None"),
    ("weft_pipeline_create: the callback forward is NULL", "weft.Pipeline: forward is None"),
    ("weft_op_check: fixed_inputs has 2 entries (fixed_input_count)", "weft.ops.check: fixed_inputs has 2 entries"),
    ("expected WEFT_MINIMIZE_TIME (0) or WEFT_MINIMIZE_BYTES (1)", 'expected "time" or "bytes"'),
    ("WEFT_TIMEOUT is not a number", "WEFT_TIMEOUT is not a number"),
    ("/tmp/weft_save/x: tensor \"weft_save\" is missing", "/tmp/weft_save/x: tensor \"weft_save\" is missing"),
    ("call weft_group_end first.", "call weft.Comm.group_end first."),
])  # fmt: skip
def test_errors_have_the_names_of_python(text, spoken):
    assert str(_errors.error_of(-1, "ERR_INVALID", text)) == spoken


def test_a_move_of_an_array_onto_itself_is_told_what_to_give(alone):
    spec, x = weft.spec("f32[4] R", "1"), np.ones(4, np.float32)
    move = weft.Move(alone, [spec], [spec])
    with pytest.raises(weft.InvalidError, match=r"sources\[0\] and targets\[0\] are the same memory; give each target memory of its own"):
        move([x], [x])
    del move


def test_the_beginning_of_a_backend_is_a_hint():
    with pytest.raises(weft.NoBackendError, match=r"did you mean gloo-cpu\?"):
        weft.Context("gloo")


def test_errors_of_calls_have_no_names_of_c(alone):
    stored = weft.Tensor(alone, weft.spec("f32[8,3] S(0)", "tp=1"), "p")
    for call in (
        lambda: weft.FSDP(alone, stored.spec.mesh, "tp").group([stored]).unshard_end(),
        lambda: weft.save("/nope/x", [weft.Tensor(alone, stored.spec)], context=alone),
        lambda: weft.dump(alone),
        lambda: weft.Checkpoint("/nope"),
        lambda: weft.Pipeline(alone, stored.spec.mesh, "tp", weft.Schedule("gpipe", 2, 2), [["f32[2] R"]], print, print),
        lambda: weft.Context(rank=0, size=2),
        lambda: weft.FSDP(alone, stored.spec.mesh, "tp").group([stored]).reduce([stored]),
    ):
        with pytest.raises(weft.Error) as caught:
            call()
        error = str(caught.value)
        assert not re.search(r"\bweft_|\bNULL\b|\bcallback\b|_count\)", error), error
    del stored, call, caught


def test_errors_know_ranks_files_and_numbers(alone):
    assert _errors.error_of(-12, "", "ranks 3 and 1 hold the same part").rank == 3
    with pytest.raises(weft.SystemCallError) as caught:
        weft.save("/nope/a/b", {"x": weft.Tensor(alone, weft.spec("f32[2] R", "1"))}, context=alone)
    assert caught.value.errno == errno.ENOENT and caught.value.filename == "/nope/a/b" and "/nope/a/b" in str(caught.value)
    with pytest.raises(FileNotFoundError) as caught:
        weft.Checkpoint("/nope")
    assert isinstance(caught.value, weft.NotFoundError) and isinstance(caught.value, LookupError)
    assert caught.value.filename == "/nope" and caught.value.errno == errno.ENOENT and "/nope" in str(caught.value)
    with pytest.raises(weft.NotFoundError) as caught:
        weft.mesh("dp=2").find_axis("tp")
    assert not isinstance(caught.value, OSError)


def test_a_missing_rank_is_told_of_redistribute(ranks):
    ranks(2, """
        import numpy as np
        import weft
        with weft.Context(timeout=3) as context:
            if context.rank == 0:
                try:
                    weft.redistribute(np.ones(4, np.float32), "2", "S(0)", "R", context=context)
                except weft.Error as error:
                    assert "weft.redistribute" in str(error) and "rank 1" in str(error) and "Tensor" not in str(error), str(error)
                else:
                    raise SystemExit("it did not fail")
        """)


def test_mistakes_name_the_argument(alone, tmp_path):
    tensor, spec = weft.Tensor(alone, weft.spec("f32[6,4] R", "1")), weft.spec("f32[4] R", "1")
    for call, error, text in (
        (lambda: weft.Writer(tmp_path / "x", [("x", "f32")]), ValueError, r"an entry must be \(name, dtype, shape\)"),
        (lambda: weft.Writer(tmp_path / "x", [("x", "float32", (4,))]), ValueError, "did you mean 'f32'"),
        (lambda: weft.Writer(tmp_path / "x", [("x", np.float32, (4,))]), TypeError, "must be a str such as"),
        (lambda: tensor.reshape(24), TypeError, "shape must be a list, not 24"),
        (lambda: weft.clip_gradient_norm(alone, tensor, 1.0), TypeError, "tensors must be a list"),
        (lambda: weft.save(tmp_path / "x", tensor, context=alone), TypeError, "tensors must be a dictionary of tensors by name"),
        (lambda: weft.Move(alone, spec, spec), TypeError, "sources must be a list of weft.Spec"),
        (lambda: weft.mesh("dp=2").rank_at("tp"), TypeError, "position must be an int, not 'tp'"),
        (lambda: weft.Spec.from_shards(weft.mesh("2"), "f32", "S(0)", 1, [(3,), (4,)]), TypeError, r"an entry of shards must be an int, not \(3,\)"),
        (lambda: weft.Schedule("gpipe", 2, 2).simulate(costs=[{"fwd": 1}]), TypeError, "an entry of costs has no 'fwd'; its keys are forward, input, .*parameters"),
        (lambda: weft.Pipeline(alone, spec.mesh, 0, weft.Schedule("gpipe", 1, 1), [], None, print), TypeError, "forward must be a function"),
        (lambda: weft.Random("a"), TypeError, "seed must be an int, not 'a'"),
        (lambda: weft.Random(1, 2.5), TypeError, "offset must be an int, not 2.5"),
        (lambda: weft.reorder([1]), TypeError, "nodes must be a list of weft.Node, not of 1"),
        (lambda: weft.reorder([weft.Node()], "best"), ValueError, "method is 'best'; expected one of 'iterative', "),
        (lambda: weft.style_layouts("col", "weight", spec, 0), ValueError, "style is 'col'; expected one of 'column', "),
        (lambda: weft.style_layouts("row", "w", spec, 0), ValueError, "part is 'w'; expected one of 'weight', "),
        (lambda: weft.ops.apply("relu", [tensor], None), TypeError, "kernel must be a function of a weft.ops.Run, not None"),
        (lambda: weft.spec(spec.mesh, "f32[4] S(0)"), TypeError, r"text and mesh are swapped; .*: \('f32\[4\] S\(0\)', '1'\)"),
        (lambda: weft.spec("tp=1", "f32[4] S(0)"), TypeError, "text and mesh are swapped"),
        (lambda: weft.plan("f32[4]", "S(0)", "dp=1", "R"), TypeError, r"mesh is 'S\(0\)' and source is 'dp=1'; give the mesh first"),
        (lambda: tensor.fill("x"), TypeError, "value must be a number, not 'x'"),
        (lambda: weft.plan("f32[4]", "2", ["S(0)"], "R"), TypeError, "source must be a str"),
        (lambda: weft.init(timeot=3), TypeError, r"init\(\) got an unexpected keyword argument 'timeot'"),
        (lambda: weft.ops.check("mm", [], exakt=True), TypeError, r"ops.check\(\) has no argument 'exakt'; did you mean 'exact'\?"),
        (lambda: weft.save(tmp_path / "x", {"x": tensor}, replce=True, context=alone), TypeError, "save.* did you mean 'replace'"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()
    del tensor, call


def test_a_move_whose_mesh_and_placements_are_swapped_says_so(alone, simulated):
    x = np.ones(4, np.float32)
    for shape in (None, (4,)):
        with pytest.raises(TypeError, match=r"mesh is 'S\(0\)' and source is 'dp=1'; give the mesh first, then the placements"):
            weft.redistribute(x, "S(0)", "dp=1", "R", shape, context=alone)
        with pytest.raises(weft.ParseError, match="mesh \"S"):
            weft.redistribute(x, "S(0)", "R", "R", shape, context=alone)
    with pytest.raises(weft.UnsupportedError, match="weft.redistribute moves the array of one rank.*; move a weft.Tensor, which has"):
        weft.redistribute(x, "4", "S(0)", "R", context=simulated)


def test_roots_are_ints(alone):
    comm, x = weft.Comm(alone), np.ones(4, np.float32)
    for root in (x, "0", None, 0.0):
        for call in (lambda: comm.broadcast(x, root), lambda: comm.reduce(x, root=root), lambda: comm.gather(x, x, root),
                     lambda: comm.scatter(x, x, root)):  # fmt: skip
            with pytest.raises(TypeError, match="root must be an int, not "):
                call()
    comm.broadcast(x, np.int64(0))
    del comm, call


def test_a_writer_names_the_tensors_that_it_has(tmp_path):
    with weft.Writer(tmp_path / "x", [("pack", "u8", (4,)), ("y", "u8", (4,))]) as writer:
        with pytest.raises(weft.NotFoundError, match="the checkpoint has no tensor 'pyck'; did you mean 'pack'?"):
            writer.write("pyck", b"abcd")
        with pytest.raises(LookupError, match="the checkpoint has no tensor 'weight'; its tensors are 'pack', 'y'$"):
            writer.write("weight", b"abcd")
        writer.write("pack", b"abcd")
        writer.write("y", b"abcd")


def test_placements_of_all_tensors_are_named_as_they_were_given(file, alone):
    with pytest.raises(weft.ParseError, match=r'^placements "\* S\(0\)", position 1: expected one of'):
        weft.load(file, "* S(0)", "1", context=alone)


def test_formats_that_are_only_read_are_refused(file, tmp_path, alone):
    tensor = weft.Tensor(alone, weft.spec("f32[4] R", "1"))
    for call in (
        lambda: weft.save(tmp_path / "y", {"x": tensor}, format="dcp", context=alone), lambda: weft.reshard(file, tmp_path / "y", format="dcp"),
        lambda: weft.Writer(tmp_path / "y", [("x", "f32", (4,))], format="dcp"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="format is 'dcp'; expected one of: safetensors, huggingface, ranks, npy"):
            call()
    del tensor, call


def test_there_is_one_order_of_arguments():
    assert not hasattr(weft.Schedule, "create") and not hasattr(weft.Spec, "parse")
    assert weft.spec("f32[4] R", mesh="2") == weft.Spec("f32[4] R", "2")


def test_every_class_has_a_text_of_its_own(alone, simulated):
    schedule, spec = weft.Schedule("gpipe", 2, 2), weft.spec("f32[4] R", "1")
    fsdp, tensor = weft.FSDP(alone, spec.mesh, 0), weft.Tensor(alone, spec, "w")
    group = fsdp.group([tensor])
    move = weft.Move(alone, [spec], [spec])
    for thing, text in (
        (fsdp, "<weft.FSDP, groups 1"), (group, "<weft.FSDPGroup, count 1, state 'sharded'"), (weft.Stream(alone), "<weft.Stream>"),
        (weft.Work(alone), "<weft.Work>"), (schedule.simulate(), "<weft.Timeline, makespan"), (move, "<weft.Move>"),
        (tensor.local(0), "<weft.Shard, shape (4,)"), (weft.CostTable("default"), "<weft.CostTable, name 'h100', flops "),
        (weft.AttentionPlan(weft.mesh("cp=2"), "cp", 8), "<weft.AttentionPlan, ranks 2"), (weft.counts(alone), "<weft.Counts, not begun>"),
        (weft.LayoutFile.parse("mesh 2\n* R\n"), "<weft.LayoutFile, mesh weft.mesh('2')>"),
    ):  # fmt: skip
        assert repr(thing).startswith(text), repr(thing)
    group.close()
    assert repr(group) == "<weft.FSDPGroup, closed>"
    fsdp.close()
    del thing, tensor, move, group


def test_a_context_names_the_objects_that_use_it():
    context = weft.Context(simulated_ranks=2)
    spec = weft.spec("f32[4] S(0)", "2")
    tensors = [weft.Tensor(context, spec, "w"), weft.Tensor(context, spec)]
    stream = weft.Stream(context)
    with pytest.raises(RuntimeError, match=r"3 of its objects are in use: weft.Stream, weft.Tensor f32\[4\] S\(0\), weft.Tensor 'w' f32\[4\] S\(0\); delete"):
        context.close()
    del stream
    tensors += [weft.Tensor(context, spec, str(number)) for number in range(4)]
    with pytest.raises(RuntimeError, match="6 of its objects are in use: weft.Tensor '3' .*, weft.Tensor '0' f32.*, and 2 more; delete them"):
        context.close()
    del tensors[1:4]
    with pytest.raises(RuntimeError, match="3 of its objects are in use: weft.Tensor '3' .*, weft.Tensor '2' .*, weft.Tensor 'w' f32.*; delete them"):
        context.close()
    with pytest.raises(RuntimeError) as raised:
        context.close()
    tensors.clear()
    context.close()  # the exception, which is kept, keeps none of them
    assert raised.value


def test_memory_of_a_device_that_states_no_number_is_refused():
    class Foreign:
        __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3, "strides": None}

    with weft.Context("gloo-cpu") as context:
        with pytest.raises(ValueError, match="^array is in the memory of a CUDA device; the backend gloo-cpu works in host memory$"):
            context.world.send(Foreign(), 0)
        with pytest.raises(ValueError, match="^array is in the memory of a CUDA device; the backend gloo-cpu works in host memory$"):
            weft.redistribute(Foreign(), "1", "R", "R", shape=(4,), context=context)


def test_a_context_waits_for_a_stream_or_for_some_time():
    with weft.Context("gloo-cpu") as context:
        stream = weft.Stream(context)
        context.wait()
        context.wait(stream)
        context.wait(stream, timeout=5)
        context.wait(timeout=5)
        with pytest.raises(ValueError, match="timeout is -1; expected a number of seconds"):
            context.wait(timeout=-1)
        with pytest.raises(TypeError, match="stream must be None"):
            context.wait("now")
        del stream
