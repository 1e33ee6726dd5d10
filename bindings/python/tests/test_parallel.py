"""Schedules, styles, symmetric memory, overlapped matmuls, experts and pipelines."""

import json

import pytest

import weft

np = pytest.importorskip("numpy")


def test_schedules_are_made_printed_and_simulated():
    assert {"gpipe", "1f1b"} <= set(weft.Schedule.known())
    schedule = weft.Schedule("1f1b", 2, 4)
    assert schedule.info["stages"] == 2 and schedule.info["microbatches"] == 4 and not schedule.info["lowered"]
    assert schedule.rank_of(1) == 1
    assert schedule.actions(0)[:3] == [("F", 0, 0, False), ("F", 0, 1, False), ("B", 0, 0, False)]
    again = weft.Schedule.parse(str(schedule))
    assert again.info["digest"] == schedule.info["digest"]
    lowered = schedule.lower(reduce=True)
    kinds = {kind for kind, *_ in lowered.actions(0)}
    assert lowered.info["lowered"] and {"SEND_F", "RECV_B", "REDUCE_GRAD"} <= kinds

    timeline = schedule.simulate()
    assert timeline.makespan == 15 and timeline.info["makespan"] == 15 and timeline.rank(1)["busy"] == 12 and timeline.span(1, 0) == (1, 2)
    assert json.loads(timeline.json())["makespan"] == 15
    assert timeline.schedule.info["digest"] == schedule.info["digest"]
    slow = schedule.simulate([{"forward": 2, "input": 1, "weight": 1}, {"forward": 4}])
    assert slow.busy == 4 * 4 + 4 * 4

    for call, error, text in (
        (lambda: weft.Schedule("zigzag", 2, 4), weft.NotFoundError, "1f1b"),
        (lambda: weft.Schedule.parse("0F0,0F0"), weft.InvalidError, None),
        (lambda: weft.Schedule.parse("0X0"), weft.ParseError, None),
        (lambda: schedule.actions(2), weft.InvalidError, None),
        (lambda: lowered.lower(), weft.InvalidError, None),
        (lambda: schedule.simulate([{}]), ValueError, "costs of 1 stages; the schedule has 2 stages"),
        (lambda: schedule.simulate([1, 2]), TypeError, "dictionary"),
        (lambda: schedule.simulate([{"foward": 1}, {}]), TypeError, "foward"),
        (lambda: schedule.simulate([{"weight": -1}, {}]), ValueError, "weight"),
        (lambda: weft.Schedule("gpipe", 2, 4).simulate(memory_limit=1), weft.InvalidError, "rank"),
        (lambda: timeline.span(0, 99), weft.InvalidError, None),
        (lambda: weft.Timeline(), TypeError, None),
    ):
        with pytest.raises(error, match=text):
            call()


def test_styles_give_layouts():
    w = weft.spec("f32[8,4] R,R", "dp=2,tp=2")
    assert [str(s) for s in weft.style_layouts("column", "weight", w, "tp")][1] == "f32[8,4] R,S(0)"
    assert weft.style_layouts("placed", "input", w, 1, passed="S(1)")[1].placements == "R,S(1)"
    styles = weft.Styles("mesh dp=2,tp=2\n*.q.weight tp column\n*.o.weight tp row\nx dp S(0)\n")
    assert str(styles.mesh) == "dp=2,tp=2" and styles.find("a.q.weight", "tp") == "*.q.weight"
    assert styles.apply("a.q.weight", "weight", w).placements == "R,S(0)"
    assert styles.apply("a.o.weight", "weight", w).placements == "R,S(1)"
    for call, error in (
        (lambda: weft.style_layouts("diagonal", "weight", w, "tp"), ValueError),
        (lambda: weft.style_layouts("row", "heart", w, "tp"), ValueError),
        (lambda: weft.style_layouts("row", "weight", w, "pp"), weft.NotFoundError),
        (lambda: weft.Styles("mesh dp=2\n* tp column\n"), weft.Error),
        (lambda: styles.find("nothing", "tp"), weft.NotFoundError),
    ):
        with pytest.raises(error):
            call()


