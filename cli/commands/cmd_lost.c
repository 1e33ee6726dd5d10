/* cmd_lost.c - `weft lost`: the elements of a tensor that are lost with some ranks. */
#include "common/cli.h"

#include "common/describe.h"

#include <inttypes.h>

/* The ranks of --lost, and for each lost shard one of them. */
struct loss {
    weft_spec *spec;
    size_t count;
    int32_t *ranks, *shards;
    weft_lost_info info;
};

static void free_loss(struct loss *loss)
{
    weft_spec_release(&loss->spec);
    wf_free(loss->ranks);
    wf_free(loss->shards);
}

/* ---- reading ---- */

/* Read ranks, "3,5", to LOSS. */
static weft_status read_ranks(const char *text, struct loss *loss)
{
    struct wf_scan scan = {text, 0};
    size_t room = 1;

    for (const char *at = text; *at != '\0'; at++)
        room += *at == ',';
    loss->ranks = wf_alloc(room * sizeof *loss->ranks);
    loss->shards = wf_alloc(room * sizeof *loss->shards);
    if (loss->ranks == NULL || loss->shards == NULL)
        return wf_fail_memory(room * sizeof *loss->ranks);
    do {
        int64_t rank;
        weft_status status = wf_scan_int(&scan, "a rank", &rank);
        if (status != WEFT_OK) return wf_fail_context(status, "--lost");
        if (rank < 0 || rank > INT32_MAX)
            return wf_fail(WEFT_ERR_INVALID, "--lost: %" PRId64 " is not a rank", rank);
        loss->ranks[loss->count++] = (int32_t)rank;
    } while (wf_scan_char(&scan, ','));
    if (!wf_scan_end(&scan))
        return wf_fail(WEFT_ERR_PARSE, "--lost is \"%s\"; expected ranks, as in 3,5", text);
    return WEFT_OK;
}

static weft_status read_spec(const struct cli_command *command, const struct cli_args *args,
                             enum weft_dtype dtype, weft_spec **out)
{
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims;
    weft_mesh *mesh = NULL;
    weft_status status = weft_shape_parse(cli_value(command, args, "shape"), &dims, shape);

    if (status != WEFT_OK) return wf_fail_context(status, "--shape");
    WF_TRY(cli_mesh(command, args, "mesh", &mesh));
    status = weft_spec_parse_placements(mesh, dtype, dims, shape,
                                        cli_value(command, args, "placements"), out);
    weft_mesh_release(&mesh);
    return status == WEFT_OK ? WEFT_OK : wf_fail_context(status, "--placements");
}

/* The ranks must be in the mesh: another one is a mistake. */
static weft_status check_ranks(const struct loss *loss)
{
    const weft_mesh *mesh = weft_spec_mesh(loss->spec);
    int32_t coord[WEFT_MAX_AXES];

    for (size_t i = 0; i < loss->count; i++) {
        weft_status status = weft_mesh_coord_of(mesh, loss->ranks[i], coord);
        if (status != WEFT_OK) return wf_fail_context(status, "--lost");
    }
    return WEFT_OK;
}

/* ---- printing ---- */

static void add_json_shard(struct wf_json *json, const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    wf_json_begin(json, NULL, '{');
    wf_json_int(json, "rank", rank);
    wf_json_int(json, "elements", shard.elements);
    describe_json_runs(json, "runs", spec, rank);
    wf_json_end(json, '}');
}

