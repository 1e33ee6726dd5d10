/* fake_recorders.c - recorders of a job that does not exist, for `weft status`:
 *
 *     fake_recorders READY JOB SIZE
 * [RANK:OPERATION:SEQUENCE:STATE[:PEER[:DTYPE:REDUCTION:COUNT]]]... fake_recorders READY JOB SIZE
 * none
 *
 * makes recorders of ranks 0 to SIZE - 1 of job number JOB with a communicator "tp" of all of them,
 * and a record for each further argument; none: they have no backend and no communicator yet. STATE
 * is "in", "finished", "failed", "failed=2", which waited for rank 2, or "mismatch".  DTYPE and
 * REDUCTION are numbers of the ABI, f32 and sum if not given.  Writes the file READY when the
 * recorders are complete, and keeps them until SIGTERM. */
#include "trace/trace.h"
#include "weft/status.h"
#include "weft/recorder.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 64 };

static struct wf_trace *traces[RANKS_MOST];
static const int32_t world[RANKS_MOST] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                          11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                          22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static uint8_t find_operation(const char *name)
{
    for (int i = 0; i < WEFT_RECORD_OPERATION_COUNT; i++) {
        const char *known = weft_record_operation_name((enum weft_record_operation)i);

        if (known != NULL && strcmp(known, name) == 0) return (uint8_t)i;
    }
    fprintf(stderr, "%s is not an operation\n", name);
    exit(2);
}

static void add_record(const char *text)
{
    int rank, peer = -1;
    unsigned long long sequence;
    char name[32], state[32];
    unsigned dtype = WEFT_DTYPE_F32, reduction = WEFT_REDUCE_SUM;
    unsigned long long count = 2 << 20;
    struct wf_submitted record;
    weft_record draft = {.comm = 7, .step_kind = WEFT_NO_STEP_KIND};

    if (sscanf(text, "%d:%31[^:]:%llu:%31[^:]:%d:%u:%u:%llu", &rank, name, &sequence, state, &peer,
               &dtype, &reduction, &count) < 4 ||
        rank < 0 || rank >= RANKS_MOST || traces[rank] == NULL) {
        fprintf(stderr, "%s is not a record\n", text);
        exit(2);
    }
    draft.sent = draft.received = count * 4;
    draft.dtype = (uint8_t)dtype;
    draft.reduction = (uint8_t)reduction;
    draft.sequence = sequence;
    draft.operation = find_operation(name);
    draft.peer = peer;
    draft.comm_name = wf_trace_intern(traces[rank], "tp");
    record = wf_trace_submit(traces[rank], NULL, WF_CALL_SUBMITTED, &draft);
    if (strcmp(state, "finished") == 0) wf_trace_finish(traces[rank], record);
    if (strncmp(state, "failed=", 7) == 0) wf_trace_set_wait(traces[rank], 7, 0, atoi(state + 7));
    if (strncmp(state, "failed", 6) == 0) (void)wf_trace_fail(traces[rank], record, WEFT_ERR_PEER);
    if (strcmp(state, "mismatch") == 0)
        (void)wf_trace_fail(traces[rank], record, WEFT_ERR_MISMATCH);
}

int main(int argc, char **argv)
{
    int size = argc > 3 ? atoi(argv[3]) : 0, number;
    bool has_comm = argc < 5 || strcmp(argv[4], "none") != 0;
    sigset_t end;
    FILE *file;

    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    if (size < 1 || size > 32) return 2;
    for (int rank = 0; rank < size; rank++) {
        struct wf_trace_identity identity = {.job = strtoull(argv[2], NULL, 16),
                                             .rank = rank,
                                             .size = size,
                                             .backend = has_comm ? "fake" : ""};

        if (wf_trace_create(&identity, 64, &traces[rank]) != WEFT_OK) return 3;
        if (has_comm)
            wf_trace_add_comm(traces[rank], 7, wf_trace_intern(traces[rank], "tp"), world, size,
                              rank);
    }
    for (int i = 4; has_comm && i < argc; i++)
        add_record(argv[i]);
    file = fopen(argv[1], "w");
    if (file == NULL || fclose(file) != 0 || sigwait(&end, &number) != 0) return 3;
    for (int rank = 0; rank < size; rank++)
        wf_trace_destroy(traces[rank]);
    return 0;
}
