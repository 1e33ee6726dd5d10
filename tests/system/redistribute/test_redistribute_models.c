/* Layouts of models: fused tensors reshard as their parts do, and matrices go to their owners and
 * back. */
#include "system/redistribute/pairs.h"
#include "support/expect.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

/* ---- fused tensors ---- */

enum { COLUMNS = 3, MOST_PARTS = 3 };

static weft_spec *sharded(int32_t ranks, int64_t rows, const char *placements)
{
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;
    char text[96];

    snprintf(text, sizeof text, "i32[%lld,%d] %s", (long long)rows, COLUMNS, placements);
    ck_assert_int_eq(weft_mesh_create(1, &ranks, NULL, &mesh), WEFT_OK);
    ck_assert_msg(weft_spec_parse(mesh, text, &spec) == WEFT_OK, "%s", weft_last_error());
    weft_mesh_release(&mesh);
    return spec;
}

/* Fill the shards with the elements' numbers in the fused tensor.  The tensor of SPEC begins there
 * with row FIRST_ROW. */
static void number_shards(const weft_spec *spec, int64_t first_row, const struct shards *shards)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    weft_segment s;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        for (int64_t at = 0; weft_spec_segment(spec, weft_mesh_rank_at(mesh, i), NULL, at, &s);
             at += s.length)
            for (int64_t k = 0; k < s.length; k++)
                ((int32_t *)shards->at[i])[s.local + k] =
                    (int32_t)(first_row * COLUMNS + s.global + k);
}

/* The shards of a tensor whose fused form begins with FIRST_ROW, moved from FROM to TO. */
static struct shards reshard(const weft_spec *from, const weft_spec *to, int64_t first_row,
                             uint32_t planner)
{
    weft_plan_options options = {.struct_size = sizeof options, .planner = planner};
    struct shards source = shards_of(from), target = shards_of(to);
    weft_plan *plan = NULL;

    number_shards(from, first_row, &source);
    ck_assert_msg(weft_plan_create(from, to, &options, &plan) == WEFT_OK, "%s", weft_last_error());
    ck_assert_msg(simulate_one(plan, (const void *const *)source.at, target.at) == WEFT_OK, "%s",
                  weft_last_error());
    shards_free(from, &source);
    weft_plan_release(&plan);
    return target;
}

/* A rank's shard of the fused tensor is its shards of the parts, one after the other. */
static void compare_with_parts(int32_t before, int32_t after, int count, const int64_t *rows,
                               uint32_t planner)
{
    weft_spec *from, *to, *parts[MOST_PARTS];
    struct shards fused, apart[MOST_PARTS];
    int64_t sum = 0;
    char text[64] = "B(0;";

    for (int p = 0; p < count; sum += rows[p++]) {
        OWNED(weft_spec) *given = sharded(before, rows[p], "S(0)");
        parts[p] = sharded(after, rows[p], "S(0)");
        apart[p] = reshard(given, parts[p], sum, planner);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", p > 0 ? "," : "",
                 (long long)rows[p]);
    }
    strcat(text, ")");
    from = sharded(before, sum, text);
    to = sharded(after, sum, text);
    fused = reshard(from, to, 0, planner);
    for (int32_t rank = 0; rank < after; rank++) {
        const char *at = fused.at[rank];
        for (int p = 0; p < count; p++) {
            size_t bytes = (size_t)weft_spec_shard_bytes(parts[p], rank);
            ck_assert_msg(memcmp(at, apart[p].at[rank], bytes) == 0,
                          "%s from %d to %d ranks: part %d of rank %d differs", text, before, after,
                          p, rank);
            at += bytes;
        }
        ck_assert_ptr_eq(at, (char *)fused.at[rank] + weft_spec_shard_bytes(to, rank));
    }
    for (int p = 0; p < count; p++) {
        shards_free(parts[p], &apart[p]);
        weft_spec_release(&parts[p]);
    }
    shards_free(to, &fused);
    weft_spec_release(&from);
    weft_spec_release(&to);
}

TEST(fused_tensors_reshard_as_their_parts_do)
{
    static const int32_t sizes[] = {1, 2, 3, 4, 8};
    /* 32 query and 8 key-value heads, of two rows each; gate and up */
    static const int64_t qkv[] = {64, 16, 16}, gate_up[] = {44, 44};

    for (size_t i = 0; i < WF_COUNT(sizes); i++)
        for (size_t j = 0; j < WF_COUNT(sizes); j++)
            for (uint32_t planner = 0; planner <= WEFT_PLANNER_EXCHANGE; planner++) {
                compare_with_parts(sizes[i], sizes[j], 3, qkv, planner);
                compare_with_parts(sizes[i], sizes[j], 2, gate_up, planner);
            }
    ck_assert_int_eq(wf_mem_live(), 0);
}

/* ---- owners ---- */

enum { RANKS = 4, MATRICES = 100 };

struct matrices {
    weft_context *context;
    int32_t rank;
    weft_spec *shards[MATRICES], *owned[MATRICES];
    void *have[MATRICES], *whole[MATRICES], *back[MATRICES];
};

