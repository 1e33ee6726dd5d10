/* Orders of compute and communication. */
#include "base/base.h"
#include "support/allocfail.h"
#include "support/random.h"
#include "support/suite.h"
#include "weft/reorder.h"

#include <string.h>

enum { MOST = 200, PASSES = 4 };

/* A program that is written as a list of calls. */
struct program {
    weft_reorder_node nodes[MOST];
    int32_t inputs[MOST][8];
    size_t count;
};

static int32_t add(struct program *p, uint32_t kind, int32_t comm, uint64_t time, uint64_t alloc,
                   int32_t a, int32_t b)
{
    weft_reorder_node *n = &p->nodes[p->count];

    *n = (weft_reorder_node){.kind = kind, .comm = comm, .time = time, .alloc = alloc};
    n->inputs = p->inputs[p->count];
    if (a >= 0) p->inputs[p->count][n->input_count++] = a;
    if (b >= 0) p->inputs[p->count][n->input_count++] = b;
    return (int32_t)p->count++;
}

static int32_t compute(struct program *p, uint64_t time, uint64_t alloc, int32_t a, int32_t b)
{
    return add(p, WEFT_REORDER_NODE_COMPUTE, -1, time, alloc, a, b);
}

static int32_t start(struct program *p, int32_t comm, uint64_t time, uint64_t alloc, int32_t a)
{
    return add(p, WEFT_REORDER_NODE_START, comm, time, alloc, a, -1);
}

static int32_t wait_for(struct program *p, int32_t started)
{
    return add(p, WEFT_REORDER_NODE_WAIT, -1, 0, 0, started, -1);
}

static weft_reorder *reorder(const struct program *p, uint32_t pass, uint64_t limit)
{
    weft_reorder_options options = {
        .struct_size = sizeof options, .pass = pass, .memory_limit = limit};
    weft_reorder *result = NULL;

    ck_assert_msg(weft_reorder_create(p->count, p->nodes, sizeof *p->nodes, &options, &result) ==
                      WEFT_OK,
                  "%s", weft_last_error());
    return result;
}

static weft_reorder_info info_of(const weft_reorder *r)
{
    weft_reorder_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_reorder_get(r, &info), WEFT_OK);
    return info;
}

static weft_reorder_collective_info collective(const weft_reorder *r, uint32_t index)
{
    weft_reorder_collective_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_reorder_collective_get(r, index, &info), WEFT_OK);
    return info;
}

static int32_t position_of(const weft_reorder *r, int32_t node)
{
    size_t i = 0;

    while (weft_reorder_at(r, i) != node)
        ck_assert_int_ge(weft_reorder_at(r, i++), 0);
    return (int32_t)i;
}

/* ---- collectives are hidden ---- */

/* Four layers that gather parameters right before they use them. */
static void make_gathers(struct program *p, int32_t *starts)
{
    int32_t x = compute(p, 0, 10, -1, -1);

    for (int i = 0; i < 4; i++) {
        int32_t shard = compute(p, 0, 0, -1, -1), gathered;
        starts[i] = start(p, 0, 80, 100, shard);
        gathered = wait_for(p, starts[i]);
        x = compute(p, 100, 10, x, gathered);
    }
}

TEST(gathers_are_hidden_behind_the_layer_before)
{
    struct program p = {.count = 0};
    weft_reorder_info info;
    int32_t starts[4];
    weft_reorder *r;

    make_gathers(&p, starts);
    r = reorder(&p, WEFT_REORDER_ITERATIVE, 1000);
    info = info_of(r);
    ck_assert_uint_eq(info.time_before, 4 * 180);
    ck_assert_uint_eq(info.exposed_before, 4 * 80);
    ck_assert_uint_eq(info.time_after, 80 + 400);
    ck_assert_uint_eq(info.exposed_after, 80);
    ck_assert_uint_eq(info.collectives, 4);
    ck_assert_uint_eq(collective(r, 2).exposed_before, 80);
    ck_assert_uint_eq(collective(r, 2).exposed_after, 0);
    ck_assert_uint_eq(collective(r, 2).limit_up, WEFT_REORDER_LIMIT_HIDDEN);
    ck_assert_int_gt(collective(r, 2).moves_up, 0);
    /* One layer ahead: not all gathers at the top. */
    ck_assert_uint_eq(info.peak_after, info.peak_before + 100);
    weft_reorder_release(&r);
}

