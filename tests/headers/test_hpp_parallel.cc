/* test_hpp_parallel.cc - context parallel, styles, pipelines, experts and overlap through weft.hpp,
 * on one rank. */
#include <weft/weft.hpp>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (%s)\n", __LINE__, #condition, weft_last_error());                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

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

static weft_status count_call(void *user, const weft_pipeline_call *call)
{
    *static_cast<int *>(user) += call->kind == WEFT_ACTION_F ? 1 : 100;
    return WEFT_OK;
}

static weft_status state_shapes(void *, int32_t, const weft_pipeline_values *,
                                weft_pipeline_values *out)
{
    out->count = 1;
    out->tensors[0].dtype = WEFT_DTYPE_F32;
    return WEFT_OK;
}

static void test_pipeline(const weft::context &ctx)
{
    weft::schedule schedule = weft::schedule::create("looped-bfs", 1, 2, 3).value();
    weft_pipeline_options options = weft::sized<weft_pipeline_options>();
    int calls = 0;

    options.user = &calls;
    CHECK(weft::pipeline::create(ctx.world(), schedule, options).code() == WEFT_ERR_INVALID);
    options.forward = options.backward = count_call;
    options.shapes = state_shapes;
    weft::pipeline pipeline = weft::pipeline::create(ctx.world(), schedule, options).value();
    CHECK(pipeline.run() && calls == 606 && pipeline.info()->directions == 0);
    CHECK(pipeline.values(0)->count == 1 && pipeline.values(1).code() == WEFT_ERR_INVALID);
    CHECK(weft::pipeline().run().code() == WEFT_ERR_INVALID);
}

static void test_experts(weft::context_ref ctx)
{
    weft::mesh mesh = weft::mesh::parse("ep=1").value();
    weft_experts_options options = weft::sized<weft_experts_options>();
    float tokens[6] = {1, 2, 3, 4, 5, 6}, received[4] = {};
    int64_t counts[] = {1, 2};

    options.experts = 2;
    options.capacity = 1;
    weft::experts experts = weft::experts::create(ctx, mesh, "ep", options).value();
    weft::routing routing = experts.route(counts).value();
    CHECK(routing.info()->received == 2 && routing.info()->tokens == 3);
    CHECK(routing.dispatch<float>(2, tokens, received) && received[2] == 3);
    CHECK(routing.combine<float>(2, received, tokens) && tokens[2] == 3 && tokens[5] == 0);
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
    weft_overlap_call call = weft::sized<weft_overlap_call>();
    float input = 3, output[1] = {};

    options.bytes = 4;
    call.rows = call.width = 1;
    call.dtype = WEFT_DTYPE_F32;
    weft::overlap_state overlap = weft::overlap_state::create(ctx.world(), options).value();
    CHECK(overlap.info(call)->gather_chunks == 0);
    CHECK(overlap.gather(call, &input, double_rows, output) && output[0] == 6);
    CHECK(overlap.reduce_scatter(call, one, nullptr, output) && output[0] == 1);
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
    weft_cp_sizes sizes = weft::sized<weft_cp_sizes>();
    weft_cp_tensors tensors = weft::sized<weft_cp_tensors>();
    float values[4] = {1, 2, 3, 4}, shard[4] = {}, out[4] = {}, lse[4] = {};
    float gradients[3][4] = {};
    int64_t shape[] = {1, 4};

    causal.mask = WEFT_CP_CAUSAL;
    sizes.batch = sizes.heads = sizes.depth = 1;
    sizes.dtype = WEFT_DTYPE_F32;
    weft::cp_plan plan = weft::cp_plan::create(mesh, "cp", 4, &causal).value(), same = plan;
    CHECK(same.info()->work_total == 10 && plan.length(0) == 4 && plan.work(0) == 10);
    weft::cp cp = weft::cp::create(ctx, plan, sizes).value();
    CHECK(cp.shard<float>(2, shape, 1, values, shard) && shard[3] == 4);
    CHECK(cp.restore<float>(2, shape, 1, shard, values) && values[3] == 4);
    tensors.q = tensors.k = tensors.v = tensors.d_out = shard;
    tensors.out = out;
    tensors.lse = lse;
    tensors.d_q = gradients[0];
    tensors.d_k = gradients[1];
    tensors.d_v = gradients[2];
    CHECK(cp.forward(tensors, refuse, nullptr).code() == WEFT_ERR_UNSUPPORTED);
    CHECK(cp.backward(tensors, refuse, nullptr).code() == WEFT_ERR_UNSUPPORTED);
    CHECK(weft::cp().forward(tensors, refuse, nullptr).code() == WEFT_ERR_INVALID);
    return 0;
}