/* Matrices of different shapes, dealt to owners by their bytes. */
static weft_status deal(struct matrices *m, weft_mesh *mesh)
{
    uint64_t bytes[MATRICES];
    int32_t owners[MATRICES];
    char text[64];

    for (uint64_t i = 0; i < MATRICES; i++)
        bytes[i] = (3 + i * 7 % 23) * (1 + i * 5 % 11) * 4;
    WF_TRY(weft_owners_balance(MATRICES, bytes, RANKS, owners));
    for (int i = 0; i < MATRICES; i++) {
        snprintf(text, sizeof text, "f32[%d,%d] S(0)", 3 + i * 7 % 23, 1 + i * 5 % 11);
        WF_TRY(weft_spec_parse(mesh, text, &m->shards[i]));
        snprintf(text, sizeof text, "O(%d)", owners[i]);
        WF_TRY(weft_spec_with(m->shards[i], text, &m->owned[i]));
        EXPECT(weft_spec_shard_bytes(m->owned[i], m->rank) ==
               (owners[i] == m->rank ? bytes[i] : 0));
    }
    return WEFT_OK;
}

static weft_status allocate(struct matrices *m)
{
    for (int i = 0; i < MATRICES; i++) {
        uint64_t mine = weft_spec_shard_bytes(m->shards[i], m->rank);
        uint64_t all = weft_spec_shard_bytes(m->owned[i], m->rank);
        weft_segment s;
        WF_TRY(weft_alloc(m->context, mine + 1, WEFT_MEMORY_DEVICE, &m->have[i]));
        WF_TRY(weft_alloc(m->context, mine + 1, WEFT_MEMORY_DEVICE, &m->back[i]));
        WF_TRY(weft_alloc(m->context, all + 1, WEFT_MEMORY_DEVICE, &m->whole[i]));
        memset(m->back[i], 0xa5, (size_t)mine);
        memset(m->whole[i], 0xa5, (size_t)all);
        for (int64_t at = 0; weft_spec_segment(m->shards[i], m->rank, NULL, at, &s); at += s.length)
            for (int64_t k = 0; k < s.length; k++)
                ((float *)m->have[i])[s.local + k] = (float)(1000 * i + s.global + k);
    }
    return WEFT_OK;
}

static weft_status move_all(const struct matrices *m, weft_spec *const *from, weft_spec *const *to,
                            void *const *sources, void *const *targets, bool packed)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_plan) *plan = NULL;
    weft_bound *bound = NULL;

    WF_TRY(weft_plan_create_batch(MATRICES, (const weft_spec *const *)from,
                                  (const weft_spec *const *)to, NULL, &plan));
    WF_TRY(weft_plan_get(plan, &info));
    EXPECT(info.together == MATRICES && info.steps == 1);
    WF_TRY(weft_plan_bind(plan, weft_world(m->context), &options, &bound));
    WF_TRY(weft_redistribute_batch(bound, (const void *const *)sources, targets, NULL, NULL));
    WF_TRY(weft_barrier(weft_world(m->context), NULL));
    weft_bound_release(&bound);
    return WEFT_OK;
}

static weft_status check_round_trip(const struct matrices *m)
{
    for (int i = 0; i < MATRICES; i++) {
        uint64_t all = weft_spec_shard_bytes(m->owned[i], m->rank) / 4;
        for (uint64_t k = 0; k < all; k++)
            EXPECT(((float *)m->whole[i])[k] == (float)(1000 * i + (int)k));
        EXPECT(memcmp(m->have[i], m->back[i],
                      (size_t)weft_spec_shard_bytes(m->shards[i], m->rank)) == 0);
    }
    return WEFT_OK;
}

TEST_ON_RANKS(RANKS, a_hundred_matrices_visit_their_owners)
{
    static const bool ways[] = {false, true};
    struct matrices m = {0};
    weft_mesh *mesh = NULL;

    WF_TRY(weft_init(NULL, &m.context));
    m.rank = weft_rank(m.context);
    WF_TRY(weft_mesh_parse("4", &mesh));
    WF_TRY(deal(&m, mesh));
    for (size_t w = 0; w < WF_COUNT(ways); w++) {
        WF_TRY(allocate(&m));
        WF_TRY(move_all(&m, m.shards, m.owned, m.have, m.whole, ways[w]));
        WF_TRY(move_all(&m, m.owned, m.shards, m.whole, m.back, ways[w]));
        WF_TRY(check_round_trip(&m));
        for (int i = 0; i < MATRICES; i++) {
            WF_TRY(weft_free(m.context, m.have[i]));
            WF_TRY(weft_free(m.context, m.whole[i]));
            WF_TRY(weft_free(m.context, m.back[i]));
        }
    }
    for (int i = 0; i < MATRICES; i++) {
        weft_spec_release(&m.shards[i]);
        weft_spec_release(&m.owned[i]);
    }
    weft_mesh_release(&mesh);
    weft_context_release(&m.context);
    return WEFT_OK;
}
