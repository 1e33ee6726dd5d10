/* The reads of each rank, large shards, and calls that fail on one rank or on all. */
#include "elements.h"
#include "support/caught.h"
#include "support/checkpoints.h"
#include "support/layout.h"
#include "support/suite.h"

#include <string.h>
#include <unistd.h>

enum { RANKS = 4 };

static struct folder folder;

static void run(weft_status (*rank)(void *))
{
    folder = folder_create();
    ck_assert_msg(weft_threads_run(RANKS, rank, NULL) == WEFT_OK, "%s", weft_last_error());
    folder_remove(&folder);
}

/* FOLDER/NAME, for the thread. */
static const char *in_folder(const char *name)
{
    static _Thread_local char paths[4][128];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder.path, name);
    return path;
}

static weft_status meet(weft_context *context)
{
    WF_TRY(weft_barrier(weft_world(context), NULL));
    return weft_context_wait(context, NULL, WEFT_FOREVER);
}

static weft_status load_one(weft_context *context, const weft_checkpoint *from, const char *text,
                            weft_tensor **out)
{
    OWNED(weft_layout_file) *layout = NULL;
    weft_status status;

    WF_TRY(weft_layout_file_parse(text, NULL, &layout));
    status = weft_load(context, from, layout, NULL, out);
    return status;
}

/* ---- what is read ---- */

