/* collectives.c - all collectives in one scheme.
 *
 * Every rank publishes its data to all ranks, one chunk at a time, and each rank copies its part of
 * every chunk.  A collective is described by its shape: which ranks send, which receive, and
 * whether the data has one part per peer. */
#include "example.h"
#include "kit/collective.h"

#include <stddef.h>
#include <string.h>

struct shape {
    bool reduces, varied;
    bool one_source, one_target;
    bool split_send, split_recv;
};

/* In a barrier no rank sends or receives. */
static struct shape shape_of(uint32_t collective)
{
    uint32_t needs = kit_collective_needs(collective);

    return (struct shape){.reduces = (needs & KIT_REDUCES) != 0,
                          .varied = (needs & (KIT_SEND_ARRAYS | KIT_RECV_ARRAYS)) != 0,
                          .one_source = (needs & KIT_SEND) == 0,
                          .one_target = (needs & KIT_RECV) == 0,
                          .split_send = (needs & KIT_SPLIT_SEND) != 0,
                          .split_recv = (needs & KIT_SPLIT_RECV) != 0};
}

/* A part of a buffer, in bytes. */
struct part {
    uint64_t offset, bytes;
};

/* One rank's view of one collective. */
struct work {
    struct example_comm *comm;
    const weft_collective_args *args;
    struct shape shape;
    uint64_t element;
    bool sends, receives;
    const uint8_t *send;
    struct part send_parts[EXAMPLE_MAX_RANKS], recv_parts[EXAMPLE_MAX_RANKS];
};

weft_status example_support(void *device, const weft_support_query *query, uint32_t *level)
{
    (void)device;
    *level = WEFT_SUPPORT_NO;
    if (query->collective >= WEFT_COLL_COUNT || query->dtype >= WEFT_DTYPE_COUNT) return WEFT_OK;
    if (query->size < 1 || query->size > EXAMPLE_MAX_RANKS) return WEFT_OK;
    if (!shape_of(query->collective).reduces ||
        kit_reduction_defined(query->reduction, query->dtype))
        *level = WEFT_SUPPORT_NATIVE;
    return WEFT_OK;
}

/* ---- checks ---- */

static void set_parts(struct work *work)
{
    const weft_collective_args *args = work->args;
    uint64_t even = args->count * work->element;

    for (int32_t i = 0; i < work->comm->size; i++) {
        struct part *send = &work->send_parts[i], *recv = &work->recv_parts[i];
        uint64_t at = (uint64_t)i * even;

        *send = (struct part){work->shape.split_send ? at : 0, even};
        *recv = (struct part){work->shape.split_recv ? at : 0, even};
        if (work->shape.varied && work->shape.split_send && work->sends)
            *send = (struct part){args->send_offsets[i] * work->element,
                                  args->send_counts[i] * work->element};
        if (work->shape.varied && work->shape.split_recv && work->receives)
            *recv = (struct part){args->recv_offsets[i] * work->element,
                                  args->recv_counts[i] * work->element};
    }
    if (args->collective == WEFT_COLL_ALL_GATHER_V)
        work->send_parts[0].bytes = work->recv_parts[work->comm->rank].bytes;
}

static uint64_t sum_of(const struct part *parts, int32_t count)
{
    uint64_t sum = 0;

    for (int32_t i = 0; i < count; i++)
        sum += parts[i].bytes;
    return sum;
}

static int32_t send_part_count(const struct work *work)
{
    if (!work->sends) return 0;
    return work->shape.split_send ? work->comm->size : 1;
}

