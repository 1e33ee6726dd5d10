/* Rounds of a server and its members, over all interleavings of a few processes and over random
 * ones of many: what is sent arrives in order, and everything else in any order. */
#include "rendezvous/round.h"
#include "support/random.h"
#include "support/suite.h"

#include <string.h>

enum { MOST = 10, QUEUE = 40, GENERATIONS = 40 };

struct queue {
    struct wf_round_message at[QUEUE];
    int32_t count;
};

/* A job, with what it may still suffer. */
struct model {
    struct wf_round_server server;
    struct wf_round_member members[MOST];
    struct queue to_member[MOST], to_server[MOST];
    uint64_t stopped;              /* processes that do nothing any more */
    uint64_t entered[GENERATIONS]; /* members of a generation that a process has begun; 0: none */
    uint64_t begun_at[GENERATIONS];
    int32_t processes, newcomers, losses, wants, grows;
};

static void put(struct queue *queue, const struct wf_round_message *message)
{
    ck_assert_int_lt(queue->count, QUEUE);
    queue->at[queue->count++] = *message;
}

static struct wf_round_message take(struct queue *queue)
{
    struct wf_round_message first = queue->at[0];

    memmove(queue->at, queue->at + 1, (size_t)--queue->count * sizeof first);
    memset(&queue->at[queue->count], 0, sizeof first); /* equal states are equal bytes */
    return first;
}

static void send_to_member(void *user, int32_t to, const struct wf_round_message *message)
{
    struct model *m = user;

    if (!(m->stopped >> to & 1)) put(&m->to_member[to], message);
}

/* The process that is at work. */
struct sender {
    struct model *model;
    int32_t process;
};

static void send_to_server(void *user, int32_t to, const struct wf_round_message *message)
{
    struct sender *sender = user;

    ck_assert_int_eq(to, -1);
    put(&sender->model->to_server[sender->process], message);
}

/* ---- what must hold ---- */

/* PROCESS has begun a generation: all that begin it have the same members and the same step. */
static void check_begin(struct model *m, int32_t process, const struct wf_round_member *before)
{
    const struct wf_round_member *now = &m->members[process];

    ck_assert_uint_lt(now->generation, GENERATIONS);
    ck_assert_uint_gt(now->generation, before->generation);
    ck_assert(now->members >> process & 1);
    ck_assert_uint_ge(now->step, before->generation == 0 ? 0 : before->step);
    if (m->entered[now->generation] == 0) {
        m->entered[now->generation] = now->members;
        m->begun_at[now->generation] = now->step;
    }
    ck_assert_uint_eq(m->entered[now->generation], now->members);
    ck_assert_uint_eq(m->begun_at[now->generation], now->step);
}

/* The server has let a generation begin: all its members know who they are. */
static void check_go(const struct model *m)
{
    for (int32_t i = 0; i < m->processes; i++) {
        const struct wf_round_member *member = &m->members[i];
        if (!(m->server.members >> i & 1)) continue;
        ck_assert_uint_eq(member->phase, WF_MEMBER_CONFIRMED);
        ck_assert_uint_eq(member->round, m->server.generation);
        ck_assert_uint_eq(member->decided, m->server.members);
    }
    ck_assert((m->server.members & m->server.lost) == 0);
}

/* Nothing is under way: every process that is not lost runs in the one generation, of which nobody
 * is lost, or all have ended. */
static void check_rest(const struct model *m)
{
    bool ended = m->server.phase == WF_ROUND_ENDED;

    ck_assert(ended || m->server.phase == WF_ROUND_RUNNING);
    ck_assert(ended || (m->server.members & m->server.lost) == 0);
    ck_assert(ended || __builtin_popcountll(m->server.members) >= m->server.ranks_min);
    for (int32_t i = 0; i < m->processes; i++) {
        const struct wf_round_member *member = &m->members[i];
        if ((m->stopped | m->server.lost) >> i & 1) continue;
        if (ended && ((m->server.members | m->server.lobby) >> i & 1)) {
            ck_assert_uint_eq(member->phase, WF_MEMBER_ENDED);
        } else if (m->server.members >> i & 1) {
            ck_assert_uint_eq(member->phase, WF_MEMBER_RUNNING);
            ck_assert_uint_eq(member->generation, m->server.generation);
            ck_assert_uint_eq(member->members, m->server.members);
            ck_assert(!member->called);
        } else {
            ck_assert_uint_eq(member->generation, 0); /* it waits for a place */
        }
    }
}

