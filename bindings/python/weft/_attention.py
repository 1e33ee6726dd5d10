"""Attention over a sequence that the ranks of a mesh axis share."""

import dataclasses

from ._weft import Attention as _Attention


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a kernel computes: some queries of this rank against some keys.

    With the mask "full" query i sees all keys, with "causal" keys j <= i + diagonal, with "window" of these the last
    `window`.  Tensors are shards of [batch, head, sequence, depth], which from_dlpack makes arrays of; lse has no
    depth.  A forward writes out and lse, a backward d_q, d_k and d_v.
    """

    mask: str
    diagonal: int
    window: int
    query_index: int
    key_index: int
    first_head: int
    first_key_head: int
    is_backward: bool
    tensors: tuple
    stream: int  # the address of the stream to compute on

    q = property(lambda self: self.tensors[0])
    k = property(lambda self: self.tensors[1])
    v = property(lambda self: self.tensors[2])
    out = property(lambda self: self.tensors[3])
    lse = property(lambda self: self.tensors[4])
    d_out = property(lambda self: self.tensors[5])
    d_q = property(lambda self: self.tensors[6])
    d_k = property(lambda self: self.tensors[7])
    d_v = property(lambda self: self.tensors[8])


def _function(kernel):
    return lambda *parts: kernel(Problem(*parts))


class Attention(_Attention):
    """The attention of a plan: Attention(context, plan, batch, heads, depth, dtype).  Collective.

    kernel is a function of a Problem, and weft merges its results.  It must not keep arrays of the shards.
    """

    __slots__ = ()

    def forward(self, kernel, q, k, v, out, lse, stream=None):
        """Write out and lse, f32[batch, heads, sequence], of this rank's queries.  Collective."""
        self.run(_function(kernel), (q, k, v, out, lse), stream)

    def backward(self, kernel, q, k, v, out, lse, d_out, d_q, d_k, d_v, stream=None):
        """Write the gradients of q, k and v.  Collective."""
        self.run(_function(kernel), (q, k, v, out, lse, d_out, d_q, d_k, d_v), stream)
