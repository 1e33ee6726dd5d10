/* trace_suite.c - every operation of a known program has its record.
 *
 *     trace_suite [--threads 4]
 *
 * Four ranks.  An observer on each keeps its records, and the program then looks for what it has
 * done. */
#include "../../support/counts.h"
#include "../../support/move.h"
#include "claims.h"
#include <weft/weft.h>
#include <weft/trace.h>
#include <weft/symm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 4
#define KEPT  256

enum event { SUBMITTED, FINISHED, PLANNED, REDISTRIBUTES };

struct rank {
    int number, failed;
    weft_context *context;
    weft_comm *world;
    char *source, *target; /* 64 KiB each */
    struct {
        enum event event;
        weft_record record;
    } seen[KEPT];
    int count, next;
    int failures;
    weft_status failure;
};

/* ---- the observer ---- */

static void keep(struct rank *self, enum event event, const weft_record *record)
{
    if (self->count == KEPT) return;
    self->seen[self->count].event = event;
    self->seen[self->count++].record = *record;
}

static void on_submitted(void *user, const weft_record *record)
{
    keep(user, SUBMITTED, record);
}

static void on_finished(void *user, const weft_record *record)
{
    keep(user, FINISHED, record);
}

static void on_planned(void *user, const weft_record *record)
{
    keep(user, PLANNED, record);
}

static void on_redistributes(void *user, const weft_record *record)
{
    keep(user, REDISTRIBUTES, record);
}

static void on_failed(void *user, uint64_t comm, weft_status status, const char *text)
{
    struct rank *self = user;

    self->failures += comm != 0 && text[0] != '\0';
    self->failure = status;
}

/* The next record, which must be of EVENT and OPERATION. */
static const weft_record *next(struct rank *self, enum event event, int operation, int line)
{
    static const weft_record none;
    const weft_record *record = &self->seen[self->next].record;

    if (self->next == self->count) {
        complain(self->number, &self->failed, line, "there is one more record");
        return &none;
    }
    if (self->seen[self->next++].event != event || record->operation != operation) {
        fprintf(stderr, "rank %d: event %d of %s\n", self->number, self->seen[self->next - 1].event,
                weft_record_operation_name((enum weft_record_operation)record->operation));
        complain(self->number, &self->failed, line, "this is the next record");
    }
    return record;
}

#define NEXT(event, operation) next(self, event, operation, __LINE__)

static const char *text(struct rank *self, uint32_t number)
{
    return weft_trace_text(self->context, number);
}

/* ---- collectives and messages ---- */

/* The next collective sent and received so many bytes, and is complete. */
static void expect(struct rank *self, int operation, uint64_t sent, uint64_t received, int peer)
{
    const weft_record *begun = NEXT(SUBMITTED, operation), *done = NEXT(FINISHED, operation);
    static const uint64_t first = 1;

    HOLDS(begun->id == done->id && begun->id >= first);
    HOLDS(done->sent == sent && done->received == received && done->peer == peer);
    HOLDS(strcmp(text(self, done->comm_name), "world") == 0);
    HOLDS(done->state == WEFT_RECORD_FINISHED && begun->state == WEFT_RECORD_SUBMITTED);
    HOLDS(done->submitted == begun->submitted && done->finished >= done->started);
    HOLDS(done->step == 0 && done->step_kind == WEFT_NO_STEP_KIND && done->plan == 0);
}

static void make_collectives(struct rank *self)
{
    weft_comm *w = self->world;
    void *x = self->source, *y = self->target;
    enum weft_dtype f32 = WEFT_DTYPE_F32;
    enum weft_reduction sum = WEFT_REDUCE_SUM;
    uint64_t counts[RANKS] = {1, 2, 3, 4}, offsets[RANKS] = {0, 1, 3, 6};
    uint64_t mine = counts[self->number];

    WORKS(weft_all_reduce(w, x, y, 8, f32, sum, NULL));
    WORKS(weft_all_gather(w, x, y, 8, f32, NULL));
    WORKS(weft_reduce_scatter(w, x, y, 8, f32, sum, NULL));
    WORKS(weft_all_to_all(w, x, y, 8, f32, NULL));
    WORKS(weft_broadcast(w, x, y, 8, f32, 1, NULL));
    WORKS(weft_reduce(w, x, y, 8, f32, sum, 2, NULL));
    WORKS(weft_gather(w, x, y, 8, f32, 3, NULL));
    WORKS(weft_scatter(w, x, y, 8, f32, 0, NULL));
    WORKS(weft_barrier(w, NULL));
    WORKS(weft_all_gather_v(w, x, y, counts, offsets, f32, NULL));
    WORKS(weft_reduce_scatter_v(w, x, y, counts, offsets, f32, sum, NULL));
    WORKS(weft_gather_v(w, x, mine, y, counts, offsets, f32, 1, NULL));
    WORKS(weft_scatter_v(w, x, counts, offsets, y, mine, f32, 2, NULL));
}

