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
        return tuple(map(super().axis_size, range(self.axes)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes; "" for an axis without a name."""
        return tuple(map(self.axis_name, range(self.axes)))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks, in row-major order of their coordinates."""
        return tuple(map(self.rank_at, range(self.size)))

    def axis(self, axis: int | str) -> int:
        """The number of an axis, which is given by its name or its number.

        >>> import weft
        >>> weft.Mesh("dp=2,tp=4").axis("tp")
        1
        """
        if isinstance(axis, str):
            return self.find_axis(axis)
        super().axis_size(axis)  # IndexError: there is no such axis
        return axis

    def axis_size(self, axis: int | str) -> int:
        """The number of ranks along an axis, by its name or its number.  IndexError: there is no such axis."""
        return super().axis_size(self.axis(axis))

    def unflatten(self, axis: int | str, sizes: Sequence[int], names: Sequence[str] | None = None) -> Mesh:
        """The mesh of the same ranks in which an axis is split into several.

        The sizes multiply to the size of the axis.  names must be given if the axes of the mesh have names.
        """
        if names is None and any(self.names):
            raise ValueError(f"names must be given, one for each of {list(sizes)}, because the axes of {self!r} have names")
        return super().unflatten(self.axis(axis), sizes, names)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        return map(self.rank_at, range(self.size))

    def __contains__(self, rank: object) -> bool:
        if not isinstance(rank, int):
            return False
        try:
            self.coordinate(rank)
        except NotFoundError:
            return False
        return True

    def __repr__(self) -> str:
        return f"weft.mesh({str(self)!r})"


def _refuse_swapped(text: Any, mesh: Any) -> None:
    """TypeError for Spec(mesh, text)."""
    if isinstance(text, Mesh) or (isinstance(text, str) and isinstance(mesh, str) and "[" in mesh and "[" not in text):
        raise TypeError(f"text and mesh are swapped; give the layout first, then the mesh: ({str(mesh)!r}, {str(text)!r})")


@_weft.use
class Spec(_weft.Spec):
    """The layout of a tensor on a mesh.  Equal layouts are equal objects.

    >>> import weft
    >>> weft.Spec("f32[64,64] S(0),R", weft.Mesh("2x4")).shard(0)
    ((32, 64), (0, 0))
    """

    __slots__ = ()

    def __new__(cls, text: str, mesh: Mesh | str) -> Spec:
        _refuse_swapped(text, mesh)
        return super().__new__(cls, Mesh(mesh) if isinstance(mesh, str) else mesh, text)

    @property
    def placements(self) -> str:
        """The placements as text, one per axis."""
        return str(self).partition("] ")[2]

    def with_(self, placements: str | None = None, mesh: Mesh | None = None, dtype: str | None = None) -> Spec:
        """The same tensor in another layout, on another mesh or with another dtype."""
        made: Spec = self
        if placements is not None or mesh is not None:
            made = made._with_mesh(self.mesh if mesh is None else mesh, self.placements if placements is None else placements)
        return made if dtype is None else made._with_dtype(dtype)

    def shard(self, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape of a rank's shard and its first global index: (shape, offset).

        A rank outside the mesh holds nothing: its sizes are 0.
        """
        self._check_rank(rank)
        found = self._shard(rank)
        return found["shape"], found["offset"]

    def shard_bytes(self, rank: int) -> int:
        """The bytes of a rank's shard, without gaps; 0 for a rank outside the mesh."""
        self._check_rank(rank)
        return super().shard_bytes(rank)

    def counts(self, ranks: Sequence[int] | None = None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The numbers of elements that ranks hold, and for each the sum of those before it: (counts, offsets).

        Without ranks, those of the mesh in its order.  Comm.all_gather_v takes the counts.

        >>> import weft
        >>> weft.spec("f32[7] S(0)", "dp=2").counts()
        ((4, 3), (0, 4))
        """
        return super().counts(self.mesh.ranks if ranks is None else ranks)

    def _check_rank(self, rank: int) -> None:
        if rank < 0:
            raise IndexError(f"rank is {rank}; ranks count from 0")

    def _check_dim(self, dim: int) -> None:
        if not 0 <= dim < self.dims:
            raise ValueError(f"dim is {dim}, but {self} has {self.dims} dimensions, from 0 on")

    @classmethod
    def from_shards(cls, mesh: Mesh, dtype: str, placements: str, dims: int, shards: Sequence[int]) -> Spec:
        """The layout whose shards have the given sizes, for placements such as "S(0),R".

        shards has the shapes of the shards of all ranks of the mesh, in its order, one after the other: `dims` numbers
        for each rank.  Uneven sizes become a `G`.

        >>> import weft
        >>> print(weft.Spec.from_shards(weft.mesh("2"), "f32", "S(0)", 1, [3, 4]))
        f32[7] G(0;3,4)
        """
        return super().from_shards(mesh, dtype, placements, dims, shards)

    def runs(self, rank: int, dim: int) -> list[tuple[int, int]]:
        """The global indices of a dimension that a rank holds: (start, length)."""
        self._check_rank(rank)
        self._check_dim(dim)
        found, at = [], 0
        while (run := self._run(rank, dim, at)) is not None:
            found.append((run["start"], run["length"]))
            at += run["length"]
        return found

    def segments(self, rank: int, strides: Sequence[int] | None = None) -> list[tuple[int, int, int]]:
        """The elements of a rank's shard that are consecutive in the whole tensor and in its memory.

        (global, local, length), in elements.
        """
        found, at = [], 0
        while (segment := self._segment(rank, at, strides)) is not None:
            found.append((segment["global"], segment["local"], segment["length"]))
            at += segment["length"]
        return found

    def intersections(self, rank: int, other: Spec, other_rank: int, dim: int) -> list[tuple[int, int, int, int]]:
        """The global indices of a dimension that shards of two layouts share: (start, length, first, second).

        first and second are the local indices of start.
        """
        self._check_dim(dim)
        other._check_dim(dim)
        found, at = [], 0
        while (shared := self._intersection(rank, other, other_rank, dim, at)) is not None:
            found.append((shared["start"], shared["length"], shared["first"], shared["second"]))
            at = shared["start"] + shared["length"]
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
        made = super().__new__(cls, source, target, minimize=minimize, memory_limit=memory_limit, costs=_weft.CostTable(costs))
        made._options = {"minimize": minimize, "memory_limit": memory_limit, "costs": costs}
        return made

    @property
    def steps(self) -> list[dict[str, Any]]:
        """A dictionary per step, as step returns it."""
        return list(self)

    def step(self, index: int) -> dict[str, Any]:
        """The facts of a step.

        "axes" has the axes of the mesh along which data travels, by their names or, without names, their numbers; none
        for a step between two meshes, for a step that only casts, and for the shared exchange of a batch.
        """
        found = self._step(index)
        names = found["source"].mesh.names if found["source"] is not None else ()
        found["axes"] = tuple(name or axis for axis, name in enumerate(names) if found["axes"] >> axis & 1)
        return found

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.step, range(self.step_count))

    @property
    def scratch_bytes(self) -> int:
        """Another name of peak_bytes."""
        return self.peak_bytes

    @property
    def lower_bound(self) -> int:
        """Bytes that the busiest rank must receive in any method."""
        return self._lower_bound()

    def measure(self, step: int | None = None) -> tuple[int, int]:
        """The bytes that the rank that receives most receives, and all ranks together.

        Of a step: those that a rank sends at most, and receives at most.
        """
        return super().measure() if step is None else self._measure_step(step)

    def runner_up(self) -> Plan | None:
        """The plan that would be chosen if this one did not exist; None: there is no other plan."""
        options: dict[str, Any] = getattr(self, "_options", {})
        try:
            return self._create_runner_up(**{key: value for key, value in options.items() if key != "costs"})
        except NotFoundError:
            return None

    def _repr_svg_(self) -> str | None:
        from . import _pictures  # few programs draw

        return _pictures.of_plan(self, getattr(self, "_options", None))

    def __str__(self) -> str:
        return super().__str__().rstrip("\n")

    def __repr__(self) -> str:
        return f"<weft.Plan, {self.source} to {self.target}, {self.step_count} steps>"
