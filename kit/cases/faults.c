/* faults.c - a rank is missing, is killed or calls another collective; aborts.  No rank may
 * hang. */

#include "cases.h"

#include "checks/collective.h"
#include "checks/message.h"

#include <pthread.h>

/* A time limit of a communicator also limits its creation. */
#define SHORT_NS  (1500 * KIT_MILLISECOND)
#define LONGER_NS (4 * KIT_SECOND)  /* if a collective runs first */
#define SLACK_NS  (30 * KIT_SECOND) /* allowance for a busy machine */

/* Find a claimed collective in which every rank waits for every other rank.  False if there is
 * none. */
static bool choose(const struct kit *kit, weft_collective_args *args)
{
    static const uint32_t requests[][3] = {
        {WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32, WEFT_REDUCE_SUM},
        {WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_I32, WEFT_REDUCE_SUM},
        {WEFT_COLL_ALL_GATHER, WEFT_DTYPE_F32, 0},
        {WEFT_COLL_ALL_GATHER, WEFT_DTYPE_U8, 0},
        {WEFT_COLL_ALL_TO_ALL, WEFT_DTYPE_F32, 0},
        {WEFT_COLL_BARRIER, 0, 0},
    };

    for (size_t i = 0; i < WF_COUNT(requests); i++) {
        if (!kit->groups[0].claims[requests[i][0]][requests[i][1]][requests[i][2]]) continue;
        *args = (weft_collective_args){.struct_size = sizeof *args,
                                       .collective = requests[i][0],
                                       .dtype = requests[i][1],
                                       .reduction = requests[i][2],
                                       .count = 4};
        return true;
    }
    return false;
}

/* One rank in one case of this file. */
struct patient {
    struct kit *kit;
    void *comm;
    void *stream;
    weft_collective_args args;
    struct kit_image send, recv;
};

static bool patient_make(struct kit *kit, struct kit_comm_request request, struct patient *p)
{
    uint64_t bytes = 4 * 16 * (uint64_t)kit->size;

    *p = (struct patient){.kit = kit};
    p->comm = kit_comm_make(kit, &kit->groups[0], request);
    if (p->comm == NULL || !choose(kit, &p->args) ||
        !kit_images_make(kit, &p->send, &p->recv, bytes))
        return false;
    p->args.send = kit_image_at(&p->send, 0);
    p->args.recv = kit_image_at(&p->recv, 0);
    return kit_stream_make(kit, &p->stream);
}

static void patient_free(struct patient *p)
{
    struct kit *kit = p->kit;

    /* Streams wait for their work, and only an abort is sure to end it. */
    if (p->comm != NULL) kit->plugin->comm->abort(p->comm);
    kit_stream_drop(kit, p->stream);
    if (p->comm != NULL) kit->plugin->comm->destroy(p->comm);
    kit_images_free(kit, &p->send, &p->recv);
}

/* Call the collective and wait for its end, at most LIMIT. */
static weft_status run(struct patient *p, int64_t limit_ns)
{
    weft_status status;

    p->args.stream = p->stream;
    status = p->kit->plugin->comm->collective(p->comm, &p->args);
    return status != WEFT_OK ? status : kit_finish(p->kit, p->comm, p->stream, limit_ns);
}

/* The error persists: async_error returns it, and later work fails immediately. */
static void check_stuck(struct patient *p, weft_status status)
{
    const weft_comm_table *table = p->kit->plugin->comm;
    weft_status first = table->async_error(p->comm), later;
    uint64_t start = wf_now_ns();

    kit_check(p->kit, first != WEFT_OK, "async_error says WEFT_OK after WEFT_%s",
              weft_status_name(status));
    later = run(p, SLACK_NS);
    kit_check(p->kit, later != WEFT_OK, "a later collective succeeds after WEFT_%s",
              weft_status_name(status));
    kit_check(p->kit, wf_now_ns() - start < (uint64_t)SLACK_NS / 2,
              "a later collective takes %.1f s to fail", (double)(wf_now_ns() - start) * 1e-9);
    kit_check(p->kit, table->async_error(p->comm) == first, "async_error changes from WEFT_%s",
              weft_status_name(first));
}

static void check_lost(struct patient *p, weft_status status, uint64_t start)
{
    uint64_t took = wf_now_ns() - start;

    kit_check(p->kit, status == WEFT_ERR_TIMEOUT || status == WEFT_ERR_PEER,
              "without one rank: expected WEFT_ERR_TIMEOUT or WEFT_ERR_PEER, got WEFT_%s",
              weft_status_name(status));
    kit_check(p->kit, took < (uint64_t)(LONGER_NS + SLACK_NS),
              "a limit of %.1f s or less ended after %.1f s", (double)LONGER_NS * 1e-9,
              (double)took * 1e-9);
    check_stuck(p, status);
}

