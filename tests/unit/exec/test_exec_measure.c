#include "exec/exec.h"
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/suite.h"
#include "weft/exec.h"

static weft_plan *plan_between(const char *mesh, const char *from, const char *to_mesh,
                               const char *to)
{
    weft_spec *a = spec_of(mesh, from), *b = spec_of(to_mesh, to);
    weft_plan *plan = NULL;

    ck_assert_msg(weft_plan_create(a, b, NULL, &plan) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&a);
    weft_spec_release(&b);
    return plan;
}

static void check_received(const char *mesh, const char *from, const char *to, uint64_t most,
                           uint64_t total)
{
    OWNED(weft_plan) *plan = plan_between(mesh, from, mesh, to);
    struct wf_measure have = wf_plan_measure(plan);

    ck_assert_msg(have.most == most && have.total == total, "%s -> %s: %llu and %llu", from, to,
                  (unsigned long long)have.most, (unsigned long long)have.total);
}

TEST(every_byte_that_comes_from_another_rank_is_counted)
{
    check_received("4", "f32[8] S(0)", "f32[8] R", 24, 96);
    check_received("4", "f32[8] R", "f32[8] S(0)", 0, 0);
    check_received("2", "f32[4,4] S(0)", "f32[4,4] S(1)", 16, 32);
    check_received("2", "f32[8] P", "f32[8] S(0)", 16, 32);
    check_received("4", "f32[8] P", "f32[8] R", 48, 192);
}

TEST(a_scalar_is_received_by_its_owner_only)
{
    check_received("2", "f32[] O(1)", "f32[] O(0)", 4, 4);
    check_received("2x4", "f32[] R,O(3)", "f32[] R,R", 4, 6 * 4);
    check_received("4", "f32[5,3] O(1)", "f32[5,3] O(2)", 60, 60);
}

TEST(uneven_shards_differ_between_ranks)
{
    check_received("2", "f32[3] S(0)", "f32[3] R", 8, 12);
}

/* The bytes that RANK receives in STEP according to its read list. */
static uint64_t listed_bytes(const struct wf_step *step, int32_t rank)
{
    struct wf_parts parts;
    uint64_t elements = 0;

    if (wf_step_is_local(step)) return 0;
    ck_assert_int_eq(wf_parts_read(step->from, step->to, 0, rank, NULL, &parts), WEFT_OK);
    for (uint64_t i = 0; i < parts.region_count; i++)
        for (uint32_t h = 0; h < parts.holders; h++)
            if (parts.ranks[parts.regions[i].source + h] != rank)
                elements += wf_region_elements(&parts.regions[i]);
    wf_parts_free(&parts);
    return elements * wf_dtype_bytes(step->from->layout.dtype);
}

static void check_against_lists(const char *mesh, const char *from, const char *to_mesh,
                                const char *to, int32_t ranks)
{
    OWNED(weft_plan) *plan = plan_between(mesh, from, to_mesh, to);
    struct wf_measure have = wf_plan_measure(plan);
    uint64_t most = 0, total = 0;

    for (int32_t rank = 0; rank < ranks; rank++) {
        uint64_t sum = 0;
        for (uint32_t s = 0; s < plan->step_count; s++)
            sum += listed_bytes(&plan->steps[s], rank);
        total += sum;
        if (sum > most) most = sum;
    }
    ck_assert_msg(have.most == most && have.total == total,
                  "%s %s -> %s %s: %llu and %llu, by the lists %llu and %llu", mesh, from, to_mesh,
                  to, (unsigned long long)have.most, (unsigned long long)have.total,
                  (unsigned long long)most, (unsigned long long)total);
}

TEST(what_is_counted_is_what_is_read)
{
    check_against_lists("2x3", "f32[7,5] S(0),S(0)", "2x3", "f32[7,5] S(1),R", 6);
    check_against_lists("2x3", "f32[7,5] SS(0,2),S(0)", "2x3", "f32[7,5] S(0)[1],S(0)[0]", 6);
    check_against_lists("2x3", "f32[7,5] P,S(1)", "2x3", "f32[7,5] S(0),S(0)", 6);
    check_against_lists("2x3", "f32[7,5] P,S(1)", "2x3", "f32[7,5] P,S(0)", 6);
    check_against_lists("2x3", "f32[7,5] S(0),R", "2x3", "f32[7,5] S(1),P(min)", 6);
    check_against_lists("2x2x2", "f32[9,4] R,S(0),R", "2x2x2", "f32[9,4] R,S(1),R", 8);
    check_against_lists("2x2", "f32[9,4] R,S(0)", "3@2-4", "f32[9,4] S(1)", 5);
    check_against_lists("2", "f32[9,4] P", "3@1-3", "f32[9,4] R", 4);
    check_against_lists("4", "f32[2] S(0)", "4", "f32[2] R", 4);
}

