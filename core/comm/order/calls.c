/* calls.c - the places in a program from which collectives are called, compared between ranks. */
#include "calls.h"

#include "comm/comm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* A note, as one rank tells it to another. */
struct told {
    uint64_t number, memory;
    char place[WF_CALLS_PLACE];
};

void wf_calls_note(weft_comm *comm, const weft_collective_args *args, const void *from)
{
    uint64_t number = atomic_load_explicit(&comm->collectives, memory_order_relaxed);
    struct wf_call_note *note = &comm->calls.recent[number % WF_CALLS_NOTED];
    uintptr_t memory = (uintptr_t)(args->send != NULL ? args->send : args->recv);

    if (comm->calls.first == 0) comm->calls.first = memory;
    atomic_store_explicit(&note->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&note->from, args->plan == 0 ? (uintptr_t)from : 0, memory_order_relaxed);
    atomic_store_explicit(&note->memory, memory != 0 ? memory - comm->calls.first : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&note->number, number, memory_order_release);
}

/* "program+0x1234": the same in every process, although each has the program at another address. */
static void name_place(uintptr_t from, char *out, size_t bytes)
{
    const char *file, *slash;
    Dl_info info;

    if (from == 0) {
        snprintf(out, bytes, "a step of a plan");
    } else if (dladdr((const void *)from, &info) == 0 || info.dli_fname == NULL) {
        snprintf(out, bytes, "an unknown place");
    } else {
        slash = strrchr(info.dli_fname, '/');
        file = slash != NULL ? slash + 1 : info.dli_fname;
        snprintf(out, bytes, "%.40s+0x%llx", file,
                 (unsigned long long)(from - (uintptr_t)info.dli_fbase));
    }
}

/* Collective NUMBER of COMM; false: it is not noted any more. */
static bool read_note(const weft_comm *comm, uint64_t number, struct told *out)
{
    const struct wf_call_note *note = &comm->calls.recent[number % WF_CALLS_NOTED];
    uintptr_t from;

    if (atomic_load_explicit(&note->number, memory_order_acquire) != number) return false;
    from = atomic_load_explicit(&note->from, memory_order_relaxed);
    out->memory = atomic_load_explicit(&note->memory, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&note->number, memory_order_relaxed) != number) return false;
    out->number = number;
    name_place(from, out->place, sizeof out->place);
    return true;
}

void wf_calls_put(const weft_comm *comm, struct wf_text *out)
{
    uint64_t last = atomic_load_explicit(&comm->collectives, memory_order_relaxed);
    uint64_t first = last < WF_CALLS_NOTED ? 1 : last - WF_CALLS_NOTED + 1;
    struct wf_text notes = {0};
    struct told told;

    for (uint64_t n = first; comm->checked && n <= last; n++) {
        if (!read_note(comm, n, &told)) continue;
        wf_put_u64(&notes, told.number);
        wf_put_u64(&notes, told.memory);
        wf_put_string(&notes, told.place);
    }
    wf_put_blob(out, notes.data, notes.failed ? 0 : notes.length);
    wf_text_free(&notes);
}

/* Add that this rank and RANK differ in collective MINE, and THEIRS of RANK. */
static void describe(const weft_comm *comm, int32_t rank, const struct told *mine,
                     const struct told *theirs, struct wf_text *out)
{
    bool here = strcmp(mine->place, theirs->place) == 0;
    bool first = comm->context->rank < rank;
    const struct told *low = first ? mine : theirs, *high = first ? theirs : mine;

    wf_text_add(out, "; the calls first differ in collective %llu, which rank %d makes at %s",
                (unsigned long long)mine->number, first ? comm->context->rank : rank, low->place);
    if (here)
        wf_text_add(out, " with other memory than rank %d", first ? rank : comm->context->rank);
    else
        wf_text_add(out, " and rank %d at %s", first ? rank : comm->context->rank, high->place);
}

/* The first of the notes up to LAST that differs from this rank's; in its place, or if IN_MEMORY,
 * in its memory. */
static bool find_difference(const weft_comm *comm, weft_blob notes, uint64_t last, bool in_memory,
                            struct told *mine, struct told *theirs)
{
    struct wf_reader reader = {notes.data, (size_t)notes.bytes, false};

    while (reader.left > 0 && !reader.failed) {
        theirs->number = wf_take_u64(&reader);
        theirs->memory = wf_take_u64(&reader);
        wf_take_string(&reader, theirs->place, sizeof theirs->place);
        if (reader.failed || theirs->number > last || !read_note(comm, theirs->number, mine))
            continue;
        if (in_memory ? mine->memory != theirs->memory : strcmp(mine->place, theirs->place) != 0)
            return true;
    }
    return false;
}

bool wf_calls_compare(const weft_comm *comm, weft_blob notes, int32_t rank, uint64_t last,
                      struct wf_text *out)
{
    struct told mine, theirs;

    /* The memory of equal calls may differ, so it counts only if all places are equal. */
    if (!find_difference(comm, notes, last, false, &mine, &theirs) &&
        !find_difference(comm, notes, last, true, &mine, &theirs))
        return false;
    wf_text_clean(theirs.place, strlen(theirs.place));
    describe(comm, rank, &mine, &theirs, out);
    return true;
}

void wf_calls_left(weft_comm *comm, int32_t rank, uint64_t count)
{
    struct wf_calls *calls = &comm->calls;

    if (calls->left == 0 || count < calls->least.count)
        calls->least = (struct wf_left){count, rank};
    if (calls->left == 0 || count > calls->most.count) calls->most = (struct wf_left){count, rank};
    calls->left++;
}

void wf_calls_warn(const weft_comm *comm)
{
    uint64_t made = atomic_load_explicit(&comm->collectives, memory_order_relaxed);
    const struct wf_left *other = &comm->calls.least;

    if (!comm->checked || comm->calls.left == 0) return;
    if (other->count == made) other = &comm->calls.most;
    if (other->count == made) return;
    wf_log(WF_LOG_WARNING,
           "weft_context_release: rank %d leaves after %llu collective%s on %s, but rank %d left "
           "after %llu; all ranks must make the same calls",
           comm->context->rank, (unsigned long long)made, WF_PLURAL(made), comm->name, other->rank,
           (unsigned long long)other->count);
}
