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

/* The same of refused calls. */
struct told_refused {
    uint64_t count, number;
    char place[WF_CALLS_PLACE], why[WF_CALLS_WHY];
};

void wf_calls_note(weft_comm *comm, const weft_collective_args *args, const void *from)
{
    uint64_t number = atomic_load_explicit(&comm->collectives, memory_order_relaxed) + 1;
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

void wf_calls_refuse(weft_comm *comm)
{
    uint64_t number = atomic_load_explicit(&comm->collectives, memory_order_relaxed) + 1;
    struct wf_call_note *note = &comm->calls.recent[number % WF_CALLS_NOTED];
    struct wf_refused *refused = &comm->calls.refused;
    uint64_t count = atomic_load_explicit(&refused->count, memory_order_relaxed);

    if (count == 0) {
        bool is_noted = atomic_load_explicit(&note->number, memory_order_relaxed) == number;

        refused->number = number;
        refused->from = is_noted ? atomic_load_explicit(&note->from, memory_order_relaxed) : 0;
        snprintf(refused->why, sizeof refused->why, "%s", weft_last_error());
    }
    atomic_store_explicit(&refused->count, count + 1, memory_order_release);
    atomic_store_explicit(&note->number, 0, memory_order_relaxed);
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

/* The refused calls of COMM. */
static void read_refused(const weft_comm *comm, struct told_refused *out)
{
    const struct wf_refused *refused = &comm->calls.refused;

    *out =
        (struct told_refused){.count = atomic_load_explicit(&refused->count, memory_order_acquire)};
    if (out->count == 0) return;
    out->number = refused->number;
    name_place(refused->from, out->place, sizeof out->place);
    snprintf(out->why, sizeof out->why, "%s", refused->why);
}

static void put_refused(const weft_comm *comm, struct wf_text *out)
{
    struct told_refused refused;

    read_refused(comm, &refused);
    wf_put_u64(out, refused.count);
    wf_put_u64(out, refused.number);
    wf_put_string(out, refused.place);
    wf_put_string(out, refused.why);
}

static void take_refused(struct wf_reader *reader, struct told_refused *out)
{
    out->count = wf_take_u64(reader);
    out->number = wf_take_u64(reader);
    wf_take_string(reader, out->place, sizeof out->place);
    wf_take_string(reader, out->why, sizeof out->why);
    if (reader->failed) out->count = 0;
}

/* False: there are no more notes. */
static bool take_note(struct wf_reader *reader, struct told *out)
{
    if (reader->left == 0 || reader->failed) return false;
    out->number = wf_take_u64(reader);
    out->memory = wf_take_u64(reader);
    wf_take_string(reader, out->place, sizeof out->place);
    wf_text_clean(out->place, strlen(out->place));
    return !reader->failed;
}

void wf_calls_place(const weft_comm *comm, uint64_t number, struct wf_text *out)
{
    struct told told;

    if (comm->checked && number > 0 && read_note(comm, number, &told))
        wf_text_add(out, "; rank %d makes collective %llu at %s", comm->context->rank,
                    (unsigned long long)number, told.place);
}

void wf_calls_put(const weft_comm *comm, struct wf_text *out)
{
    uint64_t last = atomic_load_explicit(&comm->collectives, memory_order_relaxed);
    uint64_t first = last < WF_CALLS_NOTED ? 1 : last - WF_CALLS_NOTED + 1;
    struct wf_text notes = {0};
    struct told told;

    if (comm->checked) put_refused(comm, &notes);
    for (uint64_t n = first; comm->checked && n <= last; n++) {
        if (!read_note(comm, n, &told)) continue;
        wf_put_u64(&notes, told.number);
        wf_put_u64(&notes, told.memory);
        wf_put_string(&notes, told.place);
    }
    wf_put_blob(out, notes.data, notes.failed ? 0 : notes.length);
    wf_text_free(&notes);
}

/* The places of MINE, and of THEIRS of RANK, differ.  If one of the two repeats the call before it,
 * the other rank may have made that call less often. */
static void add_repeated(const weft_comm *comm, int32_t rank, const struct told *mine,
                         const struct told *theirs, struct wf_text *out)
{
    struct told before;
    int32_t missing;

    if (mine->number < 2 || !read_note(comm, mine->number - 1, &before)) return;
    if (strcmp(before.place, mine->place) == 0)
        missing = rank;
    else if (strcmp(before.place, theirs->place) == 0)
        missing = comm->context->rank;
    else
        return;
    wf_text_add(out, "; an earlier repeated one may be missing on rank %d", missing);
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
    if (!here) add_repeated(comm, rank, mine, theirs, out);
}

/* The first of the notes up to LAST that differs from this rank's; in its place, or if IN_MEMORY,
 * in its memory. */
static bool find_difference(const weft_comm *comm, weft_blob notes, uint64_t last, bool in_memory,
                            struct told *mine, struct told *theirs)
{
    struct wf_reader reader = {notes.data, (size_t)notes.bytes, false};
    struct told_refused refused;

    take_refused(&reader, &refused);
    while (take_note(&reader, theirs)) {
        if (theirs->number > last || !read_note(comm, theirs->number, mine)) continue;
        if (in_memory ? mine->memory != theirs->memory : strcmp(mine->place, theirs->place) != 0)
            return true;
    }
    return false;
}

/* Add the first refused call of the rank that has refused more calls; false: neither has. */
static bool compare_refused(const weft_comm *comm, weft_blob notes, int32_t rank,
                            struct wf_text *out)
{
    struct wf_reader reader = {notes.data, (size_t)notes.bytes, false};
    struct told_refused mine, theirs, *more;

    read_refused(comm, &mine);
    take_refused(&reader, &theirs);
    if (mine.count == theirs.count) return false;
    more = mine.count > theirs.count ? &mine : &theirs;
    wf_text_clean(theirs.place, strlen(theirs.place));
    wf_text_clean(theirs.why, strlen(theirs.why));
    wf_text_add(out, "; rank %d refused the call of collective %llu at %s",
                more == &mine ? comm->context->rank : rank, (unsigned long long)more->number,
                more->place);
    if (more->count > 1) wf_text_add(out, ", and %llu later", (unsigned long long)more->count - 1);
    wf_text_add(out, " (%s)", more->why);
    return true;
}

bool wf_calls_compare(const weft_comm *comm, weft_blob notes, int32_t rank, uint64_t last,
                      struct wf_text *out)
{
    bool refused = compare_refused(comm, notes, rank, out);
    struct told mine, theirs;

    /* The memory of equal calls may differ, so it counts only if all places are equal. */
    if (!find_difference(comm, notes, last, false, &mine, &theirs) &&
        !find_difference(comm, notes, last, true, &mine, &theirs))
        return refused;
    describe(comm, rank, &mine, &theirs, out);
    return true;
}

void wf_calls_left(weft_comm *comm, int32_t rank, uint64_t count, weft_blob notes)
{
    struct wf_reader reader = {notes.data, (size_t)notes.bytes, false};
    struct wf_left left = {count, rank, ""};
    struct wf_calls *calls = &comm->calls;
    struct told_refused refused;
    struct told told;

    take_refused(&reader, &refused);
    while (take_note(&reader, &told))
        if (told.number == count) snprintf(left.place, sizeof left.place, "%s", told.place);
    if (calls->left == 0 || count < calls->least.count) calls->least = left;
    if (calls->left == 0 || count > calls->most.count) calls->most = left;
    calls->left++;
}

/* ", the last one at PLACE", or nothing if PLACE is "". */
static void add_last(struct wf_text *out, const char *place)
{
    if (place[0] != '\0') wf_text_add(out, ", the last one at %s", place);
}

void wf_calls_warn(const weft_comm *comm)
{
    uint64_t made = atomic_load_explicit(&comm->collectives, memory_order_relaxed);
    const struct wf_left *other = &comm->calls.least;
    struct wf_text text = {0};
    struct told told;

    if (!comm->checked || comm->calls.left == 0) return;
    if (other->count == made) other = &comm->calls.most;
    if (other->count == made) return;
    wf_text_add(&text, "weft_context_release: rank %d leaves after %llu collective%s on %s",
                comm->context->rank, (unsigned long long)made, WF_PLURAL(made), comm->name);
    add_last(&text, read_note(comm, made, &told) ? told.place : "");
    wf_text_add(&text, ", but rank %d left after %llu", other->rank,
                (unsigned long long)other->count);
    add_last(&text, other->place);
    wf_log(WF_LOG_WARNING, "%s; all ranks must make the same calls",
           text.failed ? "weft_context_release: ranks leave after different numbers of collectives"
                       : text.data);
    wf_text_free(&text);
}
