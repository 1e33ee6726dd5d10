/* carry.c - collectives that move elements, carried by what the backend has.
 *
 * Every such collective is an exchange: each rank sends a part of its memory to each other rank.
 * Bytes are moved, so a dtype that the backend does not know is moved too.  With all_to_all_v and
 * with messages, a call returns when the exchange is posted, unless it is in place.  Otherwise it
 * returns when the exchange is complete. */
#include "carry.h"

#include "comm/agree.h"
#include "kit/collective.h"

#include <stdio.h>
#include <string.h>

enum { TAG = 0x77656674 }; /* of messages that carry a collective */

/* One side of an exchange.  Counts and offsets are bytes, by rank. */
struct side {
    uint64_t *counts, *offsets;
    uint64_t low, high; /* all parts are in [low, high) */
};

struct exchange {
    weft_comm *comm;
    const weft_collective_args *args;
    struct side out, in;
    const char *send;
    char *recv;
};

static void measure(struct side *side, int32_t size)
{
    bool found = false;

    for (int32_t i = 0; i < size; i++) {
        uint64_t low = side->offsets[i], high = low + side->counts[i];

        if (side->counts[i] == 0) continue;
        if (!found || low < side->low) side->low = low;
        if (!found || high > side->high) side->high = high;
        found = true;
    }
}

/* ---- a collective as an exchange ---- */

/* One side of ARGS, of whose parts this rank has one per rank if SPLIT, or one with COUNT elements.
 * COUNTS and OFFSETS: see weft_collective_args; NULL: equal parts. */
static void lay(const struct exchange *e, struct side *side, bool split, uint64_t count,
                const uint64_t *counts, const uint64_t *offsets)
{
    uint64_t element = wf_dtype_bytes(e->args->dtype);

    for (int32_t i = 0; i < e->comm->size; i++) {
        side->counts[i] = (split && counts != NULL ? counts[i] : count) * element;
        side->offsets[i] = 0;
        if (split) side->offsets[i] = (counts != NULL ? offsets[i] : (uint64_t)i * count) * element;
    }
}

/* Keep the part of the root alone. */
static void keep_root(const struct exchange *e, struct side *side)
{
    for (int32_t i = 0; i < e->comm->size; i++)
        if (i != e->args->root) side->counts[i] = 0;
}

static void lay_out(struct exchange *e)
{
    const weft_collective_args *args = e->args;
    uint32_t need = kit_collective_needs(args->collective);
    struct kit_use use = kit_collective_use(args, e->comm->rank, e->comm->size);
    bool is_root = args->root == e->comm->rank, rooted = (need & KIT_ROOTED) != 0;
    uint64_t sent = args->collective == WEFT_COLL_ALL_GATHER_V ? use.send : args->count;

    if (!rooted || (need & KIT_SEND) != 0 || is_root)
        lay(e, &e->out, (need & KIT_SPLIT_SEND) != 0, sent,
            use.send_arrays ? args->send_counts : NULL, args->send_offsets);
    if (!rooted || (need & KIT_RECV) != 0 || is_root)
        lay(e, &e->in, (need & KIT_SPLIT_RECV) != 0, args->count,
            use.recv_arrays ? args->recv_counts : NULL, args->recv_offsets);
    if (rooted) keep_root(e, (need & KIT_SEND) != 0 ? &e->out : &e->in);
    measure(&e->out, e->comm->size);
    measure(&e->in, e->comm->size);
}

/* ---- the ways ---- */

static weft_status copy(const struct exchange *e, void *target, const void *source, uint64_t bytes)
{
    weft_context *context = e->comm->context;

    if (bytes == 0) return WEFT_OK;
    return context->plugin->device->copy(context->device, target, source, bytes, e->args->stream);
}

/* OFFSET in MEMORY, which is NULL if this rank has no parts there. */
static const char *at(const char *memory, uint64_t offset)
{
    return memory != NULL ? memory + offset : NULL;
}

/* This rank has no memory for E, and the others may wait for it. */
static weft_status give_up(const struct exchange *e, weft_status status)
{
    return wf_comm_give_up(e->comm, status, wf_collective_name(e->args->collective));
}

static weft_status wait(const struct exchange *e)
{
    return weft_context_wait(e->comm->context, e->args->stream, e->comm->timeout_ns);
}

/* The arguments of COLLECTIVE on bytes, with the stream and the identity of E. */
static weft_collective_args on_bytes(const struct exchange *e, uint32_t collective)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = collective,
                                 .dtype = WEFT_DTYPE_U8,
                                 .root = -1,
                                 .stream = e->args->stream,
                                 .plan = e->args->plan,
                                 .binding = e->args->binding,
                                 .step = e->args->step};

    return args;
}

