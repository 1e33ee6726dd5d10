"""Meshes, specs and plans."""

import copy
import json
import pickle

import pytest

import weft


def test_meshes_are_equal_by_value():
    mesh = weft.mesh("dp=2,tp=4")
    assert mesh == weft.mesh("dp=2,tp=4") and hash(mesh) == hash(weft.mesh("dp=2,tp=4"))
    assert mesh != weft.mesh("2x4")
    assert (mesh.size, len(mesh), mesh.shape, mesh.names) == (8, 8, (2, 4), ("dp", "tp"))
    assert mesh.ranks == tuple(range(8)) and mesh.coordinate(6) == (1, 2)
    assert repr(mesh) == "weft.mesh('dp=2,tp=4')" and str(mesh.slice("tp", 5)) == "tp=4@4-7"
    assert mesh.flatten("dp,tp", "all").names == ("all",)
    assert mesh.rank((1, 2)) == 6 and mesh.find_axis("tp") == 1
    assert str(mesh.unflatten(1, [2, 2], ["a", "b"])) == "dp=2,a=2,b=2"
    assert mesh.concatenate(mesh.slice("dp", 0), mesh.slice("tp", 0)) == mesh
    assert (mesh.hosts, mesh.devices_per_host, mesh.host_of(7)) == (1, 0, 0)


def test_specs_have_their_parts():
    mesh = weft.mesh("dp=2,tp=4")
    spec = weft.spec("bf16[8,6] S(0),R", mesh)
    assert (spec.dtype, spec.shape, spec.placements, spec.mesh) == ("bf16", (8, 6), "S(0),R", mesh)
    assert spec.with_("R,S(1)").placements == "R,S(1)"
    assert spec.with_(dtype="f32").dtype == "f32"
    assert spec.with_(mesh=weft.mesh("2x4")).mesh == weft.mesh("2x4")
    assert spec.shard(5) == ((4, 6), (4, 0)) and spec.runs(5, 0) == [(4, 4)]
    assert weft.spec("f32[4] R,P(sum)", mesh).dual().placements == "P(sum),R"
    assert weft.spec("f32[4] R,P(sum)", mesh).gradient().placements == "R,R"
    assert eval(repr(spec)) == spec


def test_dimensions_that_do_not_exist_are_refused():
    matrix, vector = weft.spec("f32[8,6] S(0)", "2"), weft.spec("f32[8] S(0)", "2")
    for dim in (2, -1):
        with pytest.raises(ValueError, match=rf"dim is {dim}, but f32\[8,6\] S\(0\) has 2 dimensions"):
            matrix.runs(0, dim)
        with pytest.raises(ValueError, match=rf"dim is {dim}, but f32\[8,6\] S\(0\) has 2 dimensions"):
            matrix.intersections(0, matrix, 1, dim)
    with pytest.raises(ValueError, match=r"dim is 1, but f32\[8\] S\(0\) has 1 dimensions"):
        matrix.intersections(0, vector, 0, 1)
    assert matrix.runs(1, 1) == [(0, 6)] and matrix.runs(7, 0) == []


def test_specs_follow_from_shards():
    spec = weft.Spec.from_shards(weft.mesh("3"), "f32", "S(0)", 2, [5, 4, 1, 4, 2, 4])
    assert str(spec) == "f32[8,4] G(0;5,1,2)"


def test_plans_have_exact_figures():
    plan = weft.plan("bf16[4096,4096]", "dp=2,tp=4", "S(0),R", "R,S(1)")
    assert plan.bytes_received_max == plan.lower_bound == 4096 * 4096 // 8 * 2 and plan.exact
    assert json.loads(plan.json())["from"] == "S(0),R"
    assert sum(step["bytes_received"] for step in plan.steps) >= plan.bytes_received_max
    assert plan.steps[0]["source"] == plan.source and plan.steps[-1]["target"] == plan.target
    assert str(plan.source) == "bf16[4096,4096] S(0),R" and plan.target.placements == "R,S(1)"
    least = weft.plan("f32[7,10]", "2x3", "P(sum),P(sum)", "S(0),S(1)", minimize="bytes")
    assert least.least and least.bytes_received_max == 288
    with pytest.raises(ValueError, match="minimize is 'speed'; expected one of: time, bytes, memory"):
        weft.plan("f32[7]", "2", "S(0)", "R", minimize="speed")


def test_errors_are_exceptions_of_their_status():
    with pytest.raises(weft.ParseError, match="position 6") as caught:
        weft.spec("f32[8", "2")
    assert caught.value.code == -13 and caught.value.name == "ERR_PARSE"
    assert caught.value.rank is None
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, weft.Error)
    with pytest.raises(weft.NotFoundError):
        weft.mesh("dp=2").slice("tp", 0)
    with pytest.raises(TypeError, match="mesh must be a weft.Mesh, not int"):
        weft.Spec("f32[8] R", 2)