TEST(memory_limits_moves)
{
    struct program p = {.count = 0};
    weft_reorder_info info;
    int32_t starts[4];
    weft_reorder *r;

    make_gathers(&p, starts);
    for (int pass = 0; pass < 2; pass++) {
        r = reorder(&p, pass == 0 ? WEFT_REORDER_ITERATIVE : WEFT_REORDER_LIST, 0);
        info = info_of(r);
        ck_assert_uint_eq(info.peak_after, info.peak_before);
        ck_assert_uint_le(info.time_after, info.time_before);
        if (pass == 0) ck_assert_uint_eq(collective(r, 1).limit_up, WEFT_REORDER_LIMIT_MEMORY);
        weft_reorder_release(&r);
    }
    /* Without a limit, raising takes all gathers to the top. */
    r = reorder(&p, WEFT_REORDER_RAISE, 0);
    ck_assert_uint_eq(info_of(r).peak_after, 10 + 400 + 10);
    for (int i = 1; i < 4; i++)
        ck_assert_int_eq(position_of(r, starts[i]), position_of(r, starts[i - 1]) + 2);
    weft_reorder_release(&r);
    r = reorder(&p, WEFT_REORDER_LIST, 1000);
    ck_assert_uint_eq(info_of(r).time_after, 80 + 400);
    weft_reorder_release(&r);
}

TEST(reductions_are_waited_for_at_the_end)
{
    struct program p = {.count = 0};
    int32_t x = compute(&p, 10, 0, -1, -1), waits[3];
    weft_reorder *r;

    for (int i = 0; i < 3; i++) {
        int32_t gradient = compute(&p, 50, 8, x, -1), started = start(&p, 1, 40, 8, gradient);
        waits[i] = wait_for(&p, started);
        x = compute(&p, 50, 0, x, -1);
    }
    r = reorder(&p, WEFT_REORDER_SINK, 0);
    ck_assert_int_eq(weft_reorder_at(r, p.count - 1), waits[2]);
    ck_assert_uint_eq(info_of(r).exposed_after, 0);
    weft_reorder_release(&r);
    r = reorder(&p, WEFT_REORDER_ITERATIVE, 1000);
    ck_assert_uint_eq(info_of(r).exposed_after, 0);
    weft_reorder_release(&r);
}

/* ---- orders that would not be safe ---- */

TEST(operations_on_a_communicator_keep_their_order)
{
    struct program p = {.count = 0};
    int32_t work = compute(&p, 1000, 0, -1, -1), late = compute(&p, 10, 0, work, -1);
    int32_t first = start(&p, 3, 50, 0, late), a = wait_for(&p, first);
    int32_t second = start(&p, 3, 50, 0, -1), b = wait_for(&p, second); /* could run at once */
    int32_t other = start(&p, 4, 50, 0, -1), c = wait_for(&p, other);

    (void)a, (void)b, (void)c;
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        weft_reorder *r = reorder(&p, pass, 0);
        ck_assert_int_lt(position_of(r, first), position_of(r, second));
        ck_assert_int_lt(position_of(r, a), position_of(r, b));
        if (pass == WEFT_REORDER_ITERATIVE)
            ck_assert_int_lt(position_of(r, other), position_of(r, work));
        if (pass == WEFT_REORDER_ITERATIVE)
            ck_assert_uint_eq(collective(r, 1).limit_up, WEFT_REORDER_LIMIT_ORDER);
        weft_reorder_release(&r);
    }
}

/* A send, a receive and a barrier are communication, although they are not collectives with a
 * start: a ring of sends and receives would wait for ranks that have gone into a collective. */
