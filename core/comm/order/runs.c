/* runs.c - the order in which bound plans run on a communicator, compared with another rank's. */
#include "comm/position.h"
#include "order.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* How long a run lasts before this rank asks.  Every later question waits twice as long, up to
 * MAX_GAP_NS. */
#define FIRST_GAP_NS (UINT64_C(1) * WF_SECOND_NS)
#define MAX_GAP_NS   (UINT64_C(64) * WF_SECOND_NS)
#define ASKED        16 /* ranks at a time */
#define LOOKS        1000
#define NOTES        WF_RUNS_NOTES

/* ---- the list ---- */

void wf_runs_add(weft_comm *comm, struct wf_plan_runs *plan)
{
    weft_context *context = comm->context;

    pthread_mutex_lock(&context->lock);
    plan->next = comm->runs.list;
    comm->runs.list = plan;
    pthread_mutex_unlock(&context->lock);
    if (context->client != NULL && comm->size > 1) wf_client_watch(context->client);
}

void wf_runs_remove(weft_comm *comm, struct wf_plan_runs *plan)
{
    struct wf_plan_runs **at = &comm->runs.list;

    pthread_mutex_lock(&comm->context->lock);
    while (*at != NULL && *at != plan)
        at = &(*at)->next;
    if (*at != NULL) *at = plan->next;
    pthread_mutex_unlock(&comm->context->lock);
}

/* ---- counts ---- */

static uint64_t load(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_acquire);
}

/* The plan that has begun last. */
static struct wf_plan_runs *find_last(const struct wf_runs *runs)
{
    struct wf_plan_runs *found = NULL;

    for (struct wf_plan_runs *plan = runs->list; plan != NULL; plan = plan->next)
        if (load(&plan->last) > 0 && (found == NULL || load(&plan->last) > load(&found->last)))
            found = plan;
    return found;
}

/* The number of runs whose order is known.  *FIRST: the oldest of them, from 0. */
static uint32_t count_notes(const struct wf_runs *runs, uint64_t *first)
{
    uint64_t noted = load(&runs->noted);

    *first = noted > NOTES ? noted - NOTES : 0;
    return (uint32_t)(noted - *first);
}

/* The recent runs, the oldest first. */
static void put_notes(const struct wf_runs *runs, struct wf_text *out)
{
    uint64_t first;
    uint32_t count = count_notes(runs, &first);

    wf_put_u32(out, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct wf_run_note *note = &runs->recent[(first + i) % WF_RUNS_RECENT];

        wf_put_u32(out, atomic_load_explicit(&note->binding, memory_order_acquire));
        wf_put_u64(out, load(&note->number));
        wf_put_u64(out, load(&note->collectives));
    }
}

static void put_counts(weft_comm *comm, struct wf_text *out)
{
    const struct wf_plan_runs *last = find_last(&comm->runs);

    wf_put_u64(out, load(&comm->collectives));
    wf_put_u32(out, last != NULL ? last->binding : 0);
    wf_put_u32(out, last != NULL ? atomic_load_explicit(&last->step, memory_order_relaxed) : 0);
    put_notes(&comm->runs, out);
    for (const struct wf_plan_runs *plan = comm->runs.list; plan != NULL; plan = plan->next) {
        wf_put_u32(out, plan->binding);
        wf_put_u64(out, load(&plan->begun));
    }
}

/* Add the counts of one consistent state.  Adds nothing, and returns false, if plans begin all the
 * time: this rank then does not wait. */
static bool put_state(weft_comm *comm, struct wf_text *out)
{
    for (int i = 0; i < LOOKS; i++) {
        uint64_t settled = load(&comm->runs.settled);
        size_t before = out->length;

        put_counts(comm, out);
        if (load(&comm->runs.begun) == settled) return true;
        out->length = before;
    }
    return false;
}

