/* Every strategy of some operators: the kernel on shards gives what it gives on whole tensors.  All
 * numbers are small integers, so sums are exact in every order. */
#include "base/base.h"
#include "kernels.h"
#include "support/layout.h"
#include "support/suite.h"
#include "system/tensor/holds.h"
#include "weft/context.h"
#include "weft/launch.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4 };

struct operator
{
    const char *name;
    const char *inputs[MOST]; /* tensors without placements; NULL: the end */
    weft_op_attr attr;        /* without a name: none */
    uint32_t outputs;
    const char *mesh;
};

static const int64_t dim_1[] = {1}, shape_6_4_5[] = {6, 4, 5}, shape_24_5[] = {24, 5},
                     sizes[] = {3, 2, 2};

#define LIST(attribute, values)                                                                    \
    {                                                                                              \
        .name = attribute, .kind = WEFT_ATTR_LIST, .count = sizeof(values) / sizeof *(values),     \
        .list = values                                                                             \
    }

static const struct operator operators[] = {
    {"mm", {"f32[5,7]", "f32[7,3]"}, .outputs = 1, .mesh = "2x2"},
    {"mm", {"f32[8,2]", "f32[2,3]"}, .outputs = 1, .mesh = "4"},
    {"linear", {"f32[6,3]", "f32[5,3]", "f32[5]"}, .outputs = 1, .mesh = "4"},
    {"linear", {"f32[4,6]", "f32[2,6]"}, .outputs = 1, .mesh = "2x2"},
    {"add", {"f32[5,3]", "f32[3]"}, .outputs = 1, .mesh = "2x2"},
    {"add", {"f32[1,3]", "f32[5,1]"}, .outputs = 1, .mesh = "4"},
    {"relu", {"f32[3,3]"}, .outputs = 1, .mesh = "2x2"},
    {"sum", {"f32[4,3]"}, LIST("dims", dim_1), 1, "4"},
    {"mean", {"f32[4,8]"}, LIST("dims", dim_1), 1, "2x2"}, /* a power of two divides exactly */
    {"mean", {"f32[5,4]"}, LIST("dims", dim_1), 1, "4"},
    {"embedding_bwd",
     {"f32[6,3]", "i64[6]"},
     {.name = "v", .kind = WEFT_ATTR_INT, .integer = 5},
     1,
     "2x2"},
    {"amax", {"f32[4,3]"}, LIST("dims", dim_1), 1, "4"},
    {"amax", {"f32[2,9]"}, LIST("dims", dim_1), 1, "2x2"},
    {"reshape", {"f32[24,5]"}, LIST("shape", shape_6_4_5), 1, "2x2"},
    {"reshape", {"f32[6,4,5]"}, LIST("shape", shape_24_5), 1, "4"},
    {"embedding", {"f32[7,3]", "i64[5]"}, .outputs = 1, .mesh = "2x2"},
    {"embedding", {"f32[3,2]", "i64[6]"}, .outputs = 1, .mesh = "4"},
    {"cat", {"f32[3,4]", "f32[1,4]", "f32[2,4]"}, .outputs = 1, .mesh = "4"},
    {"split", {"f32[4,7]"}, LIST("sizes", sizes), 3, "2x2"},
};

static _Atomic int applied;

/* ---- one operator on one rank ---- */

struct work {
    weft_context *context;
    weft_mesh *mesh;
    const struct operator* op;
    uint32_t inputs;
    weft_op_attr attrs[2];
    weft_op_call call;
    const weft_spec *specs[MOST];
    weft_tensor *whole[MOST], *wanted[MOST];
};

static weft_status fill(weft_tensor *tensor, uint32_t seed)
{
    const weft_shard *shard = weft_tensor_shard(tensor);

    for (int64_t i = 0; i < shard->elements; i++) {
        int64_t value = (i * 7 + seed * 5) % 11;
        if (weft_spec_dtype(weft_tensor_spec(tensor)) == WEFT_DTYPE_I64)
            ((int64_t *)weft_tensor_memory(tensor))[i] = value % 3;
        else
            ((float *)weft_tensor_memory(tensor))[i] = (float)(value - 5);
    }
    return WEFT_OK;
}