static weft_status by_all_to_all(const struct exchange *e)
{
    weft_collective_args args = on_bytes(e, WEFT_COLL_ALL_TO_ALL_V);

    args.send = e->send;
    args.recv = e->recv;
    args.send_counts = e->out.counts;
    args.send_offsets = e->out.offsets;
    args.recv_counts = e->in.counts;
    args.recv_offsets = e->in.offsets;
    return wf_comm_collective_step(e->comm, &args);
}

static weft_status post_messages(const struct exchange *e)
{
    for (int32_t i = 0; i < e->comm->size; i++) {
        if (e->out.counts[i] > 0)
            WF_TRY(weft_send(e->comm, e->send + e->out.offsets[i], e->out.counts[i], WEFT_DTYPE_U8,
                             i, TAG, e->args->stream));
        if (e->in.counts[i] > 0)
            WF_TRY(weft_receive(e->comm, e->recv + e->in.offsets[i], e->in.counts[i], WEFT_DTYPE_U8,
                                i, TAG, e->args->stream));
    }
    return WEFT_OK;
}

static weft_status by_messages(const struct exchange *e)
{
    weft_status status, ended;

    WF_TRY(weft_group_begin(e->comm));
    status = post_messages(e);
    ended = weft_group_end(e->comm);
    return status != WEFT_OK ? status : ended;
}

/* Where the parts of a rank begin, after the first of them: what its readers must know. */
struct starts {
    struct wf_gathered got;
    uint64_t most; /* the most bytes from a rank's first part to its last */
};

static uint64_t start_of(const struct starts *starts, int32_t rank, int32_t reader)
{
    uint64_t start;

    memcpy(&start, (const char *)starts->got.blobs[rank].data + (size_t)reader * sizeof start,
           sizeof start);
    return start;
}

/* All ranks show where their parts begin.  STATUS is this rank's result so far.  The caller frees
 * OUT->got. */
static weft_status show_starts(const struct exchange *e, weft_status status, struct starts *out)
{
    size_t size = (size_t)e->comm->size, bytes = (size + 1) * sizeof(uint64_t);
    uint64_t *mine = wf_alloc(bytes);
    char label[192];

    if (mine == NULL && status == WEFT_OK) status = wf_fail_memory(bytes);
    for (size_t i = 0; mine != NULL && i < size; i++)
        mine[i] = e->out.counts[i] > 0 ? e->out.offsets[i] - e->out.low : 0;
    if (mine != NULL) mine[size] = e->out.high - e->out.low;
    snprintf(label, sizeof label, "weft_%s on %s", wf_collective_name(e->args->collective),
             e->comm->name);
    status = wf_comm_agree(e->comm, label, status, (weft_blob){mine, bytes}, &out->got);
    wf_free(mine);
    if (status != WEFT_OK) return status;
    out->most = 0;
    for (int32_t i = 0; i < e->comm->size && status == WEFT_OK; i++) {
        if (out->got.blobs[i].bytes != bytes)
            status = wf_fail(WEFT_ERR_MISMATCH, "%s: rank %d makes another call", label, i);
        else if (start_of(out, i, e->comm->size) > out->most)
            out->most = start_of(out, i, e->comm->size);
    }
    if (status != WEFT_OK) wf_gathered_free(&out->got);
    return status;
}

/* The regions that this rank reads; SOURCES and READERS have room for all ranks. */
struct pulled {
    weft_region *regions;
    int32_t *sources, *readers;
    uint32_t source_count, reader_count;
};

static void list_pulled(const struct exchange *e, const struct starts *starts, struct pulled *p)
{
    for (int32_t i = 0; i < e->comm->size; i++) {
        if (e->out.counts[i] > 0) p->readers[p->reader_count++] = i;
        if (e->in.counts[i] == 0) continue;
        p->regions[p->source_count] =
            (weft_region){.source = p->source_count,
                          .dims = 1,
                          .source_offset = (int64_t)start_of(starts, i, e->comm->rank),
                          .target_offset = (int64_t)e->in.offsets[i],
                          .extent = {(int64_t)e->in.counts[i]},
                          .source_stride = {1},
                          .target_stride = {1}};
        p->sources[p->source_count++] = i;
    }
}

