/* symm.c - windows: shared memory that every rank writes and reads directly.
 *
 * One piece of memory holds all ranks' signals, then all ranks' bytes.  A signal is stored with
 * release after its data, and loaded with acquire before its data is read.  No other ordering is
 * needed. */
#include "example.h"
#include "plug_symm.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

struct window {
    struct example_comm *comm;
    uint8_t *memory;
    uint64_t bytes, mapped;
    uint32_t signal_count, number;
    void *buffers[EXAMPLE_MAX_RANKS];
    uint64_t *signals[EXAMPLE_MAX_RANKS];
};

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void set_pointers(struct window *window, void **local)
{
    uint64_t signal_bytes = whole_pages(window->signal_count * sizeof(uint64_t) + 1);
    uint64_t buffer_bytes = whole_pages(window->bytes + 1);

    for (int32_t i = 0; i < window->comm->size; i++) {
        uint8_t *start = window->memory + (uint64_t)i * (signal_bytes + buffer_bytes);
        window->signals[i] = (uint64_t *)(void *)start;
        window->buffers[i] = start + signal_bytes;
    }
    *local = window->buffers[window->comm->rank];
}

/* All ranks publish their requests.  Rank 0 also publishes the name of its memory. */
static weft_status join(struct window *window)
{
    struct example_comm *comm = window->comm;
    struct example_note *mine = example_next_note(comm);
    const struct example_note *first;
    weft_status status = WEFT_OK;
    void *memory = NULL;

    mine->parts[0] = window->bytes;
    mine->parts[1] = window->signal_count;
    mine->name[0] = '\0';
    if (comm->rank == 0 && example_share(window->mapped, mine->name, &memory) != WEFT_OK)
        mine->name[0] = '\0'; /* the other ranks see the failure */
    status = example_barrier(comm);
    first = example_note_of(comm, 0);
    for (int32_t i = 1; i < comm->size && status == WEFT_OK; i++)
        if (example_note_of(comm, i)->parts[0] != first->parts[0] ||
            example_note_of(comm, i)->parts[1] != first->parts[1])
            status =
                plug_fail(WEFT_ERR_MISMATCH,
                          "rank 0 requests a window of %llu bytes and %llu signals, rank %d "
                          "requests %llu and %llu",
                          (unsigned long long)first->parts[0], (unsigned long long)first->parts[1],
                          i, (unsigned long long)example_note_of(comm, i)->parts[0],
                          (unsigned long long)example_note_of(comm, i)->parts[1]);
    if (status == WEFT_OK && first->name[0] == '\0')
        status = plug_fail(WEFT_ERR_SYSTEM, "rank 0 could not create the shared memory");
    if (status == WEFT_OK && comm->rank != 0)
        status = example_join(first->name, window->mapped, &memory);
    window->memory = memory;
    if (example_barrier(comm) != WEFT_OK && status == WEFT_OK) status = atomic_load(&comm->error);
    if (comm->rank == 0 && mine->name[0] != '\0') example_unlink(mine->name);
    return status;
}

static void release(struct window *window)
{
    if (window->memory != NULL) munmap(window->memory, window->mapped);
    plug_free(window);
}

static weft_status window_create(void *comm, uint64_t bytes, uint32_t signals, void **out,
                                 void **local)
{
    struct window *window = plug_alloc(sizeof *window);
    weft_status status;

    if (window == NULL) return plug_fail(WEFT_ERR_NO_MEMORY, "no memory for a window");
    *window = (struct window){.comm = comm, .bytes = bytes, .signal_count = signals};
    window->mapped = (uint64_t)window->comm->size *
                     (whole_pages(signals * sizeof(uint64_t) + 1) + whole_pages(bytes + 1));
    status = join(window);
    if (status != WEFT_OK) {
        release(window);
        return status;
    }
    set_pointers(window, local);
    window->number = ++window->comm->windows;
    *out = window;
    return WEFT_OK;
}

static weft_status window_destroy(void *self)
{
    struct window *window = self;
    weft_status status = example_barrier(window->comm);

    release(window);
    return status;
}

static weft_status handle(void *self, weft_symm_handle *out)
{
    struct window *window = self;
    weft_symm_handle full = {
        .struct_size = out->struct_size,
        .rank = window->comm->rank,
        .size = window->comm->size,
        .signal_count = window->signal_count,
        .bytes = window->bytes,
        .buffers = window->buffers,
        .signals = window->signals,
    };

    memcpy(out, &full, out->struct_size < sizeof full ? out->struct_size : sizeof full);
    return WEFT_OK;
}

/* ---- transfers ---- */

