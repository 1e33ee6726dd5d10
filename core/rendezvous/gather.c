/* gather.c - all-gathers among lists of ranks: contributions, missing ranks, outcomes.
 *
 * A gather is one all-gather among a list of ranks.  It is found by its communicator and its list
 * of ranks.  A rank's calls on one communicator wait for each other, so a rank's unanswered call
 * belongs to the oldest such gather without its contribution.  A failed gather is kept until every
 * connected rank has been sent the failure: a late rank gets it too.  A gather that timed out is
 * kept for a limited time, because some of its ranks may never make the call.  This file uses
 * neither sockets nor a clock. */
#include "rendezvous.h"

#include "weft/status.h"

#include <string.h>

#define LABEL_BYTES 160
#define TEXT_BYTES  1800

struct seat {
    void *data; /* the contributed blob */
    uint64_t bytes, id;
    bool came, excused; /* excused: the rank will not contribute any more */
    uint64_t until_ns;  /* the rank makes progress and is not late before; 0: it never said so */
};

struct gather {
    struct gather *next;
    uint64_t comm;
    int32_t *ranks;
    struct seat *seats;
    int32_t count, first_come;
    int64_t timeout_ns;
    uint64_t deadline_ns;
    weft_status status;
    bool timed_out; /* and is kept until `deadline_ns` for late ranks */
    char label[LABEL_BYTES], text[TEXT_BYTES];
};

struct wf_gathers {
    struct wf_gather_sink sink;
    struct gather *first;
    uint64_t serial, departures;
    int32_t size;
    struct {
        char *why; /* NULL: it is here */
        uint64_t order;
    } * gone;        /* per rank */
    bool *mentioned; /* per rank: scratch of check_list */
};

/* ---- the table ---- */

weft_status wf_gathers_create(int32_t size, struct wf_gather_sink sink, uint64_t serial,
                              struct wf_gathers **out)
{
    struct wf_gathers *m = wf_calloc(1, sizeof *m);

    if (m == NULL) return wf_fail_memory(sizeof *m);
    m->gone = wf_calloc((size_t)size, sizeof *m->gone);
    m->mentioned = wf_calloc((size_t)size, sizeof *m->mentioned);
    if (m->gone == NULL || m->mentioned == NULL) {
        wf_free(m->gone);
        wf_free(m->mentioned);
        wf_free(m);
        return wf_fail_memory((size_t)size * sizeof *m->gone);
    }
    m->size = size;
    m->serial = serial;
    m->sink = sink;
    *out = m;
    return WEFT_OK;
}

static void free_gather(struct gather *gather)
{
    if (gather == NULL) return;
    for (int32_t i = 0; gather->seats != NULL && i < gather->count; i++)
        wf_free(gather->seats[i].data);
    wf_free(gather->seats);
    wf_free(gather->ranks);
    wf_free(gather);
}

void wf_gathers_release(struct wf_gathers **gathers)
{
    struct wf_gathers *m = *gathers;

    if (m == NULL) return;
    while (m->first != NULL) {
        struct gather *gather = m->first;

        m->first = gather->next;
        free_gather(gather);
    }
    for (int32_t rank = 0; rank < m->size; rank++)
        wf_free(m->gone[rank].why);
    wf_free(m->gone);
    wf_free(m->mentioned);
    wf_free(m);
    *gathers = NULL;
}

size_t wf_gathers_open(const struct wf_gathers *gathers)
{
    size_t open = 0;

    for (const struct gather *gather = gathers->first; gather != NULL; gather = gather->next)
        open++;
    return open;
}

static int32_t seat_of(const struct gather *gather, int32_t rank)
{
    for (int32_t i = 0; i < gather->count; i++)
        if (gather->ranks[i] == rank) return i;
    return -1;
}

static bool is_for(const struct gather *gather, const struct wf_contribution *c)
{
    return gather->comm == c->comm && gather->count == c->count &&
           memcmp(gather->ranks, c->ranks, (size_t)c->count * sizeof *c->ranks) == 0;
}

static void close_gather(struct wf_gathers *m, struct gather *gather)
{
    struct gather **at = &m->first;

    while (*at != gather)
        at = &(*at)->next;
    *at = gather->next;
    free_gather(gather);
}

/* The gather that RANK's call belongs to, or NULL.  A gather that timed out ends when one of its
 * ranks calls again. */
static struct gather *find_unseen(struct wf_gathers *m, int32_t rank,
                                  const struct wf_contribution *c)
{
    struct gather *next;

    for (struct gather *gather = m->first; gather != NULL; gather = next) {
        next = gather->next;
        if (!is_for(gather, c)) continue;
        if (!gather->seats[seat_of(gather, rank)].came) return gather;
        if (gather->timed_out) close_gather(m, gather);
    }
    return NULL;
}

