/* Invalid memory of a redistribution is refused, for one tensor and for a batch. */
#include "exec/bound.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"
#include "weft/symm.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 2, TENSORS = 3, SHARD = 8192 }; /* bytes of a shard */

#define REFUSED(call, text)                                                                        \
    EXPECT((call) == WEFT_ERR_INVALID && strstr(weft_last_error(), text) != NULL)

struct scene {
    weft_context *context;
    weft_bound *one, *several, *in_place;
    char *memory; /* 8 shards */
    char *small;  /* 4 bytes less than a shard; the backend rounds this up to a shard */
};

static weft_status begin(struct scene *s)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[64,64] S(0)"), *to = spec_of("2", "f32[64,64] S(1)");
    const weft_spec *froms[TENSORS] = {from, from, from}, *tos[TENSORS] = {to, to, to};
    weft_bind_options in_place = {.struct_size = sizeof in_place, .in_place = true};
    OWNED(weft_plan) *one = NULL, *several = NULL;

    *s = (struct scene){0};
    WF_TRY(weft_plan_create(from, to, NULL, &one));
    WF_TRY(weft_plan_create_batch(TENSORS, froms, tos, NULL, &several));
    WF_TRY(weft_init(NULL, &s->context));
    WF_TRY(weft_plan_bind(one, weft_world(s->context), NULL, &s->one));
    WF_TRY(weft_plan_bind(several, weft_world(s->context), NULL, &s->several));
    WF_TRY(weft_plan_bind(several, weft_world(s->context), &in_place, &s->in_place));
    WF_TRY(weft_alloc(s->context, 8 * SHARD, WEFT_MEMORY_DEVICE, (void **)&s->memory));
    WF_TRY(weft_alloc(s->context, SHARD - 4, WEFT_MEMORY_DEVICE, (void **)&s->small));
    return WEFT_OK;
}

static weft_status end(struct scene *s)
{
    weft_bound_release(&s->one);
    weft_bound_release(&s->several);
    weft_bound_release(&s->in_place);
    WF_TRY(weft_free(s->context, s->memory));
    WF_TRY(weft_free(s->context, s->small));
    weft_context_release(&s->context);
    return WEFT_OK;
}

/* Run the batch with this memory of tensor 1. */
static weft_status run_at(struct scene *s, weft_bound *bound, const void *source, void *target)
{
    const void *sources[TENSORS] = {s->memory, source, s->memory + 2 * SHARD};
    void *targets[TENSORS] = {s->memory + 3 * SHARD, target, s->memory + 5 * SHARD};

    return weft_redistribute_batch(bound, sources, targets, NULL, NULL);
}

/* The shard of this number in the memory; -1: NULL, -2: the small one. */
static char *place_of(struct scene *s, double number)
{
    if (number == -1) return NULL;
    return number == -2 ? s->small : s->memory + (int)(number * SHARD);
}

static weft_status run(struct scene *s, weft_bound *bound, double source, double target)
{
    return run_at(s, bound, place_of(s, source), place_of(s, target));
}

/* These checks are always active. */
static weft_status refuse_null_and_same(struct scene *s)
{
    void *const nothing[TENSORS] = {NULL, NULL, NULL};
    const void *const source[] = {s->memory};
    void *const target[] = {NULL};

    REFUSED(run(s, s->several, -1, 4), "weft_redistribute_batch: sources[1] is NULL, but rank ");
    REFUSED(run(s, s->several, 1, -1), "weft_redistribute_batch: targets[1] is NULL");
    REFUSED(run(s, s->several, 1, 1), "sources[1] and targets[1] are the same memory, but the plan "
                                      "was not bound with in_place");
    REFUSED(run(s, s->in_place, -1, 4), "sources[1] is NULL");
    REFUSED(weft_redistribute_batch(s->several, NULL, nothing, NULL, NULL), "sources is NULL");
    REFUSED(weft_redistribute_batch(s->several, (const void *const *)nothing, NULL, NULL, NULL),
            "targets is NULL");
    REFUSED(weft_redistribute_batch(s->one, source, target, NULL, NULL),
            "weft_redistribute_batch: target is NULL");
    return WEFT_OK;
}

