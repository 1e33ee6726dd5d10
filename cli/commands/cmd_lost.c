/* cmd_lost.c - `weft lost`: the elements of a tensor that are lost with some ranks. */
#include "common/cli.h"

#include "common/describe.h"

#include <inttypes.h>
#include <string.h>

/* The ranks of --lost, and for each lost shard one of them. */
struct loss {
    weft_spec *spec;
    size_t count;
    int32_t *ranks, *shards;
    weft_lost_info info;
    weft_plan *plan; /* to the mesh that follows; NULL: elements are lost, or none is asked for */
};

static void free_loss(struct loss *loss)
{
    weft_spec_release(&loss->spec);
    weft_plan_release(&loss->plan);
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
                             weft_spec **out)
{
    weft_mesh *mesh = NULL;
    weft_status status;

    WF_TRY(cli_mesh(command, args, "mesh", &mesh));
    status = cli_spec(command, args, "placements", mesh, out);
    weft_mesh_release(&mesh);
    return status;
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

/* ---- the mesh that follows ---- */

/* Read "replace", "pack", or "drop:AXIS". */
static weft_status read_policy(const char *text, enum weft_follow *policy, const char **axis)
{
    *axis = NULL;
    if (strcmp(text, "replace") == 0) {
        *policy = WEFT_FOLLOW_REPLACE;
    } else if (strcmp(text, "pack") == 0) {
        *policy = WEFT_FOLLOW_PACK;
    } else if (strncmp(text, "drop:", 5) == 0) {
        *policy = WEFT_FOLLOW_DROP;
        *axis = text + 5;
    } else {
        return wf_fail(WEFT_ERR_PARSE, "--follow is \"%s\"; expected replace, drop:AXIS or pack",
                       text);
    }
    return WEFT_OK;
}

/* The job before and now.  New ranks take the numbers of the lost ones; without new ranks, the
 * others close up. */
struct change {
    size_t before, now;
    int32_t *old_ranks, *holders;
};

static weft_status make_change(const struct loss *loss, bool replaces, struct change *out)
{
    const weft_mesh *mesh = weft_spec_mesh(loss->spec);

    *out = (struct change){0};
    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        if ((size_t)weft_mesh_rank_at(mesh, i) >= out->before)
            out->before = (size_t)weft_mesh_rank_at(mesh, i) + 1;
    out->old_ranks = wf_alloc(out->before * sizeof *out->old_ranks);
    out->holders = wf_calloc(out->before, sizeof *out->holders);
    if (out->old_ranks == NULL || out->holders == NULL)
        return wf_fail_memory(out->before * sizeof *out->holders);
    for (size_t i = 0; i < loss->count; i++)
        out->holders[loss->ranks[i]] = -1;
    for (size_t i = 0; i < out->before; i++) {
        bool lives = out->holders[i] == 0;
        if (!lives && !replaces) continue;
        if (lives) out->holders[i] = (int32_t)out->now;
        out->old_ranks[out->now++] = lives ? (int32_t)i : -1;
    }
    return WEFT_OK;
}

static weft_status plan_change(struct loss *loss, const struct change *change,
                               enum weft_follow policy, const char *axis, const char *placements)
{
    weft_plan_options options = {
        .struct_size = sizeof options, .holder_count = change->before, .holders = change->holders};
    struct wf_text same = {0};
    weft_mesh *mesh = NULL;
    weft_spec *to = NULL;
    weft_status status = weft_mesh_follow(weft_spec_mesh(loss->spec), change->now,
                                          change->old_ranks, policy, axis, &mesh);

    wf_text_placements(&same, loss->spec);
    if (status == WEFT_OK) status = wf_text_status(&same);
    if (status == WEFT_OK) {
        status =
            cli_spec_of(loss->spec, mesh, "to", placements != NULL ? placements : same.data, &to);
    }
    if (status == WEFT_OK && loss->info.elements == 0)
        status = weft_plan_create(loss->spec, to, &options, &loss->plan);
    wf_text_free(&same);
    weft_mesh_release(&mesh);
    weft_spec_release(&to);
    return status;
}

/* Plan the move to the mesh that follows by the policy FOLLOW, and PLACEMENTS; NULL: the same. */
static weft_status plan_next(struct loss *loss, const char *follow, const char *placements)
{
    enum weft_follow policy = WEFT_FOLLOW_REPLACE;
    struct change change;
    const char *axis;
    weft_status status;

    WF_TRY(read_policy(follow, &policy, &axis));
    status = make_change(loss, policy == WEFT_FOLLOW_REPLACE, &change);
    if (status == WEFT_OK) status = plan_change(loss, &change, policy, axis, placements);
    wf_free(change.old_ranks);
    wf_free(change.holders);
    return status;
}

/* ---- printing ---- */

static void add_json_next(struct wf_json *json, const weft_plan *plan)
{
    weft_plan_info info = {.struct_size = sizeof info};

    if (plan == NULL || weft_plan_get(plan, &info) != WEFT_OK) {
        wf_json_null(json, "next");
        return;
    }
    wf_json_begin(json, "next", '{');
    describe_json_mesh(json, "mesh", weft_spec_mesh(info.to));
    describe_json_placements(json, "placements", info.to);
    wf_json_uint(json, "steps", info.steps);
    wf_json_uint(json, "bytes_received_max", info.bytes_received_max);
    wf_json_end(json, '}');
}

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
    add_json_next(&json, loss->plan);
    wf_json_end(&json, '}');
    wf_text_char(text, '\n');
}

