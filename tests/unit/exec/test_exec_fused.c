#include "support/lone_rank.h"
#include "support/suite.h"

/* A batch in which all COUNT tensors are fused. */
static weft_plan *batch_of(const char *mesh, uint32_t count, const char *const (*pairs)[2])
{
    weft_plan *plan = wf_calloc(1, sizeof *plan);

    ck_assert_ptr_nonnull(plan);
    plan->made = WF_OF_KIND(WF_KIND_PLAN);
    plan->members = wf_calloc(count, sizeof *plan->members);
    ck_assert_ptr_nonnull(plan->members);
    atomic_init(&plan->references, 1);
    plan->member_count = plan->together = count;
    for (uint32_t i = 0; i < count; i++) {
        plan->members[i].from = spec_of(mesh, pairs[i][0]);
        plan->members[i].to = spec_of(mesh, pairs[i][1]);
    }
    return plan;
}

static const struct kept_regions *list_of(const struct wf_region_group *group)
{
    return group->list;
}

static const char *const mixed[][2] = {{"i8[8] S(0)", "i8[8] R"},
                                       {"f32[4,4] S(0)", "f32[4,4] S(1)"},
                                       {"f64[6] P", "f64[6] S(0)"},
                                       {"f32[4] S(0)", "f32[4] R"}};

TEST(one_message_per_peer_has_the_largest_elements_first)
{
    weft_bind_options none = {.struct_size = sizeof none};
    struct wf_fused fused = {0};
    struct lone_rank lone;

    lone_begin(&lone, 1, 2);
    lone.bound->plan = batch_of("2", 4, mixed);
    ck_assert_int_eq(wf_fused_set(lone.bound, &none, lone.room, WEFT_OK, &fused), WEFT_OK);
    ck_assert(fused.member);
    ck_assert_uint_eq(fused.count, 4);
    /* to rank 0: 3 doubles; 2 rows of 2 floats, and 2 floats; 4 bytes */
    ck_assert_uint_eq(fused.send_counts[0], 24 + 16 + 8 + 4);
    ck_assert_uint_eq(fused.receive_counts[0], 24 + 16 + 8 + 4);
    ck_assert_uint_eq(fused.send_offsets[1] % 16, 0);
    ck_assert_uint_eq(fused.packed.count, 3);
    ck_assert_uint_eq(fused.packed.list[0].element, 8);
    ck_assert_uint_eq(fused.packed.list[1].element, 4);
    ck_assert_uint_eq(fused.packed.list[2].element, 1);
    ck_assert_uint_eq(list_of(&fused.packed.list[1])->regions[0].source, 1);
    ck_assert_int_eq(list_of(&fused.packed.list[1])->regions[0].target_offset, 24 / 4);
    ck_assert_int_eq(list_of(&fused.packed.list[2])->regions[0].target_offset, 48);
    wf_fused_clear(lone.bound, &fused);
    weft_plan_release(&lone.bound->plan);
    lone_end(&lone);
    ck_assert_int_eq(wf_mem_live(), 0);
}

static const char *const casting[][2] = {
    {"f32[4,4] S(0)", "bf16[4,4] S(1)"}, {"bf16[4] S(0)", "f32[4] R"}, {"u16[4] S(0)", "u16[4] R"}};