static weft_status refuse_without_check(void *argument)
{
    struct scene s;

    (void)argument;
    WF_TRY(begin(&s));
    EXPECT(!s.one->checked);
    WF_TRY(refuse_null_and_same(&s));
    for (int i = 0; i < 3; i++) { /* also behind runs with other memory */
        WF_TRY(run(&s, s.several, 1, 4));
        WF_TRY(run(&s, s.several, 1, 4));
        REFUSED(run(&s, s.several, 1, -2), "8192 bytes at targets[1]");
        REFUSED(run(&s, s.several, -2, 4), "8192 bytes at sources[1]");
        REFUSED(run(&s, s.several, -1, 4), "sources[1] is NULL");
        REFUSED(run(&s, s.several, 1, 1), "are the same memory");
    }
    WF_TRY(run(&s, s.in_place, 1, 1));
    WF_TRY(run(&s, s.in_place, 1, 1));
    return end(&s);
}

static weft_status refuse_with_check(void *argument)
{
    struct scene s;

    (void)argument;
    WF_TRY(begin(&s));
    EXPECT(s.one->checked);
    WF_TRY(refuse_null_and_same(&s));
    WF_TRY(run(&s, s.several, 1, 4));
    WF_TRY(run(&s, s.in_place, 1, 1));
    WF_TRY(weft_redistribute(s.one, s.memory, s.memory + SHARD, NULL, NULL));
    REFUSED(weft_redistribute(s.one, s.memory, s.small, NULL, NULL),
            "shard needs 8192 bytes at target; the allocation has 8188 bytes");
    REFUSED(weft_redistribute(s.one, s.small, s.memory, NULL, NULL), "8192 bytes at source");
    REFUSED(weft_redistribute(s.one, s.memory, s.memory + 8 * SHARD - 64, NULL, NULL),
            "target begins 65472 bytes into it");
    REFUSED(run(&s, s.several, 1, -2), "weft_redistribute_batch: rank ");
    REFUSED(run(&s, s.several, 1, -2), "8192 bytes at targets[1]");
    REFUSED(run(&s, s.in_place, -2, 4), "8192 bytes at sources[1]");
    REFUSED(weft_redistribute(s.one, s.memory + 1, s.memory + 2 * SHARD, NULL, NULL),
            "is not aligned to 4 bytes, as f32 requires");
    /* Overlap of a tensor with itself and with the others. */
    REFUSED(weft_redistribute(s.one, s.memory, s.memory + SHARD - 4, NULL, NULL),
            "overlap, but the plan was not bound with in_place");
    REFUSED(run(&s, s.several, 1, 1.5), "sources[1] (8192 bytes at ");
    REFUSED(run(&s, s.several, 1, 4.5), "and targets[2] (8192 bytes at ");
    REFUSED(run(&s, s.several, 1, 2), "sources[2] (8192 bytes at ");
    REFUSED(run(&s, s.in_place, 1, 5), "overlap");
    REFUSED(run(&s, s.in_place, 1, 0.5), "overlap");
    return end(&s);
}

/* Scratch that the caller supplies. */
static weft_status refuse_scratch(void *argument)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = true};
    weft_bound *bound = NULL;
    struct scene s;
    void *piece;

    (void)argument;
    WF_TRY(begin(&s));
    WF_TRY(weft_plan_scratch(s.one->plan, weft_world(s.context), &options, &options.scratch_bytes));
    EXPECT(options.scratch_bytes > 0 && options.scratch_bytes <= 2 * SHARD);
    WF_TRY(weft_alloc(s.context, options.scratch_bytes - 1, WEFT_MEMORY_DEVICE, &piece));
    options.scratch = piece;
    REFUSED(weft_plan_bind(s.one->plan, weft_world(s.context), &options, &bound), "scratch_bytes");
    /* Both ranks refuse; all get the error of one of them. */
    EXPECT(strstr(weft_last_error(), "weft_plan_bind: on rank 0 scratch_bytes is ") != NULL ||
           strstr(weft_last_error(), "weft_plan_bind: on rank 1 scratch_bytes is ") != NULL);
    REFUSED(weft_plan_bind(s.one->plan, weft_world(s.context), &options, &bound),
            "bytes, and scratch begins 0 bytes into it");
    options.scratch = s.memory + 6 * SHARD;
    WF_TRY(weft_plan_bind(s.one->plan, weft_world(s.context), &options, &bound));
    WF_TRY(weft_redistribute(bound, s.memory, s.memory + SHARD, NULL, NULL));
    REFUSED(weft_redistribute(bound, s.memory + 6 * SHARD, s.memory, NULL, NULL),
            " and the scratch of the bound plan (");
    REFUSED(weft_redistribute(bound, s.memory, s.memory + 6 * SHARD - 4, NULL, NULL), "target (");
    weft_bound_release(&bound);
    WF_TRY(weft_free(s.context, piece));
    return end(&s);
}