/* ---- a rank that never comes ---- */

void kit_errors_timeout(struct kit *kit)
{
    struct patient p;

    if (patient_make(kit, (struct kit_comm_request){.timeout_ns = SHORT_NS}, &p) &&
        kit->rank != kit->size - 1) {
        uint64_t start = wf_now_ns();
        weft_status status = run(&p, SHORT_NS + 2 * SLACK_NS);
        kit_check(kit, status != WEFT_ERR_TIMEOUT || wf_now_ns() - start > (uint64_t)SHORT_NS / 2,
                  "a limit of 0.4 s ended after %.3f s", (double)(wf_now_ns() - start) * 1e-9);
        check_lost(&p, status, start);
    }
    kit_synchronize(kit, kit->groups[0].ranks, kit->size);
    patient_free(&p);
}

void kit_errors_timeout_receive(struct kit *kit)
{
    struct patient p;

    if (patient_make(kit, (struct kit_comm_request){.timeout_ns = SHORT_NS}, &p) &&
        kit->rank == 0) {
        weft_message message = {.struct_size = sizeof message,
                                .dtype = WEFT_DTYPE_U8,
                                .buffer = kit_image_at(&p.recv, 0),
                                .count = 4,
                                .peer = kit->size - 1,
                                .stream = p.stream};
        uint64_t start = wf_now_ns();
        weft_status status = kit->plugin->comm->receive(p.comm, &message);
        if (status == WEFT_OK) status = kit_finish(kit, p.comm, p.stream, SHORT_NS + 2 * SLACK_NS);
        check_lost(&p, status, start);
    }
    kit_synchronize(kit, kit->groups[0].ranks, kit->size);
    patient_free(&p);
}

/* Late, but within the limit. */
void kit_errors_patience(struct kit *kit)
{
    struct patient p;

    if (patient_make(kit, (struct kit_comm_request){.timeout_ns = 10 * SHORT_NS}, &p)) {
        if (kit->rank == kit->size - 1) kit_nap(SHORT_NS / 2);
        kit_ok(kit, "a collective within its limit", run(&p, 10 * SHORT_NS + SLACK_NS));
    }
    patient_free(&p);
}

/* ---- a rank that is killed ---- */

void kit_errors_killed(struct kit *kit)
{
    struct patient p;
    int32_t dead = kit->size - 1;

    if (!kit_begin(kit, "killed")) return;
    if (patient_make(kit, (struct kit_comm_request){.timeout_ns = LONGER_NS}, &p) &&
        kit_ok(kit, "a collective while all are there", run(&p, SLACK_NS))) {
        uint64_t start;
        kit_synchronize(kit, kit->groups[0].ranks, kit->size);
        if (kit->rank == dead) kit_die(kit);
        start = wf_now_ns();
        check_lost(&p, run(&p, LONGER_NS + 2 * SLACK_NS), start);
    } else if (kit->rank == dead) {
        kit_die(kit);
    }
    patient_free(&p);
    kit_end_without(kit, dead);
}

/* ---- abort ---- */

struct aborting {
    struct kit *kit;
    void *comm;
    int64_t delay_ns;
};

static void *abort_later(void *argument)
{
    struct aborting *aborting = argument;

    kit_nap(aborting->delay_ns);
    aborting->kit->plugin->comm->abort(aborting->comm);
    aborting->kit->plugin->comm->abort(aborting->comm);
    return NULL;
}

void kit_errors_abort_pending(struct kit *kit)
{
    struct patient p;
    pthread_t thread;

    kit_allow(kit, 60 * KIT_SECOND);
    if (patient_make(kit, (struct kit_comm_request){.timeout_ns = 40 * KIT_SECOND}, &p) &&
        kit->rank != kit->size - 1) {
        struct aborting aborting = {kit, p.comm, 50 * KIT_MILLISECOND};
        uint64_t start = wf_now_ns();
        weft_status status;
        if (pthread_create(&thread, NULL, abort_later, &aborting) != 0) abort_later(&aborting);
        status = run(&p, 30 * KIT_SECOND);
        /* A rank may see the abort of a peer before its own. */
        kit_check(kit, status == WEFT_ERR_ABORTED || status == WEFT_ERR_PEER,
                  "work that was aborted: expected WEFT_ERR_ABORTED, got WEFT_%s",
                  weft_status_name(status));
        kit_check(kit, wf_now_ns() - start < (uint64_t)SLACK_NS,
                  "work ended %.1f s after its abort", (double)(wf_now_ns() - start) * 1e-9);
        pthread_join(thread, NULL);
        check_stuck(&p, status);
    }
    kit_synchronize(kit, kit->groups[0].ranks, kit->size);
    patient_free(&p);
}

