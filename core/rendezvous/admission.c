/* admission.c - the rendezvous server's side of joining: hello, proof, admission or refusal. */
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Print the address of the standby.  Returns false if its rank offers none. */
static bool find_standby(const struct wf_server *s, char text[WF_ADDRESS_TEXT])
{
    struct wf_address address;
    const struct wf_connection *c =
        s->options.size > WF_STANDBY_RANK && s->options.serving_rank >= 0
            ? s->members[WF_STANDBY_RANK]
            : NULL;

    if (c == NULL || c->join.standby == 0) return false;
    if (!wf_address_of_peer(c->fd, c->join.standby, &address)) return false;
    wf_address_print(&address, text);
    return true;
}

static void announce_ready(struct wf_server *s)
{
    struct wf_text payload = {0};
    char text[WF_ADDRESS_TEXT];

    s->running = true;
    s->join_deadline_ns = UINT64_MAX;
    wf_free(s->failure.text);
    s->failure.text = NULL;
    wf_put_u64(&payload, s->job);
    wf_put_u32(&payload, (uint32_t)s->options.serving_rank);
    wf_put_string(&payload, find_standby(s, text) ? text : "");
    for (int32_t rank = 0; rank < s->options.size; rank++)
        wf_members_deliver(s, WF_FRAME_READY, rank, 0, &payload);
    wf_text_free(&payload);
}

/* Describe that process PID has already joined with JOIN's rank. */
static void describe_double(uint64_t pid, const struct wf_join *join, char *out, size_t bytes)
{
    if (pid != join->pid)
        snprintf(out, bytes, "two processes have rank %d: %" PRIu64 " and %" PRIu64, join->rank,
                 pid, join->pid);
    else
        snprintf(out, bytes,
                 "process %" PRIu64 " called weft_init twice as rank %d; use the first context, or "
                 "release it first",
                 pid, join->rank);
}

/* True if the last attempt to join failed while JOIN's process was already running, and no rank has
 * connected since.  The process then belongs to that attempt. */
static bool is_late(const struct wf_server *s, const struct wf_join *join, uint64_t now_ns)
{
    return s->failure.text != NULL && s->present == 0 && !s->failure.reported[join->rank] &&
           join->age_ms > (now_ns - s->failure.at_ns) / 1000000;
}

/* JOIN has another number of ranks.  If its rank is awaited, the job cannot begin without it, so
 * the ranks that have joined get the same error. */
static void refuse_size(struct wf_server *s, struct wf_connection *c)
{
    const struct wf_join *join = &c->join;
    bool awaited = !s->running && !s->options.standby && join->rank >= 0 &&
                   join->rank < s->options.size && s->members[join->rank] == NULL;
    char text[192];

    snprintf(text, sizeof text,
             "rank %d has size %d, but the job has size %d; all ranks must have the same size",
             join->rank, join->size, s->options.size);
    if (awaited) {
        wf_members_fail_join(s, WEFT_ERR_MISMATCH, text);
        s->failure.reported[join->rank] = true;
    }
    wf_connection_refuse(c, WEFT_ERR_MISMATCH, text);
}

bool wf_admission_may_join(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    const struct wf_join *join = &c->join;
    char text[192];

    if (join->size == s->options.size && join->rank >= join->size) {
        c->is_newcomer = s->options.grows;
        if (!c->is_newcomer)
            wf_connection_refuse(c, WEFT_ERR_UNSUPPORTED,
                                 "no process can join this job later: its launcher opened the "
                                 "rendezvous without weft_rendezvous_options.grows");
        return c->is_newcomer;
    }
    if (join->size != s->options.size || join->rank < 0 || join->rank >= s->options.size) {
        refuse_size(s, c);
        return false;
    }
    if (s->options.standby && s->came[join->rank]) {
        wf_connection_refuse(c, WEFT_ERR_MISMATCH, "the rank has joined before");
        return false;
    }
    if (s->members[join->rank] != NULL) {
        describe_double(s->members[join->rank]->join.pid, join, text, sizeof text);
        wf_connection_refuse(c, WEFT_ERR_MISMATCH, text);
        return false;
    }
    if (s->absent != NULL) {
        wf_connection_refuse(c, WEFT_ERR_PEER, s->absent);
        return false;
    }
    if (is_late(s, join, now_ns)) {
        s->failure.reported[join->rank] = true;
        wf_connection_refuse(c, s->failure.status, s->failure.text);
        return false;
    }
    if (s->running && !s->options.standby) {
        snprintf(text, sizeof text, "some ranks of the previous job have not left yet");
        wf_connection_refuse(c, WEFT_IN_PROGRESS, text);
        return false;
    }
    return true;
}

static void admit(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    struct wf_text payload = {0};
    uint8_t proof[WF_SHA256_BYTES];

    wf_join_server_proof(&s->options.key, &c->join, proof);
    wf_put_blob(&payload, proof, sizeof proof);
    wf_connection_send(c, WF_FRAME_ADMITTED, 0, &payload);
    wf_text_free(&payload);
    wf_join_seals(&s->options.key, &c->join, &c->in.seal, &c->seal);
    if (!wf_admission_may_join(s, c, now_ns)) return;
    c->stage = WF_STAGE_MEMBER;
    c->deadline_ns = UINT64_MAX;
    if (c->is_newcomer) return;
    c->rank = c->join.rank;
    s->members[c->rank] = c;
    s->came[c->rank] = true;
    s->present++;
    if (s->options.standby) return;
    if (s->join_deadline_ns == UINT64_MAX)
        s->join_deadline_ns = now_ns + (uint64_t)s->options.join_timeout_ns;
    if (s->present == s->options.size) announce_ready(s);
}

static void handle_hello(struct wf_connection *c, uint64_t now_ns)
{
    const uint8_t *bytes = (const uint8_t *)c->in.bytes.data;
    uint8_t answer[WF_HELLO_BYTES];

    if (c->in.bytes.length < WF_HELLO_BYTES) {
        if (!wf_join_may_be_hello(bytes, c->in.bytes.length)) c->broken = true;
        return;
    }
    if (!wf_join_read_hello(bytes, c->join.client_nonce)) {
        c->broken = true;
        return;
    }
    wf_random_bytes(c->join.server_nonce, sizeof c->join.server_nonce);
    wf_join_hello(c->join.server_nonce, answer);
    wf_text_append(&c->out, (const char *)answer, sizeof answer);
    memmove(c->in.bytes.data, bytes + WF_HELLO_BYTES, c->in.bytes.length - WF_HELLO_BYTES);
    c->in.bytes.length -= WF_HELLO_BYTES;
    c->stage = WF_STAGE_PROOF;
    c->deadline_ns = now_ns + WF_STAGE_LIMIT_NS;
}

static void handle_proof(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    const uint8_t *bytes = (const uint8_t *)c->in.bytes.data;

    if (c->in.bytes.length < WF_PROOF_BYTES) return;
    if (!wf_join_read_proof(&s->options.key, bytes, &c->join)) {
        wf_connection_refuse(c, WEFT_ERR_INVALID, ""); /* the rank has its own text for it */
        return;
    }
    c->in.taken = WF_PROOF_BYTES;
    admit(s, c, now_ns);
}

void wf_admission_handle(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    if (c->stage == WF_STAGE_HELLO && c->in.bytes.length > 0) handle_hello(c, now_ns);
    if (c->stage == WF_STAGE_PROOF && !c->broken) handle_proof(s, c, now_ns);
}