TEST(opaque_communication_is_not_passed)
{
    struct program p = {.count = 0};
    int32_t work = compute(&p, 1000, 0, -1, -1);
    int32_t send = add(&p, WEFT_REORDER_NODE_COMPUTE, 7, 10, 0, work, -1);
    int32_t receive = add(&p, WEFT_REORDER_NODE_COMPUTE, 7, 10, 0, -1, -1);
    int32_t between = compute(&p, 500, 0, -1, -1);
    int32_t gather = start(&p, 2, 100, 0, -1), gathered = wait_for(&p, gather);
    int32_t barrier = add(&p, WEFT_REORDER_NODE_COMPUTE, 7, 10, 0, -1, -1);

    for (uint32_t pass = 0; pass < PASSES; pass++) {
        weft_reorder *r = reorder(&p, pass, 0);
        ck_assert_int_lt(position_of(r, send), position_of(r, receive));
        ck_assert_int_lt(position_of(r, receive), position_of(r, gather));
        ck_assert_int_lt(position_of(r, gather), position_of(r, barrier));
        if (pass == WEFT_REORDER_ITERATIVE) {
            ck_assert_int_lt(position_of(r, gather), position_of(r, between));
            ck_assert_uint_eq(collective(r, 0).limit_up, WEFT_REORDER_LIMIT_HIDDEN);
            ck_assert_int_gt(position_of(r, gathered), position_of(r, between));
        }
        weft_reorder_release(&r);
    }
}

/* A start that needs the result of a wait stays behind it, also through compute. */
TEST(a_start_does_not_pass_the_wait_that_guards_it)
{
    struct program p = {.count = 0};
    int32_t work = compute(&p, 100, 0, -1, -1), first = start(&p, 0, 500, 0, work);
    int32_t guard = wait_for(&p, first), copy = compute(&p, 1, 0, guard, -1);
    int32_t more = compute(&p, 400, 0, -1, -1), second = start(&p, 1, 500, 0, copy);
    int32_t last = wait_for(&p, second);

    (void)last, (void)more;
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        weft_reorder *r = reorder(&p, pass, 0);
        ck_assert_int_lt(position_of(r, guard), position_of(r, copy));
        ck_assert_int_lt(position_of(r, copy), position_of(r, second));
        if (pass == WEFT_REORDER_ITERATIVE)
            ck_assert_uint_eq(collective(r, 1).limit_up, WEFT_REORDER_LIMIT_DEPENDENCY);
        weft_reorder_release(&r);
    }
}

/* A collective reads its input until its wait, so a later wait holds the input longer. */
TEST(later_waits_hold_memory)
{
    struct program p = {.count = 0};
    int32_t gradient = compute(&p, 10, 1000, -1, -1), started = start(&p, 0, 500, 10, gradient);
    int32_t waited = wait_for(&p, started), big = compute(&p, 600, 800, -1, -1);
    weft_reorder *r = reorder(&p, WEFT_REORDER_SINK, 0);

    (void)waited, (void)big;
    ck_assert_uint_eq(info_of(r).peak_before, 1010);
    ck_assert_uint_eq(info_of(r).peak_after, 1810);
    weft_reorder_release(&r);
    for (int pass = 0; pass < 2; pass++) {
        r = reorder(&p, pass == 0 ? WEFT_REORDER_ITERATIVE : WEFT_REORDER_LIST, 0);
        ck_assert_uint_eq(info_of(r).peak_after, 1010);
        if (pass == 0) ck_assert_uint_eq(collective(r, 0).limit_down, WEFT_REORDER_LIMIT_MEMORY);
        weft_reorder_release(&r);
    }
}

/* ---- programs that are not valid ---- */

/* A program that is compiled for a newer weft, whose nodes are larger. */
TEST(larger_nodes_are_read)
{
    struct {
        weft_reorder_node node;
        uint64_t newer;
    } nodes[2] = {{{.comm = -1, .time = 5}, 0}, {{.comm = -1, .time = 7}, 0}};
    weft_reorder *r = NULL;

    ck_assert_int_eq(weft_reorder_create(2, &nodes[0].node, sizeof *nodes, NULL, &r), WEFT_OK);
    ck_assert_uint_eq(info_of(r).time_after, 12);
    weft_reorder_release(&r);
    nodes[1].newer = 1;
    ck_assert_int_eq(weft_reorder_create(2, &nodes[0].node, sizeof *nodes, NULL, &r),
                     WEFT_ERR_VERSION);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "weft_reorder_create: weft_reorder_node has"));
}

