"""Attention over a sequence that the ranks of a mesh axis share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from . import _weft
from ._layouts import Mesh
from ._texts import fields

if TYPE_CHECKING:
    from ._weft import Shard, _Array, _StreamLike

_Mask = Literal["full", "causal", "window", "blocks"]
_Balance = Literal["contiguous", "head_tail", "per_document", "by_blocks", "permuted"]
_Variant = Literal["ring", "gather", "heads"]


@_weft.use
class AttentionPlan(_weft.AttentionPlan):
    """Which queries and keys each rank of a mesh axis holds, and what it computes (docs/training/context-parallel.md).

    >>> import weft
    >>> plan = weft.AttentionPlan(weft.mesh("cp=2"), "cp", 8, "causal", "head_tail")
    >>> plan.runs(0), plan.work(0) == plan.work(1)
    ([(0, 2), (6, 2)], True)
    """

    __slots__ = ()

    def __new__(
        cls,
        mesh: Mesh,
        axis: str | int,
        length: int,
        mask: _Mask = "full",
        balance: _Balance = "contiguous",
        variant: _Variant = "ring",
        window: int = 0,
        documents: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
        blocks: Sequence[Mapping[str, Any] | Sequence[Any]] | None = None,
        block_length: int = 0,
    ) -> AttentionPlan:
        return super().__new__(
            cls, mesh, axis, length=length, mask=mask, balance=balance, variant=variant, window=window, documents=documents,
            order=order, blocks=blocks, block_length=block_length)  # fmt: skip

    def _check_coordinate(self, coordinate: int) -> None:
        if not 0 <= coordinate < self.ranks:
            raise IndexError(f"coordinate is {coordinate}, but the axis has {self.ranks} ranks, from 0 on")

    def length(self, coordinate: int) -> int:
        """The number of indices that a rank holds."""
        self._check_coordinate(coordinate)
        return super().length(coordinate)

    def work(self, coordinate: int) -> int:
        """The pairs of a query and a key that a rank computes."""
        self._check_coordinate(coordinate)
        return super().work(coordinate)

    def runs(self, coordinate: int) -> list[tuple[int, int]]:
        """The indices of a rank, as pairs of start and length."""
        self._check_coordinate(coordinate)
        found, at = [], 0
        while (run := self._run(coordinate, at)) is not None:
            found.append((run["start"], run["length"]))
            at += run["length"]
        return found


@fields(
    mask='"full", "causal", "window" or "custom".',
    diagonal="Of a causal mask: query i sees keys j <= i + diagonal.",
    window='Of the mask "window": how many keys a query sees.',
    query_index="The first index of the queries in the sequence.",
    key_index="The first index of the keys.",
    first_head="The first head of the queries.",
    first_key_head="The first head of the keys.",
    is_backward="Whether gradients are computed.",
    stream="The address of the stream to compute on; 0: the default stream.",
    q="The queries.",
    k="The keys.",
    v="The values.",
    out="The result, which a forward writes.",
    lse="The logarithm of the sum of exponentials of each query, which a forward writes.",
    d_out="The gradient of out; None in a forward, as those below.",
    d_q="The gradient of q, which a backward writes.",
    d_k="The gradient of k, which a backward writes.",
    d_v="The gradient of v, which a backward writes.",
)
class Problem(NamedTuple):
    """What a kernel computes: some queries of this rank against some keys.

    With the mask "full" query i sees all keys, with "causal" keys j <= i + diagonal, with "window" of these the last
    `window`; with "custom" the kernel decides.  Tensors are shards of [batch, head, sequence, depth], which from_dlpack
    makes arrays of; lse has no depth.  A forward writes out and lse, a backward d_q, d_k and d_v.
    """

    mask: str
    diagonal: int
    window: int
    query_index: int
    key_index: int
    first_head: int
    first_key_head: int
    is_backward: bool
    stream: int
    q: Shard
    k: Shard
    v: Shard
    out: Shard
    lse: Shard
    d_out: Shard | None
    d_q: Shard | None
    d_k: Shard | None
    d_v: Shard | None

    @property
    def tensors(self) -> tuple[Shard | None, ...]:
        """q, k, v, out, lse, d_out, d_q, d_k and d_v."""
        return (self.q, self.k, self.v, self.out, self.lse, self.d_out, self.d_q, self.d_k, self.d_v)


_Kernel = Callable[[Problem], object]


_PARTS = {"q": 0, "k": 0, "v": 0, "out": 1, "lse": 1, "d_out": 0, "d_q": 2, "d_k": 2, "d_v": 2}  # 1, 2: a forward, a backward writes it


def _function(kernel: _Kernel) -> Callable[[dict[str, Any]], object]:
    """The kernel of C, which gets the fields of weft_cp_call."""

    def call(given: dict[str, Any]) -> object:
        problem, back = given["problem"], given["backward"]

        def part(name: str, writer: int) -> Shard | None:
            local = given[name]
            if local["memory"] is None or (name.startswith("d_") and not back):
                return None
            of_keys, depth = name.endswith(("k", "v")), name != "lse"
            shape = (given["batch"], given["key_heads" if of_keys else "heads"], problem["keys" if of_keys else "queries"])
            strides = (local["batch"], local["head"], local["sequence"])
            return cast("Shard", local["memory"]._view(
                (*shape, given["depth"]) if depth else shape, (*strides, 1) if depth else strides,
                given["dtype"] if depth else "f32", writer == 1 + back))  # fmt: skip

        numbers = {name: problem[name] for name in ("mask", "diagonal", "window", "query_index", "key_index")}
        tensors: Any = {name: part(name, writer) for name, writer in _PARTS.items()}
        return kernel(Problem(
            **numbers, first_head=given["first_head"], first_key_head=given["first_key_head"], is_backward=back,
            stream=given["stream"], **tensors))  # fmt: skip

    return call


@_weft.use
class Attention(_weft.Attention):
    """Attention over a sequence of length indices: Attention(context, mesh, axis, length, batch, heads, depth, dtype).

    Collective.  kernel is a function of a Problem, and weft merges its results.  It must not keep arrays of the
    shards.  The other arguments are those of AttentionPlan; attention.plan is the plan.
    """

    __slots__ = ()

    def __new__(
        cls,
        context: _weft.Context,
        mesh: Mesh,
        axis: str,
        length: int,
        batch: int,
        heads: int,
        depth: int,
        dtype: str,
        key_heads: int = 0,
        sequence_dim: int = 2,
        mask: _Mask = "full",
        balance: _Balance = "contiguous",
        variant: _Variant = "ring",
        window: int = 0,
        documents: Sequence[int] | None = None,
        order: Sequence[int] | None = None,
        blocks: Sequence[Mapping[str, Any] | Sequence[Any]] | None = None,
        block_length: int = 0,
    ) -> Attention:
        return super().__new__(
            cls, context, mesh, axis, length=length, batch=batch, heads=heads, depth=depth, dtype=dtype,
            key_heads=key_heads, sequence_dim=sequence_dim, mask=mask, balance=balance, variant=variant, window=window,
            documents=documents, order=order, blocks=blocks, block_length=block_length)  # fmt: skip

    def forward(
        self, kernel: _Kernel, q: _Array, k: _Array, v: _Array, out: _Array, lse: _Array, stream: _StreamLike = None
    ) -> None:
        """Write out and lse, f32[batch, heads, sequence], of this rank's queries.  Collective.

        q, k, v and out may have gaps between their rows, such as views of one packed array.
        """
        _weft.attention_run(self, _function(kernel), (q, k, v, out, lse), stream)

    def backward(
        self,
        kernel: _Kernel,
        q: _Array,
        k: _Array,
        v: _Array,
        out: _Array,
        lse: _Array,
        d_out: _Array,
        d_q: _Array,
        d_k: _Array,
        d_v: _Array,
        stream: _StreamLike = None,
    ) -> None:
        """Write the gradients of q, k and v.  Collective."""
        _weft.attention_run(self, _function(kernel), (q, k, v, out, lse, d_out, d_q, d_k, d_v), stream)

    def shard(self, source: _Array, target: _Array, dim: int, stream: _StreamLike = None) -> None:
        """This rank's part of a whole buffer."""
        _weft.attention_copy(self, source, target, stream, False, dim)

    def restore(self, source: _Array, target: _Array, dim: int, stream: _StreamLike = None) -> None:
        """The whole buffer on every rank.  Collective."""
        _weft.attention_copy(self, source, target, stream, True, dim)