static weft_status count_bytes(weft_context *context, const char *path, const char *layout,
                               uint64_t want)
{
    weft_checkpoint_info before = {.struct_size = sizeof before}, after = before;
    weft_checkpoint *from = NULL;
    weft_tensor *tensor = NULL;

    WF_TRY(weft_checkpoint_open(path, &from));
    WF_TRY(weft_checkpoint_get(from, &before));
    WF_TRY(load_one(context, from, layout, &tensor));
    WF_TRY(weft_checkpoint_get(from, &after));
    HOLDS(after.bytes_read - before.bytes_read == want);
    WF_TRY(check_elements(tensor, 7));
    weft_tensor_release(&tensor);
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

/* 16 MiB in 8 rows.  A gap in a row is longer than those that are read, too. */
TEST_BY(run, each_rank_reads_what_it_needs, void *unused)
{
    static const uint64_t all = 8 * 524288 * 4;
    OWNED(weft_context) *context = NULL;
    weft_tensor *tensor;
    int32_t rank;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    WF_TRY(make_named(context, "2x2", "f32[8,524288] S(1),R", "w", &tensor));
    WF_TRY(set_elements(tensor, 7));
    WF_TRY(weft_save(context, in_folder("whole"), 1, &tensor, NULL));
    weft_tensor_release(&tensor);
    WF_TRY(count_bytes(context, in_folder("whole"), "mesh 4\n* S(0)", all / 4));
    WF_TRY(count_bytes(context, in_folder("whole"), "mesh 4\n* S(1)", all / 4));
    WF_TRY(count_bytes(context, in_folder("whole"), "mesh 2x2\n* S(1),R", all / 2));
    WF_TRY(count_bytes(context, in_folder("whole"), "mesh 4\n* R", all));
    WF_TRY(count_bytes(context, in_folder("whole"), "mesh 4\n* O(1)", rank == 1 ? all : 0));
    WF_TRY(count_bytes(context, in_folder("whole"), "mesh 4\n* G(0;5,0,2,1)",
                       all / 8 * (uint64_t[]){5, 0, 2, 1}[rank]));
    WF_TRY(count_bytes(context, in_folder("whole"), "mesh 3\n* G(0;4,4,0)",
                       rank < 2 ? all / 2 : 0)); /* rank 3 is in no mesh */
    return WEFT_OK;
}

TEST_BY(run, files_per_rank_need_no_layout, void *unused)
{
    OWNED(weft_context) *context = NULL;
    OWNED(weft_layout_file) *layout = NULL;
    weft_save_options options = {.struct_size = sizeof options};
    weft_checkpoint *from;
    weft_tensor *tensor, *loaded = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_named(context, "2x2", "f32[8,6] S(1),R", "w", &tensor));
    WF_TRY(set_elements(tensor, 7));
    WF_TRY(weft_save(context, in_folder("one"), 1, &tensor, NULL));
    WF_TRY(weft_layout_file_parse("mesh 4\n* B(0; $rows, 2)", NULL, &layout));
    options.layout = layout;
    FAILS(weft_save(context, in_folder("each"), 1, &tensor, &options), WEFT_ERR_INVALID,
          "write the numbers in the layout");
    weft_layout_file_release(&layout);
    WF_TRY(weft_layout_file_parse("mesh 4\n* S(0) heads0(4)", NULL, &layout));
    options.layout = layout;
    FAILS(weft_save(context, in_folder("each"), 1, &tensor, &options), WEFT_ERR_INVALID,
          "dimension 0 has 2 heads of 4 indices, which cannot stay whole on the 4 ranks");
    weft_layout_file_release(&layout);
    WF_TRY(weft_layout_file_parse("mesh 4\n* B(0; 6, 2) heads0(1)", NULL, &layout));
    options.layout = layout;
    WF_TRY(weft_save(context, in_folder("each"), 1, &tensor, &options));
    weft_tensor_release(&tensor);
    WF_TRY(weft_checkpoint_open(in_folder("each"), &from));
    WF_TRY(weft_load(context, from, NULL, NULL, &loaded));
    HOLDS(weft_spec_placements(weft_tensor_spec(loaded))[0].kind == WEFT_PLACE_PARTS);
    WF_TRY(check_elements(loaded, 7));
    weft_checkpoint_close(&from);
    weft_layout_file_release(&layout);
    WF_TRY(weft_layout_file_parse("mesh 4\n* B(0; $rows, $x)", NULL, &layout));
    options.layout = layout; /* the sizes are those of the tensor's own parts */
    WF_TRY(weft_save(context, in_folder("again"), 1, &loaded, &options));
    weft_tensor_release(&loaded);
    WF_TRY(weft_checkpoint_open(in_folder("one"), &from));
    FAILS(weft_load(context, from, NULL, NULL, &loaded), WEFT_ERR_INVALID, "layout is NULL");
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

/* ---- many pieces ---- */

TEST_BY(run, shards_of_many_pieces_are_saved_and_loaded, void *unused)
{
    static const char *const layouts[] = {"mesh 4\na B(0;1500,1100)\nb SS(1,3)",
                                          "mesh 2x2\na S(0),R\nb S(0),S(1)"};
    weft_tensor *tensors[2], *loaded[2];
    weft_saving_info info = {.struct_size = sizeof info};
    weft_saving *saving = NULL;
    weft_checkpoint *from = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_named(context, "2x2", "f32[2600,4096] R,SS(0,2)", "a", &tensors[0]));
    WF_TRY(make_named(context, "4", "f32[3,3500001] R", "b", &tensors[1]));
    WF_TRY(set_elements(tensors[0], 0));
    WF_TRY(set_elements(tensors[1], 1));
    WF_TRY(weft_save_begin(context, in_folder("large"), 2, tensors, NULL, &saving));
    WF_TRY(weft_saving_get(saving, &info));
    /* Four ranks share the replicas. */
    HOLDS(info.bytes > 0 && info.bytes <= 2 * ((8 << 20) + 40000000 / 4));
    WF_TRY(weft_saving_wait(saving, WEFT_FOREVER));
    WF_TRY(weft_saving_get(saving, &info));
    HOLDS(info.ended && info.written == info.bytes && info.copy_ns > 0);
    weft_saving_release(&saving);
    for (int32_t i = 0; i < 2; i++) {
        weft_layout_file *layout = NULL;
        WF_TRY(weft_checkpoint_open(in_folder("large"), &from));
        WF_TRY(weft_layout_file_parse(layouts[i], NULL, &layout));
        WF_TRY(weft_load(context, from, layout, NULL, loaded));
        for (int32_t k = 0; k < 2; k++) {
            WF_TRY(check_elements(loaded[k], k));
            weft_tensor_release(&loaded[k]);
        }
        weft_layout_file_release(&layout);
        weft_checkpoint_close(&from);
    }
    weft_tensor_release(&tensors[0]);
    weft_tensor_release(&tensors[1]);
    return WEFT_OK;
}

