/* round.c - see round.h. */
#include "round.h"

static uint64_t bit(int32_t process)
{
    return UINT64_C(1) << process;
}

static int32_t count(uint64_t processes)
{
    return __builtin_popcountll(processes);
}

/* ---- the server ---- */

void wf_round_open(struct wf_round_server *server, uint64_t generation, int32_t processes,
                   int32_t ranks_min, int32_t ranks_max)
{
    *server = (struct wf_round_server){.phase = WF_ROUND_RUNNING,
                                       .ranks_min = ranks_min,
                                       .ranks_max = ranks_max,
                                       .generation = generation,
                                       .round = generation,
                                       .members = processes < WF_ROUND_MOST ? bit(processes) - 1
                                                                            : UINT64_MAX};
}

static uint64_t living(const struct wf_round_server *server)
{
    return server->members & ~server->lost;
}

/* The process that serves is the lowest of those that live, and may end because of the message. */
static void send_to(const struct wf_round_server *server, uint64_t processes, uint32_t kind,
                    wf_round_send *send, void *user)
{
    struct wf_round_message message = {
        .kind = kind, .round = server->round, .members = server->decided, .step = server->step};

    for (int32_t i = WF_ROUND_MOST - 1; i >= 0; i--)
        if (processes & bit(i)) send(user, i, &message);
}

/* The newcomers are told too: they would wait for ever. */
static void end_job(struct wf_round_server *server, wf_round_send *send, void *user)
{
    server->phase = WF_ROUND_ENDED;
    send_to(server, living(server) | server->lobby, WF_ROUND_END, send, user);
}

static void stay(struct wf_round_server *server, wf_round_send *send, void *user)
{
    server->phase = WF_ROUND_RUNNING;
    send_to(server, living(server), WF_ROUND_STAY, send, user);
}

/* Those who live, and as many newcomers as there are places, the first before the others. */
static uint64_t choose(const struct wf_round_server *server)
{
    uint64_t chosen = living(server), waiting = server->lobby;

    for (; waiting != 0 && count(chosen) < server->ranks_max; waiting &= waiting - 1)
        chosen |= waiting & -waiting;
    return chosen;
}

/* Decide, once every living member has answered. */
static void decide(struct wf_round_server *server, wf_round_send *send, void *user)
{
    uint64_t next = choose(server);

    if (living(server) & ~server->answered) return;
    if (living(server) == 0) {
        end_job(server, send, user); /* nobody has the state */
    } else if (count(next) < server->ranks_min) {
        server->phase = WF_ROUND_WAITING;
    } else if (next == server->members && !server->forced) {
        stay(server, send, user);
    } else {
        server->phase = WF_ROUND_DECIDED;
        server->decided = next;
        server->confirmed = 0;
        send_to(server, next, WF_ROUND_DECIDE, send, user);
    }
}

static void ask(struct wf_round_server *server, wf_round_send *send, void *user)
{
    server->phase = WF_ROUND_ASKED;
    server->invited = !server->forced && living(server) == server->members;
    server->round++;
    server->answered = server->decided = server->step = 0;
    send_to(server, living(server), server->invited ? WF_ROUND_INVITE : WF_ROUND_ASK, send, user);
    decide(server, send, user); /* if nobody is left to ask */
}

static void begin(struct wf_round_server *server, wf_round_send *send, void *user)
{
    if (server->decided & ~server->confirmed) return;
    server->phase = WF_ROUND_RUNNING;
    server->generation = server->round;
    server->members = server->decided;
    server->lobby &= ~server->decided;
    server->forced = false;
    send_to(server, server->members, WF_ROUND_GO, send, user);
}

void wf_round_lose(struct wf_round_server *server, int32_t process, wf_round_send *send, void *user)
{
    bool counts = ((server->members | server->lobby) & ~server->lost & bit(process)) != 0;
    bool was_decided = (server->decided & bit(process)) != 0;

    server->lost |= bit(process);
    server->lobby &= ~bit(process);
    if (!counts || server->phase == WF_ROUND_ENDED) return;
    if (server->phase == WF_ROUND_DECIDED && was_decided)
        ask(server, send, user);
    else if (server->phase == WF_ROUND_RUNNING && (server->members & bit(process)))
        ask(server, send, user);
    else if (server->phase == WF_ROUND_ASKED || server->phase == WF_ROUND_WAITING)
        decide(server, send, user);
}