static void check_collectives(struct rank *self)
{
    uint64_t mine = 4 * (uint64_t)(self->number + 1);
    weft_record_axes_info axes = {.struct_size = sizeof axes};
    weft_record_counts_info sums = {.struct_size = sizeof sums};
    weft_record_counts *counts = NULL;

    WORKS(weft_record_counts_create(self->context, &counts));
    make_collectives(self);
    WORKS(weft_record_counts_end(counts));
    expect(self, WEFT_RECORD_ALL_REDUCE, 32, 32, -1);
    HOLDS(self->seen[self->next - 1].record.sequence == 1);
    expect(self, WEFT_RECORD_ALL_GATHER, 32, 128, -1);
    HOLDS(self->seen[self->next - 1].record.sequence == 2);
    expect(self, WEFT_RECORD_REDUCE_SCATTER, 128, 32, -1);
    expect(self, WEFT_RECORD_ALL_TO_ALL, 128, 128, -1);
    expect(self, WEFT_RECORD_BROADCAST, self->number == 1 ? 32 : 0, 32, 1);
    expect(self, WEFT_RECORD_REDUCE, 32, self->number == 2 ? 32 : 0, 2);
    expect(self, WEFT_RECORD_GATHER, 32, self->number == 3 ? 128 : 0, 3);
    expect(self, WEFT_RECORD_SCATTER, self->number == 0 ? 128 : 0, 32, 0);
    expect(self, WEFT_RECORD_BARRIER, 0, 0, -1);
    expect(self, WEFT_RECORD_ALL_GATHER_V, mine, 40, -1);
    expect(self, WEFT_RECORD_REDUCE_SCATTER_V, 40, mine, -1);
    expect(self, WEFT_RECORD_GATHER_V, mine, self->number == 1 ? 40 : 0, 1);
    expect(self, WEFT_RECORD_SCATTER_V, self->number == 2 ? 40 : 0, mine, 2);
    for (int i = 0; i <= WEFT_RECORD_SCATTER_V; i++)
        HOLDS(weft_record_counts_operations(counts, (enum weft_record_operation)i) ==
              (i == WEFT_RECORD_ALL_TO_ALL_V ? 0 : 1));
    HOLDS(weft_record_counts_axes_count(counts) == 1);
    WORKS(weft_record_counts_axes_get(counts, 0, &axes));
    WORKS(weft_record_counts_get(counts, &sums));
    HOLDS(strcmp(axes.axes, "world") == 0 && axes.operations == 13);
    HOLDS(axes.sent == sums.sent && axes.received == sums.received && sums.failed == 0);
    weft_record_counts_release(&counts);
}

static void check_messages(struct rank *self)
{
    int32_t peer = self->number ^ 1;
    const weft_record *record;

    for (uint64_t round = 1; round <= 2; round++) {
        WORKS(weft_group_begin(self->world));
        WORKS(weft_send(self->world, self->source, 10, WEFT_DTYPE_F32, peer, 0, NULL));
        WORKS(weft_receive(self->world, self->target, 10, WEFT_DTYPE_F32, peer, 0, NULL));
        HOLDS(self->count == self->next + 2); /* neither is complete */
        WORKS(weft_group_end(self->world));
        record = NEXT(SUBMITTED, WEFT_RECORD_SEND);
        HOLDS(record->sequence == round && record->sent == 40 && record->peer == peer);
        record = NEXT(SUBMITTED, WEFT_RECORD_RECEIVE);
        HOLDS(record->sequence == round && record->received == 40 && record->peer == peer);
        HOLDS(NEXT(FINISHED, WEFT_RECORD_RECEIVE)->state == WEFT_RECORD_FINISHED);
        HOLDS(NEXT(FINISHED, WEFT_RECORD_SEND)->state == WEFT_RECORD_FINISHED);
    }
}