static void check_step(const char *mesh, const char *from, const char *to_mesh, const char *to,
                       uint64_t sent, uint64_t received)
{
    OWNED(weft_spec) *a = spec_of(mesh, from), *b = spec_of(to_mesh, to);
    struct wf_step step = {.kind = WEFT_STEP_EXCHANGE, .from = a, .to = b};
    uint64_t have_sent, have_received;

    ck_assert_int_eq(wf_step_measure(&step, &have_sent, &have_received), WEFT_OK);
    ck_assert_msg(have_sent == sent && have_received == received, "%s -> %s: %llu and %llu", from,
                  to, (unsigned long long)have_sent, (unsigned long long)have_received);
}

TEST(a_step_is_measured_where_it_is_worst)
{
    check_step("2", "f32[3] S(0)", "2", "f32[3] R", 8, 8);
    check_step("3", "f32[7] S(0)", "3", "f32[7] R", 24, 24);
    check_step("2", "f32[4] R", "3@2-4", "f32[4] R", 32, 16);
    check_step("2", "f32[4] P", "1@2", "f32[4] R", 16, 32);
    check_step("2", "f32[4] R", "2", "f32[4] S(0)", 0, 0);
}

TEST(hundred_thousand_ranks_are_counted_exactly)
{
    OWNED(weft_plan) *plan =
        plan_between("64x64x32", "f32[8192,8192] S(0),R,R", "64x64x32", "f32[8192,8192] R,R,R");
    struct wf_measure have = wf_plan_measure(plan);
    uint64_t whole = UINT64_C(8192) * 8192 * 4;

    ck_assert_uint_eq(have.most, whole - whole / 64);
    ck_assert_uint_eq(have.total, (whole - whole / 64) * 64 * 64 * 32);
}

static weft_plan *exchange_between(const char *mesh, const char *from, const char *to)
{
    weft_plan_options options = {.struct_size = sizeof options, .planner = WEFT_PLANNER_EXCHANGE};
    weft_spec *a = spec_of(mesh, from), *b = spec_of(mesh, to);
    weft_plan *plan = NULL;

    ck_assert_msg(weft_plan_create(a, b, &options, &plan) == WEFT_OK, "%s", weft_last_error());
    weft_spec_release(&a);
    weft_spec_release(&b);
    return plan;
}

/* Counting each rank would take minutes. */
TEST(equal_shards_of_many_ranks_are_not_visited)
{
    static const uint64_t ranks = 2000000000;
    weft_plan *plan =
        plan_between("2000000000", "u8[2000000000] S(0)", "2000000000", "u8[2000000000] R");
    struct wf_measure have = wf_plan_measure(plan);
    weft_plan_info info = {.struct_size = sizeof info};

    ck_assert(have.exact && have.most == ranks - 1 && have.total == ranks * (ranks - 1));
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert(info.exact && info.scratch_exact && info.peak_bytes == 0);
    weft_plan_release(&plan);
    plan = exchange_between("2000000000", "u8[2000000003] S(0)", "u8[2000000003] P");
    have = wf_plan_measure(plan);
    ck_assert(!have.exact && !plan->exact);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert(!info.scratch_exact);
    weft_plan_release(&plan);
}

TEST(alike_ranks_are_counted_at_once)
{
    /* only coordinate 0 of the first axis receives: 4, 4 and 6 elements of its 3 ranks */
    weft_plan *plan = exchange_between("70000x3", "f32[7] R,S(0)", "f32[7] P,R");
    struct wf_measure have = wf_plan_measure(plan);

    ck_assert(have.exact && have.most == 24 && have.total == 4 * (4 + 4 + 6));
    weft_plan_release(&plan);
    plan = exchange_between("70000x3", "f32[7] R,S(0)", "f32[7] R,R");
    have = wf_plan_measure(plan);
    ck_assert(have.exact && have.most == 24 && have.total == UINT64_C(70000) * 4 * (4 + 4 + 6));
    weft_plan_release(&plan);
    plan = plan_between("70000", "f32[70000] S(0)", "70000@70000-139999", "f32[70000] R");
    have = wf_plan_measure(plan);
    ck_assert(have.exact && have.most == have.total / 70000);
    weft_plan_release(&plan);
}

TEST(a_batch_is_the_sum_of_its_tensors)
{
    static const char *const pairs[][2] = {{"f32[8] S(0)", "f32[8] R"},
                                           {"f64[3] S(0)", "f64[3] R"},
                                           {"f32[4,4] S(0)", "f32[4,4] S(1)"}};
    const weft_spec *from[3], *to[3];
    uint64_t most = 0, total = 0, sum = 0, sent = 0, received = 0;
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_plan) *batch = NULL;

    for (size_t i = 0; i < 3; i++) {
        OWNED(weft_plan) *plan = plan_between("2", pairs[i][0], "2", pairs[i][1]);
        uint64_t alone_max, alone_total;

        from[i] = spec_of("2", pairs[i][0]);
        to[i] = spec_of("2", pairs[i][1]);
        ck_assert_int_eq(weft_plan_measure(plan, &alone_max, &alone_total), WEFT_OK);
        sum += alone_total;
    }
    ck_assert_int_eq(weft_plan_create_batch(3, from, to, NULL, &batch), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(batch, &info), WEFT_OK);
    ck_assert_uint_eq(info.together, 3);
    ck_assert_int_eq(weft_plan_measure(batch, &most, &total), WEFT_OK);
    ck_assert_uint_eq(total, sum);
    ck_assert_int_eq(weft_plan_measure_step(batch, 0, &sent, &received), WEFT_OK);
    ck_assert_uint_eq(received, most);
    ck_assert_uint_eq(received, 16 + 16 + 16); /* rank 1: it has the shorter shard of f64[3] */
    ck_assert_uint_eq(sent, received);
    for (size_t i = 0; i < 3; i++) {
        weft_spec_release((weft_spec **)&from[i]);
        weft_spec_release((weft_spec **)&to[i]);
    }
}