void wf_runs_report(weft_comm *comm, struct wf_text *out)
{
    struct wf_text counts = {0};

    if (put_state(comm, &counts) && !counts.failed)
        wf_put_blob(out, counts.data, counts.length);
    else
        wf_put_blob(out, "", 0);
    wf_text_free(&counts);
}

void wf_runs_describe_last(weft_comm *comm, const char *stream, char *out, size_t bytes)
{
    const weft_comm *whole = comm->owner != NULL && !comm->fails_alone ? comm->owner : comm;
    const struct wf_plan_runs *last, *moved;
    size_t used;

    pthread_mutex_lock(&comm->context->lock);
    last = find_last(&whole->runs);
    /* Moves among some ranks of WHOLE are noted with a group of it. */
    for (const weft_comm *group = whole->groups; group != NULL; group = group->next_group) {
        moved = find_last(&group->runs);
        if (moved != NULL && atomic_load_explicit(&moved->group, memory_order_relaxed) == comm)
            last = moved;
    }
    snprintf(out, bytes, "work on %s%s", stream[0] != '\0' ? "stream " : "a stream", stream);
    used = strlen(out);
    if (last != NULL) {
        bool is_named = last->name != NULL && last->name[0] != '\0';

        snprintf(out + used, bytes - used, ", last started by %s: %s%.100s%s%s: step %u",
                 last->function, is_named ? "tensor " : "", is_named ? last->name : "",
                 is_named ? ": " : "", last->text,
                 atomic_load_explicit(&last->step, memory_order_relaxed));
    }
    pthread_mutex_unlock(&comm->context->lock);
}

/* ---- when to ask ---- */

/* True if a run on COMM seems to wait and the next question is due.  Whether work on a stream waits
 * is unknown, so the time between questions grows. */
static bool is_due(weft_comm *comm, uint64_t now_ns)
{
    struct wf_runs *runs = &comm->runs;
    uint64_t begun = load(&runs->begun);

    if (begun != runs->seen) {
        runs->seen = begun;
        runs->asked = 0;
        runs->gap_ns = FIRST_GAP_NS;
        runs->next_ns = now_ns + runs->gap_ns;
        return false;
    }
    if (begun == 0 || begun == load(&runs->done) || now_ns < runs->next_ns ||
        atomic_load_explicit(&comm->cause, memory_order_relaxed) != WEFT_OK)
        return false;
    if (runs->gap_ns < MAX_GAP_NS) runs->gap_ns *= 2;
    runs->next_ns = now_ns + runs->gap_ns;
    return true;
}

/* The ranks that this one waits for are in the group of its step.  In a large group, every question
 * goes to other ranks, so that a slow rank of a large job does not make all ask all. */
static bool choose_ranks(weft_comm *comm, struct wf_question *out)
{
    const struct wf_plan_runs *last = find_last(&comm->runs);
    const weft_comm *group = comm;
    int32_t others;

    if (last == NULL) return false;
    if (comm->size > ASKED && atomic_load_explicit(&last->group, memory_order_relaxed) != NULL)
        group = atomic_load_explicit(&last->group, memory_order_relaxed);
    others = group->size - 1;
    out->comm = comm->number;
    out->count = others < ASKED ? others : ASKED;
    out->ranks = wf_alloc((size_t)out->count * sizeof *out->ranks + 1);
    if (out->ranks == NULL) return false;
    for (int32_t i = 0; i < out->count; i++)
        out->ranks[i] =
            group->world_ranks[(group->rank + 1 +
                                (int32_t)((comm->runs.asked + (uint64_t)i) % (uint64_t)others)) %
                               group->size];
    comm->runs.asked += (uint64_t)out->count;
    return out->count > 0;
}