static weft_status check(struct work *work)
{
    const weft_collective_args *args = work->args;
    int32_t size = work->comm->size, rank = work->comm->rank;
    bool rooted = work->shape.one_source || work->shape.one_target;
    bool arrays = work->shape.varied;

    if (args->dtype >= WEFT_DTYPE_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is not known", args->dtype);
    if (work->shape.reduces && !kit_reduction_defined(args->reduction, args->dtype))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "reduction %u is not defined on dtype %u",
                         args->reduction, args->dtype);
    if (rooted && args->collective != WEFT_COLL_BARRIER && (args->root < 0 || args->root >= size))
        return plug_fail(WEFT_ERR_INVALID, "root %d of %d ranks", args->root, size);
    work->element = kit_dtype_bytes(args->dtype);
    work->sends = !work->shape.one_source || args->root == rank;
    work->receives = !work->shape.one_target || args->root == rank;
    if (arrays && ((work->shape.split_send && work->sends && args->send_counts == NULL) ||
                   (work->shape.split_send && work->sends && args->send_offsets == NULL) ||
                   (work->shape.split_recv && work->receives && args->recv_counts == NULL) ||
                   (work->shape.split_recv && work->receives && args->recv_offsets == NULL)))
        return plug_fail(WEFT_ERR_INVALID, "counts or offsets are NULL");
    if (work->shape.reduces && args->reduction == WEFT_REDUCE_PREMUL_SUM && args->scale == NULL)
        return plug_fail(WEFT_ERR_INVALID, "premul_sum needs a scale, but scale is NULL");
    set_parts(work);
    if (args->collective == WEFT_COLL_BARRIER) work->sends = work->receives = false;
    if (work->sends && args->send == NULL && sum_of(work->send_parts, send_part_count(work)) > 0)
        return plug_fail(WEFT_ERR_INVALID, "send is NULL");
    if (work->receives && args->recv == NULL && work->recv_parts[rank].bytes > 0)
        return plug_fail(WEFT_ERR_INVALID, "recv is NULL");
    return WEFT_OK;
}

/* ---- publishing and receiving ---- */

static void write_note(const struct work *work)
{
    struct example_note *note = example_next_note(work->comm);

    note->collective = work->args->collective;
    note->dtype = work->args->dtype;
    note->reduction = work->args->reduction;
    note->root = work->args->root;
    note->plan = work->args->plan;
    note->binding = work->args->binding;
    note->step = work->args->step;
    note->divisor = work->args->divisor;
    note->unused = 0;
    note->total = 0;
    for (int32_t i = 0; i < send_part_count(work); i++) {
        note->parts[i] = work->send_parts[i].bytes;
        note->total += note->parts[i];
    }
}

/* Copy bytes [low, high) of this rank's parts into its chunk.  For premul_sum the data is
 * multiplied by this rank's factor. */
static void show(const struct work *work, uint64_t low, uint64_t high)
{
    uint8_t *chunk = work->comm->segment->seats[work->comm->rank].chunk;
    uint64_t start = 0;

    for (int32_t i = 0; i < send_part_count(work); i++) {
        const struct part *part = &work->send_parts[i];
        uint64_t from = start > low ? start : low;
        uint64_t to = start + part->bytes < high ? start + part->bytes : high;
        if (from < to) {
            memcpy(chunk + (from - low), work->send + part->offset + (from - start), to - from);
            if (work->shape.reduces && work->args->reduction == WEFT_REDUCE_PREMUL_SUM)
                example_scale(work->args->dtype, (to - from) / work->element, work->args->scale,
                              chunk + (from - low));
        }
        start += part->bytes;
    }
}

/* Offset and length of the part for this rank in SOURCE's data. */
static struct part part_for_me(const struct work *work, int32_t source)
{
    const struct example_note *note = example_note_of(work->comm, source);
    int32_t index = work->shape.split_send ? work->comm->rank : 0;
    struct part part = {0};

    if (note->total == 0) return part;
    for (int32_t i = 0; i < index; i++)
        part.offset += note->parts[i];
    part.bytes = note->parts[index];
    return part;
}

static void take_moved(const struct work *work, int32_t source, uint64_t low, uint64_t high)
{
    struct part part = part_for_me(work, source);
    uint64_t from = part.offset > low ? part.offset : low;
    uint64_t to = part.offset + part.bytes < high ? part.offset + part.bytes : high;
    const uint8_t *chunk = work->comm->segment->seats[source].chunk;
    uint64_t target = work->shape.split_recv ? work->recv_parts[source].offset : 0;

    if (from < to)
        memcpy((uint8_t *)work->args->recv + target + (from - part.offset), chunk + (from - low),
               to - from);
}

static void take_reduced(const struct work *work, uint64_t low, uint64_t high)
{
    struct part part = part_for_me(work, work->comm->rank);
    uint64_t from = part.offset > low ? part.offset : low;
    uint64_t to = part.offset + part.bytes < high ? part.offset + part.bytes : high;
    const void *sources[EXAMPLE_MAX_RANKS];

    if (from >= to) return;
    for (int32_t i = 0; i < work->comm->size; i++)
        sources[i] = work->comm->segment->seats[i].chunk + (from - low);
    example_reduce(work->args->dtype, work->args->reduction, work->args->divisor,
                   (to - from) / work->element, (uint32_t)work->comm->size, sources,
                   (uint8_t *)work->args->recv + (from - part.offset));
}

