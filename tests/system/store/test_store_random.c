/* Random tensors are saved from random layouts, in random formats, at once or while the ranks go
 * on, and loaded in other random layouts on another mesh. */
#include "elements.h"
#include "support/checkpoints.h"
#include "support/random_layout.h"
#include "support/suite.h"

enum { RANKS = 4, MOST = 4 };

static struct folder folder;
static int trials;
static uint64_t seed;

static weft_mesh *some_mesh(struct random *r)
{
    static const char *const texts[] = {"4", "2x2", "3", "dp=2,tp=2", "2", "1x3", "1", "2x1x2"};
    weft_mesh *mesh = NULL;

    return weft_mesh_parse(texts[random_in(r, 0, WF_COUNT(texts) - 1)], &mesh) == WEFT_OK ? mesh
                                                                                          : NULL;
}

/* A spec without partial placements. */
static weft_spec *some_spec(struct random *r, const weft_mesh *mesh, int32_t dims,
                            const int64_t *shape)
{
    weft_placement placements[WEFT_MAX_AXES];
    weft_spec *spec = NULL;

    random_placements(r, mesh, dims, shape, placements);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (placements[a].kind == WEFT_PLACE_PARTIAL)
            placements[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    return weft_spec_create(mesh, WEFT_DTYPE_F32, dims, shape, placements, &spec) == WEFT_OK ? spec
                                                                                             : NULL;
}

/* A layout file with a random layout of each tensor on a random mesh. */
static weft_status some_layout(struct random *r, int32_t count, const int32_t *dims,
                               int64_t (*shapes)[WEFT_MAX_DIMS], struct wf_text *text,
                               weft_layout_file **out)
{
    weft_mesh *mesh = some_mesh(r);

    wf_text_add(text, "mesh ");
    wf_mesh_add_text(mesh, text);
    for (int32_t i = 0; i < count; i++) {
        OWNED(weft_spec) *spec = some_spec(r, mesh, dims[i], shapes[i]);
        wf_text_add(text, "\nt%d ", i);
        wf_placements_add_text(weft_spec_placements(spec), weft_mesh_axes(mesh), text);
    }
    weft_mesh_release(&mesh);
    return weft_layout_file_parse(text->data, NULL, out);
}

struct trial {
    int number;
    int32_t count, dims[MOST];
    int64_t shapes[MOST][WEFT_MAX_DIMS];
    weft_tensor *tensors[MOST];
    struct wf_text texts[2]; /* layouts that are written and loaded */
};

static weft_status make_tensors(struct random *r, weft_context *context, struct trial *t)
{
    OWNED(weft_mesh) *mesh = some_mesh(r);

    t->count = random_in(r, 1, MOST);
    for (int32_t i = 0; i < t->count; i++) {
        char name[8];
        OWNED(weft_spec) *spec = NULL;
        weft_tensor_options options = {.struct_size = sizeof options, .name = name};
        snprintf(name, sizeof name, "t%d", i);
        t->dims[i] = random_shape(r, t->shapes[i]);
        spec = some_spec(r, mesh, t->dims[i], t->shapes[i]);
        WF_TRY(weft_tensor_create(context, spec, &options, &t->tensors[i]));
        WF_TRY(set_elements(t->tensors[i], 100000 * i));
    }
    return WEFT_OK;
}

static weft_status save(struct random *r, weft_context *context, struct trial *t, const char *path,
                        const weft_layout_file *layout)
{
    weft_save_options options = {.struct_size = sizeof options,
                                 .layout = layout,
                                 .file_bytes = (uint64_t)random_in(r, 1, 4000),
                                 .jobs = random_in(r, 0, 3)};
    weft_saving *saving = NULL;
    size_t count = (size_t)t->count;

    if (random_chance(r, 2)) return weft_save(context, path, count, t->tensors, &options);
    WF_TRY(weft_save_begin(context, path, count, t->tensors, &options, &saving));
    for (int32_t i = 0; i < t->count; i++) /* what was copied is saved */
        WF_TRY(weft_tensor_fill(t->tensors[i], -1, NULL));
    WF_TRY(weft_saving_wait(saving, WEFT_FOREVER));
    weft_saving_release(&saving);
    return WEFT_OK;
}

static weft_status load(struct random *r, weft_context *context, struct trial *t, const char *path)
{
    weft_load_options options = {.struct_size = sizeof options, .jobs = random_in(r, 0, 3)};
    weft_tensor *loaded[MOST] = {NULL};
    weft_checkpoint *from = NULL;
    OWNED(weft_layout_file) *layout = NULL;

    WF_TRY(some_layout(r, t->count, t->dims, t->shapes, &t->texts[1], &layout));
    WF_TRY(weft_checkpoint_open(path, &from));
    WF_TRY(weft_load(context, from, layout, &options, loaded));
    for (int32_t i = 0; i < t->count; i++) {
        WF_TRY(check_elements(loaded[i], 100000 * i));
        weft_tensor_release(&loaded[i]);
    }
    weft_checkpoint_close(&from);
    return WEFT_OK;
}

static weft_status run_trial(struct random *r, weft_context *context, struct trial *t)
{
    int32_t kind = random_in(r, 0, 3);
    weft_layout_file *layout = NULL;
    char path[128];

    snprintf(path, sizeof path, "%s/%d%s", folder.path, t->number, kind == 0 ? ".safetensors" : "");
    WF_TRY(make_tensors(r, context, t));
    if (kind >= 2) WF_TRY(some_layout(r, t->count, t->dims, t->shapes, &t->texts[0], &layout));
    WF_TRY(save(r, context, t, path, layout));
    weft_layout_file_release(&layout);
    for (int32_t i = 0; i < t->count; i++)
        weft_tensor_release(&t->tensors[i]);
    return load(r, context, t, path);
}

/* The tensors as the tool prints them. */
static weft_status describe(const struct trial *t, weft_status status)
{
    struct wf_text text = {0};

    wf_text_add(&text, "%s; trial %d:", weft_last_error(), t->number);
    for (int32_t i = 0; i < t->count; i++)
        if (t->tensors[i] != NULL)
            wf_text_add(&text, "\n%s", as_command(weft_tensor_spec(t->tensors[i])));
    for (int32_t i = 0; i < 2; i++)
        if (t->texts[i].data != NULL) wf_text_add(&text, "\n%s", t->texts[i].data);
    weft_fail(status, "%s", text.data);
    wf_text_free(&text);
    return status;
}

static weft_status rank_main(void *unused)
{
    struct random r = {seed, wf_hash_mix(seed, 1) | 1}; /* the same on all ranks */
    weft_status status = WEFT_OK;
    weft_context *context;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < trials && status == WEFT_OK; i++) {
        struct trial trial = {.number = i};
        status = run_trial(&r, context, &trial);
        if (status != WEFT_OK) status = describe(&trial, status);
        wf_text_free(&trial.texts[0]);
        wf_text_free(&trial.texts[1]);
    }
    if (status == WEFT_OK) weft_context_release(&context);
    return status;
}

TEST(tensors_that_are_saved_are_loaded_in_other_layouts)
{
    seed = test_seed_begin("test_store_random");
    trials = test_cases(150);
    folder = folder_create();
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
    folder_remove(&folder);
}