/* ---- kinds of tensors ---- */

TEST_BY(run, partial_tensors_are_reduced_and_views_are_saved, void *unused)
{
    weft_save_options options = {.struct_size = sizeof options,
                                 .names = (const char *const[]){"sum", "turned"},
                                 .name_count = 2};
    weft_tensor *tensors[2], *base, *loaded[2], *whole;
    weft_tensor_difference_info difference = {.struct_size = sizeof difference};
    weft_checkpoint *from = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_named(context, "2x2", "f32[5,7] P,S(1)", "p", &tensors[0]));
    WF_TRY(weft_tensor_fill(tensors[0], 1.5, NULL));
    WF_TRY(make_named(context, "4", "f32[6,10] S(0)", "base", &base));
    WF_TRY(set_elements(base, 0));
    WF_TRY(weft_tensor_transpose(base, 0, 1, &tensors[1])); /* with gaps */
    WF_TRY(weft_save(context, in_folder("special"), 2, tensors, &options));
    WF_TRY(weft_checkpoint_open(in_folder("special"), &from));
    WF_TRY(load_one(context, from, "mesh 4\nsum S(0)\nturned S(1)", loaded));
    WF_TRY(make_named(context, "4", "f32[5,7] S(0)", "want", &whole));
    WF_TRY(weft_tensor_fill(whole, 3, NULL));
    WF_TRY(weft_tensor_compare(loaded[0], whole, NULL, NULL, &difference));
    HOLDS(difference.equal);
    WF_TRY(weft_tensor_compare(loaded[1], tensors[1], NULL, NULL, &difference));
    HOLDS(difference.equal);
    HOLDS(strcmp(weft_tensor_name(loaded[1]), "turned") == 0);
    for (int32_t i = 0; i < 2; i++) {
        weft_tensor_release(&tensors[i]);
        weft_tensor_release(&loaded[i]);
    }
    weft_tensor_release(&whole);
    weft_tensor_release(&base);
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

TEST_BY(run, tensors_that_rules_make_are_loaded, void *unused)
{
    weft_load_options options = {
        .struct_size = sizeof options, .names = (const char *const[]){"both"}, .name_count = 1};
    weft_tensor *tensors[2], *loaded = NULL;
    weft_checkpoint *from = NULL, *mapped = NULL;
    OWNED(weft_layout_file) *layout = NULL;
    OWNED(weft_checkpoint_rules) *rules = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_named(context, "4", "f32[6,4] S(0)", "a", &tensors[0]));
    WF_TRY(make_named(context, "4", "f32[3,4] R", "b", &tensors[1]));
    WF_TRY(set_elements(tensors[0], 0));
    WF_TRY(set_elements(tensors[1], 24));
    WF_TRY(weft_save(context, in_folder("parts.safetensors"), 2, tensors, NULL));
    WF_TRY(weft_checkpoint_open(in_folder("parts.safetensors"), &from));
    WF_TRY(weft_checkpoint_rules_parse("both = cat0(a, b)", NULL, &rules));
    WF_TRY(weft_checkpoint_map(from, rules, &mapped));
    WF_TRY(weft_layout_file_parse("mesh 2x2\n* S(1),S(0)", NULL, &layout));
    HOLDS(weft_load_count(from, NULL) == 2 &&
          weft_load_count(mapped, &options) == options.name_count);
    WF_TRY(weft_load(context, mapped, layout, &options, &loaded));
    WF_TRY(check_elements(loaded, 0));
    weft_tensor_release(&loaded);
    weft_tensor_release(&tensors[0]);
    weft_tensor_release(&tensors[1]);
    weft_checkpoint_close(&mapped);
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

/* ---- failures ---- */