static void add_json(struct wf_text *text, const struct loss *loss)
{
    struct wf_json json = {.out = text};

    wf_json_begin(&json, NULL, '{');
    describe_json_mesh(&json, "mesh", weft_spec_mesh(loss->spec));
    describe_json_shape(&json, "shape", weft_spec_dims(loss->spec), weft_spec_shape(loss->spec));
    wf_json_string(&json, "dtype", weft_dtype_name(weft_spec_dtype(loss->spec)));
    describe_json_placements(&json, "placements", loss->spec);
    wf_json_begin(&json, "lost", '[');
    for (size_t i = 0; i < loss->count; i++)
        wf_json_int(&json, NULL, loss->ranks[i]);
    wf_json_end(&json, ']');
    wf_json_int(&json, "elements", loss->info.elements);
    wf_json_uint(&json, "bytes", loss->info.bytes);
    if (loss->info.elements > 0)
        describe_json_shape(&json, "first", weft_spec_dims(loss->spec), loss->info.first);
    else
        wf_json_null(&json, "first");
    wf_json_begin(&json, "shards", '[');
    for (size_t i = 0; i < loss->info.shards; i++)
        add_json_shard(&json, loss->spec, loss->shards[i]);
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static void add_text(struct wf_text *text, const struct loss *loss)
{
    const weft_lost_info *info = &loss->info;

    if (info->elements == 0) {
        wf_text_add(text, "nothing is lost: the other ranks hold all %" PRId64 " elements\n",
                    weft_spec_elements(loss->spec));
        return;
    }
    wf_text_add(text, "%" PRId64 " of %" PRId64 " elements are lost, ", info->elements,
                weft_spec_elements(loss->spec));
    wf_text_bytes(text, info->bytes);
    wf_text_add(text, ", in %zu %s; the first is ", info->shards,
                info->shards == 1 ? "shard" : "shards");
    describe_shape(weft_spec_dims(loss->spec), info->first, text);
    wf_text_add(text, "\n\n%-6s %-12s indices\n", "rank", "elements");
    for (size_t i = 0; i < info->shards; i++) {
        weft_shard shard;
        weft_spec_shard(loss->spec, loss->shards[i], &shard);
        wf_text_add(text, "%-6d %-12" PRId64 " ", loss->shards[i], shard.elements);
        describe_runs(loss->spec, loss->shards[i], text);
        wf_text_char(text, '\n');
    }
}

static int print(const struct cli_command *command, const struct loss *loss, bool as_json)
{
    struct wf_text text = {0};
    int exit_code;

    if (as_json)
        add_json(&text, loss);
    else
        add_text(&text, loss);
    exit_code = cli_print(command, stdout, &text);
    return exit_code == CLI_OK && loss->info.elements > 0 ? CLI_NO : exit_code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    static const char *const needed[] = {"mesh", "shape", "placements", "lost"};
    struct loss loss = {.info = {.struct_size = sizeof loss.info}};
    struct cli_args args;
    enum weft_dtype dtype;
    weft_status status;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    for (size_t i = 0; i < WF_COUNT(needed); i++)
        if (!cli_has(command, &args, needed[i])) {
            fprintf(stderr, "weft %s: --%s is missing; for example:\n  %s\n", command->name,
                    needed[i], command->example);
            return CLI_USAGE;
        }
    if (!cli_dtype(command, &args, "dtype", &dtype)) return CLI_USAGE;
    status = read_spec(command, &args, dtype, &loss.spec);
    if (status == WEFT_OK) status = read_ranks(cli_value(command, &args, "lost"), &loss);
    if (status == WEFT_OK) status = check_ranks(&loss);
    if (status == WEFT_OK)
        status = weft_spec_lost(loss.spec, loss.count, loss.ranks, loss.shards, &loss.info);
    if (status == WEFT_OK) {
        exit_code = print(command, &loss, cli_has(command, &args, "json"));
    } else {
        exit_code = cli_fail(command, status);
        if (exit_code == CLI_NO) exit_code = CLI_USAGE;
    }
    free_loss(&loss);
    return exit_code;
}

const struct cli_command cli_lost = {
    .name = "lost",
    .summary = "print which elements of a tensor are lost with some ranks",
    .arguments = "--mesh M --shape S --placements P --lost RANKS [options]",
    .example = "weft lost --mesh dp=2,tp=4 --shape 8x16 --placements 'R,S(1)' --lost 3,7",
    .options = (const struct cli_option[]){CLI_MESH,
                                           CLI_MESH_RANKS,
                                           CLI_SHAPE,
                                           CLI_DTYPE,
                                           {"placements", "P",
                                            "one per mesh axis: R, S(dim), SS(dim,factor), "
                                            "B(dim;sizes), G(dim;sizes), P(op), O(owner)",
                                            0},
                                           {"lost", "RANKS", "the lost ranks: 3,5", 0},
                                           CLI_JSON,
                                           {0}},
    .warns = true,
    .run = run,
};
