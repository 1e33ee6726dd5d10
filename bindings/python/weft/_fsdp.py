"""FSDP: parameters that are whole only while a layer uses them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _weft
from ._layouts import Mesh, Spec
from ._tensors import Tensor

if TYPE_CHECKING:
    from typing import Unpack

    from ._weft import _StreamLike


@_weft.use
class FSDP(_weft.FSDP):
    """What groups of parameters share.  Collective.

    Parameters are sharded along axes of the mesh, and replicated along those of `replicate`, unless a group names others.

    >>> import weft
    >>> with weft.Context() as context:  # a job of one rank
    ...     stored = weft.Tensor(context, weft.FSDP.shard_spec(weft.spec("f32[8,3] R", "dp=1"), "dp"))
    ...     with weft.FSDP(context, stored.spec.mesh, "dp") as fsdp, fsdp.group([stored]) as group:
    ...         group.unshard()
    ...         print(group.parameter(0).shape)
    ...         group.reshard()
    ...     del stored
    (8, 3)
    """

    __slots__ = ()

    def __new__(
        cls,
        context: _weft.Context,
        mesh: Mesh,
        axes: str | int,
        *,
        replicate: str | None = None,
        compute: _StreamLike = None,
        one_stream: bool = False,
        groups_max: int = 0,
    ) -> FSDP:
        return super().__new__(
            cls, context, mesh, axes, replicate=replicate, compute=compute, one_stream=one_stream, groups_max=groups_max)  # fmt: skip

    @staticmethod
    def shard_spec(spec: Spec, axes: str | int, dim: int = 0) -> Spec:
        """The layout in which axes also split a dimension.

        >>> import weft
        >>> weft.FSDP.shard_spec(weft.spec("f32[8,3] R", "dp=4"), "dp").placements
        'S(0)'
        """
        return spec._fsdp_shard_spec(axes, dim)

    def group(self, tensors: Sequence[Tensor], *, frozen: Collection[int] = (), **options: Unpack[_weft._FsdpGroupOptions]) -> FSDPGroup:
        """A group of stored parameters.  Collective.

        frozen has the numbers of those without a gradient.  Options are name, shard, replicate, gather_dtype,
        reduce_dtype, gradient_dtype, divide, sum_only and absent_as_zero.
        """
        if not isinstance(tensors, Sequence):
            raise TypeError(f"tensors must be a list of weft.Tensor, the parameters of the group, not {tensors!r}")
        missing = set(frozen or ()).difference(range(len(tensors)))
        if missing:
            raise IndexError(f"the group has {len(tensors)} parameters, so frozen cannot have {min(missing)}")
        params: list[dict[str, Any]] = [{"tensor": tensor, "frozen": i in (frozen or ())} for i, tensor in enumerate(tensors)]
        return self._group(params, **options)


@_weft.use
class FSDPGroup(_weft.FSDPGroup):
    """Parameters that are gathered together."""

    __slots__ = ()

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Tensor]:
        """The gathered parameters."""
        return map(self.parameter, range(self.count))

    def _check_index(self, index: int) -> None:
        if not 0 <= index < self.count:
            raise IndexError(f"index is {index}, but the group has {self.count} parameters, from 0 on")

    def parameter(self, index: int) -> Tensor:
        """A gathered parameter, which is valid until reshard.  Views and arrays of it end then, too.

        It may be changed, but the shards are not.  RuntimeError: the parameters are not gathered.
        """
        self._check_index(index)
        found = super().parameter(index)
        if found is None:
            raise RuntimeError(f"the parameters of the group are not gathered ({self.state}); call unshard first")
        return found

    def gradient(self, index: int) -> Tensor | None:
        """The reduced gradient of a parameter, in the layout of the stored one; None if nothing was reduced."""
        self._check_index(index)
        return super().gradient(index)

    def gradient_spec(self, index: int) -> Spec | None:
        """The layout of the gradient of a gathered parameter; None if the parameter is frozen."""
        self._check_index(index)
        return super().gradient_spec(index)

    def unshard(self, backward: bool = False, wait: bool = True) -> None:
        """Gather the parameters.  Without wait, unshard_end makes the compute stream wait for them."""
        self._unshard_begin("backward" if backward else "forward")
        if wait:
            self.unshard_end()

    def reshard(self, ranks: int = 0) -> None:
        """Free the gathered parameters; with ranks, keep a part of them."""
        if ranks:
            self._reshard_to(ranks)
        else:
            super().reshard()

    def prefetch(self, groups: Sequence[FSDPGroup], backward: bool = False) -> None:
        """The groups that the end of unshard begins to gather."""
        self._prefetch_set("backward" if backward else "forward", groups)

    def reduce(
        self,
        gradients: Sequence[Tensor | None],
        keep: bool = False,
        local: bool = False,
        shard_only: bool = False,
        wait: bool = True,
    ) -> None:
        """Reduce a gradient per parameter; None is an absent one."""
        self._reduce_begin(gradients, keep=keep, local=local, shard_only=shard_only)
        if wait:
            self.reduce_end()
