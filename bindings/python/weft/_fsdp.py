"""FSDP: parameters that are whole only while a layer uses them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from . import _weft
from ._layouts import Spec
from ._tensors import Tensor

if TYPE_CHECKING:
    from ._weft import _StreamLike


@_weft.use
class FSDP(_weft.FSDP):
    """What groups of parameters share.  Collective."""

    __slots__ = ()

    def __new__(
        cls, context: _weft.Context, compute: _StreamLike = None, one_stream: bool = False, groups_max: int = 0
    ) -> FSDP:
        return _weft.FSDP.create(context, compute=compute, one_stream=one_stream, groups_max=groups_max)

    @staticmethod
    def shard_spec(spec: Spec, axes: str, dim: int = 0) -> Spec:
        """The layout in which axes also split a dimension.

        >>> import weft
        >>> weft.FSDP.shard_spec(weft.spec("f32[8,3] R", "dp=4"), "dp").placements
        'S(0)'
        """
        return spec.fsdp_shard_spec(axes, dim)

    def group(self, tensors: Sequence[Tensor], *, frozen: Collection[int] = (), **options: Any) -> FSDPGroup:
        """A group of stored parameters.  Collective.

        frozen has the numbers of those without a gradient.  Options are name, shard, replicate, gather_dtype,
        reduce_dtype, gradient_dtype, divide, sum_only and absent_as_zero.
        """
        missing = set(frozen or ()).difference(range(len(tensors)))
        if missing:
            raise IndexError(f"the group has {len(tensors)} parameters, so frozen cannot have {min(missing)}")
        params = [{"tensor": tensor, "frozen": i in (frozen or ())} for i, tensor in enumerate(tensors)]
        return _weft.FSDPGroup.create(self, params, **options)


@_weft.use
class FSDPGroup(_weft.FSDPGroup):
    """Parameters that are gathered together."""

    __slots__ = ()

    def __len__(self) -> int:
        return self.count

    def unshard(self, backward: bool = False, wait: bool = True) -> None:
        """Gather the parameters.  Without wait, unshard_end makes the compute stream wait for them."""
        self.unshard_begin("backward" if backward else "forward")
        if wait:
            self.unshard_end()

    def reshard(self, ranks: int = 0) -> None:
        """Free the gathered parameters; with ranks, keep a part of them."""
        if ranks:
            self.reshard_to(ranks)
        else:
            super().reshard()

    def prefetch(self, groups: Sequence[FSDPGroup], backward: bool = False) -> None:
        """The groups that the end of unshard begins to gather."""
        self.prefetch_set("backward" if backward else "forward", groups)

    def reduce(
        self,
        gradients: Sequence[Tensor | None],
        keep: bool = False,
        local: bool = False,
        shard_only: bool = False,
        wait: bool = True,
    ) -> None:
        """Reduce a gradient per parameter; None is an absent one."""
        self.reduce_begin(gradients, keep=keep, local=local, shard_only=shard_only)
        if wait:
            self.reduce_end()
