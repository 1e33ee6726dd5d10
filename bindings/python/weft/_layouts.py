"""Meshes, layouts and plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from . import _weft
from ._errors import NotFoundError


@_weft.use
class Mesh(_weft.Mesh):
    """Ranks arranged along up to eight axes, such as "dp=2,tp=4".  Equal meshes are equal objects.

    >>> import weft
    >>> weft.Mesh("dp=2,tp=4").shape
    (2, 4)
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along each axis."""
        return tuple(map(self.axis_size, range(self.axes)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes; "" for an axis without a name."""
        return tuple(self.axis_name(axis) or "" for axis in range(self.axes))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks, in row-major order of their coordinates."""
        return tuple(map(self.rank_at, range(self.size)))

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        return map(self.rank_at, range(self.size))

    def __repr__(self) -> str:
        return f"weft.mesh({str(self)!r})"


@_weft.use
class Spec(_weft.Spec):
    """The layout of a tensor on a mesh.  Equal layouts are equal objects.

    >>> import weft
    >>> weft.Spec("f32[64,64] S(0),R", weft.Mesh("2x4")).shard(0)
    ((32, 64), (0, 0))
    """

    __slots__ = ()

    def __new__(cls, text: str, mesh: Mesh) -> Spec:
        return _weft.Spec.parse(mesh, text)

    @property
    def placements(self) -> str:
        """The placements as text, one per axis."""
        return str(self).partition("] ")[2]

    def with_(self, placements: str | None = None, mesh: Mesh | None = None, dtype: str | None = None) -> Spec:
        """The same tensor in another layout, on another mesh or with another dtype."""
        made: Spec = self
        if placements is not None or mesh is not None:
            made = made.with_mesh(self.mesh if mesh is None else mesh, self.placements if placements is None else placements)
        return made if dtype is None else made.with_dtype(dtype)

    def shard(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape of a rank's shard and its first global index: (shape, offset)."""
        found = self._shard(rank)
        return found["shape"], found["offset"]

    def _check_dim(self, dim: int) -> None:
        if not 0 <= dim < self.dims:
            raise ValueError(f"dim is {dim}, but {self} has {self.dims} dimensions, from 0 on")

    def runs(self, rank: int, dim: int) -> list[tuple[int, int]]:
        """The global indices of a dimension that a rank holds: (start, length)."""
        self._check_dim(dim)
        found, at = [], 0
        while (run := self.run(rank, dim, at)) is not None:
            found.append((run["start"], run["length"]))
            at += run["length"]
        return found

    def segments(self, rank: int, strides: Sequence[int] | None = None) -> list[tuple[int, int, int]]:
        """The elements of a rank's shard that are consecutive in the whole tensor and in its memory.

        (global, local, length), in elements.
        """
        found, at = [], 0
        while (segment := self.segment(rank, at, strides)) is not None:
            found.append((segment["global"], segment["local"], segment["length"]))
            at += segment["length"]
        return found

    def overlaps(self, rank: int, other: Spec, other_rank: int, dim: int) -> list[tuple[int, int, int, int]]:
        """The global indices of a dimension that shards of two layouts share: (start, length, first, second).

        first and second are the local indices of start.
        """
        self._check_dim(dim)
        other._check_dim(dim)
        found, at = [], 0
        while (overlap := self.overlap(rank, other, other_rank, dim, at)) is not None:
            found.append((overlap["start"], overlap["length"], overlap["first"], overlap["second"]))
            at = overlap["start"] + overlap["length"]
        return found

    def _repr_svg_(self) -> str | None:
        from . import _pictures  # few programs draw

        return _pictures.of_spec(self)

    def __repr__(self) -> str:
        return f"weft.spec({str(self)!r}, {self.mesh!r})"


_Goal = Literal["time", "bytes", "memory"]


@_weft.use
class Plan(_weft.Plan):
    """The steps that take a tensor from one layout to another.  Nothing is moved.

    >>> import weft
    >>> mesh = weft.Mesh("2")
    >>> weft.Plan(weft.Spec("f32[8] S(0)", mesh), weft.Spec("f32[8] R", mesh)).steps[0]["kind"]
    'all-gather'
    """

    __slots__ = ("_options",)
    _options: dict[str, Any]

    def __new__(
        cls, source: Spec, target: Spec, minimize: _Goal = "time", memory_limit: int = 0, costs: str | None = None
    ) -> Plan:
        table = _weft.CostTable.open(costs)
        made = _weft.Plan.create(source, target, minimize=minimize, memory_limit=memory_limit, costs=table)
        made._options = {"minimize": minimize, "memory_limit": memory_limit, "costs": costs}
        return made

    @property
    def steps(self) -> list[dict[str, Any]]:
        """A dictionary per step.  Bit i of its "axes" stands for axis i of the mesh."""
        return [self.step(index) for index in range(self.info["steps"])]

    @property
    def scratch_bytes(self) -> int:
        """Scratch of the rank that needs most."""
        return self.peak_bytes

    @property
    def lower_bound(self) -> int:
        """Bytes that the busiest rank must receive in any method."""
        return self._lower_bound()

    def measure(self, step: int | None = None) -> tuple[int, int]:
        """The bytes that the rank that receives most receives, and all ranks together.

        Of a step: those that a rank sends at most, and receives at most.
        """
        return super().measure() if step is None else self.measure_step(step)

    def runner_up(self) -> Plan | None:
        """The plan that would be chosen if this one did not exist; None: there is no other plan."""
        options: dict[str, Any] = getattr(self, "_options", {})
        try:
            return self.create_runner_up(**{key: value for key, value in options.items() if key != "costs"})
        except NotFoundError:
            return None

    def _repr_svg_(self) -> str | None:
        from . import _pictures  # few programs draw

        return _pictures.of_plan(self, getattr(self, "_options", None))

    def __str__(self) -> str:
        return super().__str__().rstrip("\n")

    def __repr__(self) -> str:
        return str(self)
