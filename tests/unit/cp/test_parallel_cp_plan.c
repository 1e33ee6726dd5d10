/* Plans of context parallel: who holds what, which problems each step has, and refusals. */
#include "support/allocfail.h"
#include "support/cp_case.h"
#include "support/suite.h"
#include "weft/parallel.h"

static weft_cp_plan *make(const char *mesh_text, const char *axis, int64_t length,
                          const weft_cp_options *options)
{
    weft_mesh *mesh;
    weft_cp_plan *plan = NULL;

    ck_assert_int_eq(weft_mesh_parse(mesh_text, &mesh), WEFT_OK);
    ck_assert_msg(cp_plan(mesh, axis, length, options, &plan) == WEFT_OK, "%s", weft_last_error());
    weft_mesh_release(&mesh);
    return plan;
}

static weft_cp_plan *make_case(const struct cp_case *c)
{
    char mesh[32];

    snprintf(mesh, sizeof mesh, "dp=2,cp=%d", c->ranks);
    return make(mesh, "cp", c->length, &c->options);
}

/* The indices that COORDINATE holds, in order; their number. */
static int64_t indices(const weft_cp_plan *plan, int32_t coordinate, int64_t *out)
{
    int64_t at = 0;
    weft_index_run run;

    for (; weft_cp_plan_run(plan, coordinate, at, &run); at += run.length)
        for (int64_t i = 0; i < run.length; i++)
            out[at + i] = run.start + i;
    return at;
}

static void check_order(const weft_cp_plan *plan, const char *expected)
{
    char text[512] = "";
    int64_t held[128];
    weft_cp_plan_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_cp_plan_get(plan, &info), WEFT_OK);
    for (int32_t c = 0; c < info.ranks; c++) {
        int64_t count = indices(plan, c, held);

        ck_assert_int_eq(count, weft_cp_plan_length(plan, c));
        if (c > 0) strcat(text, "| ");
        for (int64_t i = 0; i < count; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%lld ", (long long)held[i]);
    }
    ck_assert_str_eq(text, expected);
}

#define OPTIONS(...) (&(weft_cp_options){.struct_size = sizeof(weft_cp_options), __VA_ARGS__})

TEST(balances_hold_the_published_orders)
{
    static const int64_t documents[] = {4, 8, 4}, order[] = {5, 0, 1, 4, 3, 2};
    weft_cp_plan *plan;

    plan = make("2", "0", 8, OPTIONS(.balance = WEFT_CP_HEAD_TAIL));
    check_order(plan, "0 1 6 7 | 2 3 4 5 ");
    weft_cp_plan_release(&plan);
    plan = make("4", "0", 16, OPTIONS(.balance = WEFT_CP_HEAD_TAIL));
    check_order(plan, "0 1 14 15 | 2 3 12 13 | 4 5 10 11 | 6 7 8 9 ");
    weft_cp_plan_release(&plan);
    plan = make("2", "0", 16,
                OPTIONS(.balance = WEFT_CP_PER_DOCUMENT, .variant = WEFT_CP_GATHER,
                        .documents = documents, .document_count = 3));
    check_order(plan, "0 3 4 5 10 11 12 15 | 1 2 6 7 8 9 13 14 ");
    weft_cp_plan_release(&plan);
    plan = make("4", "0", 10, NULL);
    check_order(plan, "0 1 2 | 3 4 5 | 6 7 8 | 9 ");
    weft_cp_plan_release(&plan);
    plan = make("2", "0", 7, OPTIONS(.balance = WEFT_CP_HEAD_TAIL));
    check_order(plan, "0 1 6 | 2 3 4 5 ");
    weft_cp_plan_release(&plan);
    plan = make("4", "0", 6,
                OPTIONS(.balance = WEFT_CP_PERMUTED, .variant = WEFT_CP_GATHER, .order = order,
                        .order_count = 6));
    check_order(plan, "5 0 | 1 4 | 3 2 | ");
    weft_cp_plan_release(&plan);
}

