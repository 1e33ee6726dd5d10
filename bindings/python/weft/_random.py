"""The state of a generator of random numbers."""


class Random:
    """A seed and an offset.  Each draw uses one offset, so draws of the same state have the same bits.

    Ranks that draw the same tensor must have the same state.
    """

    __slots__ = ("seed", "offset")

    def __init__(self, seed, offset=0):
        self.seed = seed
        self.offset = offset

    def __repr__(self):
        return f"weft.Random({self.seed}, {self.offset})"

    def _draw(self, method, *parameters):
        method(self.seed, self.offset, *parameters)
        self.offset += 1

    def uniform(self, tensor, low=0.0, high=1.0):
        """low <= x < high."""
        self._draw(tensor.uniform, low, high)

    def normal(self, tensor, mean=0.0, deviation=1.0):
        """The normal distribution."""
        self._draw(tensor.normal, mean, deviation)

    def truncated_normal(self, tensor, mean=0.0, deviation=1.0, low=-2.0, high=2.0):
        """The normal distribution within limits."""
        self._draw(tensor.truncated_normal, mean, deviation, low, high)

    def bernoulli(self, tensor, probability=0.5):
        """1 with a probability, else 0."""
        self._draw(tensor.bernoulli, probability)

    def dropout(self, tensor, probability=0.5):
        """A mask for dropout."""
        self._draw(tensor.dropout, probability)

    def integers(self, tensor, low=0, high=2):
        """low <= x < high."""
        self._draw(tensor.integers, low, high)