def test_symmetric_memory(ranks):
    ranks(2, """
        import numpy as np, pytest, weft
        world = weft.Comm(weft.init("gloo-cpu"))
        rank, other = world.rank, 1 - world.rank
        with weft.Symm(world, 4096) as symm:
            assert symm.info["bytes"] == 4096 and symm.info["channels"] == 8
            mine = np.from_dlpack(symm.memory())
            assert mine.dtype == np.uint8 and mine.shape == (4096,) and not mine.any()
            symm.barrier()
            symm.put(np.full(16, rank + 1, np.float32), other, 64, signal=(0, 7))
            symm.wait(other, 0, 7)
            assert (mine[64:128].view(np.float32) == other + 1).all()
            assert symm.test(other, 0, 7, "==") and not symm.test(other, 0, 8)
            back = np.zeros(16, np.float32)
            symm.get(other, back, 64)
            assert (back == rank + 1).all()
            symm.signal(other, 1, 5, "add")
            symm.fence(); symm.quiet(); symm.barrier()
            assert symm.test(other, 1, 5, "==") and not symm.test(other, 1, 5, "<")
            with pytest.raises(RuntimeError, match="array of its memory"):
                symm.close()
            with pytest.raises(ValueError, match="expected one of: =="):
                symm.wait(other, 0, 7, compare="~")
            with pytest.raises(ValueError, match="contiguous"):
                symm.put(np.ones((4, 4))[:, 1], other)
            with pytest.raises(weft.InvalidError):
                symm.put(np.ones(4096), other)
            with pytest.raises(TypeError, match="tuple"):
                symm.put(np.ones(4), other, signal=[0, 7])
            with pytest.raises(TypeError, match="tuple"):
                symm.memory().__dlpack__(dl_device=[1, 0])
            peer = symm.memory(other)
            if peer is not None:
                theirs = np.from_dlpack(peer)
                assert (theirs[64:128].view(np.float32) == rank + 1).all()
                del theirs
            symm.barrier()
            del mine
            memory = symm.memory()
        with pytest.raises(RuntimeError, match="closed"):
            symm.barrier()
        with pytest.raises(BufferError, match="closed"):
            np.from_dlpack(memory)
    """)


def test_arrays_keep_symmetric_memory(ranks):
    ranks(2, """
        import gc, numpy as np, weft
        context = weft.init("gloo-cpu")
        world, line = weft.Comm(context), weft.mesh("pp=2")
        mine = np.from_dlpack(weft.Symm(world.split(0), 64).memory())
        gc.collect()
        mine[:] = 7
        assert (mine == 7).all()
        memory = weft.Symm(world, 64).memory()
        np.from_dlpack(memory)[:] = 1
        assert (np.from_dlpack(memory) == 1).all()
        del mine, memory, world
        context.close()
    """)


def test_overlapped_matmuls(ranks):
    ranks(2, """
        import numpy as np, pytest, weft
        context = weft.init("gloo-cpu")
        world, mesh = weft.Comm(context), weft.mesh("tp=2")
        rank, rows = world.rank, 8
        whole = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        weights = np.arange(12, dtype=np.float32).reshape(4, 3)
        overlap = weft.Overlap(context, mesh, "tp", rows * 4 * 4)
        assert overlap.ranks == 2 and overlap.bytes == rows * 4 * 4
        spec = weft.spec("f32[8,4] S(0)", mesh)
        own = weft.Tensor.wrap(context, spec, whole[4 * rank:4 * rank + 4])
        for chunks in (-1, 2):
            result = np.zeros((rows, 3), np.float32)
            def consume(shard, first, stream):
                part = np.asarray(shard)
                assert not part.flags.writeable
                result[first:first + len(part)] = part @ weights
            overlap.gather(own, consume, chunks=chunks)
            assert np.array_equal(result, whole @ weights)
            mine = np.zeros((4, 4), np.float32)
            def produce(shard, first, stream):
                part = np.from_dlpack(shard)
                part[:] = whole[first:first + len(part)] * (rank + 1)
            overlap.reduce_scatter(weft.Tensor.wrap(context, spec, mine), produce, chunks=chunks)
            assert np.array_equal(mine, whole[4 * rank:4 * rank + 4] * 3)
        assert "gather_plain_ns" in overlap.predict(spec, flops=100)
        copies = weft.Tensor(context, weft.spec("f32[8,4] R", mesh))
        for call in (overlap.gather, overlap.reduce_scatter):
            with pytest.raises(weft.InvalidError, match="do not share the rows of the tensor as S"):
                call(copies, consume)
        uneven = np.zeros((4 - rank, 4), np.float32)
        overlap.reduce_scatter(weft.Tensor.wrap(context, weft.spec("f32[7,4] S(0)", mesh), uneven), produce)
        assert np.array_equal(uneven, whole[4 * rank:7][:4] * 3)
        def close(shard, first, stream):
            with pytest.raises(RuntimeError, match="running"):
                overlap.close()
        overlap.gather(own, close)
        left = []
        def fail(shard, first, stream):
            left.append(shard)
            raise KeyError("no weights")
        with pytest.raises(KeyError if rank == 1 else weft.AbortedError):
            overlap.gather(own, fail if rank == 1 else consume, chunks=-1)
            world.barrier()
        for shard in left:
            with pytest.raises(BufferError, match="has returned"):
                np.from_dlpack(shard)
        overlap.close()
        with pytest.raises(RuntimeError, match="closed"):
            overlap.predict(spec)
    """)


