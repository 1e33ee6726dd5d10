/* inquiry.c - one rank asks others for their positions, and gets the answers that arrive in time.
 */
#include "rendezvous.h"

#include <string.h>

struct answer {
    int32_t rank;
    bool came;
    struct wf_text text;
};

struct wf_inquiry {
    struct wf_inquiry *next;
    uint64_t number, deadline_ns, id;
    int32_t asker, count, missing;
    struct answer *answers;
};

weft_status wf_inquiry_open(struct wf_inquiries *inquiries, uint64_t deadline_ns, int32_t rank,
                            uint64_t id, const int32_t *ranks, int32_t count, uint64_t *number)
{
    struct wf_inquiry *q = wf_calloc(1, sizeof *q);

    if (q == NULL) return wf_fail_memory(sizeof *q);
    q->answers = wf_calloc((size_t)count, sizeof *q->answers);
    if (q->answers == NULL) {
        wf_free(q);
        return wf_fail_memory((size_t)count * sizeof *q->answers);
    }
    for (int32_t i = 0; i < count; i++)
        q->answers[i].rank = ranks[i];
    q->count = q->missing = count;
    q->deadline_ns = deadline_ns;
    q->asker = rank;
    q->id = id;
    q->number = ++inquiries->number;
    q->next = inquiries->first;
    inquiries->first = q;
    *number = q->number;
    return WEFT_OK;
}

static void free_inquiry(struct wf_inquiry *q)
{
    for (int32_t i = 0; i < q->count; i++)
        wf_text_free(&q->answers[i].text);
    wf_free(q->answers);
    wf_free(q);
}

static void finish(struct wf_inquiries *inquiries, struct wf_inquiry *q)
{
    struct wf_inquiry **at = &inquiries->first;
    struct wf_text payload = {0};

    wf_put_u32(&payload, WEFT_OK);
    wf_put_u64(&payload, q->number);
    wf_put_u32(&payload, (uint32_t)q->count);
    for (int32_t i = 0; i < q->count; i++)
        wf_put_blob(&payload, q->answers[i].text.data, q->answers[i].text.length);
    inquiries->sink.deliver(inquiries->sink.self, q->asker, q->id, &payload);
    wf_text_free(&payload);
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    free_inquiry(q);
}

void wf_inquiry_answer(struct wf_inquiries *inquiries, uint64_t number, int32_t rank,
                       weft_blob answer)
{
    struct wf_inquiry *q = inquiries->first;

    while (q != NULL && q->number != number)
        q = q->next;
    if (q == NULL) return;
    for (int32_t i = 0; i < q->count; i++) {
        struct answer *a = &q->answers[i];

        if (a->rank != rank || a->came) continue;
        wf_text_append(&a->text, answer.data, (size_t)answer.bytes);
        a->came = true;
        q->missing--;
    }
    if (q->missing == 0) finish(inquiries, q);
}

uint64_t wf_inquiries_expire(struct wf_inquiries *inquiries, uint64_t now_ns)
{
    uint64_t earliest = UINT64_MAX;
    struct wf_inquiry *next;

    for (struct wf_inquiry *q = inquiries->first; q != NULL; q = next) {
        next = q->next;
        if (q->deadline_ns <= now_ns)
            finish(inquiries, q);
        else if (q->deadline_ns < earliest)
            earliest = q->deadline_ns;
    }
    return earliest;
}

void wf_inquiries_free(struct wf_inquiries *inquiries)
{
    while (inquiries->first != NULL) {
        struct wf_inquiry *q = inquiries->first;

        inquiries->first = q->next;
        free_inquiry(q);
    }
}
