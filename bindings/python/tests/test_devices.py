"""Arrays on a CUDA device, which is simulated: its memory is the heap, so that a test can look into it."""

HEAD = """
import ctypes
import numpy as np, pytest, weft

context = weft.init()
assert context.kind == "cuda" and context.backend == "nccl"
rank, size = context.rank, context.size
world = weft.Comm(context)

class Array:
    \"\"\"The memory of a tensor of weft, as a library without DLPack shows it.\"\"\"
    def __init__(self, tensor, **changes):
        self._tensor, self.__cuda_array_interface__ = tensor, {**tensor.__cuda_array_interface__, **changes}

class Exporter:
    \"\"\"The memory of a tensor of weft, as a library with DLPack shows it.\"\"\"
    def __init__(self, tensor): self._tensor = tensor
    def __dlpack__(self, **words): return self._tensor.__dlpack__(**words)
    def __dlpack_device__(self): return self._tensor.__dlpack_device__()

class Queue:
    \"\"\"A stream of another library.\"\"\"
    def __init__(self, stream): self._stream = stream
    def __cuda_stream__(self): return self._stream.__cuda_stream__()

def make(text, values):
    tensor = weft.Tensor(context, weft.spec(text, weft.mesh(f"tp={size}")))
    tensor.from_host(np.ascontiguousarray(values))
    return tensor

def look(array):
    \"\"\"A copy of the elements that the interface shows, on any device.\"\"\"
    table = array.__cuda_array_interface__
    count = int(np.prod(table["shape"]))
    numbers = np.dtype(table["typestr"])
    context.wait()
    return np.frombuffer(ctypes.string_at(table["data"][0], count * numbers.itemsize), numbers).reshape(table["shape"])
"""


def test_arrays_on_a_device_move_and_reduce(ranks, device):
    ranks(2, HEAD + """
whole = np.arange(24, dtype=np.float32).reshape(4, 6)
x = make("f32[4,6] S(0)", whole[2 * rank:2 * rank + 2])
assert x.__dlpack_device__() == (2, 0) or x.__dlpack_device__() == (2, rank)
assert x.__cuda_array_interface__["strides"] == (24, 4) and x.__cuda_array_interface__["typestr"] == "<f4"

for wrap in (Array, Exporter):  # the result is the caller's kind, or a tensor where a library makes no arrays
    out = make("f32[4,6] S(1)", np.zeros((4, 3), np.float32))
    weft.redistribute(wrap(x), weft.mesh("tp=2"), "S(0)", "S(1)", shape=(4, 6), out=wrap(out))
    assert np.array_equal(look(out), whole[:, 3 * rank:3 * rank + 3])
y = weft.redistribute(Array(x), weft.mesh("tp=2"), "S(0)", "S(1)", shape=(4, 6))
assert isinstance(y, weft.Tensor) and np.array_equal(look(y), whole[:, 3 * rank:3 * rank + 3])

total = make("f32[8] R", np.full(8, rank + 1.0, np.float32))
world.all_reduce(Array(total))
assert np.array_equal(look(total), np.full(8, 3.0))

# streams: of the array, of the caller, of another library
stream = weft.Stream(context)
number = stream.__cuda_stream__()[1]
for words in ({"stream": number}, {"stream": Queue(stream)}, {"stream": stream}, {}):
    array = Array(total) if words else Array(total, stream=number)
    world.all_reduce(array, **words)
    work = weft.Work(context, stream)
    work.wait()
    other = weft.Stream(context)
    work.hold(number)
    work.hold(other)
assert np.array_equal(look(total), np.full(8, 48.0))
wrapped = weft.Tensor.wrap(context, total.spec, Array(total, stream=number))
wrapped.fill(5)
assert np.array_equal(look(total), np.full(8, 5.0))
with pytest.raises(TypeError, match=r"NumPy cannot use memory of the device .2, "):
    np.asarray(total)
capsule = total.__dlpack__(stream=number, max_version=(1, 1))
del capsule, wrapped, x, y, out, total, stream, other, work, array, world
context.close()
""", **device)