/* ---- what may happen ---- */

enum action { HEAR, TAKE, CALL, WANT, STOP, NOTICE, EXPEL, JOIN, GROW, GIVE_UP, ACTIONS };

static bool is_living(const struct model *m, int32_t process)
{
    return !((m->stopped | m->server.lost) >> process & 1);
}

/* A process that has not joined is one of the last. */
static bool has_joined(const struct model *m, int32_t process)
{
    return process < m->processes - m->newcomers;
}

static bool is_possible(const struct model *m, enum action action, int32_t p)
{
    const struct wf_round_member *member = &m->members[p];
    bool joined = has_joined(m, p), acts = joined && !(m->stopped >> p & 1);

    switch (action) {
    case HEAR:
        return acts && m->to_member[p].count > 0;
    case TAKE:
        return m->to_server[p].count > 0; /* also what a process sent before it stopped */
    case CALL:
        return acts && member->phase == WF_MEMBER_ASKED && !member->called;
    case WANT:
        return acts && m->wants > 0 && !member->called &&
               (member->phase == WF_MEMBER_RUNNING ||
                (member->phase == WF_MEMBER_ASKED && member->invited));
    case GROW:
        return acts && m->grows > 0 && member->phase == WF_MEMBER_RUNNING && !member->called;
    case STOP:
    case EXPEL: /* it is taken for dead, and lives */
        return joined && m->losses > 0 && is_living(m, p);
    case NOTICE:
        return (m->stopped & ~m->server.lost) >> p & 1;
    case JOIN:
        return m->newcomers > 0 && p == m->processes - m->newcomers;
    default:
        return p == 0 && m->server.phase == WF_ROUND_WAITING && m->newcomers == 0;
    }
}

static void hear(struct model *m, int32_t p)
{
    struct wf_round_message message = take(&m->to_member[p]);
    struct wf_round_member before = m->members[p];

    wf_round_hear(&m->members[p], &message, send_to_server, &(struct sender){m, p});
    if (m->members[p].generation != before.generation) check_begin(m, p, &before);
}

static void act(struct model *m, enum action action, int32_t p)
{
    struct sender sender = {m, p};
    struct wf_round_message message;
    uint64_t generation = m->server.generation;

    switch (action) {
    case HEAR:
        hear(m, p);
        break;
    case TAKE:
        message = take(&m->to_server[p]);
        wf_round_take(&m->server, p, &message, send_to_member, m);
        break;
    case WANT:
        m->wants--;
        wf_round_call(&m->members[p], m->members[p].step + 1, send_to_server, &sender);
        break;
    case CALL: /* some have completed one step more than others */
        (m->members[p].invited ? wf_round_grow : wf_round_call)(
            &m->members[p], m->members[p].step + (uint64_t)(p & 1), send_to_server, &sender);
        break;
    case GROW:
        m->grows--;
        wf_round_grow(&m->members[p], m->members[p].step, send_to_server, &sender);
        break;
    case STOP:
        m->losses--;
        m->stopped |= UINT64_C(1) << p;
        memset(&m->to_member[p], 0, sizeof m->to_member[p]);
        break;
    case EXPEL:
        m->losses--;
        wf_round_lose(&m->server, p, send_to_member, m);
        break;
    case NOTICE:
        wf_round_lose(&m->server, p, send_to_member, m);
        break;
    case JOIN:
        m->newcomers--;
        wf_round_join(&m->server, p, send_to_member, m);
        break;
    default:
        wf_round_give_up(&m->server, send_to_member, m);
    }
    if (m->server.generation != generation) check_go(m);
}

static void open_model(struct model *m, int32_t ranks, int32_t ranks_min, int32_t newcomers)
{
    memset(m, 0, sizeof *m);
    m->processes = ranks + newcomers;
    m->newcomers = newcomers;
    wf_round_open(&m->server, 1, ranks, ranks_min, ranks + newcomers / 2);
    for (int32_t i = 0; i < m->processes; i++)
        wf_round_enter(&m->members[i], i < ranks ? 1 : 0, i < ranks ? m->server.members : 0);
}

/* ---- all interleavings ---- */

struct seen {
    uint64_t *hashes; /* open addressing; 0: free */
    size_t room, count;
};

static uint64_t hash_of(const void *data, size_t bytes)
{
    uint64_t h = 1, word;

    for (size_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, (const char *)data + at, sizeof word);
        h = wf_hash_mix(h, word);
    }
    return h | 1;
}