/* ---- creations ---- */

/* The next creation or release is the NUMBER-th by RANKS; "": by all.  It was made by FUNCTION. */
static void expect_creation(struct rank *self, int operation, uint64_t number, const char *ranks,
                            const char *function)
{
    const weft_record *begun = NEXT(SUBMITTED, operation), *done = NEXT(FINISHED, operation);
    char printed[64], wanted[64];

    HOLDS(begun->id == done->id && done->state == WEFT_RECORD_FINISHED);
    HOLDS(done->sequence == number && strcmp(text(self, done->axes), ranks) == 0);
    HOLDS(strcmp(text(self, done->label), function) == 0);
    HOLDS(strcmp(text(self, done->comm_name), "world") == 0 && done->comm != 0);
    HOLDS(done->sent == 0 && done->received == 0 && done->peer == -1);
    snprintf(wanted, sizeof wanted, ranks[0] != '\0' ? "%s by ranks %s" : "%s world",
             weft_record_operation_name((enum weft_record_operation)operation), ranks);
    WORKS(weft_record_print(self->context, done, printed, sizeof printed, NULL));
    HOLDS(strcmp(printed, wanted) == 0);
}

static void check_creations(struct rank *self, const weft_mesh *mesh)
{
    weft_record_counts *counting = NULL;
    struct counted counts;
    weft_comm *part = NULL, *pair = NULL, *along = NULL;
    int32_t first = self->number & ~1, ranks[] = {first, first + 1};
    weft_symm *symm = NULL;

    WORKS(weft_record_counts_create(self->context, &counting));
    WORKS(weft_comm_split(self->world, self->number % 2, 0, NULL, &part));
    WORKS(weft_comm_create(self->world, 2, ranks, NULL, &pair));
    WORKS(weft_comm_along(self->world, mesh, "tp", NULL, &along));
    WORKS(
        weft_comm_along(self->world, mesh, "tp", NULL, &along)); /* does not wait, has no record */
    WORKS(weft_symm_create(self->world, 64, NULL, &symm));
    weft_symm_release(&symm);
    WORKS(weft_move_clear(self->context));
    WORKS(counts_take(counting, &counts));
    weft_comm_release(&pair);
    weft_comm_release(&part);
    expect_creation(self, WEFT_RECORD_CREATE, 1, "", "weft_comm_split");
    expect_creation(self, WEFT_RECORD_CREATE, 1, first == 0 ? "0-1" : "2-3", "weft_comm_create");
    expect_creation(self, WEFT_RECORD_CREATE, 2, "", "weft_comm_along");
    expect_creation(self, WEFT_RECORD_CREATE, 3, "", "weft_symm_create");
    expect_creation(self, WEFT_RECORD_RELEASE, 4, "", "weft_symm_release");
    expect_creation(self, WEFT_RECORD_RELEASE, 5, "", "weft_move_clear");
    HOLDS(self->next == self->count);
    HOLDS(counts.operations[WEFT_RECORD_CREATE] == 4 &&
          counts.operations[WEFT_RECORD_RELEASE] == 2);
    HOLDS(counts.axes_count == 0 && counts.sums.sent == 0 && counts.sums.failed == 0);
    for (int i = 0; i < WEFT_RECORD_OPERATION_COUNT; i++)
        HOLDS(i == WEFT_RECORD_CREATE || i == WEFT_RECORD_RELEASE || counts.operations[i] == 0);
}

/* ---- plans ---- */

struct specs {
    weft_mesh *mesh;
    weft_spec *rows, *columns, *whole;
};

static struct specs make_specs(struct rank *self)
{
    struct specs s = {NULL, NULL, NULL, NULL};

    WORKS(weft_mesh_parse("dp=2,tp=2", &s.mesh));
    WORKS(weft_spec_parse(s.mesh, "f32[64,64] S(0),R", &s.rows));
    WORKS(weft_spec_parse(s.mesh, "f32[64,64] R,S(1)", &s.columns));
    WORKS(weft_spec_parse(s.mesh, "f32[64,64] R,R", &s.whole));
    return s;
}

static void drop_specs(struct specs *s)
{
    weft_spec_release(&s->rows);
    weft_spec_release(&s->columns);
    weft_spec_release(&s->whole);
    weft_mesh_release(&s->mesh);
}

