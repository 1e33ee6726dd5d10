/* cases_faults.c - refused calls, and failures between ranks. */
#include "rank.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static void wrong_moves_are_refused(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 2);
    uint8_t *memory = take(self, 64);

    if (symm == NULL || memory == NULL) return;
    refused(self, "put to rank -1", weft_symm_put_to(symm, memory, -1, 0, 8, NULL),
            WEFT_ERR_INVALID, "peer is -1; the ranks are 0 to");
    refused(self, "get from rank SIZE", weft_symm_get_from(symm, self->size, 0, memory, 8, NULL),
            WEFT_ERR_INVALID, "the ranks are 0 to");
    refused(self, "put past the end", weft_symm_put_to(symm, memory, 0, 60, 8, NULL),
            WEFT_ERR_INVALID, "8 bytes at offset 60 reach beyond the memory, which has 64");
    refused(self, "put that wraps", weft_symm_put_to(symm, memory, 0, UINT64_MAX - 3, 8, NULL),
            WEFT_ERR_INVALID, "which has 64");
    refused(self, "get past the end", weft_symm_get_from(symm, 0, 64, memory, 1, NULL),
            WEFT_ERR_INVALID, "1 bytes at offset 64 reach beyond the memory, which has 64");
    refused(self, "put of NULL", weft_symm_put_to(symm, NULL, 0, 0, 8, NULL), WEFT_ERR_INVALID,
            "8 bytes is NULL");
    refused(self, "no memory at all", weft_symm_put_to(NULL, memory, 0, 0, 8, NULL),
            WEFT_ERR_INVALID, "symm is NULL");
    OK(weft_symm_put_to(symm, memory, 0, 56, 8, NULL)); /* it stays usable */
    OK(weft_symm_barrier(symm, NULL));
    finish(self, NULL);
    give(self, memory);
    weft_symm_release(&symm);
}

static void wrong_signals_are_refused(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 2);

    if (symm == NULL) return;
    refused(self, "channel 2 of 2", weft_symm_signal_to(symm, 0, 2, 1, WEFT_SIGNAL_SET, NULL),
            WEFT_ERR_INVALID, "channel is 2; the channels are 0 to 1");
    refused(self, "an unknown operation", weft_symm_signal_to(symm, 0, 0, 1, 9, NULL),
            WEFT_ERR_INVALID, "op is 9");
    refused(self, "a put_signal on channel 5",
            weft_symm_put_signal_to(symm, symm, 0, 0, 0, 5, 1, WEFT_SIGNAL_SET, NULL),
            WEFT_ERR_INVALID, "channel is 5; the channels are 0 to 1");
    refused(self, "a wait for rank 99",
            weft_symm_wait_from(symm, 99, 0, WEFT_COMPARE_EQ, 0, 0, NULL), WEFT_ERR_INVALID,
            "peer is 99");
    refused(self, "an unknown comparison", weft_symm_wait_from(symm, 0, 0, 9, 0, 0, NULL),
            WEFT_ERR_INVALID, "compare is 9");
    refused(self, "a time limit of -7",
            weft_symm_wait_from(symm, 0, 0, WEFT_COMPARE_EQ, 0, -7, NULL), WEFT_ERR_INVALID,
            "timeout_ns is -7;");
    refused(self, "a test of channel 2", weft_symm_test_from(symm, 0, 2, WEFT_COMPARE_EQ, 0),
            WEFT_ERR_INVALID, "channel is 2");
    OK(weft_group_begin(self->world));
    refused(self, "a fence in a group", weft_symm_fence(symm, NULL), WEFT_ERR_INVALID,
            "not allowed inside a call group");
    OK(weft_group_end(self->world));
    OK(weft_symm_barrier(symm, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
}

/* Operations on a peer without an address are refused, and no others. */
static void an_inaccessible_peer_is_refused(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 1);
    uint8_t *memory = take(self, 64);

    for (int32_t peer = 0; symm != NULL && memory != NULL && peer < self->size; peer++) {
        weft_status status = weft_symm_put_to(symm, memory, peer, 0, 8, NULL);

        if (weft_symm_peer(symm, peer) == NULL && status != WEFT_OK)
            refused(self, "a put to a rank out of reach", status, WEFT_ERR_UNSUPPORTED,
                    "cannot access");
        else
            OK(status);
    }
    if (symm != NULL) OK(weft_symm_barrier(symm, NULL));
    finish(self, NULL);
    give(self, memory);
    weft_symm_release(&symm);
}