def test_experts_get_their_tokens(ranks):
    ranks(2, """
        import numpy as np, pytest, weft
        context = weft.init("gloo-cpu")
        rank = context.rank
        experts = weft.Experts(context, weft.mesh("ep=2"), "ep", 4)
        counts = [1, 2, 0, 3] if rank == 0 else [2, 0, 1, 1]
        routing = experts.route(counts)
        info = routing.info
        assert info["tokens"] == sum(counts) and info["first_expert"] == 2 * rank
        assert info["counts"] == ((3, 2) if rank == 0 else (1, 4)) and info["received"] == 5
        assert len(info["by_rank"]) == 4 and experts.experts == 4 and routing.first_expert == 2 * rank
        tokens = np.repeat(np.arange(4), counts)[:, None] + np.array([[0.0, 10.0 * rank]])
        tokens = tokens.astype(np.float32)
        received = np.empty((info["received"], 2), np.float32)
        routing.dispatch(tokens, received)
        assert (received[:, 0] == np.repeat([2 * rank, 2 * rank + 1], info["counts"])).all()
        back = np.zeros_like(tokens)
        routing.combine(received, back)
        assert np.array_equal(back, tokens)
        assert routing.spec("f32", 2).shape == (10, 2)
        limited = experts.route(counts, capacity=1)
        some, back = np.empty((limited.info["received"], 2), np.float32), -np.ones_like(tokens)
        limited.dispatch(tokens, some)
        limited.combine(some, back, keep_dropped=True)
        sent = np.concatenate([np.arange(count) == 0 for count in counts])
        assert np.array_equal(back, np.where(sent[:, None], tokens, -1)) and not sent.all()
        limited.combine(some, back)
        assert np.array_equal(back, np.where(sent[:, None], tokens, 0))
        limited.close()
        for call in (lambda: routing.dispatch(tokens[1:], received), lambda: routing.combine(received, back[:, :1].copy()),
                     lambda: experts.route([1, 2])):
            with pytest.raises(ValueError):
                call()
        with pytest.raises(weft.NotFoundError):
            weft.Experts(context, weft.mesh("ep=2"), "tp", 4)
        with pytest.raises(RuntimeError, match="close that first"):
            experts.close()
        routing.close()
        with pytest.raises(RuntimeError, match="closed"):
            routing.info
        with pytest.raises(RuntimeError, match="closed"):
            routing.dispatch(tokens, received)
        experts.close()
        context.close()
    """)