bool wf_runs_watch(void *self, struct wf_question *out)
{
    weft_context *context = self;
    uint64_t now_ns = wf_now_ns();
    bool asks = false;

    pthread_mutex_lock(&context->lock);
    for (weft_comm *comm = context->comms; comm != NULL && !asks; comm = comm->next)
        if (comm->size > 1 && comm->runs.list != NULL && is_due(comm, now_ns))
            asks = choose_ranks(comm, out);
    pthread_mutex_unlock(&context->lock);
    return asks;
}

/* ---- evaluation of the answers ---- */

static const struct wf_plan_runs *find_binding(const weft_comm *comm, uint32_t binding)
{
    const struct wf_plan_runs *plan = comm->runs.list;

    while (plan != NULL && plan->binding != binding)
        plan = plan->next;
    return plan;
}

/* A run on one rank.  Of two runs with different places, the one with the smaller place begins
 * first.  A run with place 0 has begun before all whose order is known. */
#define NOT_BEGUN UINT32_MAX
struct side {
    uint32_t place;
    uint64_t collectives; /* posted before the run; at least, if it has not begun */
};

/* A run of a plan that both ranks run. */
struct item {
    const struct wf_plan_runs *plan;
    uint64_t number;
    struct side mine, theirs;
};

struct items {
    uint32_t count;
    struct item list[2 * NOTES];
};

/* The item of run NUMBER of BINDING, which is added if it is new.  NULL: not both ranks run it. */
static struct item *find_item(const weft_comm *comm, const struct wf_runs_answer *answer,
                              struct items *items, uint32_t binding, uint64_t number)
{
    const struct wf_plan_runs *plan = find_binding(comm, binding);
    struct item *item = items->list;
    uint64_t theirs;

    if (plan == NULL || !wf_order_count(&answer->counts, binding, &theirs)) return NULL;
    for (; item < items->list + items->count; item++)
        if (item->plan == plan && item->number == number) return item;
    items->count++;
    *item = (struct item){plan, number, {0, 0}, {0, answer->collectives}};
    item->mine.collectives = load(&comm->collectives);
    item->mine.place = load(&plan->begun) >= number ? 0 : NOT_BEGUN;
    item->theirs.place = theirs >= number ? 0 : NOT_BEGUN;
    return item;
}

/* All runs whose order one of the ranks knows. */
static void list_items(const weft_comm *comm, const struct wf_runs_answer *answer,
                       struct items *out)
{
    struct wf_reader reader = answer->notes;
    uint64_t first;
    uint32_t count = count_notes(&comm->runs, &first);

    for (uint32_t i = 0; i < count; i++) {
        const struct wf_run_note *note = &comm->runs.recent[(first + i) % WF_RUNS_RECENT];
        uint32_t binding = atomic_load_explicit(&note->binding, memory_order_acquire);
        struct item *item = find_item(comm, answer, out, binding, load(&note->number));

        if (item != NULL) item->mine = (struct side){i + 1, load(&note->collectives)};
    }
    for (uint32_t i = 0; i < answer->note_count; i++) {
        uint32_t binding = wf_take_u32(&reader);
        uint64_t number = wf_take_u64(&reader), collectives = wf_take_u64(&reader);
        struct item *item = find_item(comm, answer, out, binding, number);

        if (item != NULL) item->theirs = (struct side){i + 1, collectives};
    }
}

/* True if ONE has begun the run before a collective that OTHER has posted before the run. */
static bool precedes(const struct side *one, const struct side *other)
{
    return one->place != 0 && one->place != NOT_BEGUN && other->place != 0 &&
           one->collectives < other->collectives;
}

/* Two operations that the ranks have begun in different orders.  Without a second plan, it is the
 * communicator's collectives. */
struct swap {
    const struct wf_plan_runs *mine, *theirs;
    bool found;
};

/* The oldest run of this rank that the other rank has swapped with another, or with collectives. */
static struct swap find_swap(const weft_comm *comm, const struct wf_runs_answer *answer)
{
    struct items *items = wf_calloc(1, sizeof *items);
    struct swap swap = {NULL, NULL, false};