/* One rank requests different memory: all ranks get an error with both sizes and stay usable. */
static void sizes_that_differ_are_reported_to_all(struct rank *self)
{
    bool odd = self->number == self->size - 1;
    weft_symm_options options = {.struct_size = sizeof options, .channels = odd ? 5 : 4};
    weft_symm *symm = NULL;

    if (refused(self, "8192 bytes beside 4096",
                weft_symm_create(self->world, odd ? 8192 : 4096, NULL, &symm), WEFT_ERR_MISMATCH,
                "rank 0 asks for 4096 bytes"))
        check(self, strstr(weft_last_error(), "for 8192 bytes") != NULL, "no 8192 in: %s",
              weft_last_error());
    refused(self, "5 channels beside 4", weft_symm_create(self->world, 64, &options, &symm),
            WEFT_ERR_MISMATCH, "64 bytes and 5 channels");
    options.channels = odd ? UINT32_MAX : 1;
    refused(self, "too many channels on one rank",
            weft_symm_create(self->world, 64, &options, &symm), WEFT_ERR_INVALID,
            "channels is 4294967295");
    check(self, symm == NULL, "it was made nevertheless");
    symm = make(self, self->world, 64, 4);
    weft_symm_release(&symm);
}

/* One rank's mistake does not block the others, and later calls match the right calls of peers. */
static void one_ranks_mistake_is_reported_to_all(struct rank *self)
{
    bool odd = self->number == self->size - 1;
    char *memory = take(self, 4096);
    weft_symm *symm = NULL, **out = odd ? NULL : &symm;
    weft_status status;

    refused(self, "no place for it", weft_symm_create(self->world, 64, NULL, out), WEFT_ERR_INVALID,
            "weft_symm_create: out is NULL");
    if (odd) OK(weft_group_begin(self->world));
    refused(self, "a group on one rank", weft_symm_create(self->world, 64, NULL, &symm),
            WEFT_ERR_INVALID, "not allowed inside a call group");
    if (odd) OK(weft_group_end(self->world));
    status = weft_symm_register(self->world, odd ? NULL : memory, 4096, NULL, &symm);
    if (status != WEFT_ERR_UNSUPPORTED) {
        refused(self, "NULL on one rank", status, WEFT_ERR_INVALID, "memory is NULL");
        refused(self, "0 bytes on one rank",
                weft_symm_register(self->world, memory, odd ? 0 : 4096, NULL, &symm),
                WEFT_ERR_INVALID, "bytes is 0");
    } else if (self->number == 0) {
        printf("skipped: registering: %s\n", weft_last_error());
    }
    check(self, symm == NULL, "it was made nevertheless");
    symm = make(self, self->world, 64, 1);
    weft_symm_release(&symm);
    give(self, memory);
}

/* The heap is exhausted: all ranks get the same error and stay usable. */
static void too_much_is_an_error_that_passes(struct rank *self)
{
    weft_symm *symm = NULL;

    refused(self, "2^60 bytes", weft_symm_create(self->world, UINT64_C(1) << 60, NULL, &symm),
            WEFT_ERR_NO_MEMORY, "1152921504606846976 bytes");
    refused(self, "2^63 bytes", weft_symm_create(self->world, UINT64_C(1) << 63, NULL, &symm),
            WEFT_ERR_INVALID, "more than 2^63 - 1");
    symm = make(self, self->world, 64, 1);
    weft_symm_release(&symm);
}

