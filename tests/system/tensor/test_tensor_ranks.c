/* Tensors of ranks that are outside their mesh, and of other contexts.  Ranks are threads. */
#include "base/base.h"
#include "holds.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/context.h"
#include "weft/dlpack.h"
#include "weft/launch.h"
#include "weft/random.h"

static weft_spec *rows, *columns, *integers;

static void run_on(int32_t ranks, weft_status (*rank)(void *))
{
    rows = spec_of("2@1,2", "f32[4,6] S(0)");
    columns = spec_of("2@1,2", "f32[4,6] S(1)");
    integers = spec_of("2@1,2", "i16[4,6] S(1)");
    ck_assert_msg(weft_threads_run(ranks, rank, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    weft_spec_release(&integers);
}

/* ---- outside the mesh ---- */

static weft_status draw_all(weft_tensor *tensor, weft_tensor *numbers)
{
    weft_random random = {.seed = 1};

    WF_TRY(weft_tensor_uniform(tensor, &random, 0, 1, NULL));
    WF_TRY(weft_tensor_normal(tensor, &random, 0, 1, NULL));
    WF_TRY(weft_tensor_truncated_normal(tensor, &random, 0, 1, -1, 1, NULL));
    WF_TRY(weft_tensor_bernoulli(tensor, &random, 0.5, NULL));
    WF_TRY(weft_tensor_dropout(tensor, &random, 0.5, NULL));
    WF_TRY(weft_tensor_integers(numbers, &random, 0, 9, NULL));
    HOLDS(random.offset == 6);
    return weft_tensor_fill(tensor, 3, NULL);
}

static weft_status move_all(weft_context *context, weft_tensor *tensor, bool is_outside)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *moved = NULL, *into = NULL, *full = NULL, *every = NULL;
    weft_work *work = NULL;

    WF_TRY(weft_tensor_move(tensor, columns, NULL, NULL, &moved));
    WF_TRY(weft_tensor_create(context, columns, NULL, &into));
    WF_TRY(move_into(tensor, into, NULL, &work));
    WF_TRY(weft_work_wait(work, WEFT_FOREVER));
    weft_work_release(&work);
    WF_TRY(weft_tensors_move_into(1, &tensor, &into, NULL, NULL, NULL));
    WF_TRY(weft_tensor_full(tensor, 2, NULL, NULL, &full));
    WF_TRY(weft_tensor_full(tensor, WEFT_EVERY_RANK, NULL, NULL, &every));
    WF_TRY(weft_tensor_compare(tensor, moved, NULL, NULL, &info));
    HOLDS(info.ranks == (is_outside ? 0 : 2));
    HOLDS(is_outside || info.equal);
    HOLDS(weft_tensor_shard(full)->elements == (weft_rank(context) == 2 ? 24 : 0));
    HOLDS(weft_tensor_shard(every)->elements == (is_outside ? 0 : 24));
    weft_tensor_release(&moved);
    weft_tensor_release(&into);
    weft_tensor_release(&full);
    weft_tensor_release(&every);
    return WEFT_OK;
}

static weft_status view_all(weft_tensor *tensor)
{
    const int64_t shape[] = {24};
    weft_tensor *part = NULL, *turned = NULL, *flat = NULL;

    WF_TRY(weft_tensor_narrow(tensor, 0, 1, 2, &part));
    WF_TRY(weft_tensor_transpose(tensor, 0, 1, &turned));
    WF_TRY(weft_tensor_reshape(tensor, 1, shape, &flat));
    weft_tensor_release(&part);
    weft_tensor_release(&turned);
    weft_tensor_release(&flat);
    return WEFT_OK;
}

static weft_status share(weft_context *context, weft_tensor *tensor)
{
    const weft_dlpack_options old = {.struct_size = sizeof old, .unversioned = true};
    void *shared = NULL;
    weft_tensor *again = NULL;

    WF_TRY(weft_tensor_to_dlpack(tensor, NULL, &shared));
    WF_TRY(weft_tensor_from_dlpack(context, rows, shared, NULL, &again));
    weft_tensor_release(&again);
    WF_TRY(weft_tensor_to_dlpack(tensor, &old, &shared));
    WF_TRY(weft_tensor_from_dlpack(context, rows, shared, &old, &again));
    weft_tensor_release(&again);
    return WEFT_OK;
}

static weft_status call_everything(void *unused)
{
    weft_tensor_options options = {.struct_size = sizeof options, .agree = true};
    weft_tensor_local_info local = {.struct_size = sizeof local};
    weft_tensor *tensor = NULL, *numbers = NULL, *wrapped = NULL;
    float host[24] = {0}, memory[24];
    OWNED(weft_context) *context = NULL;
    char text[1024];
    bool is_outside;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    is_outside = weft_rank(context) == 0 || weft_rank(context) == 3;
    WF_TRY(weft_tensor_create(context, rows, &options, &tensor));
    WF_TRY(weft_tensor_create(context, integers, NULL, &numbers));
    WF_TRY(weft_tensor_wrap(context, rows, is_outside ? NULL : memory, &options, &wrapped));
    HOLDS(weft_tensor_shard(tensor)->elements == (is_outside ? 0 : 12));
    WF_TRY(draw_all(tensor, numbers));
    WF_TRY(move_all(context, tensor, is_outside));
    WF_TRY(view_all(tensor));
    WF_TRY(share(context, tensor));
    WF_TRY(weft_tensor_to_host(tensor, host, sizeof host, NULL));
    WF_TRY(weft_tensor_from_host(tensor, host, 12 * sizeof *host, NULL));
    WF_TRY(weft_tensor_print(tensor, NULL, text, sizeof text, NULL));
    HOLDS(!is_outside || strstr(text, "is outside the mesh") != NULL);
    WF_TRY(weft_tensor_full_print(tensor, NULL, NULL, text, sizeof text, NULL));
    WF_TRY(weft_tensor_local_of(tensor, weft_rank(context), &local));
    HOLDS(local.shard.elements == (is_outside ? 0 : 12));
    weft_tensor_release(&tensor);
    weft_tensor_release(&numbers);
    weft_tensor_release(&wrapped);
    return WEFT_OK;
}

TEST(ranks_outside_the_mesh_call_everything)
{
    run_on(4, call_everything);
}

/* ---- another context ---- */

static weft_status mix_contexts(void *unused)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};
    weft_tensor *mine[2] = {NULL}, *other[2] = {NULL}, *swapped[2];
    weft_context *context, *second;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_init(NULL, &second));
    for (int i = 0; i < 2; i++) {
        WF_TRY(weft_tensor_create(context, rows, NULL, &mine[i]));
        WF_TRY(weft_tensor_create(second, rows, NULL, &other[i]));
    }
    swapped[0] = mine[0];
    swapped[1] = other[1];
    REFUSES(move_into(mine[0], other[0], NULL, NULL), "another context");
    REFUSES(weft_tensors_move_into(2, mine, swapped, NULL, NULL, NULL), "another context");
    REFUSES(weft_tensor_compare(mine[0], other[0], NULL, NULL, &info), "another context");
    for (int i = 0; i < 2; i++) {
        weft_tensor_release(&mine[i]);
        weft_tensor_release(&other[i]);
    }
    weft_context_release(&second);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(a_tensor_of_another_context_is_refused)
{
    rows = spec_of("1", "f32[4,6] S(0)");
    ck_assert_msg(mix_contexts(NULL) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&rows);
}