/* Equal states have equal numbers; what no action can reach any more is left out. */
static uint64_t hash_model(const struct model *m)
{
    uint64_t h = hash_of(&m->server, sizeof m->server);

    h = wf_hash_mix(h, m->stopped);
    h = wf_hash_mix(h, (uint64_t)(m->newcomers * 64 + m->losses * 8 + m->wants * 4 + m->grows));
    for (int32_t i = 0; i < m->processes; i++) {
        h = wf_hash_mix(h, hash_of(&m->members[i], sizeof m->members[i]));
        for (int32_t k = 0; k < m->to_member[i].count; k++)
            h = wf_hash_mix(h, hash_of(&m->to_member[i].at[k], sizeof m->to_member[i].at[k]));
        h = wf_hash_mix(h, 7);
        for (int32_t k = 0; k < m->to_server[i].count; k++)
            h = wf_hash_mix(h, hash_of(&m->to_server[i].at[k], sizeof m->to_server[i].at[k]));
        h = wf_hash_mix(h, 8);
    }
    for (int32_t g = 0; g < GENERATIONS; g++)
        if (m->entered[g] != 0) h = wf_hash_mix(wf_hash_mix(h, m->entered[g]), m->begun_at[g]);
    return h | 1;
}

static bool is_new(struct seen *seen, uint64_t hash)
{
    size_t at = hash & (seen->room - 1);

    while (seen->hashes[at] != 0 && seen->hashes[at] != hash)
        at = (at + 1) & (seen->room - 1);
    if (seen->hashes[at] == hash) return false;
    seen->hashes[at] = hash;
    ck_assert_uint_lt(++seen->count, seen->room / 4 * 3);
    return true;
}

/* An action that the job takes by itself; the others may happen or not. */
static bool must_happen(enum action action)
{
    return action == HEAR || action == TAKE || action == CALL || action == NOTICE ||
           action == GIVE_UP;
}

static void visit(const struct model *m, struct seen *seen)
{
    bool rests = true;

    if (!is_new(seen, hash_model(m))) return;
    for (int32_t p = 0; p < m->processes; p++)
        for (enum action action = 0; action < ACTIONS; action++) {
            struct model next;
            if (!is_possible(m, action, p)) continue;
            rests = rests && !must_happen(action);
            next = *m;
            act(&next, action, p);
            visit(&next, seen);
        }
    if (rests && m->server.phase != WF_ROUND_WAITING) check_rest(m);
}

static void visit_all(int32_t ranks, int32_t ranks_min, int32_t newcomers, int32_t losses,
                      int32_t wants, int32_t grows)
{
    struct seen seen = {.room = (size_t)1 << 23};
    struct model m;

    seen.hashes = calloc(seen.room, sizeof *seen.hashes);
    ck_assert_ptr_nonnull(seen.hashes);
    open_model(&m, ranks, ranks_min, newcomers);
    m.losses = losses;
    m.wants = wants;
    m.grows = grows;
    visit(&m, &seen);
    fprintf(stderr, "%d ranks, %d newcomers, %d losses, %d wants, %d grows: %zu states\n", ranks,
            newcomers, losses, wants, grows, seen.count);
    free(seen.hashes);
}

TEST(all_interleavings_of_two_ranks)
{
    visit_all(2, 1, 0, 2, 1, 0);
    visit_all(2, 2, 1, 2, 0, 0);
    visit_all(2, 1, 1, 1, 1, 1);
}

TEST(all_interleavings_of_three_ranks)
{
    visit_all(3, 1, 0, 2, 0, 0);
    visit_all(2, 1, 2, 1, 0, 1);
}

TEST(all_interleavings_of_four_ranks)
{
    visit_all(4, 2, 0, 2, 0, 0);
}

/* ---- random interleavings ---- */

static void run_random(struct random *r)
{
    static struct model m;
    int32_t ranks = random_in(r, 2, MOST - 3);

    open_model(&m, ranks, random_in(r, 1, ranks), random_in(r, 0, 3));
    m.losses = random_in(r, 0, 4);
    m.wants = random_in(r, 0, 2);
    m.grows = random_in(r, 0, 2);
    for (;;) {
        int32_t count = 0, chosen = 0, must = 0;
        for (int32_t i = 0; i < m.processes * ACTIONS; i++) {
            if (!is_possible(&m, (enum action)(i % ACTIONS), i / ACTIONS)) continue;
            must += must_happen((enum action)(i % ACTIONS));
            if (random_in(r, 0, count++) == 0) chosen = i;
        }
        if (must == 0 && m.server.phase != WF_ROUND_WAITING) check_rest(&m);
        if (count == 0) break;
        act(&m, (enum action)(chosen % ACTIONS), chosen / ACTIONS);
    }
    check_rest(&m);
}