/* Collectives and messages: what is refused on every rank, and the forms in place, which run. */
static weft_status use_collectives(void *argument)
{
    const uint64_t counts[RANKS] = {4, 4}, offsets[RANKS] = {0, 4};
    float *x, *small, *near_it;
    struct scene s;
    weft_comm *comm;
    int32_t rank;

    (void)argument;
    WF_TRY(begin(&s));
    comm = weft_world(s.context);
    rank = weft_rank(s.context);
    x = (float *)s.memory;
    WF_TRY(weft_alloc(s.context, 4 * sizeof *small, WEFT_MEMORY_DEVICE, (void **)&small));
    WF_TRY(weft_alloc(s.context, 4 * sizeof *small, WEFT_MEMORY_DEVICE, (void **)&near_it));
    REFUSED(weft_all_reduce(comm, small, small, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL),
            "needs 64 bytes (16 elements of f32) at send; the allocation has 16 bytes");
    REFUSED(weft_all_gather(comm, x, small, 4, WEFT_DTYPE_F32, NULL), "needs 32 bytes");
    REFUSED(weft_all_gather_v(comm, x, small, counts, offsets, WEFT_DTYPE_F32, NULL),
            "needs 32 bytes");
    REFUSED(weft_send(comm, small, 5, WEFT_DTYPE_F32, 1 - rank, 0, NULL), "20 bytes");
    REFUSED(weft_receive(comm, (char *)x + 2, 4, WEFT_DTYPE_F32, 1 - rank, 0, NULL), "aligned");
    REFUSED(weft_all_reduce(comm, x, x + 4, 8, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL), "overlap");
    REFUSED(weft_all_gather(comm, x + 4 * (1 - rank), x, 4, WEFT_DTYPE_F32, NULL), "overlap");
    WF_TRY(weft_all_gather(comm, x + 4 * rank, x, 4, WEFT_DTYPE_F32, NULL));
    WF_TRY(weft_all_gather_v(comm, x + 4 * rank, x, counts, offsets, WEFT_DTYPE_F32, NULL));
    WF_TRY(weft_reduce_scatter(comm, x, x + 4 * rank, 4, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    WF_TRY(weft_all_to_all(comm, x, x, 4, WEFT_DTYPE_F32, NULL));
    WF_TRY(weft_all_reduce(comm, small, near_it, 4, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    WF_TRY(weft_all_reduce(comm, x, x, 8, WEFT_DTYPE_I32, WEFT_REDUCE_AVG, NULL));
    REFUSED(weft_free(s.context, small + 1), "was not returned by weft_alloc of this context");
    REFUSED(weft_free(s.context, &s), "weft_free: 0x");
    WF_TRY(weft_free(s.context, small));
    REFUSED(weft_free(s.context, small), "or was freed already");
    WF_TRY(weft_free(s.context, near_it));
    return end(&s);
}

/* Without WEFT_CHECK, sizes are compared with weft's memory. */
static weft_status use_small_memory(void *unused)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world;
    float *small = NULL, *large = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    world = weft_world(context);
    WF_TRY(weft_alloc(context, 64, WEFT_MEMORY_DEVICE, (void **)&small));
    WF_TRY(weft_alloc(context, 64 * RANKS, WEFT_MEMORY_DEVICE, (void **)&large));
    WF_TRY(weft_memory_fill(context, small, 0, 64, NULL));
    for (int i = 0; i < 3; i++) {
        WF_TRY(weft_all_reduce(world, small, large, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
        REFUSED(weft_all_reduce(world, small, large, 17, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL),
                "weft_all_reduce on world: rank ");
        REFUSED(weft_all_gather(world, large, small, 16, WEFT_DTYPE_F32, NULL),
                "at recv; the allocation has 64 bytes, and recv begins 0 bytes into it");
        REFUSED(weft_send(world, small + 1, 16, WEFT_DTYPE_F32, 0, 0, NULL),
                "at buffer; the allocation has 64 bytes, and buffer begins 4 bytes into it");
    }
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    WF_TRY(weft_free(context, small));
    WF_TRY(weft_free(context, large));
    return WEFT_OK;
}

#define FREED "is in no allocation: the memory was freed, or was never allocated"

/* Memory of weft that is freed is refused, also after calls that used it. */
static weft_status use_freed_memory(void *unused)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = true};
    weft_pointer_info info = {.struct_size = sizeof info};
    weft_comm *world;
    struct scene s;
    float *freed, *kept;

    (void)unused;
    WF_TRY(begin(&s));
    world = weft_world(s.context);
    kept = (float *)s.memory;
    WF_TRY(weft_memory_fill(s.context, kept, 0, SHARD, NULL));
    WF_TRY(weft_alloc(s.context, SHARD, WEFT_MEMORY_DEVICE, (void **)&freed));
    for (int i = 0; i < 2; i++)
        WF_TRY(weft_all_reduce(world, kept, freed, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    for (int i = 0; i < 3; i++)
        WF_TRY(run_at(&s, s.several, s.memory + SHARD, freed));
    WF_TRY(weft_redistribute(s.one, s.memory, freed, NULL, NULL));
    WF_TRY(weft_free(s.context, freed));
    REFUSED(run_at(&s, s.several, s.memory + SHARD, freed), FREED);
    WF_TRY(run(&s, s.several, 1, 4));
    REFUSED(run_at(&s, s.several, freed, s.memory + 4 * SHARD), FREED);
    REFUSED(weft_all_reduce(world, kept, freed, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL),
            "needs 64 bytes (16 elements of f32) at recv: 0x");
    REFUSED(weft_all_reduce(world, freed, kept, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL), FREED);
    REFUSED(weft_all_gather(world, freed + 8, kept, 1, WEFT_DTYPE_F32, NULL), FREED);
    REFUSED(weft_send(world, freed, 4, WEFT_DTYPE_F32, 0, 0, NULL), FREED);
    REFUSED(weft_redistribute(s.one, s.memory, freed, NULL, NULL), FREED);
    REFUSED(weft_pointer_get(s.context, freed, &info), FREED);
    options.scratch = freed;
    options.scratch_bytes = SHARD;
    REFUSED(weft_plan_bind(s.one->plan, world, &options, &(weft_bound *){NULL}), FREED);
    WF_TRY(weft_all_reduce(world, kept, kept, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    return end(&s);
}

/* The same of symmetric memory that is released, on one rank: there it is freed at once. */
static weft_status use_released_window(void *unused)
{
    weft_symm *symm = NULL;
    OWNED(weft_context) *context = NULL;
    weft_comm *world;
    float *shared;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    world = weft_world(context);
    WF_TRY(weft_symm_create(world, SHARD, NULL, &symm));
    shared = weft_symm_local(symm);
    WF_TRY(weft_all_reduce(world, shared, shared, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL));
    weft_symm_release(&symm);
    REFUSED(weft_all_reduce(world, shared, shared, 16, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL),
            FREED);
    return WEFT_OK;
}

/* With WEFT_CHECK, host memory must be mapped as far as the call reaches. */
static weft_status leave_the_mapping(void *unused)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    weft_context *context;
    weft_comm *world;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    world = weft_world(context);
    mprotect(pages + page, page, PROT_NONE);
    WF_TRY(weft_all_reduce(world, pages, pages, page / 4, WEFT_DTYPE_I32, WEFT_REDUCE_SUM, NULL));
    REFUSED(
        weft_all_reduce(world, pages, pages, page / 4 + 1, WEFT_DTYPE_I32, WEFT_REDUCE_SUM, NULL),
        "bytes from there on");
    REFUSED(weft_all_gather(world, pages, pages + page - 4, 1, WEFT_DTYPE_I32, NULL),
            "at recv; the process can read 4 bytes from there on");
    weft_context_release(&context);
    munmap(pages, 2 * page);
    return WEFT_OK;
}

static void on_ranks(const char *check, weft_status (*rank_main)(void *))
{
    const char *before = getenv("WEFT_CHECK");
    char kept[16];

    snprintf(kept, sizeof kept, "%s", before != NULL ? before : "0");
    setenv("WEFT_CHECK", check, 1);
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
    setenv("WEFT_CHECK", kept, 1);
}

TEST(memory_that_is_missing_or_shared_is_refused_by_tensor)
{
    on_ranks("0", refuse_without_check);
}

TEST(memory_too_small_or_overlapping_is_found_with_check)
{
    on_ranks("1", refuse_with_check);
}

TEST(scratch_too_small_or_overlapping_is_found_with_check)
{
    on_ranks("1", refuse_scratch);
}

TEST(collectives_and_messages_are_checked_too)
{
    on_ranks("1", use_collectives);
}

TEST(sizes_are_compared_without_check)
{
    on_ranks("0", use_small_memory);
}

TEST(freed_memory_is_refused)
{
    on_ranks("0", use_freed_memory);
    on_ranks("1", use_freed_memory);
    ck_assert_msg(weft_threads_run(1, use_released_window, NULL) == WEFT_OK, "%s",
                  weft_last_error());
}

TEST(memory_that_leaves_its_mapping_is_found_with_check)
{
    on_ranks("1", leave_the_mapping);
}