def test_a_pipeline_trains(ranks):
    """Two stages, y = (x w0) w1 with the loss sum(y) / microbatches: the gradients of the whole model."""
    ranks(2, """
        import numpy as np, pytest, weft
        context = weft.init("gloo-cpu")
        world, line = weft.Comm(context), weft.mesh("pp=2")
        rank, batches = world.rank, 4
        rng = np.random.default_rng(0)
        x, weights = rng.normal(size=(batches, 3, 5)).astype(np.float32), [rng.normal(size=s).astype(np.float32) for s in ((5, 4), (4, 2))]
        gradient, seen = np.zeros_like(weights[rank]), []

        def forward(action):
            seen.append((action.kind, action.microbatch))
            if action.stage == 0:
                np.from_dlpack(action.outputs[0])[:] = x[action.microbatch] @ weights[0]
            else:
                assert action.inputs[0].spec == weft.spec("f32[3,4] R", weft.mesh("1@1"))

        def backward(action):
            global gradient
            assert action.parts == 3 and action.loss_scale == 1 / batches
            if action.stage == 1:
                d_y = np.full((3, 2), action.loss_scale, np.float32)
                gradient += np.from_dlpack(action.inputs[0]).T @ d_y
                np.from_dlpack(action.d_inputs[0])[:] = d_y @ weights[1].T
            else:
                gradient += x[action.microbatch].T @ np.from_dlpack(action.d_outputs[0])

        pipeline = weft.Pipeline(context, line, "pp", weft.Schedule("1f1b", 2, batches), [["f32[3,4] R"]], forward, backward)
        assert pipeline.schedule.info["lowered"] and pipeline.info["sent"] >= 4 * 3 * 4 * 4
        pipeline.run()
        d_y = np.full((3, 2), 1 / batches, np.float32)
        expected = [sum(x[b].T @ (d_y @ weights[1].T) for b in range(batches)),
                    sum((x[b] @ weights[0]).T @ d_y for b in range(batches))]
        np.testing.assert_allclose(gradient, expected[rank], rtol=1e-5)
        assert [m for k, m in seen if k == "F"] == list(range(batches))
        del pipeline

        def wrong(action): raise RuntimeError("no loss")
        pipeline = weft.Pipeline(context, line, "pp", weft.Schedule("gpipe", 2, 2), [["f32[3,4] R"]], forward, wrong if rank == 1 else backward)
        with pytest.raises(RuntimeError if rank == 1 else weft.AbortedError, match="no loss"):
            pipeline.run()
        del pipeline
        kept = []
        def keep(action):
            if action.stage == 0:
                kept.append(action.outputs[0])
                kept.append(np.from_dlpack(action.outputs[0]))
                kept[-1][:] = 7
        pipeline = weft.Pipeline(context, line, "pp", weft.Schedule("gpipe", 2, 1), [["f32[3,4] R"]], keep, lambda action: None)
        pipeline.run()
        pipeline.close()
        del pipeline
        assert [float(np.from_dlpack(one).sum()) for one in kept] == ([7 * 12] * 2 if rank == 0 else [])
        kept.clear()
        for values in ([], [["f32[3"]], [["f99[3] R"]], [["f32[3] S(0)"]]):
            with pytest.raises((ValueError, weft.Error)):
                weft.Pipeline(context, line, "pp", weft.Schedule("gpipe", 2, 2), values, forward, backward)
        def close(action):
            with pytest.raises(RuntimeError, match="running"):
                pipeline.close()
        pipeline = weft.Pipeline(context, line, "pp", weft.Schedule("gpipe", 2, 2), [["f32[3,4] R"]], close, close)
        pipeline.run()
        pipeline.close()
        with pytest.raises(RuntimeError, match="closed"):
            pipeline.run()
        with pytest.raises(TypeError, match="forward must be a function"):
            weft._weft.Pipeline(context, line, "pp", schedule=weft.Schedule("gpipe", 2, 2), forward=3)
        del world, pipeline
        context.close()
    """)