TEST(casts_are_packed_and_unpacked_apart_and_the_narrower_dtype_travels)
{
    weft_bind_options none = {.struct_size = sizeof none};
    const struct wf_region_group *packed, *unpacked;
    struct wf_fused fused = {0};
    struct lone_rank lone;

    lone_begin(&lone, 1, 2);
    lone.bound->casts = WF_CASTS_REGIONS;
    lone.bound->plan = batch_of("2", 3, casting);
    ck_assert_int_eq(wf_fused_set(lone.bound, &none, lone.room, WEFT_OK, &fused), WEFT_OK);
    /* to rank 0: 2 rows of 2, 2 and 2 elements of 2 bytes */
    ck_assert_uint_eq(fused.send_counts[0], 8 + 4 + 4);
    ck_assert_uint_eq(fused.receive_counts[0], 8 + 4 + 4);
    packed = fused.packed.list;
    unpacked = fused.unpacked.list;
    ck_assert_uint_eq(fused.packed.count, 2);
    ck_assert(packed[0].from == WEFT_DTYPE_F32 && packed[0].to == WEFT_DTYPE_BF16);
    ck_assert(packed[1].from == packed[1].to); /* bf16 and u16 are copied */
    ck_assert_uint_eq(list_of(&packed[0])->element, 4);
    ck_assert_uint_eq(list_of(&packed[1])->element, 2);
    ck_assert_int_eq(list_of(&packed[1])->regions[0].target_offset, 8 / 2);
    ck_assert_uint_eq(fused.unpacked.count, 2);
    ck_assert(unpacked[0].from == unpacked[0].to); /* bf16 has arrived */
    ck_assert(unpacked[1].from == WEFT_DTYPE_BF16 && unpacked[1].to == WEFT_DTYPE_F32);
    ck_assert_uint_eq(list_of(&unpacked[1])->element, 2);
    wf_fused_clear(lone.bound, &fused);
    weft_plan_release(&lone.bound->plan);
    lone_end(&lone);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(what_is_reduced_is_unpacked_apart)
{
    weft_bind_options none = {.struct_size = sizeof none};
    struct wf_fused fused = {0};
    const struct kept_regions *list;
    const struct wf_region_group *sum;
    _Alignas(16) char memory[4096];
    struct lone_rank lone;

    lone_begin(&lone, 0, 2);
    lone.bound->plan = batch_of("2", 4, mixed);
    ck_assert_int_eq(wf_fused_set(lone.bound, &none, lone.room, WEFT_OK, &fused), WEFT_OK);
    ck_assert_uint_le(wf_fused_bytes(&fused), sizeof memory);
    wf_fused_assign(&fused, memory);
    ck_assert_ptr_eq(fused.send, memory);
    sum = &fused.unpacked.list[0];
    ck_assert_uint_eq(sum->kind.holders, 2);
    ck_assert_uint_eq(sum->kind.dtype, WEFT_DTYPE_F64);
    ck_assert_uint_eq(sum->kind.reduction, WEFT_REDUCE_SUM);
    list = list_of(sum);
    ck_assert_uint_eq(list->count, 1);
    ck_assert_uint_eq(list->regions[0].target, 2);
    ck_assert_ptr_eq(fused.arrivals[list->regions[0].source], fused.receive);
    ck_assert_ptr_eq(fused.arrivals[list->regions[0].source + 1],
                     (const char *)fused.receive + fused.receive_offsets[1]);
    wf_fused_clear(lone.bound, &fused);
    weft_plan_release(&lone.bound->plan);
    lone_end(&lone);
}

TEST(a_non_member_has_no_part)
{
    weft_bind_options none = {.struct_size = sizeof none};
    struct wf_fused fused = {0};
    struct lone_rank lone;

    lone_begin(&lone, 3, 4);
    lone.bound->plan = batch_of("2", 4, mixed);
    ck_assert_int_eq(wf_fused_set(lone.bound, &none, lone.room, WEFT_OK, &fused), WEFT_OK);
    ck_assert(!fused.member);
    ck_assert_int_eq(wf_fused_run(lone.bound, &fused, NULL, NULL, NULL), WEFT_OK);
    wf_fused_clear(lone.bound, &fused);
    weft_plan_release(&lone.bound->plan);
    lone_end(&lone);
}

/* Every allocation of binding fails once. */
TEST(without_memory_nothing_is_left)
{
    weft_bind_options none = {.struct_size = sizeof none};
    weft_status status = WEFT_ERR_NO_MEMORY;

    for (uint64_t n = 1; status != WEFT_OK; n++) {
        struct wf_fused fused = {0};
        struct lone_rank lone;
        lone_begin(&lone, 1, 2);
        lone.bound->plan = batch_of("2", 4, mixed);
        wf_mem_fail_at(n);
        status = wf_fused_set(lone.bound, &none, lone.room, WEFT_OK, &fused);
        wf_mem_fail_at(0);
        ck_assert(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        ck_assert_uint_lt(n, 100);
        wf_fused_clear(lone.bound, &fused);
        weft_plan_release(&lone.bound->plan);
        lone_end(&lone);
        ck_assert_int_eq(wf_mem_live(), 0);
    }
}
