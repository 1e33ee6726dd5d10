"""Communicators: collectives and messages on arrays."""

import contextlib

from ._weft import Communicator


class Comm(Communicator):
    """An ordered list of ranks.  Comm(context) has all ranks of the job.

    Counts are in elements.  All ranks of a communicator make the same calls in the same order.
    Arrays are contiguous; the array that is written comes second.
    """

    __slots__ = ()

    def all_reduce(self, send, recv=None, op="sum", stream=None):
        """Reduce over all ranks; without recv, in place."""
        self.collective("all_reduce", send, send if recv is None else recv, op, stream=stream)

    def all_gather(self, send, recv, stream=None):
        """recv is the arrays of all ranks, one after the other."""
        self.collective("all_gather", send, recv, stream=stream)

    def reduce_scatter(self, send, recv, op="sum", stream=None):
        """recv is this rank's part of the reduction of all ranks' send."""
        self.collective("reduce_scatter", send, recv, op, stream=stream)

    def all_to_all(self, send, recv, stream=None):
        """Part i of send goes to rank i, and part i of recv comes from rank i."""
        self.collective("all_to_all", send, recv, stream=stream)

    def broadcast(self, array, root=0, stream=None):
        """The root's array on all ranks."""
        self.collective("broadcast", array if self.rank == root else None, array, root=root, stream=stream)

    def reduce(self, send, recv=None, op="sum", root=0, stream=None):
        """Reduce to the root; recv is used there only."""
        self.collective("reduce", send, recv, op, root, stream=stream)

    def gather(self, send, recv=None, root=0, stream=None):
        """The arrays of all ranks, one after the other, on the root."""
        self.collective("gather", send, recv, root=root, stream=stream)

    def scatter(self, send, recv, root=0, stream=None):
        """Part i of the root's send on rank i."""
        self.collective("scatter", send, recv, root=root, stream=stream)

    def all_gather_v(self, send, recv, counts, stream=None):
        """As all_gather, with counts[i] elements of rank i."""
        self.collective("all_gather_v", send, recv, recv_counts=counts, stream=stream)

    def reduce_scatter_v(self, send, recv, counts, op="sum", stream=None):
        """As reduce_scatter, with counts[i] elements for rank i."""
        self.collective("reduce_scatter_v", send, recv, op, send_counts=counts, stream=stream)

    def all_to_all_v(self, send, send_counts, recv, recv_counts, stream=None):
        """As all_to_all, with a count for each rank."""
        self.collective("all_to_all_v", send, recv, send_counts=send_counts, recv_counts=recv_counts, stream=stream)

    def barrier(self, stream=None):
        """Wait for all ranks, in stream order."""
        self.collective("barrier", stream=stream)

    @contextlib.contextmanager
    def group(self):
        """Operations in the block start together at its end."""
        self.group_begin()
        try:
            yield self
        finally:
            self.group_end()