def test_a_pipeline_asks_for_shapes_and_runs_pairs(ranks):
    ranks(2, """
        import numpy as np, pytest, weft
        context = weft.init("gloo-cpu")
        world, rank, line = weft.Comm(context), context.rank, weft.mesh("pp=2")
        asked, pairs, seen = [], [], []

        def shapes(stage, inputs):
            asked.append((stage, inputs))
            return [weft.spec("f32[3,4] R", line), ("i64[] R", True)]

        def forward(action):
            seen.append((action.kind, action.microbatch))
            for output in action.outputs:
                np.from_dlpack(output)[...] = action.microbatch

        def backward(action):
            seen.append((action.kind, action.microbatch))
            if action.stage == 1:
                assert float(np.from_dlpack(action.inputs[0]).sum()) == 12 * action.microbatch
                assert int(np.from_dlpack(action.inputs[1])) == action.microbatch
                np.from_dlpack(action.d_inputs[0])[:] = 1 + action.microbatch
            else:
                assert float(np.from_dlpack(action.d_outputs[0]).sum()) == 12 * (1 + action.microbatch)

        def overlap(first, second):
            pairs.append((first.kind, first.microbatch, second.kind, second.microbatch))
            forward(first)
            backward(second)

        schedule = weft.Schedule.parse("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\\n1F0,1B0,1F1,1B1,1F2,1B2\\n")
        pipeline = weft.Pipeline(context, line, "pp", schedule, None, forward, backward, overlap=overlap, shapes=shapes)
        assert asked == ([(0, [])] if rank == 0 else []), asked
        assert pipeline.values(0) == [weft.spec("f32[3,4] R", line), (weft.spec("i64[] R", line), True)]
        pipeline.run()
        assert pairs == ([("F", 2, "B", 0)] if rank == 0 else []), pairs
        assert len(seen) == 6, seen
        del pipeline
        pipeline = weft.Pipeline(context, line, "pp", schedule, [["f32[3,4] R", ("i64[] R", True)]], forward, backward)
        pipeline.run()
        assert len(pairs) == (1 if rank == 0 else 0)
        with pytest.raises(weft.InvalidError, match="stage"):
            pipeline.values(1)
        del pipeline

        def wrong(first, second): raise RuntimeError("no pair")
        pipeline = weft.Pipeline(context, line, "pp", schedule, None, forward, backward, overlap=wrong, shapes=shapes)
        with pytest.raises(RuntimeError if rank == 0 else weft.AbortedError, match="no pair"):
            pipeline.run()
        del pipeline
        def unknown(stage, inputs): raise KeyError("no shapes")
        with pytest.raises(KeyError if rank == 0 else weft.Error, match="no shapes"):
            weft.Pipeline(context, line, "pp", schedule, None, forward, backward, shapes=unknown)
        with pytest.raises(ValueError if rank == 0 else weft.Error):
            weft.Pipeline(context, line, "pp", schedule, None, forward, backward, shapes=lambda stage, inputs: ["f32[3"])
        for values, function in (None, None), ([["f32[3,4] R"]], shapes):
            with pytest.raises(weft.InvalidError):
                weft.Pipeline(context, line, "pp", schedule, values, forward, backward, shapes=function)
        del world
        context.close()
    """)


def test_a_pipeline_with_many_tensors_that_its_functions_use(ranks):
    ranks(2, """
        import gc, numpy as np, pytest, weft
        context = weft.init("gloo-cpu")
        world, line = weft.Comm(context), weft.mesh("pp=2")

        def train():
            seen = []
            def forward(action):
                for output in action.outputs:
                    np.from_dlpack(output)[:] = 1
            def backward(action):
                assert pipeline.info["actions"] > 0
                seen.append([float(np.from_dlpack(gradient).sum()) for gradient in action.d_outputs])
                if action.stage == 1:
                    for number, gradient in enumerate(action.d_inputs):
                        gradient.fill(number == 39)
            pipeline = weft.Pipeline(context, line, "pp", weft.Schedule("gpipe", 2, 1), [["f32[3] R"] * 40], forward, backward)
            pipeline.run()
            return seen

        seen = train()
        expected = [[0] * 39 + [3]] if world.rank == 0 else [[]]
        assert seen == expected, seen
        gc.collect()
        del world
        context.close()
    """)