/* Rows with 1 to 8 blocks on two ranks. */
TEST(rows_of_blocks_are_dealt_forward_and_backward)
{
    static weft_cp_block blocks[64];
    weft_cp_plan_info info = {.struct_size = sizeof info};
    uint32_t count = 0;
    OWNED(weft_cp_plan) *plan = NULL;

    for (int64_t row = 0; row < 8; row++) /* row r has r + 1 blocks */
        for (int64_t key = 0; key <= row; key++)
            blocks[count++] = (weft_cp_block){row, key, WEFT_CP_FULL, 0};
    plan = make("2", "0", 16,
                OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER,
                        .balance = WEFT_CP_BY_BLOCKS, .block_length = 2, .blocks = blocks,
                        .block_count = count, .block_size = sizeof(weft_cp_block)));
    check_order(plan, "0 1 6 7 8 9 14 15 | 2 3 4 5 10 11 12 13 ");
    ck_assert_int_eq(weft_cp_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.work_total, 4 * 36);
    ck_assert_uint_eq(info.work_largest, 4 * 18);
}

static void check_problem(const weft_cp_plan *plan, int32_t coordinate, int32_t step, uint32_t mask,
                          int64_t query, int64_t queries, int64_t key, int64_t keys)
{
    weft_cp_problem p;
    size_t count;

    ck_assert_int_eq(weft_cp_plan_problems(plan, coordinate, step, 1, &p, sizeof p, &count),
                     WEFT_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(p.mask, mask);
    ck_assert_int_eq(p.source, (coordinate - step + 4) % 4);
    ck_assert_int_eq(p.query, query);
    ck_assert_int_eq(p.queries, queries);
    ck_assert_int_eq(p.key, key);
    ck_assert_int_eq(p.keys, keys);
}

/* One call of the kernel per step: the own shard, the first half of keys, or the second half of
 * queries. */
TEST(a_balanced_causal_ring_has_one_problem_per_step)
{
    OWNED(weft_cp_plan) *plan =
        make("4", "0", 64, OPTIONS(.mask = WEFT_CP_CAUSAL, .balance = WEFT_CP_HEAD_TAIL));

    for (int32_t c = 0; c < 4; c++) {
        check_problem(plan, c, 0, WEFT_CP_CAUSAL, 0, 16, 0, 16);
        for (int32_t step = 1; step < 4; step++)
            if (step <= c)
                check_problem(plan, c, step, WEFT_CP_FULL, 0, 16, 0, 8);
            else
                check_problem(plan, c, step, WEFT_CP_FULL, 8, 8, 0, 16);
        ck_assert_uint_eq(weft_cp_plan_work(plan, c), 64 * 65 / 2 / 4);
    }
}

/* ---- random cases ---- */

static struct random r;

#define HOLDS(c, claim)                                                                            \
    do {                                                                                           \
        if (!(claim))                                                                              \
            ck_abort_msg("not so: %s\nWEFT_TEST_SEED=%llu\n%s\n%s", #claim,                        \
                         (unsigned long long)r.seed, cp_case_text(c), weft_last_error());          \
    } while (0)

static uint8_t seen[CP_MOST][CP_MOST];

/* Mark the pairs of COORDINATE in STEP, whose queries and keys have the indices QUERIES and KEYS.
 */
static void mark_step(const struct cp_case *c, const weft_cp_plan *plan, int32_t coordinate,
                      int32_t step, uint64_t *work)
{
    static weft_cp_problem problems[CP_MOST * CP_MOST];
    int64_t queries[CP_MOST], keys[CP_MOST];
    size_t count;

    HOLDS(c, weft_cp_plan_problems(plan, coordinate, step, CP_MOST * CP_MOST, problems,
                                   sizeof *problems, &count) == WEFT_OK);
    indices(plan, coordinate, queries);
    for (int64_t i = 0; i < c->length; i++) {
        keys[i] = i;
        if (c->options.variant == WEFT_CP_HEADS) queries[i] = i;
    }
    for (size_t n = 0; n < count; n++) {
        const weft_cp_problem *p = &problems[n];

        HOLDS(c, (p->source >= 0) == (c->options.variant == WEFT_CP_RING));
        if (p->source >= 0) indices(plan, p->source, keys);
        HOLDS(c, queries[p->query] == p->query_index && keys[p->key] == p->key_index);
        for (int64_t i = 0; i < p->queries; i++)
            for (int64_t j = 0; j < p->keys; j++) {
                if (p->mask == WEFT_CP_CUSTOM) ++*work;
                if (!cp_problem_sees(p, i, j)) continue;
                if (p->mask != WEFT_CP_CUSTOM) ++*work;
                seen[queries[p->query + i]][keys[p->key + j]]++;
            }
    }
}

static void check_case(const struct cp_case *c)
{
    OWNED(weft_cp_plan) *plan = make_case(c);
    weft_cp_plan_info info = {.struct_size = sizeof info};
    uint64_t total = 0, largest = 0;
    int64_t held = 0, longest = 0;

    HOLDS(c, weft_cp_plan_get(plan, &info) == WEFT_OK);
    memset(seen, 0, sizeof seen);
    for (int32_t i = 0; i < c->ranks; i++) {
        uint64_t work = 0;

        held += weft_cp_plan_length(plan, i);
        longest = wf_max_i64(longest, weft_cp_plan_length(plan, i));
        if (c->options.variant == WEFT_CP_HEADS && i > 0) continue;
        for (int32_t step = 0; step < info.steps; step++)
            mark_step(c, plan, i, step, &work);
        total += work;
        largest = work > largest ? work : largest;
        if (c->options.variant != WEFT_CP_HEADS) HOLDS(c, work == weft_cp_plan_work(plan, i));
    }
    HOLDS(c, held == c->length && longest == info.longest && total == info.work_total);
    if (c->options.variant != WEFT_CP_HEADS) HOLDS(c, largest == info.work_largest);
    for (int64_t q = 0; q < c->length; q++)
        for (int64_t k = 0; k < c->length; k++)
            HOLDS(c, seen[q][k] == cp_sees(c, q, k));
}

TEST(every_visible_pair_is_in_one_problem)
{
    static struct cp_case c;
    int cases = test_cases(1500);

    r = random_begin("test_parallel_cp_plan");
    for (int i = 0; i < cases; i++) {
        cp_case_draw(&r, random_in(&r, 1, 16), &c);
        check_case(&c);
    }
}

/* Blocks of 128 indices, at least 64 of them per rank, any remainder. */
TEST(causal_work_is_balanced)
{
    r = random_begin("test_parallel_cp_plan");
    for (int32_t ranks = 2; ranks <= 16; ranks++)
        for (int i = 0; i < 20; i++) {
            weft_cp_plan_info info = {.struct_size = sizeof info};
            char mesh[16];
            int64_t length = (int64_t)ranks * 64 * 128 + random_in(&r, 0, 100000);
            OWNED(weft_cp_plan) *plan = NULL;

            snprintf(mesh, sizeof mesh, "%d", ranks);
            plan = make(mesh, "0", length,
                        OPTIONS(.mask = WEFT_CP_CAUSAL, .balance = WEFT_CP_HEAD_TAIL));
            ck_assert_int_eq(weft_cp_plan_get(plan, &info), WEFT_OK);
            ck_assert_uint_eq(info.work_total, (uint64_t)(length * (length + 1) / 2));
            ck_assert_msg((double)info.work_largest * ranks <= 1.05 * (double)info.work_total,
                          "%d ranks, length %lld: %g", ranks, (long long)length,
                          (double)info.work_largest * ranks / (double)info.work_total);
        }
}

/* Counted blocks: a causal mask of 64 rows of blocks per rank. */
TEST(listed_blocks_are_balanced)
{
    for (int32_t ranks = 2; ranks <= 16; ranks += 7) {
        int64_t rows = ranks * 64;
        weft_cp_block *blocks = calloc((size_t)(rows * rows), sizeof *blocks);
        uint32_t count = 0;
        weft_cp_plan_info info = {.struct_size = sizeof info};
        char mesh[16];
        OWNED(weft_cp_plan) *plan = NULL;

        ck_assert_ptr_nonnull(blocks);
        for (int64_t q = 0; q < rows; q++)
            for (int64_t k = 0; k <= q; k++)
                blocks[count++] = (weft_cp_block){q, k, k == q ? WEFT_CP_CUSTOM : WEFT_CP_FULL, 0};
        snprintf(mesh, sizeof mesh, "%d", ranks);
        plan = make(mesh, "0", rows,
                    OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER,
                            .balance = WEFT_CP_BY_BLOCKS, .block_length = 1, .blocks = blocks,
                            .block_count = count, .block_size = sizeof(weft_cp_block)));
        free(blocks);
        ck_assert_int_eq(weft_cp_plan_get(plan, &info), WEFT_OK);
        ck_assert_uint_eq(info.work_total, count);
        ck_assert((double)info.work_largest * ranks <= 1.05 * (double)count);
    }
}

