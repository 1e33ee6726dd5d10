"""Arrays of libraries that have no exchange table of DLPack."""

from __future__ import annotations

import sys
from operator import index
from typing import Any, NoReturn

from . import _weft

HOST = 1  # the device type of DLPack
DEVICE_NAMES = {2: "CUDA", 10: "ROCm"}
NUMPY_NAMES = {
    "bool": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32",
    "u32": "uint32", "i64": "int64", "u64": "uint64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
BUFFER_FORMATS = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q",
    "u64": "Q", "f32": "f", "f64": "d",
}  # fmt: skip

TYPE_STRINGS = {
    "bool": "|b1", "i8": "|i1", "u8": "|u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8",
    "u64": "<u8", "f16": "<f2", "f32": "<f4", "f64": "<f8", "c64": "<c8", "c128": "<c16",
}  # fmt: skip

def _memory_of(device: tuple[int, int]) -> str:
    """The memory of a device of DLPack.  An array may state no number, which is -1."""
    kind, number = device
    if kind == HOST:
        return "host memory"
    name = DEVICE_NAMES.get(kind)
    if name is None:
        return f"the memory of device {number} of DLPack's type {kind}"
    return f"the memory of a {name} device" if number < 0 else f"the memory of {name} device {number}"


def refuse_place(name: str, have: tuple[int, int], backend: str, need: tuple[int, int]) -> NoReturn:
    """The error for memory that a backend cannot use."""
    raise ValueError(f"{name} is in {_memory_of(have)}; the backend {backend} works in {_memory_of(need)}")


def library_of(like: Any) -> Any:
    """The module of an array: the namespace of the array API standard, or the module of its type."""
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__()
    return sys.modules.get(type(like).__module__.partition(".")[0])


def share(like: Any, tensor: Any) -> Any:
    """An array of the library of `like` with the memory of a tensor of weft; without a library, the tensor."""
    library = library_of(like)
    return library.from_dlpack(tensor) if hasattr(library, "from_dlpack") else tensor


def move_shared(context: Any, like: Any, source: Any, target: Any, stream: Any) -> Any:
    """Move to the memory of a tensor, for a library that has no arrays that others write."""
    tensor: Any = _weft.Tensor(context, target)
    _weft.move_array(context, like, source, target, tensor.local(context.rank), stream)
    if stream is None and hasattr(like, "__cuda_array_interface__"):
        stream = cuda_facts(like)[5]
    context.wait(stream)  # not every library orders its reads after the stream of a producer
    return share(like, tensor)


def capsule_of(given: Any) -> Any:
    """The DLPack capsule of an array.  Without a stream, a producer orders its work before the default stream."""
    try:
        return given.__dlpack__(max_version=(1, 1))
    except TypeError:  # a producer from before DLPack 1.0
        return given.__dlpack__()


def is_immutable(kind: type) -> bool:
    """Are arrays of this type never written?  Those of JAX before DLPack 1.0 do not say it."""
    return kind.__module__.startswith("jax")


def refuse_type(given: Any) -> None:
    """The error for what is no array."""
    raise TypeError(
        f"{type(given).__name__} is not an array: it has neither __dlpack__, the buffer protocol nor __cuda_array_interface__")


def check_part(name: str, array: Any, dtype: str | None, shape: tuple[int, ...], what: str) -> None:
    """ValueError unless an array has the dtype and the shape of what is copied from or to it.

    One dimension of bytes stands for any of them: C compares its size.
    """
    found, its_shape = _weft.describe(array)
    is_raw = found == "u8" and len(its_shape) == 1
    if is_raw or (found == dtype and its_shape == shape):
        return
    if dtype is None:
        raise ValueError(f"{name} is {_text(found, its_shape)}, but weft has no dtype for {what}; give its bytes: u8 in one dimension")
    raise ValueError(
        f"{name} is {_text(found, its_shape)}, but {what} is {_text(dtype, shape)}; give such an array, or its bytes: u8 in one dimension")