def test_attention_over_a_shared_sequence(ranks):
    """A causal attention of two ranks, forward and backward, equals that of one process."""
    ranks(2, """
        import numpy as np, pytest, weft
        context = weft.init("gloo-cpu")
        rank, length, batch, heads, depth = context.rank, 12, 1, 2, 4
        rng = np.random.default_rng(3)
        q, k, v, d_out = (rng.normal(size=(batch, heads, length, depth)).astype(np.float32) for _ in range(4))
        scores = q @ k.swapaxes(2, 3)
        scores[..., np.triu(np.ones((length, length), bool), 1)] = -np.inf
        p = np.exp(scores - scores.max(-1, keepdims=True)); p /= p.sum(-1, keepdims=True)
        out = p @ v
        d_p = d_out @ v.swapaxes(2, 3)
        d_s = p * (d_p - (d_p * p).sum(-1, keepdims=True))
        expected = [out, d_s @ k, d_s.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ d_out]

        def kernel(problem):
            a, b, c, o, lse = (np.from_dlpack(t) for t in problem.tensors[:5])
            s = a @ b.swapaxes(2, 3)
            if problem.mask == "causal":
                i, j = np.ogrid[:s.shape[2], :s.shape[3]]
                s[..., j > i + problem.diagonal] = -np.inf
            if not problem.is_backward:
                top = np.maximum(s.max(-1, keepdims=True), -1e30)
                e = np.exp(s - top)
                total = e.sum(-1, keepdims=True)
                with np.errstate(divide="ignore", invalid="ignore"):
                    o[:] = np.where(total > 0, e @ c / total, 0)
                    lse[:] = np.where(total > 0, np.log(total) + top, -np.inf)[..., 0]
                return
            w = np.exp(s - lse[..., None])
            g, d_q, d_k, d_v = (np.from_dlpack(t) for t in problem.tensors[5:])
            d = w * (g @ c.swapaxes(2, 3) - (g * o).sum(-1, keepdims=True))
            d_q[:], d_k[:], d_v[:] = d @ b, d.swapaxes(2, 3) @ a, w.swapaxes(2, 3) @ g

        for variant in ("ring", "gather"):
            plan = weft.AttentionPlan(weft.mesh("cp=2"), "cp", length, "causal", "head_tail", variant)
            assert plan.info["length"] == length and sum(n for _, n in plan.runs(rank)) == 6
            attention = weft.Attention(context, weft.mesh("cp=2"), "cp", length, batch, heads, depth, "f32",
                                       mask="causal", balance="head_tail", variant=variant)
            assert attention.plan.runs(rank) == plan.runs(rank)
            mine = [np.empty((batch, heads, 6, depth), np.float32) for _ in range(4)]
            for whole, part in zip((q, k, v, d_out), mine):
                attention.shard(whole, part, 2)
            o, lse = np.empty_like(mine[0]), np.empty((batch, heads, 6), np.float32)
            attention.forward(kernel, *mine[:3], o, lse)
            gradients = [np.empty_like(o) for _ in range(3)]
            attention.backward(kernel, *mine[:3], o, lse, mine[3], *gradients)
            for part, whole in zip((o, *gradients), expected):
                restored = np.empty_like(q)
                attention.restore(part, restored, 2)
                np.testing.assert_allclose(restored, whole, rtol=1e-4, atol=1e-5)
            for call in (lambda: attention.forward(kernel, q, *mine[1:3], o, lse), lambda: attention.shard(q, q.copy(), 2),
                         lambda: attention.shard(q, mine[0], 9), lambda: weft._weft.attention_run(attention, kernel, (q,), None)):
                with pytest.raises(ValueError):
                    call()
            del attention
        with pytest.raises(ValueError, match="mask"):
            weft.AttentionPlan(weft.mesh("cp=2"), "cp", 4, "diagonal")
        with pytest.raises(weft.NotFoundError):
            weft.AttentionPlan(weft.mesh("cp=2"), "tp", 4)
        ordered = {"balance": "permuted", "variant": "gather"}
        plan = weft.AttentionPlan(weft.mesh("cp=2"), "cp", 4, order=[3, 1, 0, 2], **ordered)
        assert plan.runs(0) == [(3, 1), (1, 1)] and plan.length(1) == 2
        with pytest.raises(weft.InvalidError, match="order_count is 3, but the sequence has length 4"):
            weft.AttentionPlan(weft.mesh("cp=2"), "cp", 4, order=[3, 1, 0], **ordered)
        blocks = [(0, 0, "causal"), {"query": 1, "key": 0}]
        plan = weft.AttentionPlan(weft.mesh("cp=2"), "cp", 4, "blocks", variant="gather", blocks=blocks, block_length=2)
        assert plan.info["work_total"] == 3 + 4
        with pytest.raises(TypeError, match="dictionary or a tuple"):
            weft.AttentionPlan(weft.mesh("cp=2"), "cp", 4, "blocks", variant="gather", blocks=[7], block_length=2)
        context.close()
    """)


