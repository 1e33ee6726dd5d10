/* Which collectives the steps of a plan may use. */
#include "comm/carry/carry.h"
#include "exec/ways.h"
#include "support/layout.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

static uint32_t denied_collective, denied_dtype, asked;

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    (void)device;
    asked++;
    *level = query->collective == denied_collective && query->dtype == denied_dtype
                 ? WEFT_SUPPORT_NO
                 : WEFT_SUPPORT_NATIVE;
    return WEFT_OK;
}

static weft_status send(void *comm, const weft_message *message)
{
    (void)comm, (void)message;
    return WEFT_ERR_UNSUPPORTED;
}

static const weft_comm_table table = {
    .struct_size = sizeof table, .support = support, .send = send};
static const weft_plugin plugin = {.name = "some", .comm = &table};
static weft_comm comm = {.table = &table, .plugin = &plugin, .size = 2, .name = "world"};

static struct wf_ways ways_of(const char *from, const char *to)
{
    weft_spec *source = spec_of("2", from), *target = spec_of("2", to);
    weft_plan *plan = NULL;
    struct wf_ways ways;

    ck_assert_int_eq(weft_plan_create(source, target, NULL, &plan), WEFT_OK);
    wf_ways_find(plan, &comm, &ways);
    weft_plan_release(&plan);
    weft_spec_release(&source);
    weft_spec_release(&target);
    return ways;
}

TEST(a_plan_asks_for_its_dtypes_and_reductions)
{
    struct wf_ways ways, other = {0};

    denied_collective = WEFT_COLL_ALL_REDUCE;
    denied_dtype = WEFT_DTYPE_F32;
    ways = ways_of("f32[8] P", "f32[8] R");
    ck_assert(!wf_ways_have(&ways, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32));
    ck_assert(wf_ways_have(&ways, WEFT_COLL_ALL_GATHER, WEFT_DTYPE_F32));
    wf_ways_join(&other, &ways); /* what one rank lacks, all ranks do without */
    ck_assert(!wf_ways_have(&other, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F32));
    ways = ways_of("f64[8] P", "f64[8] R");
    ck_assert(wf_ways_have(&ways, WEFT_COLL_ALL_REDUCE, WEFT_DTYPE_F64));
    asked = 0;
    ways = ways_of("f32[8] R", "f32[8] S(0)"); /* local */
    ck_assert_uint_eq(asked, 0);
}

static weft_status deny(void *device, const weft_support_query *query, uint32_t *level)
{
    (void)device, (void)query;
    *level = WEFT_SUPPORT_NO;
    return WEFT_OK;
}

TEST(an_exchange_that_nothing_carries_is_refused)
{
    weft_comm_table denying = table;
    weft_comm bare = comm;
    struct wf_ways ways = {0};

    denying.support = deny;
    bare.table = &denying;
    ck_assert_int_eq(wf_ways_require_exchange(&ways, &bare, WEFT_DTYPE_F32), WEFT_OK);
    ways.denied[WEFT_COLL_ALL_TO_ALL_V] = UINT32_MAX;
    ck_assert_int_eq(wf_ways_require_exchange(&ways, &bare, WEFT_DTYPE_F32), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "all_to_all_v of f32 on world: backend some "));
    bare.size = 1;
    ck_assert_int_eq(wf_ways_require_exchange(&ways, &bare, WEFT_DTYPE_F32), WEFT_OK);
}