static void add_next(struct wf_text *text, const weft_plan *plan)
{
    weft_plan_info info = {.struct_size = sizeof info};

    if (plan == NULL || weft_plan_get(plan, &info) != WEFT_OK) return;
    wf_text_add(text, "the next mesh is ");
    wf_text_mesh(text, weft_spec_mesh(info.to));
    wf_text_add(text, ", with ");
    wf_text_placements(text, info.to);
    wf_text_add(text, "\n\n");
    WF_TEXT_PRINT(text, weft_plan_print, plan);
}

static void add_text(struct wf_text *text, const struct loss *loss)
{
    const weft_lost_info *info = &loss->info;

    if (info->elements == 0) {
        wf_text_add(text, "nothing is lost: the other ranks hold all %" PRId64 " elements\n",
                    weft_spec_elements(loss->spec));
        add_next(text, loss->plan);
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
    static const char *const needed[] = {"mesh", "placements", "lost"};
    struct loss loss = {.info = {.struct_size = sizeof loss.info}};
    struct cli_args args;
    weft_status status;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    for (size_t i = 0; i < WF_COUNT(needed); i++)
        if (!cli_has(command, &args, needed[i])) {
            fprintf(stderr, "weft %s: --%s is missing; for example:\n  %s\n", command->name,
                    needed[i], command->example);
            return CLI_USAGE;
        }
    status = read_spec(command, &args, &loss.spec);
    if (status == WEFT_OK) status = read_ranks(cli_value(command, &args, "lost"), &loss);
    if (status == WEFT_OK) status = check_ranks(&loss);
    if (status == WEFT_OK)
        status = weft_spec_lost(loss.spec, loss.count, loss.ranks, loss.shards, &loss.info);
    if (status == WEFT_OK && cli_has(command, &args, "follow"))
        status =
            plan_next(&loss, cli_value(command, &args, "follow"), cli_value(command, &args, "to"));
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
    .arguments = "--mesh M --placements P --lost RANKS [--shape S] [options]",
    .example = "weft lost --mesh dp=2,tp=4 --placements 'f32[8,16] R,S(1)' --lost 3,7",
    .page = "elastic.md",
    .note = "Without --to, the tensor keeps its placements on the mesh that follows.",
    .options = (const struct cli_option[]){CLI_TENSOR,
                                           {"lost", "RANKS", "the lost ranks: 3,5", 0},
                                           {"follow", "X",
                                            "plan the move to the mesh that follows: replace, "
                                            "drop:AXIS or pack",
                                            0},
                                           CLI_TO,
                                           CLI_JSON,
                                           {0}},
    .warns = true,
    .run = run,
};
