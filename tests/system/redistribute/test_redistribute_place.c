/* Memory that the device cannot use is refused when a plan is bound, or runs for the first time; on
 * a backend that works in host memory, all of it is usable. */
#include "support/device_memory.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <string.h>

enum { RANKS = 2, LENGTH = 8 };

struct place {
    weft_context *context;
    weft_spec *rows, *whole;
    bool on_host; /* the backend works in host memory */
    float host[2 * LENGTH];
    void *a, *b; /* of the device, LENGTH elements each */
};

static weft_status begin(struct place *p)
{
    weft_device_info info = {.struct_size = sizeof info};

    memset(p, 0, sizeof *p);
    for (int i = 0; i < LENGTH; i++)
        p->host[i] = (float)i + 1;
    WF_TRY(weft_init(NULL, &p->context));
    WF_TRY(weft_device_get(p->context, &info));
    p->on_host = (info.features & WEFT_FEATURE_HOST_MEMORY) != 0;
    p->rows = spec_of("2", "f32[8] S(0)");
    p->whole = spec_of("2", "f32[8] R");
    WF_TRY(memory_make(p->context, p->host, LENGTH * sizeof(float), &p->a));
    return memory_make(p->context, p->host, LENGTH * sizeof(float), &p->b);
}

static weft_status end(struct place *p)
{
    weft_spec_release(&p->rows);
    weft_spec_release(&p->whole);
    WF_TRY(weft_context_wait(p->context, NULL, WEFT_FOREVER));
    WF_TRY(weft_free(p->context, p->a));
    WF_TRY(weft_free(p->context, p->b));
    weft_context_release(&p->context);
    return WEFT_OK;
}

/* STATUS is OK on the host; on a device the text of the error has TEXT. */
static bool is_refused(const struct place *p, weft_status status, const char *text)
{
    if (p->on_host) return status == WEFT_OK;
    return status == WEFT_ERR_INVALID && strstr(weft_last_error(), text) != NULL &&
           strstr(weft_last_error(), "is host memory, which the device cannot use") != NULL;
}

TEST_ON_RANKS(RANKS, a_move_names_the_argument)
{
    struct place p;
    weft_move_info moves = {.struct_size = sizeof moves};
    float *shard = p.host, *more = p.host + LENGTH;

    WF_TRY(begin(&p));
    EXPECT(
        is_refused(&p, move_one(p.context, p.rows, shard, p.whole, p.b, NULL, NULL), "source, 0x"));
    EXPECT(
        is_refused(&p, move_one(p.context, p.rows, p.a, p.whole, more, NULL, NULL), "target, 0x"));
    /* A local copy, which no collective call looks at. */
    EXPECT(is_refused(&p, move_one(p.context, p.whole, p.host, p.rows, p.b, NULL, NULL),
                      "weft_move: "));
    WF_TRY(weft_move_get(p.context, &moves));
    EXPECT(moves.bound == (p.on_host ? 2 : 0));
    WF_TRY(move_one(p.context, p.rows, p.a, p.whole, p.b, NULL, NULL));
    return end(&p);
}

/* Rank 1 alone is wrong: the first move binds, so both ranks get the error at once. */
TEST_ON_RANKS(RANKS, all_ranks_of_a_first_move_get_the_error)
{
    struct place p;
    const void *source;
    weft_status status;

    WF_TRY(begin(&p));
    source = weft_rank(p.context) == 1 ? p.host : p.a;
    status = move_one(p.context, p.rows, source, p.whole, p.b, NULL, NULL);
    EXPECT(is_refused(&p, status, "on rank 1: source, 0x"));
    WF_TRY(move_one(p.context, p.rows, p.a, p.whole, p.b, NULL, NULL));
    return end(&p);
}