def test_memory_of_the_wrong_kind_is_refused(ranks, device):
    ranks(1, HEAD + """
host = np.ones(4, np.float32)
x = make("f32[4] R", host)
for call in (
    lambda: world.all_reduce(host),
    lambda: world.send(host, 0),
    lambda: weft.redistribute(host, "1", "R", "R", shape=(4,)),
    lambda: weft.Tensor.wrap(context, weft.spec("f32[4] R", "1"), host),
    lambda: weft.Move(context, [x.spec], [x.spec])([host], [host]),
):
    with pytest.raises(ValueError, match="is in host memory; the backend nccl works in the memory of CUDA device 0"):
        call()
with weft.Context("gloo-cpu") as other:
    for call in (
        lambda: weft.Comm(other).all_reduce(Exporter(x)),
        lambda: weft.redistribute(Array(x), "1", "R", "R", shape=(4,), context=other),
        lambda: weft.Tensor.wrap(other, weft.spec("f32[4] R", "1"), Array(x)),
    ):
        with pytest.raises(ValueError, match="is in the memory of (CUDA device 0|a CUDA device); the backend gloo-cpu works in host"):
            call()
    assert not hasattr(weft.Tensor(other, weft.spec("f32[4] R", "1")), "__cuda_array_interface__")

# tables that cannot be used
for changes, error, text in (
    ({"typestr": ">f4"}, TypeError, "typestr '>f4'"), ({"typestr": "<O8"}, TypeError, "typestr"),
    ({"typestr": "<"}, TypeError, "typestr"), ({"mask": x}, TypeError, "no mask"),
    ({"strides": (3,)}, BufferError, "multiple of the 4 bytes"), ({"strides": (4, 4)}, ValueError, "lengths"),
    ({"strides": (8,)}, ValueError, "not contiguous"), ({"shape": (-4,)}, ValueError, "negative"),
    ({"shape": (1,) * 99, "strides": None}, ValueError, "dimensions"), ({"data": 7}, TypeError, "must have"),
    ({"stream": "x"}, TypeError, ""),
):
    with pytest.raises(error, match=text):
        world.all_reduce(Array(x, **changes))
read_only = Array(x, data=(x.__cuda_array_interface__["data"][0], True))
with pytest.raises(ValueError, match="read-only"):
    world.all_reduce(read_only)
class Wrong:
    __cuda_array_interface__ = 3
with pytest.raises(TypeError, match="not a dictionary"):
    world.all_reduce(Wrong())
with pytest.raises(AttributeError):
    make("bf16[4] R", np.ones(4, np.uint16)).__cuda_array_interface__
del x, read_only, world
""", **device)


def test_kernels_get_shards_of_the_device(ranks, device):
    ranks(1, HEAD + """
from weft import ops

def double(run):
    assert all(shard.__dlpack_device__() == (2, 0) for shard in (*run.inputs, *run.outputs))

x = make("f32[4] R", np.ones(4, np.float32))
(y,) = ops.apply("relu", [x], double)
del x, y, world
""", **device)


def test_a_process_that_ends_early_leaves_the_device(ranks, device):
    """Tensors, streams and communicators are in use when the process ends."""
    ranks(2, HEAD + """
x = make("f32[8] R", np.ones(8, np.float32))
stream, half = weft.Stream(context), world.split(0)
half.all_reduce(Array(x), stream=stream)
keep = [x, stream, half]
keep.append(keep)
""", **device)


def test_results_of_an_immutable_library_share_a_tensor(ranks, device):
    """Such as JAX, whose arrays nobody may write; here with a capsule that does not say so."""
    ranks(2, HEAD + """
class Frozen:
    __module__ = "jaxlib.simulated"
    device = None
    def __init__(self, tensor): self._tensor = tensor
    def __dlpack__(self, stream=None): return self._tensor.__dlpack__(stream=stream)
    def __dlpack_device__(self): return self._tensor.__dlpack_device__()
    def __array_namespace__(self): return Library

class Library:
    float32 = "f32"
    empty = lambda shape, dtype, device: Frozen(make("f32[4,6] S(1)", np.zeros((4, 3), np.float32)))
    from_dlpack = Frozen

whole = np.arange(24, dtype=np.float32).reshape(4, 6)
x = Frozen(make("f32[4,6] S(0)", whole[2 * rank:2 * rank + 2]))
stream = weft.Stream(context)
for words in ({}, {"stream": stream}):
    y = weft.redistribute(x, weft.mesh("tp=2"), "S(0)", "S(1)", shape=(4, 6), **words)
    assert type(y) is Frozen and np.array_equal(look(y._tensor), whole[:, 3 * rank:3 * rank + 3])
with pytest.raises(ValueError, match="out is read-only"):
    weft.redistribute(x, weft.mesh("tp=2"), "S(0)", "S(1)", shape=(4, 6), out=y)
with pytest.raises(ValueError, match="recv is read-only"):
    world.all_reduce(x)
del x, y, stream, words, world
context.close()
""", **device)