TEST(random_interleavings)
{
    struct random r = random_begin("test_rendezvous_round");
    int cases = test_cases(20000);

    for (int i = 0; i < cases; i++)
        run_random(&r);
}

/* ---- newcomers ---- */

/* Carry out what must happen, in any order, until nothing is under way. */
static void settle(struct model *m)
{
    bool found = true;

    while (found) {
        found = false;
        for (int32_t i = 0; i < m->processes * ACTIONS; i++) {
            enum action action = (enum action)(i % ACTIONS);
            if (!must_happen(action) || !is_possible(m, action, i / ACTIONS)) continue;
            act(m, action, i / ACTIONS);
            found = true;
        }
    }
    check_rest(m);
}

TEST(growth_without_newcomers_changes_nothing)
{
    static struct model m;

    open_model(&m, 3, 1, 0);
    m.grows = 1;
    act(&m, GROW, 1);
    settle(&m);
    ck_assert_uint_eq(m.server.generation, 1);
    ck_assert_uint_eq(m.members[0].round, 2);
}

TEST(a_generation_takes_as_many_newcomers_as_there_are_places)
{
    static struct model m;

    open_model(&m, 2, 1, 2); /* three ranks at most */
    m.grows = 1;
    act(&m, JOIN, 2);
    act(&m, JOIN, 3);
    act(&m, GROW, 0);
    settle(&m);
    ck_assert_uint_eq(m.server.generation, 2);
    ck_assert_uint_eq(m.server.members, 0x7);
    ck_assert_uint_eq(m.server.lobby, 0x8);
}

/* The newcomer is lost when it was told of its place. */
TEST(a_newcomer_that_is_lost_before_it_confirms_changes_nothing)
{
    static struct model m;

    open_model(&m, 2, 1, 2);
    m.grows = m.losses = 1;
    act(&m, JOIN, 2);
    act(&m, GROW, 0);
    while (m.server.phase != WF_ROUND_DECIDED)
        for (int32_t i = 0; i < 2 * ACTIONS && m.server.phase != WF_ROUND_DECIDED; i++)
            if (must_happen((enum action)(i % ACTIONS)) &&
                is_possible(&m, (enum action)(i % ACTIONS), i / ACTIONS))
                act(&m, (enum action)(i % ACTIONS), i / ACTIONS);
    act(&m, STOP, 2);
    m.newcomers = 0;
    m.processes = 3;
    settle(&m);
    ck_assert_uint_eq(m.server.generation, 1);
    for (int32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(m.members[i].generation, 1);
        ck_assert_uint_eq(m.members[i].phase, WF_MEMBER_RUNNING);
    }
}

/* It knows the token, but has no place. */
TEST(a_newcomer_cannot_ask_for_a_generation)
{
    static struct model m;
    struct wf_round_message want = {.kind = WF_ROUND_WANT, .round = 1};
    struct wf_round_message grow = {.kind = WF_ROUND_GROW, .round = 1};

    open_model(&m, 2, 1, 1);
    act(&m, JOIN, 2);
    wf_round_take(&m.server, 2, &want, send_to_member, &m);
    wf_round_take(&m.server, 2, &grow, send_to_member, &m);
    settle(&m);
    ck_assert_uint_eq(m.server.round, 1);
}

/* Another member cannot go on while some were only invited: these are asked. */
TEST(a_member_that_cannot_go_on_ends_an_invitation)
{
    static struct model m;

    open_model(&m, 2, 1, 0);
    m.grows = m.wants = 1;
    act(&m, GROW, 0);
    act(&m, TAKE, 0);
    act(&m, HEAR, 1);
    ck_assert(m.members[1].invited);
    act(&m, WANT, 1);
    settle(&m);
    ck_assert_uint_gt(m.server.generation, 1);
}