static weft_status refuse_loads(weft_context *context, const weft_checkpoint *from)
{
    static const char *const same = "mesh 4\n* S(0)", *const other = "mesh 4\n* R";
    int32_t rank = weft_rank(context);
    weft_tensor *tensor = NULL;

    FAILS(load_one(context, rank == 2 ? NULL : from, same, &tensor), WEFT_ERR_INVALID,
          "rank 2: weft_load: from");
    FAILS(load_one(context, from, rank == 2 ? other : same, &tensor), WEFT_ERR_MISMATCH,
          "rank 0 and rank 2 load with different layouts");
    FAILS(load_one(context, from, "mesh 4\nb R", &tensor), WEFT_ERR_NOT_FOUND, "no pattern");
    FAILS(load_one(context, from, "mesh 5\n* R", &tensor), WEFT_ERR_INVALID,
          "the mesh of the layout has rank 4, but the job has 4 ranks");
    HOLDS(tensor == NULL);
    return WEFT_OK;
}

static weft_status refuse_saves(weft_context *context, weft_tensor *tensor)
{
    weft_save_options replace = {.struct_size = sizeof replace, .replace = true};
    weft_save_options named = {
        .struct_size = sizeof named, .names = (const char *const[]){"one"}, .name_count = 1};
    int32_t rank = weft_rank(context);
    weft_tensor *twice[] = {tensor, tensor}, *nameless = NULL;
    weft_save_options ranks = {.struct_size = sizeof ranks, .format = WEFT_FILE_RANKS};
    weft_save_options read_only = {.struct_size = sizeof read_only, .format = WEFT_FILE_DCP};
    weft_save_options whole = {.struct_size = sizeof whole, .format = WEFT_FILE_SAFETENSORS};
    weft_layout_file *layout = NULL;
    weft_checkpoint *kept = NULL;
    weft_saving *saving = NULL;
    size_t index;

    FAILS(weft_save(context, in_folder("there"), 1, &tensor, NULL), WEFT_ERR_INVALID,
          "exists already");
    FAILS(weft_save(context, in_folder("there"), 0, NULL, &replace), WEFT_ERR_INVALID,
          "count is 0; a checkpoint has at least one tensor");
    WF_TRY(weft_checkpoint_open(in_folder("there"), &kept)); /* the good one is still there */
    WF_TRY(weft_checkpoint_find(kept, "a", &index));
    weft_checkpoint_close(&kept);
    FAILS(weft_save(context, in_folder("new"), 1, &tensor, &ranks), WEFT_ERR_INVALID,
          "format is ranks, files per rank, which needs a `layout`");
    FAILS(weft_save(context, in_folder("new"), 1, &tensor, &read_only), WEFT_ERR_INVALID,
          "weft does not write format 5 (dcp); it writes safetensors, huggingface, ranks and npy");
    WF_TRY(weft_layout_file_parse("mesh 4\n* R", NULL, &layout));
    whole.layout = layout;
    FAILS(weft_save(context, in_folder("new"), 1, &tensor, &whole), WEFT_ERR_INVALID,
          "`layout` is set, but format is safetensors; only format ranks, files per rank, has one");
    weft_layout_file_release(&layout);
    FAILS(weft_save(context, in_folder("none/x"), 1, &tensor, NULL), WEFT_ERR_SYSTEM, "rank 0:");
    FAILS(weft_save(context, in_folder("new"), 2, twice, NULL), WEFT_ERR_INVALID, "two tensors");
    FAILS(weft_save(context, in_folder("new"), 2, twice, &named), WEFT_ERR_INVALID,
          "weft_save_options.names has 1 entries (name_count) for 2 tensors; expected one name per "
          "tensor");
    FAILS(weft_save(context, in_folder(rank == 3 ? "other" : "new"), 1, &tensor, NULL),
          WEFT_ERR_MISMATCH, "rank 0 and rank 3 save with different paths: \"/");
    HOLDS(strstr(weft_last_error(), "/new\" and \"/") != NULL);
    HOLDS(strstr(weft_last_error(), "/other\"") != NULL);
    named.names = (const char *const[]){rank == 2 ? "two" : "one"};
    FAILS(weft_save(context, in_folder("new"), 1, &tensor, &named), WEFT_ERR_MISMATCH,
          "with the same in another order; tensor 0 is \"one\" and \"two\"");
    FAILS(weft_save_begin(context, in_folder("new"), 1, rank == 1 ? NULL : &tensor, NULL, &saving),
          WEFT_ERR_INVALID, "rank 1:");
    FAILS(weft_save_begin(context, in_folder("new"), 1, &tensor, NULL, rank == 1 ? NULL : &saving),
          WEFT_ERR_INVALID, "rank 1:");
    WF_TRY(make_named(context, "4", "f32[4] R", NULL, &nameless));
    FAILS(weft_save(context, in_folder("new"), 1, &nameless, NULL), WEFT_ERR_INVALID, "no name");
    weft_tensor_release(&nameless);
    WF_TRY(meet(context)); /* rank 0 has removed what it made */
    HOLDS(access(in_folder("new"), F_OK) != 0);
    HOLDS(access(in_folder("new.weft-partial"), F_OK) != 0);
    WF_TRY(weft_save_begin(context, in_folder("later"), 1, &tensor, NULL, &saving));
    FAILS(weft_saving_wait(saving, -2), WEFT_ERR_INVALID, "weft_saving_wait: timeout_ns is -2");
    WF_TRY(weft_saving_wait(saving, WEFT_FOREVER));
    weft_saving_release(&saving);
    return weft_save(context, in_folder("there"), 1, &tensor, &replace);
}

