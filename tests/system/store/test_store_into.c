/* Checkpoints that are loaded into tensors that exist. */
#include "elements.h"
#include "support/caught.h"
#include "support/checkpoints.h"
#include "support/layout.h"
#include "support/suite.h"

#include <string.h>

enum { RANKS = 4 };

static struct folder folder;
static char path[128];

/* The checkpoint has "w" and "b". */
static weft_status save_both(weft_context *context)
{
    weft_tensor *tensors[2] = {NULL, NULL};

    WF_TRY(make_named(context, "2x2", "f32[8,12] S(0),S(1)", "w", &tensors[0]));
    WF_TRY(make_named(context, "4", "f32[12] R", "b", &tensors[1]));
    WF_TRY(set_elements(tensors[0], 7));
    WF_TRY(set_elements(tensors[1], 9));
    WF_TRY(weft_save(context, path, 2, tensors, NULL));
    weft_tensor_release(&tensors[0]);
    weft_tensor_release(&tensors[1]);
    return WEFT_OK;
}

static weft_status (*act)(weft_context *context, const weft_checkpoint *from);

static weft_status rank_main(void *unused)
{
    weft_checkpoint *from = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(save_both(context));
    WF_TRY(weft_checkpoint_open(path, &from));
    WF_TRY(act(context, from));
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

static void run(weft_status (*what)(weft_context *, const weft_checkpoint *))
{
    act = what;
    folder = folder_create();
    snprintf(path, sizeof path, "%s/model", folder.path);
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
    folder_remove(&folder);
}

/* Other layouts; one tensor is a view with gaps; names are the tensors' own, or given. */
TEST_BY(run, tensors_that_exist_get_their_elements, weft_context *context,
        const weft_checkpoint *from)
{
    weft_load_options named = {
        .struct_size = sizeof named, .names = (const char *const[]){"w"}, .name_count = 1};
    weft_tensor *wide = NULL, *view = NULL, *tensors[2] = {NULL, NULL};
    float rows[2 * 20];

    WF_TRY(make_named(context, "4", "f32[8,12] S(1)", "w", &tensors[0]));
    WF_TRY(make_named(context, "2x2", "f32[12] S(0),R", "b", &tensors[1]));
    WF_TRY(weft_load_into(context, from, 2, tensors, NULL));
    WF_TRY(check_elements(tensors[0], 7));
    WF_TRY(check_elements(tensors[1], 9));
    WF_TRY(make_named(context, "4", "f32[8,20] S(0)", "other", &wide));
    WF_TRY(weft_tensor_fill(wide, -1, NULL));
    WF_TRY(weft_tensor_narrow(wide, 1, 5, 12, &view));
    WF_TRY(weft_load_into(context, from, 1, &view, &named));
    WF_TRY(check_elements(view, 7));
    WF_TRY(weft_tensor_to_host(wide, rows, sizeof rows, NULL));
    HOLDS(rows[4] == -1 && rows[17] == -1);
    weft_tensor_release(&view);
    weft_tensor_release(&wide);
    weft_tensor_release(&tensors[0]);
    weft_tensor_release(&tensors[1]);
    return weft_load_into(context, from, 0, NULL, NULL);
}

TEST_BY(run, tensors_that_do_not_fit_are_refused_on_all_ranks, weft_context *context,
        const weft_checkpoint *from)
{
    weft_load_options two = {
        .struct_size = sizeof two, .names = (const char *const[]){"w", "b"}, .name_count = 2};
    weft_load_options absent = {
        .struct_size = sizeof absent, .names = (const char *const[]){"v"}, .name_count = 1};
    int32_t rank = weft_rank(context);
    weft_tensor *good, *short_one, *half, *partial, *nameless;

    WF_TRY(make_named(context, "4", "f32[8,12] S(0)", "w", &good));
    WF_TRY(make_named(context, "4", "f32[8,11] S(0)", "w", &short_one));
    WF_TRY(make_named(context, "4", "bf16[8,12] S(0)", "w", &half));
    WF_TRY(make_named(context, "4", "f32[8,12] P", "w", &partial));
    WF_TRY(make_named(context, "4", "f32[8,12] S(0)", NULL, &nameless));
    FAILS(weft_load_into(context, from, 1, &short_one, NULL), WEFT_ERR_INVALID,
          "tensor \"w\": it is F32[8,12], but the tensor to load into is f32[8,11]");
    FAILS(weft_load_into(context, from, 1, &half, NULL), WEFT_ERR_INVALID,
          "it is bf16, but the checkpoint has F32");
    FAILS(weft_load_into(context, from, 1, &partial, NULL), WEFT_ERR_INVALID,
          "the tensor to load into has a partial placement");
    FAILS(weft_load_into(context, from, 1, &nameless, NULL), WEFT_ERR_INVALID,
          "tensors[0] has no name");
    FAILS(weft_load_into(context, from, 1, &good, &two), WEFT_ERR_INVALID,
          "weft_load_options.names has 2 entries (name_count) for 1 tensor; expected one name per "
          "tensor");
    FAILS(weft_load_into(context, from, 1, &good, &absent), WEFT_ERR_NOT_FOUND, "\"v\"");
    FAILS(weft_load_into(context, rank == 2 ? NULL : from, 1, &good, NULL), WEFT_ERR_INVALID,
          "rank 2: weft_load_into: from is NULL");
    FAILS(weft_load_into(context, from, rank == 1 ? 0 : 1, &good, NULL), WEFT_ERR_MISMATCH,
          "rank 0 and rank 1 load with different tensors, or with the same in another order; only "
          "rank 0 has tensor 0, \"w\"");
    weft_tensor_release(&good);
    weft_tensor_release(&short_one);
    weft_tensor_release(&half);
    weft_tensor_release(&partial);
    weft_tensor_release(&nameless);
    return WEFT_OK;
}