/* The next redistribution, with the steps of a plan from rows to columns. */
static void expect_run(struct rank *self, const char *label, uint8_t flags)
{
    const weft_record *run = NEXT(REDISTRIBUTES, WEFT_RECORD_REDISTRIBUTE), *step;
    static const uint8_t kinds[] = {WEFT_STEP_SLICE, WEFT_STEP_ALL_GATHER};
    static const char *const axes[] = {"tp", "dp"}, *const words[] = {"slice tp", "all-gather dp"};
    char printed[64];

    HOLDS((run->flags & WEFT_RECORD_CACHED) == flags && run->plan != 0 && run->binding != 0);
    HOLDS(run->sent == 8192 && run->received == 8192);
    HOLDS(label != NULL ? strcmp(text(self, run->label), label) == 0
                        : strstr(text(self, run->label), "S(0),R -> ") != NULL);
    for (int i = 0; i < 2; i++) {
        step = &self->seen[self->next++].record;
        HOLDS(self->seen[self->next - 1].event == SUBMITTED && step->step == i + 1);
        HOLDS(step->step_kind == kinds[i] && strcmp(text(self, step->axes), axes[i]) == 0);
        HOLDS(step->parent == (uint32_t)run->id && step->plan == run->plan);
        HOLDS(strcmp(text(self, step->label), label != NULL ? label : "") == 0);
        HOLDS((step->comm != 0) == (i == 1) && (step->sequence != 0) == (i == 1));
        WORKS(weft_record_print(self->context, step, printed, sizeof printed, NULL));
        HOLDS(strncmp(printed, words[i], strlen(words[i])) == 0);
        HOLDS(strcmp(printed + strlen(words[i]), " 8.0 KiB") == 0);
        if ((step->flags & WEFT_RECORD_ON_STREAM) == 0)
            HOLDS(self->seen[self->next++].record.id == step->id); /* it is finished */
    }
    if ((run->flags & WEFT_RECORD_ON_STREAM) == 0)
        HOLDS(NEXT(FINISHED, WEFT_RECORD_REDISTRIBUTE)->id == run->id);
}

static void check_moves(struct rank *self, const struct specs *s)
{
    weft_record_counts *counting = NULL;
    struct counted counts;
    const weft_record *record;

    WORKS(weft_record_counts_create(self->context, &counting));
    for (int i = 0; i < 3; i++)
        WORKS(move_one(self->context, s->rows, self->source, s->columns, self->target, NULL, NULL));
    WORKS(counts_take(counting, &counts));
    record = NEXT(PLANNED, WEFT_RECORD_PLAN);
    HOLDS((record->flags & WEFT_RECORD_CACHED) != 0 && record->plan != 0);
    HOLDS(NEXT(FINISHED, WEFT_RECORD_PLAN)->state == WEFT_RECORD_FINISHED);
    expect_run(self, NULL, 0);
    expect_run(self, NULL, WEFT_RECORD_CACHED);
    expect_run(self, NULL, WEFT_RECORD_CACHED);
    HOLDS(counts.sums.cache_hits == 2 && counts.sums.cache_misses == 1 &&
          counts.sums.implicit_moves == 0);
    HOLDS(counts.steps[WEFT_STEP_SLICE] == 3 && counts.steps[WEFT_STEP_ALL_GATHER] == 3);
    HOLDS(counts.operations[WEFT_RECORD_REDISTRIBUTE] == 3 &&
          counts.operations[WEFT_RECORD_PLAN] == 1);
}

/* Moves with equal layouts share a bound plan, and each has its own tensor's name. */
static void check_names(struct rank *self, const struct specs *s)
{
    static const struct {
        const char *tensor, *made_for, *label; /* NULL: the plan's */
    } moves[] = {{"wq", NULL, "wq"},
                 {"wk", NULL, "wk"},
                 {"wk", NULL, "wk"},
                 {"wk", "matmul", "matmul: wk"},
                 {"wq", "matmul", "matmul: wq"},
                 {NULL, "matmul", "matmul"},
                 {"wk", "mat", "mat: wk"},
                 {"wk", NULL, "wk"},
                 {NULL, NULL, NULL}};

    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        const weft_move_options options = {.struct_size = sizeof options,
                                           .made_for = moves[i].made_for};
        const weft_move_item item = {moves[i].tensor, s->rows, self->source, s->columns,
                                     self->target};

        WORKS(weft_move(self->context, 1, &item, sizeof item, &options, NULL, NULL));
        expect_run(self, moves[i].label, WEFT_RECORD_CACHED);
    }
}

