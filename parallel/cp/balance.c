/* balance.c - which indices of the sequence each coordinate holds. */
#include "cp.h"

#include <stdlib.h>

/* The runs of a plan under construction. */
struct builder {
    weft_cp_plan *plan;
    size_t room;
    int64_t position; /* indices of the coordinate so far */
};

int64_t wf_cp_held(const weft_cp_plan *plan, int32_t coordinate)
{
    size_t first = plan->first_run[coordinate], end = plan->first_run[coordinate + 1];

    return end == first ? 0 : plan->runs[end - 1].position + plan->runs[end - 1].length;
}

static void begin_coordinate(struct builder *b, int32_t coordinate)
{
    b->plan->first_run[coordinate] = b->plan->run_count;
    b->position = 0;
}

/* Append indices [START, END) to the current coordinate. */
static weft_status add(struct builder *b, int32_t coordinate, int64_t start, int64_t end)
{
    weft_cp_plan *plan = b->plan;
    struct wf_cp_run *last =
        plan->run_count > plan->first_run[coordinate] ? &plan->runs[plan->run_count - 1] : NULL;

    if (start >= end) return WEFT_OK;
    if (last != NULL && last->start + last->length == start) {
        last->length += end - start;
    } else {
        WF_TRY(wf_grow(&plan->runs, sizeof *plan->runs, plan->run_count, &b->room));
        plan->runs[plan->run_count++] = (struct wf_cp_run){start, end - start, b->position};
    }
    b->position += end - start;
    return WEFT_OK;
}

/* Chunk INDEX of [START, END) cut into COUNT chunks of equal sizes, rounded up. */
static weft_status add_chunk(struct builder *b, int32_t coordinate, int64_t start, int64_t end,
                             int64_t count, int64_t index)
{
    int64_t size = (end - start) / count + ((end - start) % count != 0);
    int64_t first = size == 0 || index > (end - start) / size ? end : start + index * size;

    return add(b, coordinate, first, first + wf_min_i64(size, end - first));
}

static weft_status head_tail(struct builder *b, int32_t coordinate, int64_t start, int64_t end,
                             int32_t pair)
{
    int64_t chunks = 2 * (int64_t)b->plan->ranks;

    WF_TRY(add_chunk(b, coordinate, start, end, chunks, pair));
    return add_chunk(b, coordinate, start, end, chunks, chunks - 1 - pair);
}

static weft_status per_document(struct builder *b, int32_t coordinate)
{
    const weft_cp_plan *plan = b->plan;
    int64_t chunks = 2 * (int64_t)plan->ranks;
    int32_t turned = 0;

    for (size_t d = 0; d < plan->document_count; d++) {
        int64_t start = plan->documents[d], end = plan->documents[d + 1];
        bool even = (end - start) % chunks == 0;
        int32_t pair = even ? coordinate : (coordinate + plan->ranks - turned) % plan->ranks;

        WF_TRY(head_tail(b, coordinate, start, end, pair));
        if (!even) turned = (turned + 1) % plan->ranks;
    }
    return WEFT_OK;
}

/* ---- by blocks ---- */

struct row {
    int64_t index;
    size_t blocks;
};

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->blocks != y->blocks) return x->blocks > y->blocks ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int compare_indices(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static weft_status add_rows(struct builder *b, const struct row *rows, int64_t count, int64_t *mine)
{
    const weft_cp_plan *plan = b->plan;
    int64_t ranks = plan->ranks, size = plan->block_length;

    for (int32_t c = 0; c < plan->ranks; c++) {
        size_t held = 0;

        for (int64_t deal = 0; deal * ranks < count; deal++) {
            int64_t at = deal * ranks + (deal % 2 == 0 ? c : ranks - 1 - c);
            if (at < count) mine[held++] = rows[at].index;
        }
        qsort(mine, held, sizeof *mine, compare_indices);
        begin_coordinate(b, c);
        for (size_t i = 0; i < held; i++)
            WF_TRY(add(b, c, mine[i] * size,
                       wf_min_i64(plan->length - mine[i] * size, size) + mine[i] * size));
    }
    return WEFT_OK;
}

static weft_status by_blocks(struct builder *b)
{
    const weft_cp_plan *plan = b->plan;
    int64_t count = plan->length / plan->block_length + (plan->length % plan->block_length != 0);
    struct row *rows = wf_calloc((size_t)count, sizeof *rows);
    int64_t *mine = wf_calloc((size_t)count, sizeof *mine);
    weft_status status = WEFT_OK;

    if (rows == NULL || mine == NULL) status = wf_fail_memory((size_t)count * sizeof *rows);
    for (int64_t i = 0; i < count && status == WEFT_OK; i++)
        rows[i] = (struct row){i, wf_cp_first_block(plan, i + 1) - wf_cp_first_block(plan, i)};
    if (status == WEFT_OK) {
        qsort(rows, (size_t)count, sizeof *rows, compare_rows);
        status = add_rows(b, rows, count, mine);
    }
    wf_free(rows);
    wf_free(mine);
    return status;
}

/* ---- permuted ---- */

static weft_status check_order(const weft_cp_plan *plan, const int64_t *order)
{
    uint8_t *seen = wf_calloc((size_t)plan->length, 1);
    weft_status status = WEFT_OK;

    if (seen == NULL) return wf_fail_memory((size_t)plan->length);
    for (int64_t i = 0; i < plan->length && status == WEFT_OK; i++) {
        if (order[i] < 0 || order[i] >= plan->length || seen[order[i]])
            status = wf_fail(
                WEFT_ERR_INVALID, "weft_cp_plan_create: order[%lld] is %lld, which is %s",
                (long long)i, (long long)order[i],
                order[i] < 0 || order[i] >= plan->length ? "not an index" : "listed before");
        else
            seen[order[i]] = 1;
    }
    wf_free(seen);
    return status;
}

static weft_status permuted(struct builder *b, int32_t coordinate, const int64_t *order)
{
    int64_t length = b->plan->length, ranks = b->plan->ranks;
    int64_t size = length / ranks + (length % ranks != 0);

    for (int64_t i = coordinate * size; i < wf_min_i64(length, (coordinate + 1) * size); i++)
        WF_TRY(add(b, coordinate, order[i], order[i] + 1));
    return WEFT_OK;
}

weft_status wf_cp_balance(weft_cp_plan *plan, const int64_t *order)
{
    struct builder b = {.plan = plan};

    plan->first_run = wf_calloc((size_t)plan->ranks + 1, sizeof *plan->first_run);
    if (plan->first_run == NULL)
        return wf_fail_memory(((size_t)plan->ranks + 1) * sizeof *plan->first_run);
    WF_TRY(wf_grow(&plan->runs, sizeof *plan->runs, 0, &b.room));
    if (order != NULL) WF_TRY(check_order(plan, order));
    if (plan->balance == WEFT_CP_BY_BLOCKS) WF_TRY(by_blocks(&b));
    for (int32_t c = 0; c < plan->ranks && plan->balance != WEFT_CP_BY_BLOCKS; c++) {
        begin_coordinate(&b, c);
        if (plan->balance == WEFT_CP_HEAD_TAIL)
            WF_TRY(head_tail(&b, c, 0, plan->length, c));
        else if (plan->balance == WEFT_CP_PER_DOCUMENT)
            WF_TRY(per_document(&b, c));
        else if (plan->balance == WEFT_CP_PERMUTED)
            WF_TRY(permuted(&b, c, order));
        else
            WF_TRY(add_chunk(&b, c, 0, plan->length, plan->ranks, c));
    }
    plan->first_run[plan->ranks] = plan->run_count;
    return WEFT_OK;
}
