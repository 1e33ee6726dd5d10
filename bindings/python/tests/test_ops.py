"""Operators: rules, strategies and kernels in Python."""

import gc

import pytest

import weft
from weft import ops

np = pytest.importorskip("numpy")


def multiply(run):
    a, b = (np.from_dlpack(shard) for shard in run.inputs)
    np.matmul(a, b, out=np.from_dlpack(run.outputs[0]))


def test_layouts_of_outputs_follow_from_rules():
    x, w = weft.spec("f32[8,16] S(1)", "4"), weft.spec("f32[16,32] S(0)", "4")
    choice = ops.check("mm", [x, w])
    assert str(choice.outputs[0]) == "f32[8,32] P(sum)" and choice.local
    assert choice.inputs == (x, w) and choice.moves == (None, None) and "mm" in choice.rule
    with pytest.raises(weft.MismatchError, match="mm"):
        ops.check("mm", [x, weft.spec("f32[16,32] S(1)", "4")], exact=True)
    cheapest = ops.propose("mm", [x, weft.spec("f32[16,32] S(1)", "4")], no_partials=True)
    assert not cheapest.local and cheapest.cost_ns > 0
    assert sum(plan is not None for plan in cheapest.moves) == 1
    found = {tuple(map(str, c.outputs)) for c in ops.strategies("mm", [x, w])}
    assert {("f32[8,32] S(0)",), ("f32[8,32] S(1)",), ("f32[8,32] P(sum)",)} <= found


def test_inputs_of_several_dtypes_are_refused_unless_the_call_permits_them():
    inputs = [weft.spec("f32[4,4] S(0)", "2"), weft.spec("bf16[4,4] R", "2")]
    with pytest.raises(weft.Error, match="input a is f32, and b is bf16"):
        ops.check("mm", inputs)
    assert str(ops.check("mm", inputs, mixed_dtypes=True).outputs[0]) == "f32[4,4] S(0)"
    assert ops.propose("mm", inputs, mixed_dtypes=True) and ops.strategies("mm", inputs, mixed_dtypes=True)
    with pytest.raises(weft.Error, match="input a is f32, and b is bf16"):
        ops.Backward("mm", inputs)
    assert ops.Backward("mm", inputs, mixed_dtypes=True).calls


def test_lists_have_an_entry_for_each_tensor():
    x = weft.spec("f32[8,8] R", "4")
    for name, length in (("fixed_inputs", 2), ("fixed_outputs", 1), ("wanted_outputs", 1)):
        with pytest.raises(ValueError, match=f"{name} has {length + 1} entries, and the call has {length} {name.split('_')[1][:-1]}"):
            ops.propose("mm", [x, x], **{name: [None] * (length + 1)})
        ops.propose("mm", [x, x], **{name: [None] * length})
    for entries in ([], [True], [True] * 3):
        with pytest.raises(ValueError, match=f"wanted has {len(entries)} entries, and the call has 2 inputs"):
            ops.Backward("mm", [x, x], wanted=entries)
    with pytest.raises(TypeError, match="name of an attribute"):
        ops.check("mm", [x, x], {1: 2})
    with pytest.raises(TypeError, match="attribute dim must be a number"):
        ops.check("softmax", [x], {"dim": None})
    with pytest.raises(TypeError, match="no argument 'fixed'"):
        ops.check("mm", [x, x], fixed=[x])


def test_calls_that_are_incomplete_are_refused():
    x = weft.spec("f32[8,8] R", "4")
    create = weft._weft.Backward
    for call in ({}, {"name": "mm"}, {"name": "softmax", "inputs": [x], "attrs": [{}]},
                 {"name": "softmax", "inputs": [x], "attrs": [{"name": "dim", "kind": "text"}]},
                 {"name": "softmax", "inputs": [x], "attrs": [{"name": "dim", "kind": "list"}]}):  # fmt: skip
        with pytest.raises(weft.InvalidError):
            weft._weft._op_check(**call)
        with pytest.raises(weft.InvalidError):
            create(**call)
    choice = ops.check("softmax", [x], {"dim": -1})
    assert choice._input(1) is None and choice._output(9) is None and choice.memory == (None,)
    backward = ops.Backward("softmax", [x], {"dim": 1})
    assert backward._gradient(1) is None and backward._spec(source="result", index=2**31) is None
    assert backward._call(len(backward.calls)) is None
    backward.close()
    with pytest.raises(RuntimeError, match="closed"):
        backward.calls


def test_rules_are_registered_and_removed():
    before = ops.digest()
    ops.register("twice_python: a[m n] -> b[m n]; lin a")
    try:
        x = weft.spec("f32[8,4] S(0)", "2")
        assert ops.check("twice_python", [x]).outputs == (x,)
        assert "twice_python" in ops.names() and ops.rules("twice_python").startswith("twice_python:")
        with pytest.raises(weft.InvalidError):
            ops.register("twice_python: a[m n] -> b[m n]")
        ops.register("twice_python: a[m n] -> b[m n]", replace=True)
        assert ops.digest() != before
    finally:
        ops.remove("twice_python")
    assert ops.digest() == before
    with pytest.raises(weft.ParseError):
        ops.format("not a rule")
    with pytest.raises(weft.NotFoundError):
        ops.remove("twice_python")