enum { MEMBERS = 4, RANKS = 700 };

/* Add the bytes that RANK reads from each rank in the exchange from FROM to TO. */
static void add_read(const weft_spec *from, const weft_spec *to, int32_t rank, uint64_t *sent)
{
    struct wf_parts parts;

    ck_assert_int_eq(wf_parts_read(from, to, 0, rank, NULL, &parts), WEFT_OK);
    for (uint64_t i = 0; i < parts.region_count; i++)
        for (uint32_t h = 0; h < parts.holders; h++) {
            int32_t source = parts.ranks[parts.regions[i].source + h];
            if (source != rank) sent[source] += wf_region_elements(&parts.regions[i]) * 4;
        }
    wf_parts_free(&parts);
}

/* The step of PLAN, if it has a common exchange, states what its readers read.  True if it has
 * one. */
static bool check_common_exchange(const weft_plan *plan)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint64_t read[RANKS] = {0}, most = 0, sent = 0, received = 0;

    if (plan->together == 0) return false;
    for (uint32_t i = 0; i < plan->member_count; i++)
        for (int32_t rank = 0; rank < RANKS && plan->members[i].alone == NULL; rank++)
            add_read(plan->members[i].from, plan->members[i].to, rank, read);
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (read[rank] > most) most = read[rank];
    ck_assert_int_eq(weft_plan_step_get(plan, 0, &step), WEFT_OK);
    ck_assert_int_eq(weft_plan_measure_step(plan, 0, &sent, &received), WEFT_OK);
    ck_assert_uint_eq(step.bytes_sent, most);
    ck_assert_uint_eq(sent, most);
    ck_assert_uint_eq(step.bytes_received, received);
    ck_assert(step.exact);
    return true;
}

TEST(a_common_exchange_states_what_ranks_send)
{
    struct random r = random_begin("exec_measure");
    int common = 0, between = 0;

    for (int i = 0; i < 300; i++) {
        weft_spec *from[MEMBERS], *to[MEMBERS];
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        OWNED(weft_mesh) *other = random_chance(&r, 3) ? random_mesh(&r) : weft_mesh_retain(mesh);
        weft_plan *plan = NULL;
        for (int m = 0; m < MEMBERS; m++) {
            int64_t shape[2] = {random_in(&r, 1, 9), random_in(&r, 1, 9)};
            from[m] = random_spec(&r, mesh, 2, shape);
            to[m] = random_spec(&r, other, 2, shape);
        }
        if (weft_plan_create_batch(MEMBERS, (const weft_spec *const *)from,
                                   (const weft_spec *const *)to, NULL, &plan) == WEFT_OK &&
            check_common_exchange(plan)) {
            common++;
            between += mesh != other;
        }
        weft_plan_release(&plan);
        for (int m = 0; m < MEMBERS; m++) {
            weft_spec_release(&from[m]);
            weft_spec_release(&to[m]);
        }
    }
    ck_assert(common > 50 && between > 10);
}

TEST(a_common_exchange_of_many_ranks_is_marked_as_estimated)
{
    OWNED(weft_spec) *from = spec_of("1025", "f32[1025] S(0)"),
                     *to = spec_of("1025", "f32[1025] R");
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED(weft_plan) *batch = NULL;

    ck_assert_int_eq(weft_plan_create_batch(2, (const weft_spec *const[]){from, from},
                                            (const weft_spec *const[]){to, to}, NULL, &batch),
                     WEFT_OK);
    ck_assert_uint_eq(batch->together, 2);
    ck_assert_int_eq(weft_plan_step_get(batch, 0, &step), WEFT_OK);
    ck_assert(batch->exact && !step.exact && !step.scratch_exact);
}

TEST(wrong_arguments_are_refused_and_nothing_is_written)
{
    OWNED(weft_plan) *plan = plan_between("2", "f32[8] S(0)", "2", "f32[8] R");
    uint64_t a = 7, b = 7;

    ck_assert_int_eq(weft_plan_measure_step(plan, 1, &a, &b), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_measure_step(NULL, 0, &a, &b), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_measure(NULL, &a, &b), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_measure(plan, NULL, &b), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_measure(plan, &a, NULL), WEFT_ERR_INVALID);
    ck_assert(a == 7 && b == 7);
}
