#include "support/suite.h"
#include "support/trace.h"
#include "trace/dump/dump.h"
#include "weft/cost.h"

TEST(transports_are_names_that_the_analyser_knows)
{
    ck_assert_str_eq(wf_dump_transport("nccl"), "nccl");
    ck_assert_str_eq(wf_dump_transport("rccl"), "rccl");
    ck_assert_str_eq(wf_dump_transport("nvshmem"), "nccl");
    ck_assert_str_eq(wf_dump_transport("gloo-cpu"), "gloo");
    ck_assert_str_eq(wf_dump_transport("another"), "gloo");
}

TEST(every_dtype_has_a_name)
{
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
        ck_assert_str_ne(wf_dump_dtype(dtype), "Undefined");
    ck_assert_str_eq(wf_dump_dtype(WEFT_DTYPE_BF16), "BFloat16");
    ck_assert_str_eq(wf_dump_dtype(WEFT_DTYPE_COUNT), "Undefined");
}

/* The name and the sizes of an operation with 16 elements in and 64 out, on 4 ranks. */
static void expect(uint32_t operation, uint32_t step_kind, const char *name, uint64_t in,
                   uint64_t out)
{
    weft_record record = {.operation = (uint8_t)operation,
                          .step_kind = (uint8_t)step_kind,
                          .dtype = WEFT_DTYPE_F32,
                          .sent = 64,
                          .received = 256};
    struct wf_dump_sizes sizes = wf_dump_sizes_of(&record, 4);

    ck_assert_str_eq(wf_dump_operation(&record), name);
    ck_assert_uint_eq(sizes.in, in);
    ck_assert_uint_eq(sizes.out, out);
}

TEST(sizes_that_differ_between_ranks_are_not_stated)
{
    uint32_t none = WEFT_NO_STEP_KIND;

    expect(WEFT_RECORD_ALL_GATHER, none, "all_gather", 16, 64);
    expect(WEFT_RECORD_BROADCAST, none, "broadcast", 64, 64);
    expect(WEFT_RECORD_REDUCE, none, "reduce", 16, 16);
    expect(WEFT_RECORD_ALL_GATHER_V, none, "all_gather_v", WF_UNSTATED, 64);
    expect(WEFT_RECORD_SCATTER_V, none, "scatter", 16, WF_UNSTATED);
    expect(WEFT_RECORD_ALL_TO_ALL_V, none, "all_to_all", 16, 64);
    expect(WEFT_RECORD_ALL_GATHER, WEFT_STEP_ALL_GATHER, "all_gather", 16, 64);
    expect(WEFT_RECORD_PULL, WEFT_STEP_ALL_GATHER, "all_gather_v", WF_UNSTATED, 64);
    expect(WEFT_RECORD_ALL_TO_ALL_V, WEFT_STEP_REDUCE_SCATTER, "reduce_scatter_v", 16, WF_UNSTATED);
    expect(WEFT_RECORD_REDUCE_SCATTER, WEFT_STEP_REDUCE_SCATTER, "reduce_scatter", 256, 64);
    expect(WEFT_RECORD_ALL_REDUCE, WEFT_STEP_ALL_REDUCE, "all_reduce", 64, 64);
    expect(WEFT_RECORD_PULL, WEFT_STEP_PERMUTE, "all_to_all", WF_UNSTATED, WF_UNSTATED);
    expect(WEFT_RECORD_ALL_TO_ALL_V, WEFT_STEP_EXCHANGE, "all_to_all", WF_UNSTATED, WF_UNSTATED);
}

TEST(what_is_not_a_collective_has_no_name)
{
    static const uint8_t operations[] = {WEFT_RECORD_COPY, WEFT_RECORD_PLAN,
                                         WEFT_RECORD_REDISTRIBUTE, WEFT_RECORD_SYMM_BARRIER, 200};

    for (size_t i = 0; i < WF_COUNT(operations); i++)
        ck_assert_ptr_null(wf_dump_operation(
            &(weft_record){.operation = operations[i], .step_kind = WEFT_NO_STEP_KIND}));
    ck_assert_ptr_null(wf_dump_operation(
        &(weft_record){.operation = WEFT_RECORD_COPY, .step_kind = WEFT_STEP_SLICE}));
}

TEST(lists_of_ranks_are_expanded)
{
    static const int64_t want[] = {0, 1, 2, 8, 5};
    const char *list = "0-2,8,5";
    int64_t rank, left = 0;
    size_t count = 0;

    for (const char *at = list; wf_ranks_next(&at, &rank, &left); count++)
        ck_assert_int_eq(rank, want[count]);
    ck_assert_uint_eq(count, WF_COUNT(want));
    ck_assert(wf_ranks_are_complete(list));
    ck_assert(!wf_ranks_are_complete("0,2,..."));
    ck_assert(!wf_ranks_are_complete(""));
}