static weft_status show_and_take(const struct work *work)
{
    struct example_comm *comm = work->comm;
    uint64_t longest = 0;
    weft_status status;

    for (int32_t i = 0; i < comm->size; i++)
        if (example_note_of(comm, i)->total > longest) longest = example_note_of(comm, i)->total;
    for (uint64_t low = 0; low < longest; low += EXAMPLE_CHUNK) {
        show(work, low, low + EXAMPLE_CHUNK);
        if ((status = example_barrier(comm)) != WEFT_OK) return status;
        if (work->receives && work->shape.reduces) take_reduced(work, low, low + EXAMPLE_CHUNK);
        for (int32_t i = 0; i < comm->size && work->receives && !work->shape.reduces; i++)
            take_moved(work, i, low, low + EXAMPLE_CHUNK);
        if ((status = example_barrier(comm)) != WEFT_OK) return status;
    }
    return WEFT_OK;
}

/* ---- the call ---- */

weft_status example_compare_notes(struct example_comm *comm)
{
    const struct example_note *first = example_note_of(comm, 0);
    bool even = first->collective < WEFT_COLL_COUNT && !shape_of(first->collective).varied &&
                !shape_of(first->collective).one_source;

    if ((comm->flags & WEFT_COMM_CHECK) == 0) return WEFT_OK;
    for (int32_t i = 1; i < comm->size; i++) {
        const struct example_note *other = example_note_of(comm, i);
        if (memcmp(first, other, offsetof(struct example_note, parts)) == 0 &&
            (!even || first->total == other->total))
            continue;
        return example_fail(
            comm,
            plug_fail(WEFT_ERR_MISMATCH,
                      "rank 0 calls collective %u on %llu bytes of dtype %u, reduction "
                      "%u, root %d, divisor %u (step %u of plan %016llx, binding %u); rank %d "
                      "calls %u, %llu, %u, %u, %d, %u (step %u of plan %016llx, binding %u)",
                      first->collective, (unsigned long long)first->total, first->dtype,
                      first->reduction, first->root, first->divisor, first->step,
                      (unsigned long long)first->plan, first->binding, i, other->collective,
                      (unsigned long long)other->total, other->dtype, other->reduction, other->root,
                      other->divisor, other->step, (unsigned long long)other->plan,
                      other->binding));
    }
    return WEFT_OK;
}

/* Copy the send buffer if both sides are split and in place, because receiving would overwrite data
 * that is not sent yet. */
static weft_status stage(struct work *work, void **staged)
{
    uint64_t end = 0;

    for (int32_t i = 0; i < work->comm->size; i++)
        if (work->send_parts[i].offset + work->send_parts[i].bytes > end)
            end = work->send_parts[i].offset + work->send_parts[i].bytes;
    if (end == 0) return WEFT_OK;
    *staged = plug_alloc(end);
    if (*staged == NULL)
        return plug_fail(WEFT_ERR_NO_MEMORY, "cannot stage %llu bytes", (unsigned long long)end);
    memcpy(*staged, work->args->send, end);
    work->send = *staged;
    return WEFT_OK;
}

weft_status example_collective_now(struct example_comm *comm, const weft_collective_args *args)
{
    struct work work = {.comm = comm, .args = args, .shape = shape_of(args->collective)};
    void *staged = NULL;
    weft_status status = check(&work);

    if (status != WEFT_OK) return status;
    work.send = args->send;
    if (work.shape.split_send && work.shape.split_recv && args->send == args->recv)
        status = stage(&work, &staged);
    if (status == WEFT_OK) {
        write_note(&work);
        status = example_barrier(comm);
    }
    if (status == WEFT_OK) status = example_compare_notes(comm);
    if (status == WEFT_OK) status = show_and_take(&work);
    plug_free(staged);
    return status;
}

weft_status example_collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;
    struct work work;
    weft_status status;

    if (args->collective >= WEFT_COLL_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "collective %u is not known", args->collective);
    if (comm->group_depth == 0) return example_collective_now(comm, args);
    work = (struct work){.comm = comm, .args = args, .shape = shape_of(args->collective)};
    status = check(&work);
    if (status == WEFT_OK) status = example_queue_collective(comm, args);
    if (comm->group_error == WEFT_OK) comm->group_error = status;
    return status;
}