static weft_status open_gather(struct wf_gathers *m, uint64_t now_ns, int32_t rank,
                               const struct wf_contribution *c, struct gather **out)
{
    struct gather *gather = wf_calloc(1, sizeof *gather), **last = &m->first;
    size_t list_bytes = (size_t)c->count * sizeof *gather->ranks;

    if (gather == NULL) return wf_fail_memory(sizeof *gather);
    gather->comm = c->comm;
    gather->count = c->count;
    gather->ranks = wf_alloc(list_bytes);
    gather->seats = wf_calloc((size_t)c->count, sizeof *gather->seats);
    if (gather->ranks == NULL || gather->seats == NULL) {
        free_gather(gather);
        return wf_fail_memory(list_bytes);
    }
    memcpy(gather->ranks, c->ranks, list_bytes);
    strncpy(gather->label, c->label, sizeof gather->label - 1);
    gather->first_come = rank;
    gather->timeout_ns = c->timeout_ns;
    gather->deadline_ns = c->timeout_ns < 0 ? UINT64_MAX : now_ns + (uint64_t)c->timeout_ns;
    while (*last != NULL)
        last = &(*last)->next;
    *last = gather;
    *out = gather;
    return WEFT_OK;
}

/* ---- outcomes ---- */

static void deliver_failure(struct wf_gathers *m, int32_t rank, uint64_t id, weft_status status,
                            const char *text)
{
    struct wf_text payload = {0};

    wf_put_u32(&payload, (uint32_t)status);
    wf_put_string(&payload, text);
    m->sink.deliver(m->sink.self, rank, id, &payload);
    wf_text_free(&payload);
}

/* Fail GATHER, unless it has failed already.  Ranks that wait are sent the failure at once. */
static void fail_gather(struct wf_gathers *m, struct gather *gather, weft_status status,
                        struct wf_text *text)
{
    if (gather->status != WEFT_OK) return;
    gather->status = status;
    gather->deadline_ns = UINT64_MAX;
    strncpy(gather->text, text->failed || text->data == NULL ? "out of memory" : text->data,
            sizeof gather->text - 1);
    for (int32_t turn = 0; turn <= wf_turn_of(0); turn++)
        for (int32_t i = 0; i < gather->count; i++)
            if (gather->seats[i].came && wf_turn_of(gather->ranks[i]) == turn)
                deliver_failure(m, gather->ranks[i], gather->seats[i].id, status, gather->text);
}

/* True if every connected rank has been sent the outcome, so no rank will ask for it. */
static bool is_over(const struct gather *gather)
{
    for (int32_t i = 0; i < gather->count; i++)
        if (!gather->seats[i].came && !gather->seats[i].excused) return false;
    return true;
}

static bool all_came(const struct gather *gather)
{
    for (int32_t i = 0; i < gather->count; i++)
        if (!gather->seats[i].came) return false;
    return true;
}

static void deliver_success(struct wf_gathers *m, struct gather *gather)
{
    struct wf_text payload = {0};
    uint64_t bytes = 0;

    for (int32_t i = 0; i < gather->count; i++)
        bytes += gather->seats[i].bytes + 8;
    wf_put_u32(&payload, WEFT_OK);
    wf_put_u64(&payload, ++m->serial);
    wf_put_u32(&payload, (uint32_t)gather->count);
    for (int32_t i = 0; bytes < WF_FRAME_MAX && i < gather->count; i++)
        wf_put_blob(&payload, gather->seats[i].data, gather->seats[i].bytes);
    if (payload.failed || bytes >= WF_FRAME_MAX) {
        struct wf_text why = {0};

        wf_text_add(&why,
                    "the rendezvous cannot hold the %llu bytes that %d ranks contributed to %s",
                    (unsigned long long)bytes, gather->count, gather->label);
        fail_gather(m, gather, WEFT_ERR_NO_MEMORY, &why);
        wf_text_free(&why);
    } else {
        for (int32_t i = 0; i < gather->count; i++)
            m->sink.deliver(m->sink.self, gather->ranks[i], gather->seats[i].id, &payload);
    }
    wf_text_free(&payload);
}

/* ---- contributions ---- */

static weft_status check_list(struct wf_gathers *m, int32_t rank, const struct wf_contribution *c)
{
    bool valid = c->count >= 1 && c->count <= m->size, has_rank = false;

    memset(m->mentioned, 0, (size_t)m->size * sizeof *m->mentioned);
    for (int32_t i = 0; valid && i < c->count; i++) {
        int32_t r = c->ranks[i];

        valid = r >= 0 && r < m->size && !m->mentioned[r];
        if (valid) m->mentioned[r] = true;
        if (r == rank) has_rank = true;
    }
    if (valid && has_rank) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "the list of %d ranks that rank %d gave to %s must have rank %d, and each rank "
                   "from 0 to %d at most once",
                   c->count, rank, c->label, rank, m->size - 1);
}