/* Abort without work in progress.  Other communicators are not affected. */
void kit_errors_abort_idle(struct kit *kit)
{
    struct patient p, other;

    if (patient_make(kit, (struct kit_comm_request){0}, &other) &&
        patient_make(kit, (struct kit_comm_request){0}, &p)) {
        kit->plugin->comm->abort(p.comm);
        kit_expect(kit, "async_error of an aborted communicator",
                   kit->plugin->comm->async_error(p.comm), WEFT_ERR_ABORTED);
        kit_expect(kit, "a collective on an aborted communicator", run(&p, SLACK_NS),
                   WEFT_ERR_ABORTED);
        check_stuck(&p, WEFT_ERR_ABORTED);
        kit_ok(kit, "a collective on another communicator", run(&other, SLACK_NS));
        patient_free(&p);
    }
    patient_free(&other);
}

/* ---- calls that do not match, on a communicator that checks ---- */

/* The last rank calls ODD, with the same buffers. */
static void mismatch(struct kit *kit, const char *name, const weft_collective_args *odd)
{
    struct kit_comm_request request = {.timeout_ns = 4 * SHORT_NS, .flags = WEFT_COMM_CHECK};
    struct patient p;

    if (odd->collective != WEFT_COLL_BARRIER &&
        !kit->groups[0].claims[odd->collective][odd->dtype][odd->reduction])
        return;
    if (!kit_begin(kit, "mismatch/%s", name)) return;
    if (patient_make(kit, request, &p)) {
        weft_status status;
        p.args.reduction = odd->reduction;
        status = run(&p, SLACK_NS);
        kit_ok(kit, "a collective that matches, with WEFT_COMM_CHECK", status);
        if (kit->rank == kit->size - 1) {
            weft_collective_args same = p.args;
            p.args = *odd;
            p.args.send = same.send;
            p.args.recv = same.recv;
        }
        if (status == WEFT_OK)
            kit_expect(kit, "a collective that differs on one rank", run(&p, 2 * SLACK_NS),
                       WEFT_ERR_MISMATCH);
    }
    patient_free(&p);
    kit_end(kit);
}

void kit_errors_mismatches(struct kit *kit)
{
    weft_collective_args args = {0}, odd;

    choose(kit, &args);
    odd = args;
    odd.count = 3;
    if (args.collective != WEFT_COLL_BARRIER) mismatch(kit, "count", &odd);
    odd = args;
    odd.collective = WEFT_COLL_ALL_GATHER;
    if (args.collective == WEFT_COLL_ALL_REDUCE) mismatch(kit, "collective", &odd);
    odd = args;
    odd.plan = UINT64_C(0x123456789abcdef0);
    odd.binding = odd.step = 1;
    mismatch(kit, "plan", &odd);
    odd = args;
    odd.reduction = WEFT_REDUCE_AVG;
    odd.divisor = (uint32_t)kit->size + 1;
    if (args.collective == WEFT_COLL_ALL_REDUCE) mismatch(kit, "divisor", &odd);
}

/* ---- an exchange that fails while communicators are made ---- */

void kit_errors_exchange_fails(struct kit *kit)
{
    for (int at = 1; at <= 3; at++) {
        void *comm = NULL;
        weft_status status;
        if (!kit_begin(kit, "exchange_fails/call=%d", at)) continue;
        status = kit_comm_try(kit, &kit->groups[0],
                              (struct kit_comm_request){.exchange_fails_at = at}, &comm);
        /* A plugin that does not reach that call cannot report it. */
        kit_check(kit, (status == WEFT_OK) == (comm != NULL),
                  "commit fails and leaves a communicator");
        kit_comm_drop(kit, comm);
        kit_end(kit);
    }
}

bool kit_when_faults(struct kit *kit)
{
    weft_collective_args args;

    if (!kit_when_comm(kit)) return false;
    if (kit->size < 2)
        kit_skip(kit, "faults between ranks need two of them");
    else if (!choose(kit, &args))
        kit_skip(kit, "faults between ranks need all_reduce, all_gather, all_to_all or barrier");
    else
        return true;
    return false;
}

bool kit_when_unordered_messages(struct kit *kit)
{
    return kit_when_comm(kit) && kit_has_messages(kit);
}

bool kit_when_faults_in_messages(struct kit *kit)
{
    return kit_when_faults(kit) && kit_has_messages(kit);
}

bool kit_when_faults_in_processes(struct kit *kit)
{
    return kit_when_faults(kit) && !kit->options->threads;
}