void wf_round_join(struct wf_round_server *server, int32_t process, wf_round_send *send, void *user)
{
    if ((server->members | server->lost) & bit(process)) return;
    server->lobby |= bit(process);
    if (server->phase == WF_ROUND_WAITING) decide(server, send, user);
    if (server->phase == WF_ROUND_ENDED) send_to(server, bit(process), WF_ROUND_END, send, user);
}

static void hear_grow(struct wf_round_server *server, wf_round_send *send, void *user)
{
    if (server->phase == WF_ROUND_RUNNING) ask(server, send, user);
}

/* Those who were only invited must be asked.  A member that comes from another server has not heard
 * what this one asked. */
static void hear_want(struct wf_round_server *server, int32_t process, wf_round_send *send,
                      void *user)
{
    uint64_t awaited = server->phase == WF_ROUND_ASKED ? living(server) & ~server->answered : 0;
    bool was_forced = server->forced;

    if (server->phase == WF_ROUND_ENDED) return;
    server->forced = true;
    if (server->phase == WF_ROUND_RUNNING ||
        (server->phase == WF_ROUND_ASKED && server->invited && !was_forced))
        ask(server, send, user);
    else
        send_to(server, awaited & bit(process), WF_ROUND_ASK, send, user);
}

void wf_round_give_up(struct wf_round_server *server, wf_round_send *send, void *user)
{
    if (server->phase == WF_ROUND_WAITING) end_job(server, send, user);
}

void wf_round_take(struct wf_round_server *server, int32_t process,
                   const struct wf_round_message *message, wf_round_send *send, void *user)
{
    if (server->lost & bit(process)) {
        send_to(server, bit(process), WF_ROUND_EXPEL, send, user);
        return;
    }
    if (message->round == server->generation && (server->members & bit(process))) {
        if (message->kind == WF_ROUND_WANT) hear_want(server, process, send, user);
        if (message->kind == WF_ROUND_GROW) hear_grow(server, send, user);
    }
    if (message->round != server->round) return;
    if (message->kind == WF_ROUND_ANSWER && server->phase == WF_ROUND_ASKED &&
        (living(server) & bit(process))) {
        server->answered |= bit(process);
        if (message->step > server->step) server->step = message->step;
        decide(server, send, user);
    } else if (message->kind == WF_ROUND_CONFIRM && server->phase == WF_ROUND_DECIDED &&
               (server->decided & bit(process))) {
        server->confirmed |= bit(process);
        begin(server, send, user);
    }
}

int32_t wf_round_rank(uint64_t members, int32_t before, int32_t process)
{
    uint64_t old = before < WF_ROUND_MOST ? bit(before) - 1 : UINT64_MAX,
             newcomers = members & ~old;
    int32_t rank = 0;

    for (int32_t i = 0; i < before; i++) {
        int32_t here = i;

        if ((members & bit(i)) == 0) {
            if (newcomers == 0) continue;
            here = __builtin_ctzll(newcomers);
            newcomers &= newcomers - 1;
        }
        if (here == process) return rank;
        rank++;
    }
    return rank + count(newcomers & (bit(process) - 1));
}

/* ---- processes that are silent ---- */

static uint64_t silent_for(const struct wf_round_silence *silence, uint64_t limit_ns)
{
    uint64_t silent = 0;

    for (int32_t i = 0; i < WF_ROUND_MOST; i++)
        if ((silence->present & bit(i)) && silence->now_ns > silence->heard_ns[i] &&
            silence->now_ns - silence->heard_ns[i] > limit_ns)
            silent |= bit(i);
    return silent;
}

bool wf_round_is_cut_off(const struct wf_round_silence *silence)
{
    uint64_t unheard = silent_for(silence, silence->limit_ns / 2) | silence->doubtful;
    uint64_t beyond = unheard & silence->far;
    uint64_t lowest = silence->present & -silence->present;
    int32_t more = 2 * count(beyond) - count(silence->present);

    return silence->may_be_cut && (more > 0 || (more == 0 && (beyond & lowest)));
}

