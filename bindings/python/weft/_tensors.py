"""Tensors: a layout and this rank's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arrays, _weft
from ._layouts import Spec

if TYPE_CHECKING:
    from typing import Unpack


@_weft.use
class Tensor(_weft.Tensor):
    """A layout and this rank's memory, which is not set.  Tensor.wrap makes one of an array.

    >>> import weft
    >>> context = weft.Context("gloo-cpu", simulated_ranks=2)
    >>> x = weft.Tensor(context, weft.spec("f32[4] S(0)", "2"))
    >>> x.fill(1)
    >>> x.move("R").compare(x)["equal"]
    True
    """

    __slots__ = ()

    def __str__(self) -> str:
        return super().__str__().rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the whole tensor; those of a shard are in local(rank).shape."""
        return self.spec.shape

    @property
    def memory(self) -> int | None:
        """The address of this rank's shard; local(rank) has its shape."""
        return super().memory

    @property
    def dtype(self) -> str:
        """The dtype, such as "f32"."""
        return self.spec.dtype

    def move(self, target: Spec | str, stream: _weft._StreamLike = None, **options: Unpack[_weft._TensorMoveOptions]) -> Tensor:
        """The tensor in another layout, a spec or placements.  Collective.  memory_limit is in bytes of scratch."""
        return super().move(self.spec.with_(target) if isinstance(target, str) else target, stream, **options)

    def full(self, rank: int = -1, stream: _weft._StreamLike = None, **options: Unpack[_weft._TensorFullOptions]) -> Tensor:
        """The whole tensor on one rank, or on every rank.  Collective.  Options as in move."""
        return super().full(rank, stream, **options)

    def compare(self, second: Tensor, stream: _weft._StreamLike = None, **options: Unpack[_weft._TensorCompareOptions]) -> dict[str, Any]:
        """How two tensors differ.  Collective.  The second is moved to the layout of this one; options as in move."""
        found = super().compare(second, stream, **options)
        return {**found, "index": found["index"][: self.spec.dims]}

    def move_into(self, target: Tensor, stream: Any = None, **options: Unpack[_weft._MoveIntoOptions]) -> None:
        """Move this tensor to target, which exists.  Collective.  options are those of weft.move_into."""
        _weft.move_into([self], [target], stream=stream, **options)

    # Other libraries: the memory of this rank.

    def _own_shard(self, stream: Any = None) -> _weft.Shard:
        """The shard of this rank.  With simulated ranks a tensor has several, and an array can be one of them only."""
        rank, size = self.context.rank, self.context.size
        shard = self.local(rank, stream)
        is_whole = shard.shape == self.spec.shape and "P" not in self.spec.placements
        if size == 1 or is_whole or not self.context.is_simulated:
            return shard
        raise TypeError(
            f"the tensor has a shard on each of {size} simulated ranks, but an array is one shard; use tensor.local(rank), "
            "the shard of a rank, or tensor.full(), the whole tensor")

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        """This rank's shard as a DLPack capsule."""
        return self._own_shard(stream).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Device type and device."""
        return self._own_shard().__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """This rank's shard as a NumPy array, which shares host memory."""
        return _arrays.as_numpy(self, dtype, copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """This rank's shard on a CUDA device; its work is on the default stream."""
        if self.context.kind != "cuda":
            raise AttributeError("the tensor is not on a CUDA device")
        shard = self._own_shard()
        address, strides, dtype, read_only = shard._memory
        if dtype not in _arrays.TYPE_STRINGS:
            raise AttributeError(f"__cuda_array_interface__ has no type for {dtype}")
        text = _arrays.TYPE_STRINGS[dtype]
        return {
            "shape": shard.shape, "strides": tuple(step * int(text[2:]) for step in strides), "typestr": text,
            "data": (address, read_only), "version": 3, "stream": 1,
        }  # fmt: skip

    # Random numbers: draws with the same seed and offset have the same bits.

    def uniform(  # type: ignore[override]
        self, seed: int, offset: int = 0, low: float = 0, high: float = 1, stream: _weft._StreamLike = None
    ) -> None:
        """Set the elements to random numbers that are equally likely in low <= x < high."""
        super().uniform((seed, offset), low, high, stream)

    def normal(  # type: ignore[override]
        self, seed: int, offset: int = 0, mean: float = 0, deviation: float = 1, stream: _weft._StreamLike = None
    ) -> None:
        """Set the elements to random numbers of a normal distribution."""
        super().normal((seed, offset), mean, deviation, stream)

    def truncated_normal(  # type: ignore[override]
        self, seed: int, offset: int = 0, mean: float = 0, deviation: float = 1, low: float = -2, high: float = 2,
        stream: _weft._StreamLike = None,
    ) -> None:
        """Set the elements to random numbers of a normal distribution within limits."""
        super().truncated_normal((seed, offset), mean, deviation, low, high, stream)

    def bernoulli(  # type: ignore[override]
        self, seed: int, offset: int = 0, probability: float = 0.5, stream: _weft._StreamLike = None
    ) -> None:
        """Set each element to 1 with a probability, else to 0."""
        super().bernoulli((seed, offset), probability, stream)

    def dropout(  # type: ignore[override]
        self, seed: int, offset: int = 0, probability: float = 0.5, stream: _weft._StreamLike = None
    ) -> None:
        """Set the elements to a mask for dropout: 0 with a probability, else 1 / (1 - probability)."""
        super().dropout((seed, offset), probability, stream)

    def integers(  # type: ignore[override]
        self, seed: int, offset: int = 0, low: int = 0, high: int = 2, stream: _weft._StreamLike = None
    ) -> None:
        """Set the elements to random integers that are equally likely in low <= x < high."""
        super().integers((seed, offset), low, high, stream)
