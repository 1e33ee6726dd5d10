/* test_hpp_parallel.cc - context parallel, styles, pipelines, experts and overlap through weft.hpp,
 * on one rank. */
#include <weft/parallel.hpp>

#include <stdio.h>
#include <stdlib.h>

#include "check.hpp"

static weft_status refuse(void *, const weft_cp_call *)
{
    return weft_fail(WEFT_ERR_UNSUPPORTED, "no kernel");
}

static void test_styles()
{
    weft::styles styles = weft::styles::parse("mesh tp=2\nw tp column\n").value();
    weft::spec whole = weft::spec::parse(styles.mesh(), "f32[4,2] R").value();
    weft_style row = weft::sized<weft_style>();

    CHECK(styles.apply("w", WEFT_STYLE_WEIGHT, whole).value() == whole.with("S(0)").value());
    row.kind = WEFT_STYLE_ROW;
    weft::style_layouts moves =
        weft::style_layouts::create(row, WEFT_STYLE_OUTPUT, whole, 0).value();
    CHECK(moves.from == whole.with("P").value() && moves.to == whole);
    CHECK(moves.gradient_from == whole && moves.gradient_to == whole);
    CHECK(weft::style_layouts::create(row, WEFT_STYLE_OUTPUT, whole, 1).code() == WEFT_ERR_INVALID);
}

struct stage {
    int calls;
    const weft_spec *passed;
};

static weft_status count_call(void *user, const weft_pipeline_call *call)
{
    static_cast<stage *>(user)->calls += call->kind == WEFT_SCHEDULE_ACTION_F ? 1 : 100;
    return WEFT_OK;
}

static weft_status state_shapes(void *user, int32_t, const weft_pipeline_values *,
                                weft_pipeline_values *out)
{
    static weft_pipeline_tensor tensor = {};

    tensor.spec = static_cast<stage *>(user)->passed;
    *out = {1, &tensor, sizeof tensor};
    return WEFT_OK;
}

static void test_pipeline(const weft::context &ctx)
{
    weft::schedule schedule = weft::schedule::create("looped-bfs", 1, 2, 3).value();
    weft_pipeline_options options = weft::sized<weft_pipeline_options>();
    weft::mesh mesh = weft::mesh::parse("pp=1").value();
    weft::spec passed = weft::spec::parse(mesh, "f32[] R").value();
    stage counted = {0, passed.get()};

    options.user = &counted;
    options.schedule = schedule.get();
    CHECK(weft::pipeline::create(ctx, mesh, "pp", options).code() == WEFT_ERR_INVALID);
    options.forward = options.backward = count_call;
    options.shapes = state_shapes;
    weft::pipeline pipeline = weft::pipeline::create(ctx, mesh, "pp", options).value();
    CHECK(pipeline.run() && counted.calls == 606 && pipeline.info()->directions == 0);
    CHECK(pipeline.values(0)->count == 1 && pipeline.values(1).code() == WEFT_ERR_INVALID);
    CHECK(weft::pipeline().run().code() == WEFT_ERR_INVALID);
}

/* MEMORY of this rank as a tensor of layout TEXT. */
static weft::tensor tensor_of(weft::context_ref ctx, const char *text, void *memory)
{
    weft::mesh mesh = weft::mesh::parse("1").value();

    return weft::tensor::wrap(ctx, weft::spec::parse(mesh, text).value(), memory).value();
}

static void test_experts(weft::context_ref ctx)
{
    weft::mesh mesh = weft::mesh::parse("ep=1").value();
    weft_experts_options options = weft::sized<weft_experts_options>();
    float tokens[6] = {1, 2, 3, 4, 5, 6}, received[4] = {};
    weft::tensor home = tensor_of(ctx, "f32[3,2] R", tokens);
    weft::tensor away = tensor_of(ctx, "f32[2,2] R", received);
    int64_t counts[] = {1, 2};
    weft::work work;

    options.experts = 2;
    options.capacity = 1;
    weft::experts experts = weft::experts::create(ctx, mesh, "ep", options).value();
    CHECK(experts.info()->experts == 2 && experts.info()->here == 2);
    weft::routing routing = experts.route(2, counts).value();
    CHECK(routing.info()->received == 2 && routing.info()->tokens == 3);
    CHECK(routing.dispatch(home, away, nullptr, {}, &work) && work.wait() && received[2] == 3);
    CHECK(routing.combine(away, home) && tokens[2] == 3 && tokens[5] == 0);
    CHECK(routing.spec(WEFT_DTYPE_F32, 2).value().shape()[0] == 2);
}

