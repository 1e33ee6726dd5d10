#!/usr/bin/env python3
"""Arrays of a library on a CUDA device, as ranks that share it: weft run -n 2 -- python3 arrays.py torch|cupy|jax

It ends with code 77 if the library is not installed.
"""

import importlib.util
import sys

import numpy as np

import weft


class Torch:
    """PyTorch: its arrays come through the exchange table."""

    mutable = True

    def __init__(self):
        import torch

        self.torch = torch

    def array(self, values):
        return self.torch.from_numpy(np.ascontiguousarray(values)).cuda()

    def values(self, x):
        return x.cpu().numpy()

    def pointer(self, x):
        return x.data_ptr()

    def from_dlpack(self, x):
        return self.torch.from_dlpack(x)

    def is_own(self, x):
        return isinstance(x, self.torch.Tensor) and x.is_cuda

    def wait(self):
        self.torch.cuda.synchronize()

    def side(self):
        """A stream beside the default one, its address, and what makes it the current one."""
        stream = self.torch.cuda.Stream()
        return stream, stream.cuda_stream, self.torch.cuda.stream(stream)

    def late(self, x, amount):
        """Add to x on the current stream, after a while."""
        self.torch.cuda._sleep(200_000_000)
        x.add_(amount)


class Cupy:
    """CuPy: its arrays come through __dlpack__ and __cuda_array_interface__."""

    mutable = True

    def __init__(self):
        import cupy

        self.cupy = cupy

    def array(self, values):
        return self.cupy.asarray(np.ascontiguousarray(values))

    def values(self, x):
        return self.cupy.asnumpy(x)

    def pointer(self, x):
        return x.data.ptr

    def from_dlpack(self, x):
        return self.cupy.from_dlpack(x)

    def is_own(self, x):
        return isinstance(x, self.cupy.ndarray)

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def side(self):
        stream = self.cupy.cuda.Stream(non_blocking=True)
        return stream, stream.ptr, stream

    def late(self, x, amount):
        noise = self.cupy.random.rand(2000, 2000, dtype=self.cupy.float32)
        for _ in range(20):
            noise = noise @ noise * 1e-3
        x += amount


class Jax:
    """JAX: its arrays cannot be written, so results are tensors of weft that it shares."""

    mutable = False

    def __init__(self):
        import jax

        self.jax = jax

    def array(self, values):
        return self.jax.device_put(np.ascontiguousarray(values)).block_until_ready()

    def values(self, x):
        return np.asarray(x)

    def pointer(self, x):
        return x.unsafe_buffer_pointer()

    def from_dlpack(self, x):
        return self.jax.dlpack.from_dlpack(x)

    def is_own(self, x):
        return isinstance(x, self.jax.Array) and x.devices().pop().platform in ("gpu", "cuda")

    def wait(self):
        pass


LIBRARIES = {"torch": Torch, "cupy": Cupy, "jax": Jax}


class Plain:
    """An array that has __cuda_array_interface__ alone."""

    def __init__(self, pointer, shape, typestr, stream=None):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (pointer, False), "strides": None, "version": 3,
            "stream": stream,
        }  # fmt: skip


class Queue:
    """A stream of another library."""

    def __init__(self, address):
        self.address = address

    def __cuda_stream__(self):
        return 0, self.address


def moves(library, context, mesh):
    """Redistribution: results are the library's own and equal."""
    rank, size = context.rank, context.size
    for dtype in (np.float32, np.float16, np.int64):
        whole = np.arange(8 * size * 6 * size).reshape(8 * size, 6 * size).astype(dtype)
        x = library.array(whole[8 * rank : 8 * rank + 8])
        expected = whole[:, 6 * rank : 6 * rank + 6]
        for words in ({}, {"shape": whole.shape}):
            y = weft.redistribute(x, mesh, "S(0)", "S(1)", **words)
            library.wait()
            assert library.is_own(y), type(y)
            assert np.array_equal(library.values(y), expected), (dtype, words)
        assert np.array_equal(library.values(x), whole[8 * rank : 8 * rank + 8])
    if not library.mutable:
        try:
            weft.redistribute(x, mesh, "S(0)", "S(1)", shape=whole.shape, out=library.array(expected * 0))
        except ValueError as error:
            assert "read-only" in str(error), error
        else:
            raise AssertionError("an array that cannot be written was written")
        return
    out = library.array(np.zeros_like(expected))
    before = library.pointer(out)
    assert weft.redistribute(x, mesh, "S(0)", "S(1)", shape=whole.shape, out=out) is out
    move = weft.Move(context, [weft.spec(f"i64[{8 * size},{6 * size}] S(0)", mesh)],
                     [weft.spec(f"i64[{8 * size},{6 * size}] S(1)", mesh)])  # fmt: skip
    library.wait()
    assert np.array_equal(library.values(out), expected) and library.pointer(out) == before
    again = library.array(np.zeros_like(expected))
    move([x], [again])
    library.wait()
    assert np.array_equal(library.values(again), expected)