    if (items == NULL) return swap;
    list_items(comm, answer, items);
    for (const struct item *a = items->list; a < items->list + items->count; a++) {
        for (const struct item *b = items->list; b < items->list + items->count; b++)
            if (!swap.found && a->mine.place < b->mine.place && a->theirs.place > b->theirs.place)
                swap = (struct swap){a->plan, b->plan, true};
        if (!swap.found && (precedes(&a->mine, &a->theirs) || precedes(&a->theirs, &a->mine)))
            swap = (struct swap){a->plan, NULL, true};
    }
    wf_free(items);
    return swap;
}

static void add_run(struct wf_text *out, int32_t rank, const struct wf_plan_runs *plan,
                    uint32_t step)
{
    wf_text_add(out, "rank %d runs ", rank);
    if (step > 0) wf_text_add(out, "step %u of ", step);
    wf_text_add(out, "plan %016llx (binding %u): %s", (unsigned long long)plan->digest,
                plan->binding, plan->text);
}

/* True if the other rank has not begun LAST, the last run of this rank.  If it no longer has the
 * plan, its own last run decides: all runs after LAST are unknown here. */
static bool is_behind(const weft_comm *comm, const struct wf_runs_answer *answer,
                      const struct wf_plan_runs *last)
{
    const struct wf_plan_runs *newest;
    struct wf_reader notes = answer->notes;
    uint64_t begun, number = 0;
    uint32_t binding = 0;

    if (wf_order_count(&answer->counts, last->binding, &begun)) return begun < load(&last->begun);
    for (uint32_t i = 0; i < answer->note_count; i++) {
        binding = wf_take_u32(&notes);
        number = wf_take_u64(&notes);
        (void)wf_take_u64(&notes);
    }
    newest = find_binding(comm, binding);
    return last->is_for_all &&
           (answer->note_count == 0 || (newest != NULL && number <= load(&newest->begun) &&
                                        !(newest == last && number == load(&last->begun))));
}

/* The other rank may wait for this one in a step, before the run in which this one waits.  If that
 * run has begun since the question, the other rank may have waited for this one to come to it. */
static void compare_step(const weft_comm *comm, const struct wf_runs_answer *answer,
                         struct wf_text *out)
{
    const struct wf_plan_runs *last = find_last(&comm->runs);

    if (load(&comm->runs.begun) != comm->runs.seen) return;
    if (answer->waits_in[0] == '\0' || last == NULL || !is_behind(comm, answer, last)) return;
    wf_text_add(out, "%s on %s: ", last->function, comm->name);
    add_run(out, comm->context->rank, last,
            atomic_load_explicit(&last->step, memory_order_relaxed));
    wf_text_add(out, "; rank %d is at %s; all ranks must bind and run plans in the same order",
                answer->rank, answer->waits_in);
}

/* Compare this rank's counts with ANSWER.  OUT gets a text if the orders differ. */
static void compare(const weft_comm *comm, const struct wf_runs_answer *answer, struct wf_text *out)
{
    struct swap swap = find_swap(comm, answer);

    if (!swap.found) {
        compare_step(comm, answer, out);
        return;
    }
    wf_text_add(out, "weft_redistribute on %s: ", comm->name);
    add_run(out, comm->context->rank, swap.mine,
            atomic_load_explicit(&swap.mine->step, memory_order_relaxed));
    wf_text_add(out, "; ");
    if (swap.theirs != NULL)
        add_run(out, answer->rank, swap.theirs,
                swap.theirs->binding == answer->binding ? answer->step : 0);
    else
        wf_text_add(out, "rank %d is at collective %llu of the communicator, rank %d at %llu",
                    answer->rank, (unsigned long long)answer->collectives, comm->context->rank,
                    (unsigned long long)load(&comm->collectives));
    wf_text_add(out, "; all ranks must run bound plans in the same order");
}