TEST_BY(run, an_error_of_one_rank_is_the_same_on_all, void *unused)
{
    weft_checkpoint *from = NULL;
    OWNED(weft_context) *context = NULL;
    weft_tensor *tensor;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_named(context, "4", "f32[8,3] S(0)", "a", &tensor));
    WF_TRY(set_elements(tensor, 0));
    WF_TRY(weft_save(context, in_folder("there"), 1, &tensor, NULL));
    WF_TRY(weft_checkpoint_open(in_folder("there"), &from));
    WF_TRY(refuse_loads(context, from));
    WF_TRY(refuse_saves(context, tensor));
    weft_checkpoint_close(&from);
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

/* Only rank 2 reads the file that is cut short. */
TEST_BY(run, a_shard_that_is_cut_short_fails_on_all_ranks, void *unused)
{
    weft_save_options options = {.struct_size = sizeof options};
    weft_checkpoint *from = NULL;
    OWNED(weft_layout_file) *layout = NULL;
    weft_tensor *tensor, *loaded = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_layout_file_parse("mesh 4\n* S(0)", NULL, &layout));
    WF_TRY(make_named(context, "4", "f32[8,3] R", "a", &tensor));
    WF_TRY(set_elements(tensor, 0));
    options.layout = layout;
    WF_TRY(weft_save(context, in_folder("ranks"), 1, &tensor, &options));
    WF_TRY(weft_checkpoint_open(in_folder("ranks"), &from));
    WF_TRY(meet(context));
    if (weft_rank(context) == 0)
        HOLDS(truncate(in_folder("ranks/rank-00002-of-00004.safetensors"), 100) == 0);
    WF_TRY(meet(context));
    FAILS(weft_load(context, from, layout, NULL, &loaded), WEFT_ERR_SYSTEM, "rank 2:");
    HOLDS(strstr(weft_last_error(), "rank-00002-of-00004.safetensors") != NULL);
    HOLDS(loaded == NULL);
    weft_checkpoint_close(&from);
    FAILS(weft_checkpoint_open(in_folder("ranks"), &from), WEFT_ERR_PARSE, "rank-00002-of-00004");
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

/* ---- the end of a context ---- */

TEST_BY(run, a_context_ends_after_its_savings, void *unused)
{
    weft_saving_info info = {.struct_size = sizeof info};
    weft_saving *saving = NULL;
    weft_checkpoint *from = NULL;
    weft_context *context;
    weft_tensor *tensor;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_named(context, "4", "f32[4000,300] S(0)", "a", &tensor));
    WF_TRY(set_elements(tensor, 0));
    WF_TRY(weft_save_begin(context, in_folder("last"), 1, &tensor, NULL, &saving));
    weft_tensor_release(&tensor);
    weft_context_release(&context);
    WF_TRY(weft_saving_get(saving, &info));
    HOLDS(info.ended);
    WF_TRY(weft_saving_wait(saving, 0));
    weft_saving_release(&saving);
    WF_TRY(weft_checkpoint_open(in_folder("last"), &from));
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