/* The rank of the list that departed first; others may have ended because of it. */
static int32_t find_gone(const struct wf_gathers *m, const struct wf_contribution *c)
{
    int32_t first = -1;

    for (int32_t i = 0; i < c->count; i++) {
        int32_t rank = c->ranks[i];

        if (m->gone[rank].why == NULL) continue;
        if (first < 0 || m->gone[rank].order < m->gone[first].order) first = rank;
    }
    return first;
}

static weft_status keep_blob(struct seat *seat, weft_blob blob)
{
    seat->data = wf_alloc((size_t)blob.bytes);
    if (seat->data == NULL) return wf_fail_memory((size_t)blob.bytes);
    if (blob.bytes > 0) memcpy(seat->data, blob.data, (size_t)blob.bytes);
    seat->bytes = blob.bytes;
    return WEFT_OK;
}

/* True if TEXT begins with "rank 3:", as the answer of an earlier gather does. */
static bool names_rank(const char *text)
{
    const char *digits = text + 5;
    size_t count;

    if (strncmp(text, "rank ", 5) != 0) return false;
    count = strspn(digits, "0123456789");
    return count > 0 && digits[count] == ':';
}

static void judge(struct wf_gathers *m, struct gather *gather, int32_t rank,
                  const struct wf_contribution *c)
{
    struct wf_text why = {0};

    if (c->status != WEFT_OK) {
        if (!names_rank(c->text)) wf_text_add(&why, "rank %d: ", rank);
        wf_text_add(&why, "%s", c->text);
        fail_gather(m, gather, c->status, &why);
    } else if (strncmp(gather->label, c->label, sizeof gather->label - 1) != 0) {
        wf_text_add(&why, "rank %d is at %s, but rank %d is at %s", rank, c->label,
                    gather->first_come, gather->label);
        fail_gather(m, gather, WEFT_ERR_MISMATCH, &why);
    } else if (all_came(gather)) {
        deliver_success(m, gather);
    }
    wf_text_free(&why);
}

/* The rank that contributes last may have the earliest deadline. */
static void shorten(struct gather *gather, uint64_t now_ns, int64_t timeout_ns)
{
    uint64_t deadline_ns = now_ns + (uint64_t)timeout_ns;

    if (gather->status != WEFT_OK || timeout_ns < 0 || deadline_ns >= gather->deadline_ns) return;
    gather->deadline_ns = deadline_ns;
    gather->timeout_ns = timeout_ns;
}

/* RANK makes progress towards GATHER. */
static void note_progress(struct gather *gather, uint64_t now_ns, int32_t rank, int64_t timeout_ns)
{
    if (timeout_ns < 0) return;
    gather->seats[seat_of(gather, rank)].until_ns =
        now_ns + (uint64_t)timeout_ns + (uint64_t)timeout_ns / WF_NOTES;
}

weft_status wf_gathers_post(struct wf_gathers *m, uint64_t now_ns, int32_t rank, uint64_t id,
                            const struct wf_contribution *c)
{
    struct gather *gather;
    struct seat *seat;
    int32_t gone;

    WF_TRY(check_list(m, rank, c));
    gather = find_unseen(m, rank, c);
    if (c->status == WEFT_IN_PROGRESS) {
        if (gather != NULL) note_progress(gather, now_ns, rank, c->timeout_ns);
        return WEFT_OK;
    }
    gone = find_gone(m, c);
    if (gather == NULL && gone >= 0) {
        deliver_failure(m, rank, id, WEFT_ERR_PEER, m->gone[gone].why);
        return WEFT_OK;
    }
    if (gather == NULL) WF_TRY(open_gather(m, now_ns, rank, c, &gather));
    seat = &gather->seats[seat_of(gather, rank)];
    WF_TRY(keep_blob(seat, c->blob));
    seat->came = true;
    seat->id = id;
    shorten(gather, now_ns, c->timeout_ns);
    if (gather->status != WEFT_OK)
        deliver_failure(m, rank, id, gather->status, gather->text);
    else
        judge(m, gather, rank, c);
    if (is_over(gather)) close_gather(m, gather);
    return WEFT_OK;
}

/* ---- missing ranks ---- */