def tensors(library, context, mesh):
    """DLPack in and out: the same memory."""
    spec = weft.spec(f"f32[{4 * context.size},6] S(0)", mesh)
    tensor = weft.Tensor(context, spec)
    tensor.uniform(7)
    context.wait()
    shared = library.from_dlpack(tensor)
    host = np.empty((4, 6), np.float32)
    tensor.to_host(host)
    assert library.is_own(shared) and np.array_equal(library.values(shared), host)
    assert library.pointer(shared) == tensor.__cuda_array_interface__["data"][0]
    assert tensor.__dlpack_device__()[0] == 2
    if not library.mutable:
        return
    array = library.array(host)
    wrapped = weft.Tensor.wrap(context, spec, array)
    wrapped.fill(3)
    context.wait()
    library.wait()
    assert (library.values(array) == 3).all()
    assert np.array_equal(library.values(library.from_dlpack(wrapped)), library.values(array))


def collectives(library, context):
    """Communicators: in place, from one array to another, and with plain interfaces."""
    world, rank, size = weft.Comm(context), context.rank, context.size
    x = library.array(np.full(1000, rank + 1.0, np.float32))
    total = size * (size + 1) / 2
    if not library.mutable:
        try:
            world.all_reduce(x)
        except ValueError as error:
            assert "read-only" in str(error), error
        else:
            raise AssertionError("an array that cannot be written was written")
        return
    world.all_reduce(x)
    library.wait()
    assert (library.values(x) == total).all()
    gathered = library.array(np.zeros(size * 1000, np.float32))
    world.all_gather(x, gathered)
    library.wait()
    assert (library.values(gathered) == total).all()
    plain = Plain(library.pointer(x), (1000,), "<f4", stream=1)
    world.all_reduce(plain)
    library.wait()
    assert (library.values(x) == total * size).all()
    spec = weft.spec(f"f32[{1000 * size}] S(0)", weft.mesh(str(size)))
    moved = weft._weft.move_array(context, plain, spec, spec)
    assert isinstance(moved, weft.Tensor)
    assert np.array_equal(library.values(library.from_dlpack(moved)), library.values(x))


def streams(library, context, mesh):
    """Work goes to the caller's stream: it sees what was posted there before, and the host does not wait."""
    if not library.mutable:
        return
    world, size = weft.Comm(context), context.size
    stream, address, current = library.side()
    x = library.array(np.zeros(1 << 16, np.float32))
    library.wait()
    expected = 0.0
    ways = [{"stream": address}, {"stream": Queue(address)}]
    if hasattr(type(x), "__dlpack_c_exchange_api__"):
        ways.append({})  # the library's current stream
    for words in ways:
        with current:
            library.late(x, 1.0)
            world.all_reduce(x, **words)
            y = weft.redistribute(x, mesh, "R", "R", shape=x.shape, **words)
        stream.synchronize()
        expected = (expected + 1) * size
        assert (library.values(x) == expected).all() and (library.values(y) == expected).all(), words
    plain = Plain(library.pointer(x), (1 << 16,), "<f4", stream=address)
    with current:
        library.late(x, 1.0)
        world.all_reduce(plain)  # on the stream that it states
    stream.synchronize()
    assert (library.values(x) == (expected + 1) * size).all()
    work = weft.Work(context, address)
    work.wait()
    assert work.test()


def refusals(library, context, mesh):
    host = np.ones(4, np.float32)
    for call in (lambda: weft.Comm(context).all_reduce(host),
                 lambda: weft.redistribute(host, mesh, "R", "R", shape=(4,))):  # fmt: skip
        try:
            call()
        except ValueError as error:
            assert "host memory" in str(error), error
        else:
            raise AssertionError("host memory was given to a device")
    with weft.Context("gloo-cpu", rank=0, size=1) as other:
        try:
            weft.redistribute(library.array(host), "1", "R", "R", shape=(4,), context=other)
        except ValueError as error:
            assert "CUDA device" in str(error), error
        else:
            raise AssertionError("device memory was given to the host")


def main(name):
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed")
        sys.exit(77)
    library = LIBRARIES[name]()
    context = weft.init()
    assert context.kind == "cuda", context
    mesh = weft.mesh(f"tp={context.size}")
    moves(library, context, mesh)
    tensors(library, context, mesh)
    collectives(library, context)
    streams(library, context, mesh)
    refusals(library, context, mesh)
    if context.rank == 0:
        print(f"{name}: arrays moved, shared and reduced on {context.device['name']} over {context.backend}")


if __name__ == "__main__":
    main(sys.argv[1])