/* No two ranks differ: compare all of them together. */
static void compare_together(weft_comm *comm, const struct wf_question *question,
                             const struct wf_gathered *answers, struct wf_text *out)
{
    struct wf_order *orders = wf_calloc((size_t)question->count + 1, sizeof *orders);
    struct wf_text mine = {0}, circle = {0};
    struct wf_runs_answer answer;
    int32_t count = 0;

    wf_position_put(comm, comm->context->rank, &mine);
    if (orders != NULL && !mine.failed &&
        wf_runs_answer_read((weft_blob){mine.data, mine.length}, comm->context->rank, &answer))
        wf_order_set(&answer, &orders[count++]);
    for (int32_t i = 0; count > 0 && i < answers->count && i < question->count; i++)
        if (wf_runs_answer_read(answers->blobs[i], question->ranks[i], &answer))
            wf_order_set(&answer, &orders[count++]);
    if (count > 2) wf_order_merge(orders, count, &circle);
    if (circle.length > 0 && !circle.failed)
        wf_text_add(out,
                    "weft_redistribute on %s: %s; all ranks must run bound plans in the same "
                    "order",
                    comm->name, circle.data);
    wf_text_free(&circle);
    wf_text_free(&mine);
    wf_free(orders);
}

static weft_comm *find_comm(const weft_context *context, uint64_t number)
{
    weft_comm *comm = context->comms;

    while (comm != NULL && comm->number != number)
        comm = comm->next;
    return comm;
}

/* Compare with every answer until one differs.  Then OUT gets the text. */
static void compare_all(weft_comm *comm, const struct wf_question *question,
                        const struct wf_gathered *answers, struct wf_text *out)
{
    uint64_t settled = load(&comm->runs.settled);
    struct wf_runs_answer answer;

    for (int32_t i = 0; i < answers->count && i < question->count && out->length == 0; i++)
        if (wf_runs_answer_read(answers->blobs[i], question->ranks[i], &answer))
            compare(comm, &answer, out);
    if (out->length == 0 && answers->count > 1) compare_together(comm, question, answers, out);
    if (load(&comm->runs.begun) != settled || out->failed || /* a run has begun meanwhile */
        atomic_load_explicit(&comm->cause, memory_order_relaxed) != WEFT_OK)
        wf_text_free(out);
}

/* Report TEXT to RANKS, then fail communicator NUMBER here.  The program may release its context as
 * soon as it sees the failure, and the others must get the report before they see it depart.  This
 * is the client's thread, which cannot wait for the server's reply; frames arrive in order. */
static void report_mismatch(weft_context *context, uint64_t number, const int32_t *ranks,
                            int32_t count, const char *text)
{
    weft_comm *comm;

    if (context->client != NULL)
        wf_client_abort(context->client, number, ranks, count, WEFT_ERR_MISMATCH, text);
    pthread_mutex_lock(&context->lock);
    comm = find_comm(context, number);
    if (comm != NULL) wf_comm_fail_locked(comm, WEFT_ERR_MISMATCH, text);
    pthread_mutex_unlock(&context->lock);
}

void wf_runs_receive(void *self, const struct wf_question *question,
                     const struct wf_gathered *answers)
{
    weft_context *context = self;
    struct wf_text text = {0};
    int32_t *ranks = NULL, count = 0;
    weft_comm *comm;

    pthread_mutex_lock(&context->lock);
    comm = find_comm(context, question->comm);
    if (comm != NULL) compare_all(comm, question, answers, &text);
    if (text.length > 0) {
        count = comm->size;
        ranks = wf_alloc((size_t)count * sizeof *ranks);
        for (int32_t i = 0; ranks != NULL && i < count; i++)
            ranks[i] = comm->world_ranks[i];
    }
    pthread_mutex_unlock(&context->lock);
    if (ranks != NULL) report_mismatch(context, question->comm, ranks, count, text.data);
    wf_free(ranks);
    wf_text_free(&text);
}