static weft_status pull(const struct exchange *e, const struct pulled *p)
{
    const weft_kernel_table *kernel = e->comm->plugin->kernel;
    weft_pull_args args = {.struct_size = sizeof args,
                           .dtype = WEFT_DTYPE_U8,
                           .holders = 1,
                           .sources = p->sources,
                           .readers = p->readers,
                           .reader_count = p->reader_count,
                           .send = at(e->send, e->out.low),
                           .send_bytes = e->out.high - e->out.low,
                           .recv = e->recv,
                           .stream = e->args->stream,
                           .plan = e->args->plan,
                           .binding = e->args->binding,
                           .step = e->args->step};
    weft_status status, waited;

    WF_TRY(kernel->regions_create(e->comm->device, 1, p->source_count, p->regions, &args.regions));
    status = wf_comm_pull(e->comm, &args, WEFT_DTYPE_U8, e->in.high - e->in.low);
    waited = wait(e); /* the work uses the list */
    kernel->regions_destroy(args.regions);
    return status != WEFT_OK ? status : waited;
}

static weft_status by_pull(const struct exchange *e)
{
    size_t size = (size_t)e->comm->size;
    struct pulled p = {.regions = wf_calloc(size, sizeof *p.regions),
                       .sources = wf_calloc(size, sizeof *p.sources),
                       .readers = wf_calloc(size, sizeof *p.readers)};
    struct starts starts;
    weft_status status = WEFT_OK;

    if (p.regions == NULL || p.sources == NULL || p.readers == NULL)
        status = wf_fail_memory(size * (sizeof *p.regions + sizeof *p.sources + sizeof *p.readers));
    status = show_starts(e, status, &starts);
    if (status == WEFT_OK) {
        list_pulled(e, &starts, &p);
        wf_gathered_free(&starts.got);
        status = pull(e, &p);
    }
    wf_free(p.regions);
    wf_free(p.sources);
    wf_free(p.readers);
    return status;
}

/* Every rank gets the parts of all ranks, in MEMORY, and copies its own out of it. */
static weft_status gather_parts(const struct exchange *e, const struct starts *starts, char *memory)
{
    weft_collective_args args = on_bytes(e, WEFT_COLL_ALL_GATHER);

    args.send = memory;
    args.recv = memory + starts->most;
    args.count = starts->most;
    WF_TRY(copy(e, memory, at(e->send, e->out.low), e->out.high - e->out.low));
    WF_TRY(wf_comm_collective_step(e->comm, &args));
    for (int32_t i = 0; i < e->comm->size; i++) {
        const char *part = (const char *)args.recv + (uint64_t)i * starts->most;

        if (e->in.counts[i] > 0)
            WF_TRY(copy(e, e->recv + e->in.offsets[i], part + start_of(starts, i, e->comm->rank),
                        e->in.counts[i]));
    }
    return WEFT_OK;
}