TEST_ON_RANKS(RANKS, a_list_names_the_tensor)
{
    struct place p;
    weft_move_item items[2];

    WF_TRY(begin(&p));
    items[0] = (weft_move_item){NULL, p.rows, p.a, p.rows, (char *)p.b + 4 * sizeof(float)};
    items[1] = (weft_move_item){"w", p.rows, (char *)p.a + 4 * sizeof(float), p.rows, p.b};
    items[0].source = p.host;
    EXPECT(is_refused(&p, move_items(p.context, 2, items, NULL, NULL), "items[0].source, 0x"));
    WF_TRY(weft_move_clear(p.context));
    items[0].source = p.a;
    items[1].target = p.host;
    EXPECT(is_refused(&p, move_items(p.context, 2, items, NULL, NULL), "the target of w, 0x"));
    items[1].target = p.b;
    WF_TRY(move_items(p.context, 2, items, NULL, NULL));
    return end(&p);
}

TEST_ON_RANKS(RANKS, a_bound_plan_refuses_scratch_and_its_first_memory)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_bind_options given = {.struct_size = sizeof given};
    const void *sources[2];
    void *targets[2];
    const weft_spec *from[2], *to[2];
    weft_plan *plan = NULL, *batch = NULL;
    weft_bound *bound = NULL;
    _Alignas(16) char scratch[4096];
    struct place p;

    WF_TRY(begin(&p));
    WF_TRY(weft_plan_create(p.rows, p.whole, &options, &plan));
    given.scratch = scratch;
    given.scratch_bytes = sizeof scratch;
    EXPECT(
        is_refused(&p, weft_plan_bind(plan, weft_world(p.context), &given, &bound), "scratch, 0x"));
    weft_bound_release(&bound);
    WF_TRY(weft_plan_bind(plan, weft_world(p.context), NULL, &bound));
    EXPECT(is_refused(&p, weft_redistribute(bound, p.host, p.b, NULL, NULL),
                      "weft_redistribute: on rank "));
    EXPECT(
        is_refused(&p, weft_redistribute(bound, p.a, p.host + LENGTH, NULL, NULL), "target, 0x"));
    WF_TRY(weft_redistribute(bound, p.a, p.b, NULL, NULL));
    WF_TRY(weft_context_wait(p.context, NULL, WEFT_FOREVER));
    weft_bound_release(&bound);

    for (int i = 0; i < 2; i++) {
        from[i] = p.rows;
        to[i] = p.rows;
        sources[i] = (char *)p.a + (size_t)i * 4 * sizeof(float);
        targets[i] = (char *)p.b + (size_t)i * 4 * sizeof(float);
    }
    WF_TRY(weft_plan_create_batch(2, from, to, &options, &batch));
    WF_TRY(weft_plan_bind(batch, weft_world(p.context), NULL, &bound));
    sources[1] = p.host;
    EXPECT(is_refused(&p, weft_redistribute_batch(bound, sources, targets, NULL, NULL),
                      "sources[1], 0x"));
    sources[1] = (char *)p.a + 4 * sizeof(float);
    WF_TRY(weft_redistribute_batch(bound, sources, targets, NULL, NULL));
    WF_TRY(weft_context_wait(p.context, NULL, WEFT_FOREVER));
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_plan_release(&batch);
    return end(&p);
}

/* A shard without elements needs no memory, and pinned memory is the device's too. */
TEST_ON_RANKS(RANKS, empty_shards_and_pinned_memory_are_accepted)
{
    weft_spec *one = spec_of("2", "f32[1] S(0)"), *copied = spec_of("2", "f32[1] R");
    void *pinned = NULL;
    const void *source;
    struct place p;

    WF_TRY(begin(&p));
    WF_TRY(weft_alloc(p.context, LENGTH * sizeof(float), WEFT_MEMORY_PINNED, &pinned));
    memcpy(pinned, p.host, LENGTH * sizeof(float));
    WF_TRY(move_one(p.context, p.rows, pinned, p.whole, p.b, NULL, NULL));
    source = weft_rank(p.context) == 1 ? (const void *)p.host : p.a; /* rank 1 has no element */
    WF_TRY(move_one(p.context, one, source, copied, p.b, NULL, NULL));
    WF_TRY(weft_context_wait(p.context, NULL, WEFT_FOREVER));
    WF_TRY(weft_free(p.context, pinned));
    weft_spec_release(&one);
    weft_spec_release(&copied);
    return end(&p);
}