static weft_status double_rows(void *user, const weft_overlap_rows *rows)
{
    static_cast<float *>(user)[rows->first] = 2 * *static_cast<float *>(rows->memory);
    return WEFT_OK;
}

static weft_status one(void *, const weft_overlap_rows *rows)
{
    for (int64_t i = 0; i < rows->count; i++)
        static_cast<float *>(rows->memory)[i] = 1;
    return WEFT_OK;
}

static void test_overlap(weft::context_ref ctx)
{
    weft_overlap_options options = weft::sized<weft_overlap_options>();
    weft::mesh mesh = weft::mesh::parse("tp=1").value();
    float input[1] = {3}, output[1] = {};
    weft::tensor from = tensor_of(ctx, "f32[1,1] R", input);
    weft::tensor to = tensor_of(ctx, "f32[1,1] R", output);

    options.bytes = 4;
    weft::overlap overlap = weft::overlap::create(ctx, mesh, "tp", options).value();
    CHECK(overlap.info()->ranks == 1 && overlap.predict(from.spec())->gather_chunks == 0);
    CHECK(overlap.gather(from, double_rows, output) && output[0] == 6);
    CHECK(overlap.reduce_scatter(one, nullptr, to) && output[0] == 1);
}

int main()
{
    test_styles();
    weft::context ctx = weft::context::init().value();
    test_pipeline(ctx);
    test_experts(ctx);
    test_overlap(ctx);
    weft::mesh mesh = weft::mesh::parse("cp=1").value();
    weft_cp_options causal = weft::sized<weft_cp_options>();
    weft_cp_tensors tensors = weft::sized<weft_cp_tensors>();
    float values[4] = {1, 2, 3, 4}, shard[4] = {}, out[4] = {}, lse[4] = {};
    float gradients[3][4] = {};
    weft::tensor whole = tensor_of(ctx, "f32[1,4] R", values);
    weft::tensor part = tensor_of(ctx, "f32[1,4] R", shard);
    weft::tensor all[] = {tensor_of(ctx, "f32[1,1,4,1] R", shard),
                          tensor_of(ctx, "f32[1,1,4,1] R", out),
                          tensor_of(ctx, "f32[1,1,4] R", lse),
                          tensor_of(ctx, "f32[1,1,4,1] R", gradients[0]),
                          tensor_of(ctx, "f32[1,1,4,1] R", gradients[1]),
                          tensor_of(ctx, "f32[1,1,4,1] R", gradients[2])};

    causal.length = 4;
    causal.mask = WEFT_CP_CAUSAL;
    causal.batch = causal.heads = causal.depth = 1;
    causal.dtype = WEFT_DTYPE_F32;
    weft::cp_plan plan = weft::cp_plan::create(mesh, "cp", causal).value(), same = plan;
    CHECK(same.info()->work_total == 10 && plan.length(0) == 4 && plan.work(0) == 10);
    weft::cp cp = weft::cp::create(ctx, mesh, "cp", causal).value();
    CHECK(cp.shard(whole, 1, part) && shard[3] == 4);
    CHECK(cp.restore(part, 1, whole) && values[3] == 4);
    tensors.q = tensors.k = tensors.v = tensors.d_out = all[0].get();
    tensors.out = all[1].get();
    tensors.lse = all[2].get();
    tensors.d_q = all[3].get();
    tensors.d_k = all[4].get();
    tensors.d_v = all[5].get();
    CHECK(cp.forward(tensors, refuse, nullptr).code() == WEFT_ERR_UNSUPPORTED);
    CHECK(cp.backward(tensors, refuse, nullptr).code() == WEFT_ERR_UNSUPPORTED);
    CHECK(weft::cp().forward(tensors, refuse, nullptr).code() == WEFT_ERR_INVALID);
    return 0;
}