def test_layouts_and_plans_have_pictures():
    spec = weft.spec("f32[8,16] S(0),S(1)", "dp=2,tp=4")
    assert spec._repr_svg_().startswith("<svg")
    plan = weft.plan("f32[7,10]", "2x3", "P(sum),P(sum)", "S(0),S(1)", minimize="bytes")
    assert plan._repr_svg_().startswith("<svg")
    cross = weft.Plan(weft.spec("f32[8] S(0)", "2@0,1"), weft.spec("bf16[8] R", "2@2,3"))
    assert "<svg" in cross._repr_svg_()


def test_meshes_and_specs_are_copied_and_pickled():
    for text in ("dp=2,tp=2@4-7", "4x8/8"):
        mesh = weft.mesh(text)
        assert pickle.loads(pickle.dumps(mesh)) == mesh and copy.deepcopy(mesh) == mesh
    for text in ("f32[4,8] S(0),R", "bf16[7] S(0)[1],S(0)[0]", "i8[5,3] G(0;5,0),P(sum)"):
        spec = weft.spec(text, "dp=2,tp=2")
        assert pickle.loads(pickle.dumps(spec)) == spec and copy.copy(spec) == spec


def test_numbers_out_of_range_are_refused():
    for limit in (-1, 2**64):
        with pytest.raises(ValueError, match=f"memory_limit is {limit}, which is out of range; expected a number from 0"):
            weft.plan("f32[4]", "2", "S(0)", "R", memory_limit=limit)


def test_layouts_and_plans_are_examined():
    rows, columns = weft.spec("f32[6,4] S(0)", "2"), weft.spec("f32[6,4] S(1)", "2")
    assert columns.segments(1) == [(2 + 4 * row, 2 * row, 2) for row in range(6)]
    assert columns.segments(1, (3, 1))[1] == (6, 3, 2) and rows.segments(7) == []
    assert rows.intersections(1, columns, 0, 0) == [(3, 3, 0, 3)]
    assert rows.intersections(1, columns, 1, 1) == [(2, 2, 2, 0)]
    with pytest.raises(ValueError, match="strides has 1 entries; expected 2"):
        columns.segments(1, (3,))
    assert weft.owners_balance([5, 4, 3, 3], 2) == (0, 1, 1, 0)
    with pytest.raises(weft.InvalidError):
        weft.owners_balance([1], 0)
    with pytest.raises(ValueError, match="bytes is -1"):
        weft.owners_balance([-1], 2)

    plan = weft.Plan(rows, columns)
    most, total = plan.measure()
    assert (most, total) == (24, 48) and plan.measure(0) == (24, 24)
    with pytest.raises(weft.InvalidError):
        plan.measure(9)
    other = plan.runner_up()
    assert other.cost_ns >= plan.cost_ns and other.steps[0]["kind"] != plan.steps[0]["kind"]
    assert json.loads(plan.json(other))["runner_up"] and json.loads(plan.json())["runner_up"] is None
    assert plan.costs.name == other.costs.name
    assert weft.Plan(rows, rows).runner_up() is None


def test_orders_hide_communication():
    nodes = [weft.Node(time=100, alloc=8, kept=True), weft.Node("start", (0,), 0, 80, 8), weft.Node("wait", (1,), 0),
             weft.Node(time=90, alloc=8, kept=True), weft.Node(inputs=(2, 3), time=10)]  # fmt: skip
    assert weft.reorder(nodes, "raise").order == list(range(5))  # the start needs the node before it
    for method in "iterative", "sink", "list":
        result = weft.reorder(nodes, method)
        assert sorted(result.order) == list(range(5)) and result.order.index(3) < result.order.index(2)
        assert (result.exposed_before, result.exposed_after) == (80, 0) and result.time_after < result.time_before
    (collective,) = weft.reorder(nodes).collectives
    assert (collective["start"], collective["wait"], collective["time"]) == (1, 2, 80)
    assert "hidden" in (collective["limit_up"], collective["limit_down"])
    with pytest.raises(weft.InvalidError, match="node"):
        weft.reorder([weft.Node("start", (), 0, 1)])
    with pytest.raises(ValueError, match="iterative"):
        weft.reorder(nodes, "fast")
    with pytest.raises(ValueError, match="compute"):
        weft.reorder([weft.Node("send")])
    with pytest.raises(TypeError, match="a dictionary or a tuple"):
        weft._weft._Reorder([3])


def test_errors_of_vendors_have_a_code():
    error = weft._errors.error_of(-6, "ERR_DEVICE", "rank 3: it failed", "NCCL", 5)
    assert isinstance(error, weft.DeviceError) and error.vendor == ("NCCL", 5) and error.rank == 3
    with pytest.raises(weft.Error) as caught:
        weft.mesh("x")
    assert caught.value.vendor is None


def test_counts_are_those_of_the_ranks_of_the_mesh():
    assert weft.spec("f32[7] S(0)", "dp=2").counts() == ((4, 3), (0, 4))
    assert weft.spec("f32[7] S(0)", "2@5,3").counts() == ((4, 3), (0, 4))
    assert weft.spec("f32[7] S(0)", "2@5,3").counts([3, 4, 5]) == ((3, 0, 4), (0, 3, 3))
    assert weft.spec("f32[7] S(0)", "dp=2").counts([]) == ((), ())