void wf_gathers_gone(struct wf_gathers *m, int32_t rank, const char *text)
{
    struct wf_text why = {0};
    struct gather *next;

    if (m->gone[rank].why != NULL) return;
    wf_text_add(&why, "rank %d %s", rank, text);
    m->gone[rank].why = wf_strdup(why.failed ? "out of memory" : why.data);
    m->gone[rank].order = ++m->departures;
    for (struct gather *gather = m->first; gather != NULL; gather = next) {
        int32_t seat = seat_of(gather, rank);

        next = gather->next;
        if (seat < 0) continue;
        gather->seats[seat].excused = true;
        fail_gather(m, gather, WEFT_ERR_PEER, &why);
        if (is_over(gather)) close_gather(m, gather);
    }
    wf_text_free(&why);
}

/* The gather in which RANK waits for another, or NULL. */
static struct gather *find_wait(const struct wf_gathers *m, int32_t rank)
{
    for (struct gather *gather = m->first; gather != NULL; gather = gather->next) {
        int32_t seat = seat_of(gather, rank);

        if (seat >= 0 && gather->seats[seat].came && gather->status == WEFT_OK) return gather;
    }
    return NULL;
}

/* True if the rank of SEAT is missing, and makes no progress. */
static bool is_late(const struct seat *seat, uint64_t now_ns)
{
    return !seat->came && seat->until_ns <= now_ns;
}

/* List the ranks that are late: those that wait in no other gather, or all if there are none such.
 */
static int32_t list_late(const struct wf_gathers *m, const struct gather *gather, uint64_t now_ns,
                         int32_t *out)
{
    int32_t count = 0;

    for (int32_t i = 0; i < gather->count; i++)
        if (is_late(&gather->seats[i], now_ns) && find_wait(m, gather->ranks[i]) == NULL)
            out[count++] = gather->ranks[i];
    if (count > 0) return count;
    for (int32_t i = 0; i < gather->count; i++)
        if (is_late(&gather->seats[i], now_ns)) out[count++] = gather->ranks[i];
    return count;
}

/* " of 4" for ranks 0 to 3, " of ranks 1 and 3" for other lists. */
static void add_members(struct wf_text *out, const struct gather *gather)
{
    int32_t i = 0;

    while (i < gather->count && gather->ranks[i] < gather->count)
        i++;
    wf_text_add(out, " of ");
    if (i == gather->count)
        wf_text_add(out, "%d", gather->count);
    else
        wf_ranks_print(out, gather->ranks, gather->count);
}

/* The communicator fails now; ranks at another of its steps get the same text. */
static void time_out(struct wf_gathers *m, struct gather *gather, uint64_t now_ns)
{
    struct wf_text why = {0};
    int32_t *late_ranks = wf_alloc((size_t)gather->count * sizeof *late_ranks);
    int32_t count = late_ranks != NULL ? list_late(m, gather, now_ns, late_ranks) : 0;
    struct gather *other = count > 0 ? find_wait(m, late_ranks[0]) : NULL;

    if (count > 0) {
        bool began = gather->seats[seat_of(gather, late_ranks[0])].until_ns > 0;

        wf_ranks_print(&why, late_ranks, count);
        add_members(&why, gather);
        wf_text_add(&why, began ? " made no progress in %s for " : " did not reach %s within ",
                    gather->label);
        wf_text_time(&why, (uint64_t)gather->timeout_ns);
        if (other != NULL) wf_text_add(&why, "; rank %d is at %s", late_ranks[0], other->label);
    }
    if (other != NULL && (other->comm != gather->comm || other->comm == 0)) other = NULL;
    for (struct gather *late = gather; late != NULL; late = late == gather ? other : NULL) {
        fail_gather(m, late, WEFT_ERR_TIMEOUT, &why);
        late->timed_out = true;
        late->deadline_ns = now_ns + (uint64_t)gather->timeout_ns;
    }
    wf_free(late_ranks);
    wf_text_free(&why);
}

/* The first moment at which a missing rank is late.  Of a gather that has failed: its deadline. */
static uint64_t due_ns(const struct gather *gather)
{
    uint64_t earliest = UINT64_MAX;

    if (gather->status != WEFT_OK) return gather->deadline_ns;
    for (int32_t i = 0; i < gather->count; i++)
        if (!gather->seats[i].came && gather->seats[i].until_ns < earliest)
            earliest = gather->seats[i].until_ns;
    return earliest > gather->deadline_ns ? earliest : gather->deadline_ns;
}

uint64_t wf_gathers_expire(struct wf_gathers *m, uint64_t now_ns)
{
    uint64_t earliest = UINT64_MAX;
    struct gather *next;

    for (struct gather *gather = m->first; gather != NULL; gather = next) {
        next = gather->next;
        if (gather->deadline_ns <= now_ns && gather->timed_out) {
            close_gather(m, gather);
            continue;
        }
        if (due_ns(gather) <= now_ns) time_out(m, gather, now_ns);
        if (due_ns(gather) < earliest) earliest = due_ns(gather);
    }
    return earliest;
}