def _text(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def refuse_shape(
    name: str, dtype: str, shape: tuple[int, ...], rank: int, its_dtype: str, its_shape: tuple[int, ...], advice: str
) -> None:
    """The error for an array that is not the shard of a rank."""
    raise ValueError(f"{name} is {_text(dtype, shape)}, but the shard of rank {rank} is {_text(its_dtype, its_shape)}{advice}")


def refuse(error: Any) -> None:
    """The first line of an error that a library has raised: the rest is its stack."""
    raise ValueError(": ".join(["the tensor cannot be shared", *str(error or "").splitlines()[:1]]))


def cuda_facts(given: Any) -> tuple[int, bool, str, tuple[int, ...], tuple[int, ...] | None, int | None]:
    """(address, is read-only, dtype, shape, strides in elements or None, stream or None) of an array on a CUDA device."""
    table = given.__cuda_array_interface__
    if not isinstance(table, dict):
        raise TypeError("__cuda_array_interface__ is not a dictionary")
    try:
        shape, (address, read_only), text = tuple(map(index, table["shape"])), table["data"], str(table["typestr"])
        is_known = table.get("mask") is None
    except (KeyError, TypeError, ValueError):
        is_known = False
    if not is_known:
        raise TypeError("__cuda_array_interface__ must have shape, data and typestr, and no mask")
    dtype = next((name for name, known in TYPE_STRINGS.items() if text[1:] == known[1:] and text[:1] in ("<", "|", "=")), None)
    if dtype is None:
        raise TypeError(f"the array has typestr {text!r}; weft has no dtype for it")
    if min(shape, default=0) < 0:
        raise ValueError("a size of the array is negative")
    strides, size = table.get("strides"), int(text[2:])
    if strides is not None:
        if len(strides) != len(shape):
            raise ValueError("shape and strides have different lengths")
        for number, step in enumerate(strides):
            if step % size != 0:
                raise BufferError(
                    f"stride {number} of the array is {step} bytes; it must be a multiple of the {size} bytes of an element")
        strides = tuple(step // size for step in strides)
    stream = table.get("stream")
    return index(address), bool(read_only), dtype, shape, strides, 0 if stream == 1 else stream


def as_numpy(shared: Any, dtype: Any, copy: bool | None) -> Any:
    """A NumPy array with the memory of a tensor or a shard of weft; `dtype` and `copy` are those of __array__."""
    import numpy

    device = shared.__dlpack_device__()
    if device[0] != HOST:
        raise TypeError(
            f"NumPy cannot use memory of the device {device} of DLPack; give the tensor to from_dlpack of a library "
            "of that device, or copy it with to_host")
    own, _ = _weft.describe(shared)
    if own not in NUMPY_NAMES:
        raise TypeError(f"NumPy has no dtype for {own}; to_host copies the bytes of a tensor")
    array = numpy.from_dlpack(shared)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"elements of {array.dtype} are copied to become {dtype}; copy=False forbids it")
        return array.astype(dtype)
    return array.copy() if copy else array


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """An array of the library of `like`, on its device.  Its elements are not set."""
    if hasattr(like, "__array_namespace__"):
        library = like.__array_namespace__()
        if dtype not in NUMPY_NAMES:
            raise TypeError(f"{library.__name__} has no dtype for {dtype}")
        return library.empty(shape, dtype=getattr(library, NUMPY_NAMES[dtype]), device=like.device)
    if hasattr(like, "new_empty"):  # PyTorch before the exchange table
        torch: Any = sys.modules["torch"]
        names = {**NUMPY_NAMES, "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
        return like.new_empty(shape, dtype=getattr(torch, names[dtype]))
    if dtype not in BUFFER_FORMATS:
        raise TypeError(f"a buffer has no format for {dtype}")
    count = 1
    for size in shape:
        count *= size
    form: Any = BUFFER_FORMATS[dtype]
    block = memoryview(bytearray(count * memoryview(bytearray(16)).cast(form).itemsize))
    return block.cast(form, shape) if count > 0 else block.cast(form)