/* The next move, of a batch, has LABEL, and a step of it has that of its tensor. */
static void expect_batch(struct rank *self, const weft_move_item *items,
                         const weft_move_options *options, const char *label, const char *second)
{
    const weft_record *run;
    bool found = false;

    WORKS(weft_move(self->context, 2, items, sizeof *items, options, NULL, NULL));
    run = NEXT(REDISTRIBUTES, WEFT_RECORD_REDISTRIBUTE);
    HOLDS(strcmp(text(self, run->label), label) == 0);
    for (; self->next + 1 < self->count; self->next++) {
        const weft_record *step = &self->seen[self->next].record;

        HOLDS(step->parent == (uint32_t)run->id);
        found = found || (strcmp(text(self, step->label), second) == 0 &&
                          step->step_kind == WEFT_STEP_SLICE);
    }
    HOLDS(found);
    HOLDS(NEXT(FINISHED, WEFT_RECORD_REDISTRIBUTE)->id == run->id);
}

static void check_batch(struct rank *self, const struct specs *s)
{
    weft_move_item items[] = {
        {"first", s->rows, self->source, s->columns, self->target},
        {"second", s->whole, self->source + 16384, s->rows, self->target + 16384}};
    const weft_move_options options = {.struct_size = sizeof options, .made_for = "linear"};
    const weft_record *run;
    const char *plan;
    int found = 0;

    WORKS(move_items(self->context, 2, items, NULL, NULL));
    (void)NEXT(PLANNED, WEFT_RECORD_PLAN);
    (void)NEXT(FINISHED, WEFT_RECORD_PLAN);
    run = NEXT(REDISTRIBUTES, WEFT_RECORD_REDISTRIBUTE);
    plan = text(self, run->label);
    for (; self->next + 1 < self->count; self->next++) {
        const weft_record *step = &self->seen[self->next].record;

        HOLDS(step->parent == (uint32_t)run->id);
        if (strcmp(text(self, step->label), "second") == 0 && step->step_kind == WEFT_STEP_SLICE)
            found = 1;
    }
    HOLDS(found);
    HOLDS(NEXT(FINISHED, WEFT_RECORD_REDISTRIBUTE)->id == run->id);
    expect_batch(self, items, &options, "linear", "linear: second");
    expect_batch(self, items, NULL, plan, "second");
}

/* All records since the last check are those of one run and its steps, and are finished. */
static void expect_finished(struct rank *self, int count)
{
    for (int i = 0; i < count; i++) {
        HOLDS(self->next < self->count && self->seen[self->next].event == FINISHED);
        HOLDS(self->seen[self->next].record.state == WEFT_RECORD_FINISHED);
        HOLDS((self->seen[self->next].record.flags & WEFT_RECORD_ON_STREAM) != 0);
        self->next++;
    }
    HOLDS(self->next == self->count);
}

static void check_streams(struct rank *self, const struct specs *s)
{
    weft_bind_options options = {.struct_size = sizeof options, .name = "W"};
    weft_bound *bound = NULL;
    weft_plan *plan = NULL;
    weft_stream *stream = NULL;
    weft_work *work = NULL;
    const weft_record *record;

    WORKS(weft_context_plan(self->context, s->rows, s->columns, NULL, &plan));
    WORKS(weft_plan_bind(plan, self->world, &options, &bound));
    HOLDS(strcmp(text(self, NEXT(PLANNED, WEFT_RECORD_PLAN)->label), "W") == 0);
    (void)NEXT(FINISHED, WEFT_RECORD_PLAN);
    WORKS(weft_stream_create(self->context, &stream));
    WORKS(weft_stream_set_name(self->context, stream, "copies"));
    WORKS(weft_all_reduce(self->world, self->source, self->target, 8, WEFT_DTYPE_F32,
                          WEFT_REDUCE_SUM, stream));
    record = NEXT(SUBMITTED, WEFT_RECORD_ALL_REDUCE);
    HOLDS((record->flags & WEFT_RECORD_ON_STREAM) != 0);
    HOLDS(record->stream == 1);
    WORKS(weft_redistribute(bound, self->source, self->target, stream, &work));
    expect_run(self, "W", 0);
    WORKS(weft_work_wait(work, WEFT_FOREVER));
    expect_finished(self, 4);
    weft_work_release(&work);
    WORKS(weft_redistribute(bound, self->source, self->target, stream, NULL));
    expect_run(self, "W", 0);
    WORKS(weft_context_wait(self->context, stream, WEFT_FOREVER));
    expect_finished(self, 3);
    HOLDS(weft_redistribute(bound, NULL, self->target, stream, NULL) == WEFT_ERR_INVALID);
    HOLDS(strncmp(weft_last_error(), "weft_redistribute: tensor W: ", 29) == 0);
    HOLDS(self->next == self->count); /* a refused call has no record */
    weft_stream_release(&stream);
    weft_bound_release(&bound);
    weft_plan_release(&plan);
}