/* Documents of one token each: every rank holds as many. */
TEST(remainders_of_documents_are_shared)
{
    int64_t documents[64];
    OWNED(weft_cp_plan) *plan = NULL;

    for (int i = 0; i < 64; i++)
        documents[i] = 1;
    plan = make("4", "0", 64,
                OPTIONS(.mask = WEFT_CP_CAUSAL, .balance = WEFT_CP_PER_DOCUMENT,
                        .variant = WEFT_CP_GATHER, .documents = documents, .document_count = 64));
    for (int32_t c = 0; c < 4; c++)
        ck_assert_int_eq(weft_cp_plan_length(plan, c), 16);
}

/* ---- refusals ---- */

static void refuse(int64_t length, const weft_cp_options *options, weft_status status,
                   const char *text)
{
    weft_cp_plan *plan = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    ck_assert_int_eq(weft_mesh_parse("cp=2", &mesh), WEFT_OK);
    ck_assert_msg(cp_plan(mesh, "cp", length, options, &plan) == status, "%s: %s", text,
                  weft_last_error());
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
    ck_assert_ptr_null(plan);
}

TEST(contradictions_are_refused)
{
    static const int64_t short_documents[] = {3, 4}, negative[] = {-1, 9}, twice[] = {0, 1, 2, 1},
                         outside[] = {0, 1, 2, 4};
    static const weft_cp_block double_block[] = {{0, 0, WEFT_CP_FULL, 0},
                                                 {0, 0, WEFT_CP_CAUSAL, 0}},
                               far_block[] = {{0, 4, WEFT_CP_FULL, 0}},
                               window_block[] = {{0, 0, WEFT_CP_WINDOW, 0}};

    refuse(-1, NULL, WEFT_ERR_INVALID, "weft_cp_options.length is -1");
    refuse(WEFT_CP_MAX_LENGTH + 1, NULL, WEFT_ERR_INVALID, "length");
    refuse(8, OPTIONS(.mask = 4), WEFT_ERR_INVALID, "weft_cp_options.mask is 4; expected FULL");
    refuse(8, OPTIONS(.balance = 5), WEFT_ERR_INVALID, "weft_cp_options.balance is 5; expected");
    refuse(8, OPTIONS(.variant = 3), WEFT_ERR_INVALID, "weft_cp_options.variant is 3; expected");
    refuse(8, OPTIONS(.document_count = 2), WEFT_ERR_INVALID, "documents is NULL");
    refuse(8, OPTIONS(.mask = WEFT_CP_WINDOW), WEFT_ERR_INVALID, "at least 1");
    refuse(8, OPTIONS(.mask = WEFT_CP_CAUSAL, .window = 3), WEFT_ERR_INVALID, "only WINDOW");
    refuse(8, OPTIONS(.documents = short_documents, .document_count = 2), WEFT_ERR_INVALID,
           "add up to 7");
    refuse(8, OPTIONS(.documents = negative, .document_count = 2), WEFT_ERR_INVALID, "document 0");
    refuse(8, OPTIONS(.balance = WEFT_CP_PER_DOCUMENT, .variant = WEFT_CP_GATHER), WEFT_ERR_INVALID,
           "without documents");
    refuse(8, OPTIONS(.balance = WEFT_CP_BY_BLOCKS, .variant = WEFT_CP_GATHER), WEFT_ERR_INVALID,
           "needs the mask BLOCKS");
    refuse(4, OPTIONS(.balance = WEFT_CP_PERMUTED, .variant = WEFT_CP_GATHER), WEFT_ERR_INVALID,
           "order is NULL");
    refuse(4,
           OPTIONS(.balance = WEFT_CP_PERMUTED, .variant = WEFT_CP_GATHER, .order = twice,
                   .order_count = 3),
           WEFT_ERR_INVALID, "order_count is 3, but the sequence has length 4");
    refuse(4,
           OPTIONS(.balance = WEFT_CP_PERMUTED, .variant = WEFT_CP_GATHER, .order = twice,
                   .order_count = 4),
           WEFT_ERR_INVALID, "order[3] is 1, which is listed before");
    refuse(4,
           OPTIONS(.balance = WEFT_CP_PERMUTED, .variant = WEFT_CP_GATHER, .order = outside,
                   .order_count = 4),
           WEFT_ERR_INVALID, "order[3] is 4, which is not an index");
    refuse(4, OPTIONS(.balance = WEFT_CP_PERMUTED, .order = outside, .order_count = 4),
           WEFT_ERR_UNSUPPORTED, "needs the variant GATHER, not RING; with RING, use HEAD_TAIL");
    refuse(8,
           OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_HEADS, .blocks = far_block,
                   .block_count = 1, .block_size = sizeof(weft_cp_block), .block_length = 2),
           WEFT_ERR_UNSUPPORTED, "needs the variant GATHER, not HEADS");
    refuse(8,
           OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .blocks = far_block,
                   .block_count = 1, .block_size = sizeof(weft_cp_block), .block_length = 2),
           WEFT_ERR_INVALID, "block (0, 4)");
    refuse(8,
           OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .blocks = double_block,
                   .block_count = 2, .block_size = sizeof(weft_cp_block), .block_length = 2),
           WEFT_ERR_INVALID, "listed twice");
    refuse(8,
           OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .blocks = window_block,
                   .block_count = 1, .block_size = sizeof(weft_cp_block), .block_length = 2),
           WEFT_ERR_INVALID, "mask 2");
    refuse(8, OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER), WEFT_ERR_INVALID,
           "block_length is 0");
}

