"""Checkpoints: written, read, loaded, saved, resharded and compared."""

import re

import pytest

import weft

np = pytest.importorskip("numpy")

LAYOUT = "mesh tp=4\n*.weight S(0)\n* R\n"


@pytest.fixture
def model(tmp_path):
    """A checkpoint of three tensors, and its arrays."""
    generator = np.random.default_rng(0)
    arrays = {
        "a.weight": generator.standard_normal((8, 6)).astype(np.float32),
        "b.weight": generator.standard_normal((5, 3)).astype(np.float64),
        "c.bias": np.arange(7, dtype=np.int32),
    }
    path = tmp_path / "model.safetensors"
    entries = [(name, {"f4": "f32", "f8": "f64", "i4": "i32"}[array.dtype.str[1:]], array.shape)
               for name, array in arrays.items()]  # fmt: skip
    with weft.Writer(path, entries, metadata={"note": "test"}) as writer:
        for name, array in arrays.items():
            writer.write(name, array[:2].copy())
            writer.write(name, array[2:].copy(), offset=(2,) + (0,) * (array.ndim - 1))
    return path, arrays


def test_what_was_written_is_read(model):
    path, arrays = model
    checkpoint = weft.Checkpoint(path)
    assert checkpoint.names == sorted(arrays) and checkpoint.format == "safetensors"
    assert checkpoint.metadata == {"note": "test"} and len(checkpoint) == 3
    for name, array in arrays.items():
        assert np.array_equal(np.asarray(checkpoint.read(name)), array)
    part = np.empty((3, 2), np.float32)
    checkpoint.read("a.weight", (4, 1), (3, 2), out=part)
    assert np.array_equal(part, arrays["a.weight"][4:7, 1:3])
    shard = np.empty((2, 6), np.float32)
    checkpoint.read_shard("a.weight", shard, weft.spec("f32[8,6] S(0)", "4"), 3)
    assert np.array_equal(shard, arrays["a.weight"][6:])
    with pytest.raises(ValueError, match=r"out is f32\[3,2\], but the box of tensor a.weight is f32\[8,6\]"):
        checkpoint.read("a.weight", out=part)
    with pytest.raises(weft.NotFoundError, match="a.weight"):
        checkpoint.read("a.weigth")


def test_a_writer_takes_each_dtype_that_numpy_has(tmp_path):
    arrays = {name: np.array([[0, 1], [1, 1]]).astype(dtype) for name, dtype in weft._arrays.NUMPY_NAMES.items()
              if name != "c128"}  # safetensors has no such dtype
    with weft.Writer(tmp_path / "all.safetensors", [(name, name, (2, 2)) for name in arrays]) as writer:
        for name, array in arrays.items():
            writer.write(name, array)
    checkpoint = weft.Checkpoint(tmp_path / "all.safetensors")
    for name, array in arrays.items():
        found = np.empty_like(array)
        checkpoint.read_into(name, found)
        assert (found == array).all(), name


def test_a_checkpoint_is_closed_after_those_that_are_made_from_it(model):
    path, arrays = model
    with weft.Checkpoint(path) as checkpoint:
        assert "a.weight" in checkpoint and "d" not in checkpoint and list(checkpoint) == checkpoint.names
        assert checkpoint.checksum(0) == checkpoint.checksum("a.weight")
        assert checkpoint.info["bytes"] == checkpoint.bytes == sum(array.nbytes for array in arrays.values())
        mapped = checkpoint.map(weft.Rules.parse("x.weight = a.weight\n* = *\n"))
        with pytest.raises(RuntimeError, match="the Checkpoint is in use by an object that was made from it"):
            checkpoint.close()
        assert np.array_equal(np.asarray(mapped.read("x.weight")), arrays["a.weight"])
        mapped.close()
    for closed in (mapped, checkpoint):
        with pytest.raises(RuntimeError, match="the Checkpoint was closed"):
            closed.read("c.bias", out=np.empty(7, np.int32))


def test_a_tensor_that_is_missing_is_named_with_its_file(model, tmp_path, alone):
    path, _ = model
    weft.reshard(path, tmp_path / "folder")
    rules = weft.Rules.parse("x.weight = a.weight\n* = *\n")
    for where in (path, tmp_path / "folder"):
        text = re.escape(str(where)) + ' has no tensor "b.weigth"; did you mean "b.weight"'
        with pytest.raises(weft.NotFoundError, match=f"weft.Checkpoint.find: {text}"):
            weft.load(where, "R", "1", ["b.weigth"], context=alone)
        with pytest.raises(weft.NotFoundError, match=f"weft.Checkpoint.find: {text}"):
            weft.Checkpoint(where).checksum("b.weigth")
        with pytest.raises(weft.NotFoundError, match=f"after its rules, {text}"):
            weft.load(where, "R", "1", ["b.weigth"], rules=rules, context=alone)