TEST(invalid_programs_are_refused)
{
    struct program p = {.count = 0};
    weft_reorder *r = NULL;
    weft_reorder_options options = {.struct_size = sizeof options, .pass = 4};
    int32_t started = start(&p, 0, 1, 0, -1), self = 1;

    ck_assert_int_eq(weft_reorder_create(p.count, p.nodes, sizeof *p.nodes, NULL, &r),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "node 0 is a start, and no node waits for it"));
    compute(&p, 1, 0, started, -1);
    ck_assert_int_eq(weft_reorder_create(p.count, p.nodes, sizeof *p.nodes, NULL, &r),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "node 1 uses node 0, a start"));
    p.count = 1;
    wait_for(&p, started);
    ck_assert_int_eq(weft_reorder_create(p.count, p.nodes, sizeof *p.nodes, &options, &r),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "there is no pass 4"));
    wait_for(&p, started);
    ck_assert_int_eq(weft_reorder_create(p.count, p.nodes, sizeof *p.nodes, NULL, &r),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "nodes 1 and 2 wait for node 0"));
    p.count = 1;
    p.nodes[0].comm = -1;
    ck_assert_int_eq(weft_reorder_create(p.count, p.nodes, sizeof *p.nodes, NULL, &r),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "without a communicator"));
    p.count = 0;
    compute(&p, 1, 0, -1, -1);
    compute(&p, 1, 0, self, -1);
    ck_assert_int_eq(weft_reorder_create(p.count, p.nodes, sizeof *p.nodes, NULL, &r),
                     WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "node 1 needs node 1"));
    ck_assert_int_eq(weft_reorder_create(1, p.nodes, 3, NULL, &r), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "the size of a weft_reorder_node is given as 3"));
    ck_assert_ptr_null(r);
    ck_assert_int_eq(weft_reorder_create(0, NULL, 0, NULL, &r), WEFT_OK);
    ck_assert_int_eq(weft_reorder_at(r, 0), -1);
    weft_reorder_release(&r);
}

/* ---- random programs ---- */

static void make_random(struct random *random, struct program *p)
{
    int32_t pending[MOST], done[MOST], pending_count = 0, done_count = 0;
    int32_t count = random_in(random, 1, 60);

    p->count = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t what = random_in(random, 0, 9);
        int32_t a = done_count > 0 ? done[random_in(random, 0, done_count - 1)] : -1;
        int32_t b = done_count > 0 ? done[random_in(random, 0, done_count - 1)] : -1;
        uint64_t time = (uint64_t)random_in(random, 0, 100);
        uint64_t bytes = (uint64_t)random_in(random, 0, 50);
        if (what < 3) {
            pending[pending_count++] =
                start(p, random_in(random, 0, 2), time, bytes, random_chance(random, 3) ? -1 : a);
        } else if (what < 5 && pending_count > 0) {
            done[done_count++] = wait_for(p, pending[0]);
            memmove(pending, pending + 1, (size_t)--pending_count * sizeof *pending);
        } else if (what == 5) {
            done[done_count++] =
                add(p, WEFT_REORDER_NODE_COMPUTE, random_in(random, 0, 2), time, bytes, a, b);
        } else {
            done[done_count++] = compute(p, time, bytes, a, random_chance(random, 2) ? b : -1);
            if (random_chance(random, 8)) p->nodes[p->count - 1].flags = WEFT_REORDER_NODE_KEPT;
        }
    }
    while (pending_count > 0)
        (void)wait_for(p, pending[--pending_count]);
}

/* Run the program in the order of R (NULL: as given).  Each node's value is a hash of its inputs'
 * values; a collective reads its inputs at its wait.  A value that is not in memory any more is
 * read as garbage.  WIRE gets a hash of the operations of each communicator, in order.  Returns the
 * most memory used. */