TEST(blocks_of_another_size_are_refused)
{
    const weft_cp_block block = {0};

    refuse(8,
           OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER, .blocks = &block,
                   .block_count = 1, .block_size = 2, .block_length = 2),
           WEFT_ERR_INVALID, "the size of a weft_cp_block is given as 2");
}

TEST(too_many_ranks_are_refused)
{
    weft_cp_plan *plan = NULL;
    OWNED(weft_mesh) *many = NULL;

    ck_assert_int_eq(weft_mesh_parse("2147483647", &many), WEFT_OK);
    ck_assert_int_eq(cp_plan(many, "0", 8, NULL, &plan), WEFT_ERR_INVALID);
    ck_assert_msg(strstr(weft_last_error(), "2147483647 ranks; at most 65536") != NULL, "%s",
                  weft_last_error());
}

TEST(wrong_coordinates_have_nothing)
{
    weft_cp_plan *plan = make("2", "0", 8, NULL), *same = weft_cp_plan_retain(plan);
    weft_cp_problem problem;
    weft_index_run run;
    size_t count;

    ck_assert_int_eq(weft_cp_plan_length(plan, 2), 0);
    ck_assert_int_eq(weft_cp_plan_length(plan, -1), 0);
    ck_assert(!weft_cp_plan_run(plan, 0, 4, &run));
    ck_assert(!weft_cp_plan_run(plan, 2, 0, &run));
    ck_assert_int_eq(weft_cp_plan_problems(plan, 0, 2, 0, NULL, 0, &count), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_cp_plan_problems(plan, 2, 0, 0, NULL, 0, &count), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_cp_plan_problems(plan, 0, 0, 1, &problem, 8, &count), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "the size of a weft_cp_problem is given as 8"));
    weft_cp_plan_release(&plan);
    ck_assert_int_eq(weft_cp_plan_length(same, 1), 4);
    weft_cp_plan_release(&same);
}