/* Check the backend's message for memory that it cannot register. */
static bool refuses_memory(struct rank *self, weft_status status, const char *const *parts,
                           size_t count)
{
    bool named = false;

    for (size_t i = 0; i < count; i++)
        named = named || strstr(weft_last_error(), parts[i]) != NULL;
    return check(self, status == WEFT_ERR_UNSUPPORTED || status == WEFT_ERR_INVALID, "it is %s: %s",
                 weft_status_name(status), weft_last_error()) &&
           check(self, named, "another reason: %s", weft_last_error());
}

/* One rank registers memory that its peers cannot access, unless they are threads of one process.
 * No rank gets a window, and all stay usable. */
static void memory_elsewhere_is_refused_on_all_ranks(struct rank *self)
{
    static char elsewhere[4096];
    bool odd = self->number == self->size - 1;
    char *memory = take(self, sizeof elsewhere), reason[80];
    const char *const reasons[] = {reason, "cannot register memory"};
    weft_symm *symm = NULL;
    weft_status status =
        weft_symm_register(self->world, odd ? elsewhere : memory, sizeof elsewhere, NULL, &symm);

    /* A second plugin cannot share the first plugin's memory either. */
    snprintf(reason, sizeof reason, "window: the memory of rank %d ",
             self->second ? 0 : self->size - 1);
    if (status == WEFT_OK)
        check(self, self->threads && weft_symm_peer(symm, self->size - 1) == elsewhere,
              "it is not refused");
    else if (refuses_memory(self, status, reasons, COUNT(reasons)))
        check(self, status == WEFT_ERR_UNSUPPORTED, "it is %s", weft_status_name(status));
    weft_symm_release(&symm);
    give(self, memory);
    symm = make(self, self->world, 64, 1);
    weft_symm_release(&symm);
}

/* A window larger than its memory is refused too, because other memory follows.  A rank of one
 * process cannot know the size of another plugin's memory. */
static void more_than_was_allocated_is_refused(struct rank *self)
{
    static const char *const reasons[] = {"has fewer than", "cannot register memory",
                                          "is not from weft_alloc"};
    char *memory = take(self, 64);
    weft_symm *symm = NULL;
    weft_status status = weft_symm_register(self->world, memory, 1 << 20, NULL, &symm);

    if (status != WEFT_OK) {
        refuses_memory(self, status, reasons, COUNT(reasons));
        check(self,
              (status == WEFT_ERR_INVALID) == (strstr(weft_last_error(), "has fewer than") != NULL),
              "it is %s: %s", weft_status_name(status), weft_last_error());
    } else {
        check(self, (self->threads || self->size == 1) && self->second, "it is not refused");
    }
    weft_symm_release(&symm);
    give(self, memory);
}

/* Rank 0 waits on STREAM for a signal that rank 1 (or itself) never sends. */
static void wait_endlessly(struct rank *self, weft_stream *stream)
{
    weft_comm *comm = spare_comm(self);
    weft_symm *symm = comm != NULL ? make(self, comm, 64, 4) : NULL;
    int32_t peer = self->size > 1 ? 1 : 0;
    char part[64];

    snprintf(part, sizeof part, "channel 2 of rank %d to be >= 5", peer);
    if (symm != NULL && self->number == 0) {
        weft_status status =
            weft_symm_wait_from(symm, peer, 2, WEFT_COMPARE_GE, 5, SECOND / 5, stream);

        if (status == WEFT_OK) status = weft_context_wait(self->context, stream, 300 * SECOND);
        refused(self, "a wait that times out", status, WEFT_ERR_TIMEOUT, part);
        refused(self, "a signal afterwards",
                weft_symm_signal_to(symm, peer, 0, 1, WEFT_SIGNAL_SET, NULL), WEFT_ERR_TIMEOUT,
                part);
    }
    OK(weft_barrier(self->world, NULL)); /* the others do not release the memory during the wait */
    finish(self, NULL);
    weft_symm_release(&symm);
    weft_comm_release(&comm);
}

static void a_wait_that_times_out_names_channel_and_rank(struct rank *self)
{
    wait_endlessly(self, NULL);
}