STEP = """mesh tp=1
input x f32[8,8] R
param w f32[8,8] R ; x8
param m f32[8,8] R ; x8
y = linear(x, w) ; x8 ; time 1us
phase backward
dx = matmul(y, w) ; x8 ; time 1us
dw = einsum(y, x, eq="bn,bk->nk") ; x8 ; time 1us
phase update
n = add(m, dw) ; x8 ; time 1us
v = add(w, n) ; x8 ; time 1us
output v
"""


def test_a_graph_gives_the_time_and_the_memory_of_a_step():
    graph = weft.Graph(STEP)
    assert graph.lines == 9 and not graph.checked
    with pytest.raises(weft.InvalidError, match="not checked"):
        weft.Prediction(graph)
    graph.check(mesh=weft.mesh("pp=2,tp=1"), costs=weft.CostTable("h100"), even_batch=True)
    assert graph.checked and graph.line(3)["op"] == "linear" and "linear" in str(graph)
    assert json.loads(graph.json())["legal"] is True

    prediction = weft.Prediction(graph, schedule=weft.Schedule("1f1b", 2, 4))
    assert prediction.stages == 2 and prediction.microbatches == 4 and prediction.time >= 5 * 12000 + 8000
    assert prediction.stage(0)["optimizer"] == prediction.stage(0)["parameters"] == 4 * 256
    assert prediction.rank(1)["end"] + prediction.rank(1)["update"] <= prediction.time
    assert json.loads(prediction.json())["time_ns"] == prediction.time and "step:" in str(prediction)
    assert json.loads(prediction.trace())["traceEvents"]
    assert weft.Prediction(graph, stragglers=[{"rank": 1, "factor": 2.0}]).time > prediction.time
    uneven = weft.Prediction(graph, stage_layers=[3, 5])
    assert [uneven.stage(i)["parameters"] for i in range(2)] == [3 * 256, 5 * 256]
    with pytest.raises(weft.InvalidError, match="3 ranks"):
        weft.Prediction(graph, schedule=weft.Schedule("1f1b", 3, 4))
    with pytest.raises(weft.ParseError):
        weft.Graph("mesh tp=1\nnonsense\n")


def test_a_model_gives_the_graph_of_a_step():
    model = weft.Model("model llama layers=4 hidden=64 heads=8 key_heads=4 ffn=128 vocabulary=96 sequence=32")
    assert model.template_name == "llama" and model.key_heads == 4 and model.parameters > 96 * 64 * 2
    assert str(weft.Model(str(model))) == str(model)
    mesh = weft.mesh("pp=2,dp=2,tp=2")
    graph = weft.Graph(model.graph(mesh=mesh, microbatch=2, sharding="optimizer", recompute="full"))
    graph.check(mesh=mesh, costs=weft.CostTable("h100"), strict=True, even_batch=True)
    prediction = weft.Prediction(graph, schedule=weft.Schedule("1f1b", 2, 4))
    assert prediction.layers == 4 and prediction.stage(0)["optimizer"] > prediction.stage(0)["parameters"]
    assert weft.Prediction(graph, ddp=True).time <= weft.Prediction(graph).time
    assert prediction.stage(0)["logits"] == 0 < prediction.stage(1)["logits"] < prediction.stage(1)["logit_gradients"]
    assert "; f8" in model.graph(f8=True) and "; pieces" in model.graph(mesh=weft.mesh("cp=2"), ring=True)
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 8, "vocab_size": 96}
    assert weft.Model(json.dumps(config)).template_name == "gpt"
    with pytest.raises(weft.ParseError, match="the known ones are llama"):
        weft.Model(json.dumps(config | {"model_type": "mamba"}))
    with pytest.raises(weft.InvalidError, match="tp=3 does not divide heads"):
        model.graph(mesh=weft.mesh("tp=3"))