def test_a_writer_without_commit_leaves_nothing(tmp_path):
    path = tmp_path / "lost.safetensors"
    with pytest.raises(KeyError):
        with weft.Writer(path, [("x", "f32", (4,))]):
            raise KeyError("stop")
    with pytest.raises(weft.InvalidError, match="x"):
        with weft.Writer(path, [("x", "f32", (4,))]) as writer:
            writer.write("x", np.ones(2, np.float32))
    with pytest.raises(TypeError, match="tensor x is bf16, the array f64"):
        with weft.Writer(path, [("x", "BF16", (4,))]) as writer:
            writer.write("x", np.ones(4))
    assert not any(tmp_path.iterdir())


def test_tensors_are_loaded_and_saved(model, tmp_path, ranks):
    path, _ = model
    layout = tmp_path / "two.layout"
    layout.write_text(LAYOUT.replace("tp=4", "tp=2"))
    ranks(2, f"""
        import numpy as np, weft
        context = weft.init()
        tensors = weft.load({str(path)!r}, {str(layout)!r})
        assert list(tensors) == ["a.weight", "b.weight", "c.bias"]
        assert str(tensors["a.weight"].spec) == "f32[8,6] S(0)" and tensors["c.bias"].spec.placements == "R"
        assert np.from_dlpack(tensors["a.weight"]).shape == (4, 6)
        (only,) = weft.load({str(path)!r}, "S(1)", "tp=2", ["b.weight"]).values()
        assert str(only.spec) == "f64[5,3] S(1)"
        copy = {str(tmp_path / "copy.safetensors")!r}
        weft.save(copy, tensors)
        assert weft.verify({str(path)!r}, copy) == []
        try:
            weft.save(copy, tensors)
        except weft.InvalidError as error:
            assert "exists" in str(error), error
        else:
            raise AssertionError("it was replaced")
        saving = weft.save_begin({str(tmp_path / "ranks")!r}, tensors, layout=weft.LayoutFile({str(layout)!r}))
        saving.wait()
        assert saving.ended
        tensors["c.bias"].fill(1)
        weft.save(copy, tensors, replace=True)
    """)
    ranks(2, f"""
        import weft
        context = weft.init()
        tensors = weft.load({str(tmp_path / "ranks")!r})
        assert str(tensors["a.weight"].spec) == "f32[8,6] S(0)"
    """)
    assert weft.verify(path, tmp_path / "ranks") == []
    assert weft.verify(path, tmp_path / "copy.safetensors") == ["c.bias has other elements"]


def test_checkpoints_are_resharded(model, tmp_path):
    path, arrays = model
    seen = []
    figures = weft.reshard(path, tmp_path / "ranks", LAYOUT, progress=lambda done, total: seen.append((done, total)))
    assert figures["tensors"] == 3 and figures["read"] == sum(a.nbytes for a in arrays.values())
    assert sum(file["read"] for file in figures["files"]) == figures["read"] and figures["predicted_ns"] is None
    assert figures["files"][0]["path"] == str(path) and sum(file["written"] > 0 for file in figures["files"]) >= 4
    dry = weft.reshard(path, tmp_path / "dry", LAYOUT, dry=True, predict=True)
    assert dry["predicted_ns"] > 0 and not (tmp_path / "dry").exists()
    ranks = weft.Checkpoint(tmp_path / "ranks")
    assert ranks.format == "ranks" and str(ranks.mesh) == "tp=4"
    assert str(ranks.describe("a.weight")["spec"]) == "f32[8,6] S(0)"
    assert weft.verify(path, ranks) == []
    rules = weft.Rules.parse("x.weight = a.weight\n* = *\n")
    weft.reshard(path, tmp_path / "renamed.safetensors", rules=rules)
    assert weft.Checkpoint(tmp_path / "renamed.safetensors").names == ["b.weight", "c.bias", "x.weight"]
    with pytest.raises(weft.AbortedError):
        weft.reshard(path, tmp_path / "stopped", LAYOUT, progress=lambda done, total: False)
    with pytest.raises(ZeroDivisionError):
        weft.reshard(path, tmp_path / "failed", LAYOUT, progress=lambda done, total: 1 / 0)