static uint64_t execute(const struct program *p, const weft_reorder *r, uint64_t *values,
                        uint64_t *wire)
{
    uint64_t memory[MOST] = {0}, held = 0, peak = 0;
    uint32_t users[MOST] = {0};

    memset(wire, 0, 3 * sizeof *wire);
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < p->count; i++) {
            int32_t index = pass == 0 || r == NULL ? (int32_t)i : weft_reorder_at(r, i);
            const weft_reorder_node *n = &p->nodes[index];
            int32_t started = n->kind == WEFT_REORDER_NODE_WAIT ? n->inputs[0] : -1;
            int32_t owner = started >= 0 ? started : index;
            int32_t used[20], count = 0;
            uint64_t value = (uint64_t)index;
            used[count++] = owner;
            for (uint32_t j = 0; j < n->input_count; j++)
                used[count++] = n->inputs[j];
            for (uint32_t j = 0; started >= 0 && j < p->nodes[started].input_count; j++)
                used[count++] = p->nodes[started].inputs[j];
            for (int32_t j = 0; j < count; j++)
                if (p->nodes[used[j]].kind == WEFT_REORDER_NODE_WAIT)
                    used[j] = p->nodes[used[j]].inputs[0];
            if (pass == 0) {
                for (int32_t j = 0; j < count; j++)
                    users[used[j]]++;
                continue;
            }
            if (started < 0) held += n->alloc;
            if (held > peak) peak = held;
            for (int32_t j = 1; n->kind != WEFT_REORDER_NODE_START && j < count; j++)
                if (used[j] != owner) value = wf_hash_mix(value, memory[used[j]]);
            if (n->kind != WEFT_REORDER_NODE_START) memory[owner] = values[index] = value;
            if (n->comm >= 0 && started < 0)
                wire[n->comm] = wf_hash_mix(wire[n->comm], (uint64_t)index);
            for (int32_t j = 0; j < count; j++)
                if (--users[used[j]] == 0) {
                    bool kept = p->nodes[used[j]].flags & WEFT_REORDER_NODE_KEPT;
                    memory[used[j]] = UINT64_C(0xdead);
                    if (!kept) held -= p->nodes[used[j]].alloc;
                }
        }
    return peak;
}

TEST(every_order_computes_the_same_bits)
{
    struct random random = random_begin("every_order_computes_the_same_bits");
    static struct program p;

    for (int cases = test_cases(2000); cases > 0; cases--) {
        uint64_t want[MOST] = {0}, have[MOST], wire[3], wires[3], peak;
        uint64_t before;
        make_random(&random, &p);
        before = execute(&p, NULL, want, wire);
        for (uint32_t pass = 0; pass < PASSES; pass++) {
            uint64_t limit = random_chance(&random, 2) ? 0 : (uint64_t)random_in(&random, 1, 400);
            weft_reorder *r = reorder(&p, pass, limit);
            weft_reorder_info info = info_of(r);
            memset(have, 0, sizeof have);
            peak = execute(&p, r, have, wires);
            ck_assert_mem_eq(have, want, p.count * sizeof *have);
            ck_assert_mem_eq(wires, wire, sizeof wire);
            ck_assert_uint_eq(info.peak_before, before);
            ck_assert_uint_eq(info.peak_after, peak);
            if (pass == WEFT_REORDER_ITERATIVE || pass == WEFT_REORDER_LIST)
                ck_assert_msg(peak <= (limit > before ? limit : before), "pass %u", pass);
            if (pass == WEFT_REORDER_LIST) ck_assert_uint_le(info.time_after, info.time_before);
            weft_reorder_release(&r);
        }
    }
}

static weft_status make(void *out)
{
    struct program p = {.count = 0};
    weft_reorder_options options = {.struct_size = sizeof options};
    weft_reorder *others[PASSES] = {NULL};
    weft_status status = WEFT_OK;
    int32_t starts[4];

    make_gathers(&p, starts);
    for (uint32_t pass = 0; status == WEFT_OK && pass < PASSES; pass++) {
        options.pass = pass;
        status = weft_reorder_create(p.count, p.nodes, sizeof *p.nodes, &options, &others[pass]);
    }
    *(weft_reorder **)out = status == WEFT_OK ? others[0] : NULL;
    for (uint32_t pass = status == WEFT_OK; pass < PASSES; pass++)
        weft_reorder_release(&others[pass]);
    return status;
}

static void drop(void *out)
{
    weft_reorder_release(out);
}

TEST(failed_allocations_leave_nothing)
{
    weft_reorder *r = NULL;

    ck_assert_uint_gt(ALLOCATIONS_FAIL(make(&r), drop(&r)), 40);
}