static void a_wait_that_times_out_on_a_stream_does_so_too(struct rank *self)
{
    weft_stream *stream = NULL;

    if (self->stream == NULL) return;
    if (OK(weft_stream_create(self->context, &stream))) wait_endlessly(self, stream);
    weft_stream_release(&stream);
}

/* After an abort, too, a wait for a missing signal fails. */
static void an_abort_ends_a_wait(struct rank *self)
{
    weft_comm *comm = spare_comm(self);
    weft_symm *symm = comm != NULL ? make(self, comm, 64, 1) : NULL;
    int64_t began = now_ns();
    weft_status status;

    if (symm == NULL) return;
    if (self->number == 0) {
        status = weft_symm_wait_from(symm, 1, 0, WEFT_COMPARE_EQ, 1, 3600 * SECOND, NULL);
        if (status == WEFT_OK) status = weft_context_wait(self->context, NULL, 3600 * SECOND);
        check(self, status != WEFT_OK, "the wait ended well");
        check(self, now_ns() - began < 1800 * SECOND, "the wait ended by itself");
        refused(self, "what comes after", weft_symm_fence(symm, NULL), WEFT_ERR_ABORTED,
                "aborted by rank 1");
    } else if (self->number == 1) {
        weft_comm_abort(comm);
        refused(self, "what comes after", weft_symm_fence(symm, NULL), WEFT_ERR_ABORTED,
                "aborted by rank 1");
    }
    OK(weft_barrier(self->world, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
    weft_comm_release(&comm);
}

/* With WEFT_CHECK: barriers of different memory, and memory outside an allocation. */
static void checks_find_what_differs(struct rank *self)
{
    weft_comm *comm = self->checks ? spare_comm(self) : NULL;
    weft_symm *a = comm != NULL ? make(self, comm, 64, 1) : NULL;
    weft_symm *b = comm != NULL ? make(self, comm, 64, 1) : NULL;

    if (a != NULL && b != NULL)
        refused(self, "barriers of two memories",
                weft_symm_barrier(self->number == 0 ? a : b, NULL), WEFT_ERR_MISMATCH,
                "weft_symm_barrier of symmetric memory #");
    weft_symm_release(&b);
    weft_symm_release(&a);
    weft_comm_release(&comm);
}

/* On a CPU calls are always compared: a rank that omits the release does not release the others. */
static void a_release_matches_no_barrier(struct rank *self)
{
    weft_comm *comm = spare_comm(self);
    weft_symm *symm = comm != NULL ? make(self, comm, 64, 1) : NULL;

    if (symm != NULL && strcmp(weft_symm_backend(symm), "gloo-cpu") == 0 && !self->second &&
        !self->checks) {
        if (self->number == 0)
            weft_symm_release(&symm);
        else
            refused(self, "a barrier beside a release", weft_barrier(comm, NULL), WEFT_ERR_MISMATCH,
                    "barrier");
    }
    OK(weft_barrier(self->world, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
    weft_comm_release(&comm);
}

/* The barrier of symmetric memory differs from that of its communicator. */
static void barriers_are_of_two_kinds(struct rank *self)
{
    weft_comm *comm = spare_comm(self);
    weft_symm *symm = comm != NULL ? make(self, comm, 64, 1) : NULL;
    bool compares =
        symm != NULL &&
        (self->checks || (!self->second && strcmp(weft_symm_backend(symm), "gloo-cpu") == 0));

    if (compares && self->number == 0)
        refused(self, "a barrier of another kind", weft_symm_barrier(symm, NULL), WEFT_ERR_MISMATCH,
                "calls weft_symm_barrier of symmetric memory #");
    if (compares && self->number != 0)
        refused(self, "a barrier of another kind", weft_barrier(comm, NULL), WEFT_ERR_MISMATCH,
                " calls barrier");
    OK(weft_barrier(self->world, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
    weft_comm_release(&comm);
}

/* Nor on a device, where both sides wait until one of them times out. */
static void a_release_is_not_a_collective(struct rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = 500000000};
    weft_comm *comm = NULL;
    weft_status status = WEFT_OK;
    weft_symm *symm;

    OK(weft_comm_split(self->world, 0, 0, &options, &comm));
    symm = comm != NULL ? make(self, comm, 64, 1) : NULL;
    if (symm != NULL && strcmp(weft_symm_backend(symm), "gloo-cpu") != 0 && !self->second &&
        !self->checks) {
        if (self->number == 0)
            weft_symm_release(&symm);
        else
            status = weft_barrier(comm, NULL);
        if (status == WEFT_OK) status = weft_context_wait(self->context, NULL, 20 * SECOND);
        if (status == WEFT_OK) status = weft_comm_async_error(comm);
        check(self, status != WEFT_OK, "a barrier was taken for a release");
    }
    OK(weft_barrier(self->world, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
    weft_comm_release(&comm);
}

const struct symm_case fault_cases[] = {
    {"wrong_moves_are_refused", wrong_moves_are_refused, 1},
    {"wrong_signals_are_refused", wrong_signals_are_refused, 1},
    {"an_inaccessible_peer_is_refused", an_inaccessible_peer_is_refused, 1},
    {"sizes_that_differ_are_reported_to_all", sizes_that_differ_are_reported_to_all, 2},
    {"one_ranks_mistake_is_reported_to_all", one_ranks_mistake_is_reported_to_all, 2},
    {"too_much_is_an_error_that_passes", too_much_is_an_error_that_passes, 1},
    {"memory_elsewhere_is_refused_on_all_ranks", memory_elsewhere_is_refused_on_all_ranks, 2},
    {"more_than_was_allocated_is_refused", more_than_was_allocated_is_refused, 1},
    {"a_wait_that_times_out_names_channel_and_rank", a_wait_that_times_out_names_channel_and_rank,
     1},
    {"a_wait_that_times_out_on_a_stream_does_so_too", a_wait_that_times_out_on_a_stream_does_so_too,
     1},
    {"an_abort_ends_a_wait", an_abort_ends_a_wait, 2},
    {"checks_find_what_differs", checks_find_what_differs, 2},
    {"a_release_matches_no_barrier", a_release_matches_no_barrier, 2},
    {"barriers_are_of_two_kinds", barriers_are_of_two_kinds, 2},
    {"a_release_is_not_a_collective", a_release_is_not_a_collective, 2},
    {NULL, NULL, 0}};

/* Wait until every other rank has told, by a signal, that its earlier work is complete. */
static void wait_for_others(struct rank *self, weft_symm *symm)
{
    for (int32_t rank = 0; rank < self->size; rank++)
        if (rank != self->number)
            OK(weft_symm_wait_from(symm, rank, 1, WEFT_COMPARE_EQ, 1, 300 * SECOND, NULL));
    finish(self, NULL);
}

int run_gone(struct rank *self, int32_t gone)
{
    weft_symm *symm = make(self, self->world, 64, 2);
    int64_t began = now_ns();
    char part[32];
    weft_status status;

    self->name = "gone";
    if (symm == NULL) return 1;
    OK(weft_symm_barrier(symm, NULL));
    finish(self, NULL);
    if (self->number == gone) {
        wait_for_others(self, symm);
        raise(SIGKILL);
    }
    OK(weft_symm_signal_to(symm, gone, 1, 1, WEFT_SIGNAL_SET, NULL));
    snprintf(part, sizeof part, "rank %d ", gone);
    status = weft_symm_wait_from(symm, gone, 0, WEFT_COMPARE_EQ, 1, 3600 * SECOND, NULL);
    if (status == WEFT_OK) status = weft_context_wait(self->context, NULL, 3600 * SECOND);
    check(self, status != WEFT_OK, "the wait ended well");
    check(self, now_ns() - began < 1800 * SECOND, "the wait ended by itself");
    if (refused(self, "a wait for a lost rank", weft_symm_fence(symm, NULL), WEFT_ERR_PEER, part))
        printf("as expected: %s\n", weft_last_error());
    weft_symm_release(&symm);
    weft_stream_release(&self->stream);
    return self->failed;
}