def test_kernels_run_on_shards(simulated):
    on = weft.mesh("4")
    x = weft.Tensor(simulated, weft.spec("f32[8,12] S(0)", on))
    w = weft.Tensor(simulated, weft.spec("f32[12,5] R", on))
    x.normal(1)
    w.normal(2)
    seen = []

    def kernel(run):
        seen.append((run.name, run.rank, run.inputs[0].shape, run.inputs[0].offset))
        multiply(run)

    (y,) = ops.apply("mm", [x, w], kernel)
    assert seen == [("mm", rank, (2, 12), (2 * rank, 0)) for rank in range(4)]
    (split,) = ops.apply("mm", [x.move("S(1)"), w.move("S(0)")], multiply)
    assert str(split.spec) == "f32[8,5] P(sum)"
    assert split.compare(y)["largest"] < 1e-5
    with pytest.raises(weft.MismatchError):
        ops.apply("mm", [x.move("S(1)"), w.move("S(1)")], multiply)
    (moved,) = ops.apply("mm", [x.move("S(1)"), w.move("S(1)")], multiply, moves="made")
    (whole,) = ops.apply("mm", [x.move("S(1)"), w.move("S(1)")], multiply, moves="made", no_partials=True, costs="default")
    assert "P" not in str(whole.spec) and whole.compare(y)["largest"] < 1e-5
    assert moved.compare(y)["largest"] < 1e-5
    del x, w, y, split, moved, whole
    gc.collect()


def test_operators_over_split_dimensions(simulated):
    x = weft.Tensor(simulated, weft.spec("f32[3,10] S(1)", "4"))
    x.normal(7)
    phases = []

    def kernel(run):
        phases.append(run.name)
        inputs = [np.from_dlpack(shard) for shard in run.inputs]
        y = np.from_dlpack(run.outputs[0])
        assert run.count == 10 and run.attrs["dim"] == 1 and not inputs[0].flags.writeable
        if run.name == "softmax.max":
            y[...] = inputs[0].max(1).reshape(y.shape)
        elif run.name == "softmax.sum_exp":
            y[...] = np.exp(inputs[0] - inputs[1].reshape(3, 1)).sum(1).reshape(y.shape)
        else:
            y[...] = np.exp(inputs[0] - inputs[1].reshape(3, 1)) / inputs[2].reshape(3, 1)

    def whole(run):
        values = np.exp(np.from_dlpack(run.inputs[0]))
        np.from_dlpack(run.outputs[0])[:] = values / values.sum(1, keepdims=True)

    (y,) = ops.apply_phases("softmax", [x], kernel, {"dim": 1})
    assert str(y.spec) == "f32[3,10] S(1)"
    assert set(phases) == {"softmax.max", "softmax.sum_exp", "softmax.finish"}
    (expected,) = ops.apply("softmax", [x.move("R")], whole, {"dim": 1})
    assert y.compare(expected)["largest"] < 1e-6
    with pytest.raises(weft.UnsupportedError):
        ops.apply_phases("mm", [x, x], kernel)
    del x, y, expected
    gc.collect()


def test_errors_of_kernels_reach_the_caller(alone):
    x = weft.Tensor(alone, weft.spec("f32[4,4] R", "1"))
    x.fill(1)
    kept = []

    def keeps(run):
        kept.append(np.from_dlpack(run.inputs[0]))
        np.from_dlpack(run.outputs[0])[:] = 0

    def fails(run):
        raise KeyError("broken kernel")

    def writes(run):
        np.from_dlpack(run.inputs[0])[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        ops.apply("relu", [x], writes)
    del x
    gc.collect()
    for kernel, error in ((fails, KeyError), (keeps, BufferError)):
        with weft.Context() as context:
            x = weft.Tensor(context, weft.spec("f32[4,4] R", "1"))
            with pytest.raises(error):
                ops.apply("relu", [x], kernel)
            del x
            kept.clear()
            gc.collect()
    with weft.Context() as context:
        x = weft.Tensor(context, weft.spec("f32[4,4] R", "1"))
        late = []
        ops.apply("relu", [x], lambda run: late.append(run.inputs[0]))
        with pytest.raises(BufferError, match="has returned"):
            np.from_dlpack(late[0])
        del x
        gc.collect()


def test_gradients_are_computed(simulated):
    specs = [weft.spec("f32[8,12] S(0)", "4"), weft.spec("f32[12,5] R", "4")]
    tensors = [weft.Tensor(simulated, spec) for spec in specs]
    for seed, tensor in enumerate(tensors):
        tensor.normal(seed)
    (y,) = ops.apply("mm", tensors, multiply)
    slope = weft.Tensor(simulated, y.spec)
    slope.fill(1)
    backward = ops.Backward("mm", specs)
    assert [name for name, _, _ in backward.calls].count("mm") == 2
    dx, dw = backward.apply([*tensors, y], [slope], multiply)
    assert (dx.spec.shape, dw.spec.shape) == ((8, 12), (12, 5))
    only = ops.Backward("mm", specs, wanted=[True, False])
    assert only.gradients[1] is None
    del tensors, y, slope, dx, dw
    gc.collect()


def test_kernels_run_on_ranks(ranks):
    ranks(2, """
        import numpy as np, weft
        from weft import ops
        context = weft.init()
        x = weft.Tensor(context, weft.spec("f32[4,6] S(1)", "2"))
        w = weft.Tensor(context, weft.spec("f32[6,3] S(0)", "2"))
        x.normal(1), w.normal(2)
        def multiply(run):
            a, b = map(np.from_dlpack, run.inputs)
            np.matmul(a, b, out=np.from_dlpack(run.outputs[0]))
        (y,) = ops.apply("mm", [x, w], multiply)
        whole = np.from_dlpack(x.full()) @ np.from_dlpack(w.full())
        assert np.allclose(np.from_dlpack(y.full()), whole, atol=1e-5)
        def fails(run):
            if run.rank == 1: raise KeyError("lost")
            multiply(run)
        try:
            (z,) = ops.apply("mm", [x, w], fails)
            z.full()
        except KeyError:
            assert context.rank == 1
        except weft.Error as error:
            assert context.rank == 0 and "rank 1" in str(error), error
        else:
            raise AssertionError("no error")
    """)