uint64_t wf_round_silent(const struct wf_round_silence *silence)
{
    return wf_round_is_cut_off(silence) ? 0 : silent_for(silence, silence->limit_ns);
}

/* ---- a member ---- */

void wf_round_enter(struct wf_round_member *member, uint64_t generation, uint64_t members)
{
    *member =
        (struct wf_round_member){.phase = generation == 0 ? WF_MEMBER_ANSWERED : WF_MEMBER_RUNNING,
                                 .generation = generation,
                                 .round = generation,
                                 .members = members,
                                 .called = generation == 0};
}

static void answer(struct wf_round_member *member, wf_round_send *send, void *user)
{
    struct wf_round_message message = {
        .kind = WF_ROUND_ANSWER, .round = member->round, .step = member->step};

    member->phase = WF_MEMBER_ANSWERED;
    send(user, -1, &message);
}

/* KIND: what a member says that was not asked.  A member that was only invited says, too, that the
 * generation cannot go on. */
static void call(struct wf_round_member *member, uint64_t step, uint32_t kind, wf_round_send *send,
                 void *user)
{
    struct wf_round_message message = {.kind = kind, .round = member->generation};
    bool asks = member->phase == WF_MEMBER_RUNNING ||
                (member->phase == WF_MEMBER_ASKED && member->invited && kind == WF_ROUND_WANT);

    member->called = true;
    member->step = step;
    if (asks) send(user, -1, &message);
    if (member->phase == WF_MEMBER_ASKED) answer(member, send, user);
}

void wf_round_call(struct wf_round_member *member, uint64_t step, wf_round_send *send, void *user)
{
    call(member, step, WF_ROUND_WANT, send, user);
}

void wf_round_grow(struct wf_round_member *member, uint64_t step, wf_round_send *send, void *user)
{
    call(member, step, WF_ROUND_GROW, send, user);
}

static void hear_ask(struct wf_round_member *member, const struct wf_round_message *message,
                     wf_round_send *send, void *user)
{
    if (message->round <= member->round) return;
    member->round = message->round;
    member->invited = message->kind == WF_ROUND_INVITE;
    member->phase = WF_MEMBER_ASKED;
    if (member->called) answer(member, send, user);
}

static void hear_decision(struct wf_round_member *member, const struct wf_round_message *message,
                          wf_round_send *send, void *user)
{
    struct wf_round_message reply = {.kind = WF_ROUND_CONFIRM, .round = message->round};
    bool is_newcomer = member->generation == 0 && message->round > member->round;

    if (message->round != member->round && !is_newcomer) return;
    member->round = message->round;
    member->decided = message->members;
    member->begin = message->step;
    member->phase = WF_MEMBER_CONFIRMED;
    send(user, -1, &reply);
}

static void hear_go(struct wf_round_member *member, uint64_t round)
{
    if (round != member->round || member->phase != WF_MEMBER_CONFIRMED) return;
    member->generation = round;
    member->members = member->decided;
    member->step = member->begin;
    member->called = false;
    member->phase = WF_MEMBER_RUNNING;
}

void wf_round_hear(struct wf_round_member *member, const struct wf_round_message *message,
                   wf_round_send *send, void *user)
{
    if (member->phase == WF_MEMBER_EXPELLED || member->phase == WF_MEMBER_ENDED) return;
    switch (message->kind) {
    case WF_ROUND_ASK:
    case WF_ROUND_INVITE:
        hear_ask(member, message, send, user);
        break;
    case WF_ROUND_DECIDE:
        hear_decision(member, message, send, user);
        break;
    case WF_ROUND_GO:
        hear_go(member, message->round);
        break;
    case WF_ROUND_STAY:
        if (message->round != member->round) break;
        member->called = false;
        member->phase = WF_MEMBER_RUNNING;
        break;
    case WF_ROUND_END:
        member->phase = WF_MEMBER_ENDED;
        break;
    case WF_ROUND_EXPEL:
        member->phase = WF_MEMBER_EXPELLED;
        break;
    default:
        break;
    }
}
