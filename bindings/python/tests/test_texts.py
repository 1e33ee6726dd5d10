"""What users see: names in tracebacks, and the texts of objects."""

import pickle

import pytest

import weft
from weft import ops


def test_exceptions_are_shown_where_users_find_them():
    with pytest.raises(weft.ParseError) as caught:
        weft.mesh("dp=")
    assert f"{caught.type.__module__}.{caught.type.__qualname__}" == "weft.ParseError"
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), weft.ParseError)


def test_the_package_offers_no_module_of_python_and_no_table_of_its_own():
    assert not {"builtins", "re", "BY_CODE", "error_of"} & set(dir(weft))


def test_texts_do_not_end_with_an_empty_line(simulated):
    plan = weft.plan("f32[8]", "4", "S(0)", "R")
    tensor = weft.Tensor(simulated, weft.spec("f32[4] S(0)", "4"), "x")
    for thing in (plan, tensor):
        assert str(thing) == str(thing).rstrip("\n") and "\n" in str(thing)
    assert repr(plan) == "<weft.Plan, f32[8] S(0) to f32[8] R, 1 steps>"


def test_a_tensor_has_its_shape_and_its_dtype(simulated):
    tensor = weft.Tensor(simulated, weft.spec("bf16[4,6] S(0)", "4"))
    assert tensor.shape == (4, 6) and tensor.dtype == "bf16" and tensor.local(0).shape == (1, 6)


def test_objects_describe_themselves(simulated, tmp_path):
    assert repr(weft.Comm(simulated)) == "<weft.Comm world, rank 0 of 4>"
    assert repr(weft.Schedule("1f1b", 2, 4)) == "<weft.Schedule 1f1b, 2 ranks, 4 microbatches>"
    x, w = weft.spec("f32[8,16] S(1)", "4"), weft.spec("f32[16,32] S(0)", "4")
    assert repr(ops.check("mm", [x, w])) == "<weft.ops.Choice, f32[8,16] S(1), f32[16,32] S(0) -> f32[8,32] P(sum)>"
    with weft.Writer(tmp_path / "x.safetensors", [("x", "f32", (2,))]) as writer:
        writer.write("x", memoryview(bytearray(8)).cast("f"))
    checkpoint = weft.Checkpoint(tmp_path / "x.safetensors")
    assert repr(checkpoint) == "<weft.Checkpoint, safetensors, 1 tensors>"
    checkpoint.close()
    assert repr(checkpoint) == "<weft.Checkpoint, closed>"


def test_a_layout_in_place_of_a_tensor_is_a_type_error():
    x, w = weft.spec("f32[8,16] S(1)", "4"), weft.spec("f32[16,32] S(0)", "4")
    with pytest.raises(TypeError, match=r"weft\.Tensor.*not on weft\.spec"):
        ops.apply("mm", [x, w], print)