/* ---- memory ---- */

TEST(no_allocation_failure_leaks)
{
    static const weft_cp_block blocks[] = {{1, 0, WEFT_CP_FULL, 0}, {0, 0, WEFT_CP_CAUSAL, 0}};
    static const int64_t documents[] = {3, 1}, order[] = {3, 1, 0, 2};
    OWNED(weft_mesh) *mesh = NULL;
    weft_cp_plan *plan = NULL;

    ck_assert_int_eq(weft_mesh_parse("2", &mesh), WEFT_OK);
    ALLOCATIONS_FAIL(
        cp_plan(mesh, "0", 4,
                OPTIONS(.mask = WEFT_CP_BLOCKS, .variant = WEFT_CP_GATHER,
                        .balance = WEFT_CP_BY_BLOCKS, .blocks = blocks, .block_count = 2,
                        .block_size = sizeof(weft_cp_block), .block_length = 2),
                &plan),
        weft_cp_plan_release(&plan));
    ALLOCATIONS_FAIL(
        cp_plan(mesh, "0", 4,
                OPTIONS(.balance = WEFT_CP_PERMUTED, .variant = WEFT_CP_GATHER, .order = order,
                        .order_count = 4, .documents = documents, .document_count = 2),
                &plan),
        weft_cp_plan_release(&plan));
}