static weft_status begin(struct work *w)
{
    const struct operator* op = w->op;
    char text[64];

    WF_TRY(weft_mesh_parse(op->mesh, &w->mesh));
    for (; w->inputs < MOST && op->inputs[w->inputs] != NULL; w->inputs++) {
        OWNED(weft_spec) *spec = NULL;

        snprintf(text, sizeof text, "%s %s", op->inputs[w->inputs],
                 weft_mesh_axes(w->mesh) == 2 ? "R,R" : "R");
        WF_TRY(weft_spec_parse(w->mesh, text, &spec));
        WF_TRY(weft_tensor_create(w->context, spec, NULL, &w->whole[w->inputs]));
        WF_TRY(fill(w->whole[w->inputs], w->inputs));
        w->specs[w->inputs] = weft_tensor_spec(w->whole[w->inputs]);
    }
    w->call = (weft_op_call){.struct_size = sizeof w->call,
                             .name = op->name,
                             .inputs = w->specs,
                             .input_count = w->inputs};
    if (op->attr.name != NULL) w->attrs[w->call.attr_count++] = op->attr;
    if (strcmp(op->name, "split") == 0)
        w->attrs[w->call.attr_count++] =
            (weft_op_attr){.name = "dim", .kind = WEFT_ATTR_INT, .integer = 1};
    if (strcmp(op->name, "cat") == 0)
        w->attrs[w->call.attr_count++] = (weft_op_attr){.name = "dim", .kind = WEFT_ATTR_INT};
    w->call.attr_size = sizeof(weft_op_attr);
    w->call.attrs = w->attrs;
    return weft_op_apply(w->context, &w->call, w->whole, NULL, plain_kernel, NULL, NULL, MOST,
                         w->wanted);
}

static void end(struct work *w)
{
    for (int i = 0; i < MOST; i++) {
        weft_tensor_release(&w->whole[i]);
        weft_tensor_release(&w->wanted[i]);
    }
    weft_mesh_release(&w->mesh);
}

/* The inputs in the layouts of STRATEGY, the outputs as STRATEGY says, equal to those of whole
 * tensors. */
static weft_status try_strategy(struct work *w, const weft_op_choice *strategy)
{
    weft_tensor *inputs[MOST] = {NULL}, *outputs[MOST] = {NULL};
    weft_tensor_difference_info difference = {.struct_size = sizeof difference};

    for (uint32_t i = 0; i < w->inputs; i++)
        WF_TRY(weft_tensor_move(w->whole[i], weft_op_choice_input(strategy, i), NULL, NULL,
                                &inputs[i]));
    WF_TRY(
        weft_op_apply(w->context, &w->call, inputs, NULL, plain_kernel, NULL, NULL, MOST, outputs));
    for (uint32_t i = 0; i < w->op->outputs; i++) {
        WF_TRY(weft_tensor_compare(w->wanted[i], outputs[i], NULL, NULL, &difference));
        if (!difference.equal) {
            char text[256];
            HOLDS(weft_spec_print(weft_op_choice_input(strategy, 0), text, sizeof text, NULL) ==
                  WEFT_OK);
            return weft_fail(WEFT_ERR_INTERNAL,
                             "weft op %s --mesh %s --input '%s': output %u differs", w->op->name,
                             w->op->mesh, text, i);
        }
        weft_tensor_release(&outputs[i]);
    }
    for (uint32_t i = 0; i < w->inputs; i++)
        weft_tensor_release(&inputs[i]);
    applied++;
    return WEFT_OK;
}

static weft_status try_operator(void *argument)
{
    struct work w = {.op = argument};
    weft_op_list *list = NULL;
    weft_context *context;

    WF_TRY(weft_init(NULL, &w.context));
    context = w.context;
    WF_TRY(begin(&w));
    WF_TRY(weft_op_list_create(&w.call, NULL, &list));
    for (uint32_t i = 0; i < weft_op_list_count(list); i++)
        WF_TRY(try_strategy(&w, weft_op_list_choice(list, i)));
    weft_op_list_release(&list);
    end(&w);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(every_strategy_gives_the_same_numbers)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        int before = applied;

        ck_assert_msg(weft_threads_run(4, try_operator, (void *)(uintptr_t)&operators[i]) ==
                          WEFT_OK,
                      "%s: %s", operators[i].name, weft_last_error());
        ck_assert_int_gt(applied - before, 4); /* on every rank */
        printf("%s on %s: %d strategies\n", operators[i].name, operators[i].mesh,
               (applied - before) / 4);
    }
}
