"""FSDP, clipping, random numbers, counts and traces."""

import gc
import json
import math

import pytest

import weft


def test_parameters_are_gathered_and_gradients_reduced(simulated):
    on = weft.mesh("dp=4")
    stored = weft.Tensor(simulated, weft.FSDP.shard_spec(weft.spec("f32[8,3] R", on), "dp"), "w")
    stored.normal(7)
    fsdp = weft.FSDP(simulated, on, "dp")
    group = fsdp.group([stored], name="layer")
    assert len(group) == 1 and group.state == "sharded" and group.info["bytes_gathered"] == 0
    with pytest.raises(RuntimeError, match=r"not gathered \(sharded\); call unshard first"):
        group.parameter(0)
    for wrong in (group.parameter, group.gradient, group.gradient_spec):
        with pytest.raises(IndexError, match="index is 5, but the group has 1 parameters"):
            wrong(5)
    group.unshard()
    whole = group.parameter(0)
    assert whole.spec.placements == "R" and whole.compare(stored)["equal"] and [one.name for one in group] == [whole.name]
    del whole
    gradient = group.gradient_create(0)
    assert gradient.spec.placements == "P(sum)" and gradient.spec == group.gradient_spec(0)
    gradient.fill(2)
    with pytest.raises(ValueError, match="gradients has 2 entries; expected 1"):
        group.reduce([gradient, gradient])
    group.reduce([gradient])
    reduced = group.gradient(0)
    assert reduced.spec == stored.spec
    expected = weft.Tensor(simulated, stored.spec)
    expected.fill(2)
    assert reduced.compare(expected)["equal"]
    group.gradients_clear()
    with pytest.raises(weft.InvalidError, match="layer"):
        group.unshard_end()
    del gradient, reduced, expected, group, fsdp, stored
    gc.collect()


def test_fsdp_keeps_its_stream_and_is_closed(simulated):
    stored = weft.Tensor(simulated, weft.spec("f32[8,3] S(0)", "4"), "w")
    stored.normal(7)
    fsdp = weft.FSDP(simulated, stored.spec.mesh, 0, compute=weft.Stream(simulated))
    gc.collect()
    group = fsdp.group([stored], name="layer", frozen=[0])
    other = fsdp.group([weft.Tensor(simulated, stored.spec)])
    group.prefetch([other])
    group.unshard()
    assert group.state == "gathered" and other.info["state"] == "gathering" and group.gradient_spec(0) is None
    group.reshard(ranks=2)
    assert group.state == "part_kept"
    for call, error, text in (
        (lambda: fsdp.group([stored], frozen=[1]), IndexError, "frozen"),
        (lambda: fsdp.group([None]), weft.InvalidError, "tensor"),
        (lambda: group.prefetch([None]), weft.InvalidError, "group"),
        (lambda: weft.FSDP(simulated, stored.spec.mesh, 0, compute=1.5), TypeError, "weft.Stream"),
        (lambda: weft.FSDP(simulated, stored.spec.mesh, "dp"), weft.NotFoundError, "dp"),
        (lambda: fsdp.group(stored), TypeError, "tensors must be a list of weft.Tensor"),
        (lambda: fsdp.group([stored], shards="dp"), TypeError, r"FSDP.group\(\) has no argument 'shards'; did you mean 'shard'"),
    ):
        with pytest.raises(error, match=text):
            call()
    with pytest.raises(RuntimeError, match="close that first"):
        fsdp.close()
    group.unshard()
    group.close()
    with pytest.raises(RuntimeError, match="closed"):
        group.unshard()
    other.close()
    fsdp.close()
    with pytest.raises(RuntimeError, match="closed"):
        fsdp.group([stored])
    del stored
    gc.collect()


def test_gradients_are_clipped(simulated):
    gradients = [weft.Tensor(simulated, weft.spec(f"f32[8,2] {p}", "4")) for p in ("S(0)", "R")]
    for gradient in gradients:
        gradient.fill(3)
    norm = weft.clip_gradient_norm(simulated, gradients, 1.0)
    assert norm == pytest.approx(3 * math.sqrt(32))
    assert weft.clip_gradient_norm(simulated, [*gradients, None], 100.0) == pytest.approx(1.0, rel=1e-5)
    assert weft.clip_gradient_norm(simulated, gradients, 1.0, p=math.inf) == pytest.approx(1 / math.sqrt(32), rel=1e-5)
    weft.clip_gradient_value(simulated, gradients, 0.125)
    assert weft.clip_gradient_norm(simulated, gradients, 1e9, p=math.inf) == 0.125
    with pytest.raises(ValueError, match="nonfinite is 'ignore'"):
        weft.clip_gradient_norm(simulated, gradients, 1.0, nonfinite="ignore")
    del gradients
    gc.collect()


def test_a_generator_counts_its_draws(simulated):
    random = weft.Random(42)
    first, second = (weft.Tensor(simulated, weft.spec("f32[16] S(0)", "4")) for _ in range(2))
    random.normal(first)
    random.uniform(second)
    assert random.offset == 2 and repr(random) == "weft.Random(42, 2)"
    random.offset = 0
    again = weft.Tensor(simulated, first.spec)
    random.normal(again)
    assert first.compare(again)["equal"]
    del first, second, again
    gc.collect()


def test_blocks_begin_once_and_have_results_at_their_end(alone):
    for block, result in ((weft.counts(alone), "result"), (weft.trace(alone), "records")):
        with pytest.raises(RuntimeError, match="has not ended"):
            getattr(block, result)
        for _ in range(2):
            with block:
                with pytest.raises(RuntimeError, match="has begun"):
                    block.__enter__()
                with pytest.raises(RuntimeError, match="has not ended"):
                    getattr(block, result)
            getattr(block, result)
    with pytest.raises(MemoryError):
        weft.trace(alone, capacity=2**63).__enter__()


def test_operations_are_counted_and_recorded(ranks, tmp_path):
    ranks(2, f"""
        import json, weft
        from array import array
        context = weft.init()
        world = weft.Comm(context)
        x = array("f", [1.0] * 8)
        with weft.counts() as outer:
            with weft.counts() as counts, weft.trace(capacity=4) as trace:
                for _ in range(3):
                    world.all_reduce(x)
            world.barrier()
        assert counts.result["operations"] == {{"all-reduce": 3}}, counts.result
        assert outer.result["operations"] == {{"all-reduce": 3, "barrier": 1}}
        assert counts.result["steps"] == {{}}
        assert counts.result["sent"] == 96 and sum(a["sent"] for a in counts.result["axes"].values()) == 96
        assert [r["operation"] for r in trace.records] == ["all-reduce"] * 3 and trace.lost == 0
        assert all(r["finished_ns"] >= r["submitted_ns"] > 0 for r in trace.records)
        trace.save(f"{tmp_path}/{{context.rank}}.json")
        with weft.trace(capacity=1) as short:
            world.barrier(), world.barrier()
        assert len(short.records) == 1 and short.lost == 1
        weft.dump(context, "{tmp_path}/dump")
    """)
    events = json.loads((tmp_path / "1.json").read_text())["traceEvents"]
    assert len(events) == 3 and all(event["dur"] >= 0 and event["pid"] == 1 for event in events)
    assert (tmp_path / "dump-0.json").exists()