static weft_status check(const struct window *window, uint64_t offset, uint64_t bytes, int32_t peer,
                         const void *other)
{
    if (peer < 0 || peer >= window->comm->size)
        return plug_fail(WEFT_ERR_INVALID, "peer %d of %d ranks", peer, window->comm->size);
    if (offset > window->bytes || bytes > window->bytes - offset)
        return plug_fail(WEFT_ERR_INVALID, "%llu bytes at %llu of a window of %llu",
                         (unsigned long long)bytes, (unsigned long long)offset,
                         (unsigned long long)window->bytes);
    if (bytes > 0 && other == NULL)
        return plug_fail(WEFT_ERR_INVALID, "%llu bytes, but the memory is NULL",
                         (unsigned long long)bytes);
    return WEFT_OK;
}

static weft_status put(void *self, uint64_t offset, const void *source, uint64_t bytes,
                       int32_t peer, void *stream)
{
    struct window *window = self;
    weft_status status = check(window, offset, bytes, peer, source);

    (void)stream;
    if (status == WEFT_OK && bytes > 0)
        memcpy((uint8_t *)window->buffers[peer] + offset, source, bytes);
    return status;
}

static weft_status get(void *self, void *target, uint64_t offset, uint64_t bytes, int32_t peer,
                       void *stream)
{
    struct window *window = self;
    weft_status status = check(window, offset, bytes, peer, target);

    (void)stream;
    if (status == WEFT_OK && bytes > 0)
        memcpy(target, (uint8_t *)window->buffers[peer] + offset, bytes);
    return status;
}

/* ---- signals ---- */

static _Atomic uint64_t *signal_at(const struct window *window, int32_t rank, uint32_t signal)
{
    return (_Atomic uint64_t *)&window->signals[rank][signal];
}

static weft_status check_signal(const struct window *window, uint32_t signal, uint32_t op)
{
    if (op > WEFT_SIGNAL_ADD)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "signal operation %u is unknown", op);
    if (signal >= window->signal_count)
        return plug_fail(WEFT_ERR_INVALID, "signal %u of %u", signal, window->signal_count);
    return WEFT_OK;
}

static weft_status put_signal(void *self, uint64_t offset, const void *source, uint64_t bytes,
                              uint32_t signal, uint64_t value, uint32_t op, int32_t peer,
                              void *stream)
{
    struct window *window = self;
    weft_status status = check_signal(window, signal, op);

    if (status == WEFT_OK) status = put(window, offset, source, bytes, peer, stream);
    if (status != WEFT_OK) return status;
    if (op == WEFT_SIGNAL_SET)
        atomic_store(signal_at(window, peer, signal), value);
    else
        atomic_fetch_add(signal_at(window, peer, signal), value);
    return WEFT_OK;
}

static weft_status signal_peer(void *self, uint32_t signal, uint64_t value, uint32_t op,
                               int32_t peer, void *stream)
{
    return put_signal(self, 0, NULL, 0, signal, value, op, peer, stream);
}

static weft_status wait_signal(void *self, uint32_t signal, uint32_t compare, uint64_t value,
                               int64_t timeout_ns, void *stream)
{
    struct window *window = self;
    int64_t start = example_now(), deadline = start + window->comm->timeout_ns;
    weft_status status = check_signal(window, signal, WEFT_SIGNAL_SET);
    uint32_t tries = 0;

    (void)stream;
    if (compare > WEFT_COMPARE_LT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "comparison %u is not known", compare);
    while (status == WEFT_OK &&
           !kit_signal_matches(atomic_load(signal_at(window, window->comm->rank, signal)), compare,
                               value)) {
        if (timeout_ns != WEFT_FOREVER && example_now() - start > timeout_ns)
            return plug_fail(WEFT_ERR_TIMEOUT, "signal %u did not arrive within %.3f s", signal,
                             (double)timeout_ns * 1e-9);
        status = example_pause(window->comm, deadline, &tries);
    }
    return status;
}

/* ---- ordering ---- */

/* Puts and gets are complete when their call returns.  The fence orders them in the processor. */
static weft_status fence(void *self, void *stream)
{
    (void)self;
    (void)stream;
    atomic_thread_fence(memory_order_seq_cst);
    return WEFT_OK;
}

static weft_status barrier(void *self, void *stream)
{
    struct window *window = self;
    weft_status status;

    (void)stream;
    *example_next_note(window->comm) =
        (struct example_note){.collective = EXAMPLE_SYMM_BARRIER, .plan = window->number};
    status = example_barrier(window->comm);
    return status == WEFT_OK ? example_compare_notes(window->comm) : status;
}

const weft_symm_table example_symm = {
    .struct_size = sizeof example_symm,
    .signature = WEFT_SYMM_SIGNATURE,
    .window_create = window_create,
    .window_destroy = window_destroy,
    .handle = handle,
    .put = put,
    .get = get,
    .put_signal = put_signal,
    .signal = signal_peer,
    .wait_signal = wait_signal,
    .fence = fence,
    .quiet = fence,
    .barrier = barrier,
};