TEST(newcomers_take_the_numbers_of_lost_processes)
{
    static const struct {
        uint64_t members;
        int32_t before, process, rank;
    } cases[] = {
        {0xf, 4, 3, 3}, /* nobody is lost */
        {0xb, 4, 3, 2}, /* 2 is lost: 3 closes up */
        {0x1b, 4, 3, 3},
        {0x1b, 4, 4, 2}, /* 4 takes its number */
        {0x19, 4, 4, 1},
        {0x19, 4, 3, 2}, /* 1 and 2 are lost, and one comes */
        {0x3f, 4, 4, 4},
        {0x3f, 4, 5, 5}, /* none is lost, and two come */
        {0x8000000000000001, 1, 63, 1},
        {UINT64_MAX, 64, 63, 63},
        {0x3e, 4, 4, 0},
        {0x3e, 4, 5, 4}, /* 0 is lost, and two come */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(wf_round_rank(cases[i].members, cases[i].before, cases[i].process),
                         cases[i].rank);
}

/* ---- silence ---- */

enum { LIMIT = 1000, NOW = 100000 };

/* COUNT processes, of which those of SILENT were last heard AGO. */
static uint64_t expelled(int32_t count, uint64_t far, uint64_t silent, uint64_t ago)
{
    uint64_t heard_ns[WF_ROUND_MOST];
    struct wf_round_silence silence = {.present = (UINT64_C(1) << count) - 1,
                                       .far = far,
                                       .heard_ns = heard_ns,
                                       .now_ns = NOW,
                                       .limit_ns = LIMIT,
                                       .may_be_cut = true};

    for (int32_t i = 0; i < WF_ROUND_MOST; i++)
        heard_ns[i] = silent >> i & 1 ? NOW - ago : NOW - LIMIT / 4;
    return wf_round_silent(&silence);
}

TEST(a_silent_process_is_expelled_after_the_limit)
{
    ck_assert_uint_eq(expelled(4, 0xf, 0x8, LIMIT), 0);
    ck_assert_uint_eq(expelled(4, 0xf, 0x8, LIMIT + 1), 0x8);
    ck_assert_uint_eq(expelled(2, 0, 0x1, LIMIT + 1), 0x1); /* no network lies between */
    ck_assert_uint_eq(expelled(4, 0, 0xe, LIMIT + 1), 0xe);
}

/* Each side of a cut has a server, which hears its own side only. */
TEST(one_side_of_a_cut_goes_on)
{
    for (int32_t count = 2; count <= 6; count++)
        for (uint64_t side = 1; side < (UINT64_C(1) << count) - 1; side++) {
            uint64_t other = ((UINT64_C(1) << count) - 1) & ~side;
            uint64_t here = expelled(count, other, other, LIMIT + 1);
            uint64_t there = expelled(count, side, side, LIMIT + 1);
            int32_t more = __builtin_popcountll(side) - __builtin_popcountll(other);
            bool stays = more > 0 || (more == 0 && (side & 1));
            ck_assert_uint_eq(here, stays ? other : 0);
            ck_assert_uint_eq(there, stays ? 0 : side);
        }
}

/* The processes beyond a cut are not heard for the last time at the same moment. */
TEST(a_cut_off_process_does_not_expel_the_others_one_by_one)
{
    uint64_t heard_ns[WF_ROUND_MOST] = {NOW, NOW - LIMIT - 1, NOW - LIMIT + 50, NOW - LIMIT + 200};
    struct wf_round_silence silence = {.present = 0xf,
                                       .far = 0xe,
                                       .heard_ns = heard_ns,
                                       .now_ns = NOW,
                                       .limit_ns = LIMIT,
                                       .may_be_cut = true};

    ck_assert_uint_eq(wf_round_silent(&silence), 0);
    silence.may_be_cut = false; /* a launcher's server is alone */
    ck_assert_uint_eq(wf_round_silent(&silence), 0x2);
}

/* When the network is whole again, the last frames of the processes beyond the cut arrive one after
 * the other. */
TEST(doubtful_processes_count_as_beyond_the_cut)
{
    uint64_t heard_ns[WF_ROUND_MOST] = {NOW, NOW - LIMIT - 1, NOW};
    struct wf_round_silence silence = {.present = 0x7,
                                       .far = 0x6,
                                       .doubtful = 0x4,
                                       .heard_ns = heard_ns,
                                       .now_ns = NOW,
                                       .limit_ns = LIMIT,
                                       .may_be_cut = true};

    ck_assert(wf_round_is_cut_off(&silence));
    silence.doubtful = 0;
    ck_assert(!wf_round_is_cut_off(&silence));
    silence.doubtful = 0x1; /* no network lies between */
    ck_assert(!wf_round_is_cut_off(&silence));
}