/* ---- a failure ---- */

/* Rank 1 does not call the barrier; the others wait for it until the time limit.  The first of them
 * asks which rank is behind, and the others may get the error from it. */
static void check_failure(struct rank *self)
{
    weft_subcomm_options options = {
        .struct_size = sizeof options, .name = "late", .timeout_ns = 5000000000};
    int32_t *awaited = (int32_t *)(void *)self->source;
    weft_comm *comm = NULL;
    const weft_record *record;

    *awaited = -1;
    WORKS(weft_comm_split(self->world, 0, 0, &options, &comm));
    expect_creation(self, WEFT_RECORD_CREATE, 6, "", "weft_comm_split");
    if (self->number != 1) {
        HOLDS(weft_barrier(comm, NULL) != WEFT_OK);
        record = NEXT(SUBMITTED, WEFT_RECORD_BARRIER);
        HOLDS(strncmp(text(self, record->comm_name), "late", 4) == 0);
        record = NEXT(FINISHED, WEFT_RECORD_BARRIER);
        HOLDS(record->state == WEFT_RECORD_FAILED && record->finished == 0);
        HOLDS(record->status == WEFT_ERR_TIMEOUT && self->failure == WEFT_ERR_TIMEOUT);
        HOLDS(self->failures == 1 && (record->waits_for == -1 || record->waits_for == 1));
        *awaited = record->waits_for;
    }
    WORKS(weft_all_reduce(self->world, awaited, awaited, 1, WEFT_DTYPE_I32, WEFT_REDUCE_MAX, NULL));
    expect(self, WEFT_RECORD_ALL_REDUCE, 4, 4, -1);
    HOLDS(*awaited == 1);
    weft_comm_release(&comm);
}

/* ---- one rank ---- */

static weft_status run_rank(void *argument)
{
    weft_observer observer = {sizeof observer, NULL,       on_submitted,     NULL,
                              on_finished,     on_planned, on_redistributes, on_failed};
    struct rank *self = calloc(1, sizeof *self);
    weft_observation *observation = NULL;
    struct specs specs;
    void *memory[2];
    int failed;

    (void)argument;
    if (self == NULL) return weft_fail(WEFT_ERR_NO_MEMORY, "no memory");
    if (weft_init(NULL, &self->context) != WEFT_OK) return weft_fail(WEFT_ERR_INTERNAL, "no job");
    self->number = weft_rank(self->context);
    self->world = weft_world(self->context);
    observer.user = self;
    WORKS(weft_alloc(self->context, 65536, WEFT_MEMORY_DEVICE, &memory[0]));
    WORKS(weft_alloc(self->context, 65536, WEFT_MEMORY_DEVICE, &memory[1]));
    memset(memory[0], 0, 65536);
    self->source = memory[0];
    self->target = memory[1];
    specs = make_specs(self);
    WORKS(weft_observe(self->context, &observer, &observation));
    check_collectives(self);
    check_messages(self);
    check_creations(self, specs.mesh);
    check_moves(self, &specs);
    check_names(self, &specs);
    check_batch(self, &specs);
    check_streams(self, &specs);
    check_failure(self);
    HOLDS(self->next == self->count);
    weft_observation_release(&observation);
    drop_specs(&specs);
    WORKS(weft_free(self->context, memory[0]));
    WORKS(weft_free(self->context, memory[1]));
    weft_context_release(&self->context);
    failed = self->failed;
    free(self);
    return failed ? weft_fail(WEFT_ERR_INTERNAL, "a claim does not hold") : WEFT_OK;
}

int main(int argc, char **argv)
{
    weft_status status = argc > 2 && strcmp(argv[1], "--threads") == 0
                             ? weft_threads_run(atoi(argv[2]), run_rank, NULL)
                             : run_rank(NULL);

    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