def test_what_a_resharding_uses_stays_open(model, tmp_path):
    source, layout = weft.Checkpoint(model[0]), weft.LayoutFile.parse(LAYOUT)
    for used in (source, layout):
        with pytest.raises(RuntimeError, match="is in use by an object that was made from it"):
            weft.reshard(source, tmp_path / "failed", layout, progress=lambda done, total: used.close())
    weft.reshard(source, tmp_path / "ranks", layout)
    source.close()
    layout.close()
    with pytest.raises(RuntimeError, match="the LayoutFile was closed"):
        weft.reshard(model[0], tmp_path / "failed", layout)


def test_mistakes_with_checkpoints_are_named(tmp_path, alone):
    tensor = weft.Tensor(alone, weft.spec("f32[4] R", "1"))
    tensor.fill(1)
    with pytest.raises(TypeError, match="an entry of names must be a str, not 1"):
        weft.save(tmp_path / "a.safetensors", {1: tensor}, context=alone)
    with pytest.raises(weft.InvalidError, match="names has 2 entries for 1 tensor; expected one name per tensor"):
        weft.save(tmp_path / "a.safetensors", [tensor], names=["t", "u"], context=alone)
    with pytest.raises(weft.InvalidError, match="names has 0 entries for 1 tensor"):
        weft.save(tmp_path / "a.safetensors", [tensor], names=[], context=alone)
    with pytest.raises(ValueError, match="format is 'zip'; expected one of: safetensors, huggingface, ranks"):
        weft.save(tmp_path / "a.zip", {"t": tensor}, format="zip", context=alone)
    stream = weft.Stream(alone)
    weft.save(tmp_path / "b.safetensors", {"t": tensor}, context=alone, stream=stream, metadata={"k": "v"})
    del stream
    assert weft.Checkpoint(tmp_path / "b.safetensors").metadata == {"k": "v"}
    with pytest.raises(TypeError, match=r"reshard\(\) has no argument 'jbos'; did you mean 'jobs'\?"):
        weft.reshard(tmp_path / "b.safetensors", tmp_path / "c.safetensors", jbos=1)
    del tensor
    with pytest.raises(ValueError, match=r"'S\(0\)' is not a file; .* give their mesh"):
        weft.load(tmp_path / "b.safetensors", "S(0)", context=alone)
    with pytest.raises(ValueError, match=r"offset is \(5,\), but tensor t has the shape \(4,\)"):
        weft.Checkpoint(tmp_path / "b.safetensors").read("t", (5,))
    assert len(weft.Checkpoint(tmp_path / "b.safetensors").read("t", (4,))) == 0


def test_layouts_and_rules_are_found_by_name(tmp_path, alone):
    shapes = {"q": (8, 4), "k": (4, 4), "v": (4, 4)}
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2}')
    entries = [(f"l.self_attn.{x}_proj.weight", "u8", shapes[x]) for x in "qkv"]
    with weft.Writer(tmp_path / "model" / "m.safetensors", [*entries, ("l.input_layernorm.weight", "u8", (4,))]) as writer:
        writer.write("l.input_layernorm.weight", bytes(4))
        for x in "qkv":
            writer.write(f"l.self_attn.{x}_proj.weight", memoryview(bytes(range(shapes[x][0] * 4))).cast("B", shapes[x]))
    weft.reshard(tmp_path / "model", tmp_path / "fused", "llama", "tp=2", rules="fuse-qkv")
    fused = weft.Checkpoint(tmp_path / "fused")
    assert str(fused.spec("l.self_attn.qkv_proj.weight")) == "u8[16,4] B(0;8,4,4)"
    assert str(fused.spec("l.self_attn.qkv_proj.weight", "llama", "tp=1")) == "u8[16,4] B(0;8,4,4)"
    with pytest.raises(weft.InvalidError, match="4, 2 and 2 heads of 2 indices, .* divides 2, or write"):
        weft.Checkpoint(tmp_path / "model").map(weft.Rules("fuse-qkv")).spec("l.self_attn.qkv_proj.weight", "llama", "tp=4")
    with pytest.raises(weft.NotFoundError, match="those that come with weft: .*llama"):
        fused.spec(0, "lama")
    with pytest.raises(weft.InvalidError, match="weft.load: layout is None"):
        weft.load(tmp_path / "model", context=alone)