/* Moves and another saving go on while a checkpoint is written. */
TEST_BY(run, the_context_is_used_while_checkpoints_are_written, void *unused)
{
    weft_saving *savings[2];
    weft_tensor *tensor, *moved;
    weft_checkpoint *from = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make_named(context, "4", "f32[1000,400] S(0)", "a", &tensor));
    for (int32_t i = 0; i < 2; i++) {
        WF_TRY(set_elements(tensor, i));
        WF_TRY(weft_save_begin(context, in_folder(i == 0 ? "one" : "two"), 1, &tensor, NULL,
                               &savings[i]));
        for (int32_t k = 0; k < 5; k++) {
            WF_TRY(weft_tensor_full(tensor, k % RANKS, NULL, NULL, &moved));
            weft_tensor_release(&moved);
        }
    }
    for (int32_t i = 1; i >= 0; i--) {
        WF_TRY(weft_saving_wait(savings[i], WEFT_FOREVER));
        weft_saving_release(&savings[i]);
        WF_TRY(weft_checkpoint_open(in_folder(i == 0 ? "one" : "two"), &from));
        WF_TRY(load_one(context, from, "mesh 2x2\n* S(1),S(0)", &moved));
        WF_TRY(check_elements(moved, i));
        weft_tensor_release(&moved);
        weft_checkpoint_close(&from);
    }
    weft_tensor_release(&tensor);
    return WEFT_OK;
}

/* One file with tensor "x" and one with "y"; the index lists "x" alone. */
static weft_status load_listed(void *unused)
{
    static const char *const names[] = {"x"};
    static const char index[] = "{\"weight_map\":{\"x\":\"x.safetensors\"}}";
    weft_load_options options = {.struct_size = sizeof options, .names = names, .name_count = 1};
    OWNED(weft_context) *context = NULL;
    weft_checkpoint *from = NULL;
    weft_layout_file *layout = NULL;
    weft_tensor *tensor = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 2; i++) {
        WF_TRY(make_named(context, "4", "f32[8] S(0)", i == 0 ? "x" : "y", &tensor));
        WF_TRY(weft_save(context, in_folder(i == 0 ? "x.safetensors" : "y.safetensors"), 1, &tensor,
                         NULL));
        weft_tensor_release(&tensor);
    }
    if (weft_rank(context) == 0)
        folder_write(&folder, "model.safetensors.index.json", index, strlen(index));
    WF_TRY(meet(context));
    WF_TRY(weft_checkpoint_open(folder.path, &from));
    WF_TRY(load_one(context, from, "mesh 4\n* S(0)", &tensor));
    weft_tensor_release(&tensor);
    WF_TRY(weft_layout_file_parse("mesh 4\n* S(0)", NULL, &layout));
    WF_TRY(weft_load(context, from, layout, &options, &tensor)); /* no warning: it wants no more */
    options.name_count = 0;
    FAILS(weft_load(context, from, layout, &options, &tensor), WEFT_ERR_INVALID,
          "the options have a list `names`, but name_count is 0; set both or none");
    options = (weft_load_options){.struct_size = sizeof options, .name_count = 1};
    FAILS(weft_load(context, from, layout, &options, &tensor), WEFT_ERR_INVALID,
          "the options have no `names`, but name_count is 1; set both or none");
    weft_layout_file_release(&layout);
    weft_tensor_release(&tensor);
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

TEST(one_rank_warns_of_tensors_that_the_index_does_not_list)
{
    const char *said, *first;

    catch_begin();
    run(load_listed);
    said = catch_end();
    first = strstr(said,
                   "does not list 1 tensor in files of the folder, such as \"y\" of y.safetensors");
    ck_assert_msg(first != NULL, "%s", said);
    ck_assert_ptr_null(strstr(first + 1, "does not list"));
}