static weft_status by_all_gather(const struct exchange *e)
{
    struct starts starts;
    void *memory = NULL;
    weft_status status, waited;

    WF_TRY(show_starts(e, WEFT_OK, &starts));
    status = weft_alloc(e->comm->context, ((uint64_t)e->comm->size + 1) * starts.most,
                        WEFT_MEMORY_DEVICE, &memory);
    if (status != WEFT_OK) {
        status = give_up(e, status);
    } else if (starts.most > 0) {
        status = gather_parts(e, &starts, memory);
        waited = wait(e);
        if (status == WEFT_OK) status = waited;
    }
    wf_gathered_free(&starts.got);
    if (memory != NULL && weft_free(e->comm->context, memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "device memory was not freed: %s", weft_last_error());
    return status;
}

static weft_status run(const struct exchange *e)
{
    if (e->comm->size == 1)
        return copy(e, e->recv + e->in.low, at(e->send, e->out.low), e->in.counts[0]);
    switch (wf_transport_of(e->comm)) {
    case WF_TRANSPORT_ALL_TO_ALL_V:
        return by_all_to_all(e);
    case WF_TRANSPORT_MESSAGES:
        return by_messages(e);
    case WF_TRANSPORT_PULL:
        return by_pull(e);
    default:
        return by_all_gather(e);
    }
}

/* ---- in place ---- */

static bool is_in_place(const struct exchange *e)
{
    uintptr_t sent = (uintptr_t)e->send, got = (uintptr_t)e->recv;

    return e->out.low < e->out.high && e->in.low < e->in.high &&
           sent + e->out.low < got + e->in.high && got + e->in.low < sent + e->out.high;
}

/* Parts arrive in scratch, because their memory has parts that are still read. */
static weft_status run_in_place(const struct exchange *e)
{
    struct exchange apart = *e;
    void *scratch = NULL;
    weft_status status, waited;

    status = weft_alloc(e->comm->context, e->in.high, WEFT_MEMORY_DEVICE, &scratch);
    if (status != WEFT_OK) return give_up(e, status);
    apart.recv = scratch;
    status = run(&apart);
    for (int32_t i = 0; i < e->comm->size && status == WEFT_OK; i++)
        status =
            copy(e, e->recv + e->in.offsets[i], apart.recv + e->in.offsets[i], e->in.counts[i]);
    waited = wait(e);
    if (weft_free(e->comm->context, scratch) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "device memory was not freed: %s", weft_last_error());
    return status != WEFT_OK ? status : waited;
}

/* ---- the collectives ---- */

static weft_status move(weft_comm *comm, const weft_collective_args *args)
{
    size_t size = (size_t)comm->size;
    struct exchange e = {.comm = comm, .args = args, .send = args->send, .recv = args->recv};
    weft_status status;

    e.out.counts = wf_calloc(4 * size, sizeof *e.out.counts);
    if (e.out.counts == NULL) return give_up(&e, wf_fail_memory(4 * size * sizeof *e.out.counts));
    e.out.offsets = e.out.counts + size;
    e.in.counts = e.out.offsets + size;
    e.in.offsets = e.in.counts + size;
    lay_out(&e);
    status = is_in_place(&e) ? run_in_place(&e) : run(&e);
    wf_free(e.out.counts);
    return status;
}

/* A barrier needs no memory, and no transport: the ranks meet at the rendezvous. */
static weft_status meet(weft_comm *comm, const weft_collective_args *args)
{
    struct wf_gathered got;
    char label[192];
    weft_status status = weft_context_wait(comm->context, args->stream, comm->timeout_ns);

    snprintf(label, sizeof label, "weft_barrier on %s", comm->name);
    status = wf_comm_agree(comm, label, status, (weft_blob){"", 0}, &got);
    if (status == WEFT_OK) wf_gathered_free(&got);
    return status;
}

/* Log once per context and collective. */
static void log_notice(weft_comm *comm, const weft_collective_args *args)
{
    uint32_t bit = UINT32_C(1) << args->collective;
    const char *by = args->collective == WEFT_COLL_BARRIER
                         ? "the rendezvous"
                         : wf_transport_name(wf_transport_of(comm));

    if (comm->size == 1 || (atomic_fetch_or(&comm->context->carried, bit) & bit) != 0) return;
    wf_log(WF_LOG_NOTICE, "weft carries %s%s%s%s%s by %s%s: plugin %s does not support it",
           wf_collective_name(args->collective),
           args->collective != WEFT_COLL_BARRIER ? " of " : "",
           args->collective != WEFT_COLL_BARRIER ? wf_dtype_name(args->dtype) : "",
           wf_collective_reduces(args->collective) ? " with " : "",
           wf_collective_reduces(args->collective) ? wf_reduction_name(args->reduction) : "", by,
           wf_collective_reduces(args->collective) ? ", and reduces in host memory" : "",
           comm->plugin->name);
}

bool wf_carry_is_ours(weft_comm *comm, const weft_collective_args *args)
{
    bool reduces = wf_collective_reduces(args->collective);

    if (wf_backend_has(comm, args->collective, args->dtype, args->reduction, WEFT_SUPPORT_EMULATED))
        return false;
    if (reduces && args->reduction == WEFT_REDUCE_PREMUL_SUM) return false;
    return args->collective == WEFT_COLL_BARRIER || comm->size == 1 ||
           wf_transport_of(comm) != WF_TRANSPORT_NONE;
}

weft_status wf_carry_collective(weft_comm *comm, const weft_collective_args *args)
{
    log_notice(comm, args);
    if (args->collective == WEFT_COLL_BARRIER) return meet(comm, args);
    if (wf_collective_reduces(args->collective)) return wf_reduce_collective(comm, args);
    return move(comm, args);
}

weft_status wf_carry_refuse_group(const weft_comm *comm, const weft_collective_args *args)
{
    bool reduces = wf_collective_reduces(args->collective);

    return wf_fail(
        WEFT_ERR_UNSUPPORTED,
        "%s of %s%s%s on %s is not allowed inside a call group, because backend %s does not "
        "support it and weft %s; call it before weft_group_begin or after "
        "weft_group_end",
        wf_collective_name(args->collective), wf_dtype_name(args->dtype), reduces ? " with " : "",
        reduces ? wf_reduction_name(args->reduction) : "", comm->name, comm->plugin->name,
        reduces ? "reduces in host memory" : "carries it by other operations");
}
