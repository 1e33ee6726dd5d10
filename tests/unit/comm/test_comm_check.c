#include "comm/check.h"
#include "support/fake_world.h"
#include "support/suite.h"

/* Arguments that any collective of two ranks accepts. */
static weft_collective_args good(uint32_t collective)
{
    static uint64_t counts[2] = {3, 4}, offsets[2] = {0, 3};
    static char memory[256];

    return (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                  .collective = collective,
                                  .dtype = WEFT_DTYPE_F32,
                                  .send = memory,
                                  .recv = memory + 128,
                                  .count = 4,
                                  .send_counts = counts,
                                  .send_offsets = offsets,
                                  .recv_counts = counts,
                                  .recv_offsets = offsets};
}

/* The device knows no memory. */
static weft_status query_nothing(void *device, const void *pointer, weft_pointer_info *out)
{
    (void)device;
    (void)pointer;
    (void)out;
    return WEFT_OK;
}

static weft_device_table device = {.struct_size = sizeof device, .query_pointer = query_nothing};
static weft_plugin plugin = {.struct_size = sizeof plugin, .device = &device};
static weft_context context;
static weft_comm comm = {
    .size = 2, .rank = 0, .name = "pair", .plugin = &plugin, .context = &context};

/* The full check.  The fast check may accept only what this accepts. */
static weft_status check(const weft_collective_args *args)
{
    weft_status status = wf_check_collective(&comm, args);

    if (comm.most[0] == 0) wf_check_begin(&comm);
    ck_assert(!wf_check_fast(&comm, args) || status == WEFT_OK);
    return status;
}

static void refused(weft_collective_args args, const char *part)
{
    ck_assert_msg(check(&args) == WEFT_ERR_INVALID, "collective %u, \"%s\"", args.collective, part);
    ck_assert_msg(strstr(weft_last_error(), part) != NULL, "no \"%s\" in: %s", part,
                  weft_last_error());
}

static void accepted(weft_collective_args args)
{
    ck_assert_msg(check(&args) == WEFT_OK, "%s", weft_last_error());
}

TEST(every_collective_has_arguments_that_pass)
{
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++)
        for (comm.rank = 0; comm.rank < 2; comm.rank++)
            accepted(good(c));
    comm.rank = 0;
    for (uint32_t c = 0; c <= WEFT_COLL_BARRIER;
         c++) { /* and the fast check accepts common calls */
        weft_collective_args args = good(c);
        ck_assert(wf_check_fast(&comm, &args));
    }
    refused((weft_collective_args){.collective = WEFT_COLL_COUNT}, "collectives are 0 to 13");
}

TEST(dtypes_and_reductions_are_checked)
{
    weft_collective_args args = good(WEFT_COLL_ALL_REDUCE);

    args.dtype = WEFT_DTYPE_COUNT;
    refused(args, "all_reduce on pair: dtype 17 is unknown; the dtypes are 0 to 16");
    args = good(WEFT_COLL_ALL_REDUCE);
    args.reduction = WEFT_REDUCE_COUNT;
    refused(args, "reduction 9 is unknown; the reductions are 0 to 8");
    args.reduction = WEFT_REDUCE_BXOR;
    refused(args, "bxor is not defined on f32");
    args.reduction = WEFT_REDUCE_PREMUL_SUM;
    refused(args, "scale");
    args.scale = &args;
    accepted(args);
    args = good(WEFT_COLL_ALL_GATHER);
    args.reduction = 99; /* it is not read */
    accepted(args);
}

TEST(roots_are_checked_where_there_is_one)
{
    static const uint32_t rooted[] = {WEFT_COLL_BROADCAST, WEFT_COLL_REDUCE,   WEFT_COLL_GATHER,
                                      WEFT_COLL_SCATTER,   WEFT_COLL_GATHER_V, WEFT_COLL_SCATTER_V};

    for (size_t i = 0; i < WF_COUNT(rooted); i++) {
        weft_collective_args args = good(rooted[i]);

        args.root = 2;
        refused(args, "root is 2; the ranks are 0 to 1");
        args.root = -1;
        refused(args, "root is -1");
    }
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++) {
        weft_collective_args args = good(c);
        bool is_rooted = false;

        for (size_t i = 0; i < WF_COUNT(rooted); i++)
            is_rooted |= rooted[i] == c;
        args.root = -1;
        if (!is_rooted) accepted(args);
    }
}

/* True if a NULL buffer is refused on RANK, where root is 0. */
static bool needs(uint32_t collective, bool send, int32_t rank)
{
    weft_collective_args args = good(collective);
    weft_status status;

    if (send)
        args.send = NULL;
    else
        args.recv = NULL;
    comm.rank = rank;
    status = check(&args);
    comm.rank = 0;
    return status != WEFT_OK;
}

TEST(buffers_are_needed_where_data_is)
{
    static const struct {
        uint32_t collective;
        const char *who; /* send on root, on others; receive on root, on others */
    } table[] = {
        {WEFT_COLL_ALL_REDUCE, "yyyy"},       {WEFT_COLL_ALL_GATHER, "yyyy"},
        {WEFT_COLL_REDUCE_SCATTER, "yyyy"},   {WEFT_COLL_ALL_TO_ALL, "yyyy"},
        {WEFT_COLL_BROADCAST, "ynyy"},        {WEFT_COLL_REDUCE, "yyyn"},
        {WEFT_COLL_GATHER, "yyyn"},           {WEFT_COLL_SCATTER, "ynyy"},
        {WEFT_COLL_BARRIER, "nnnn"},          {WEFT_COLL_ALL_GATHER_V, "yyyy"},
        {WEFT_COLL_REDUCE_SCATTER_V, "yyyy"}, {WEFT_COLL_ALL_TO_ALL_V, "yyyy"},
        {WEFT_COLL_GATHER_V, "yyyn"},         {WEFT_COLL_SCATTER_V, "ynyy"},
    };

    ck_assert_uint_eq(WF_COUNT(table), WEFT_COLL_COUNT);
    for (size_t i = 0; i < WF_COUNT(table); i++)
        for (int at = 0; at < 4; at++)
            ck_assert_msg(needs(table[i].collective, at < 2, at % 2) == (table[i].who[at] == 'y'),
                          "collective %u, %s on rank %d", table[i].collective,
                          at < 2 ? "send" : "recv", at % 2);
}

TEST(nothing_may_be_nowhere)
{
    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++) {
        weft_collective_args args = good(c);
        uint64_t none[2] = {0, 0};

        args.count = 0;
        args.send = args.recv = NULL;
        args.send_counts = args.recv_counts = none;
        accepted(args);
    }
}

TEST(counts_that_do_not_fit_are_refused)
{
    weft_collective_args args = good(WEFT_COLL_ALL_REDUCE);
    uint64_t counts[2] = {0, UINT64_MAX / 2}, offsets[2] = {0, 1};

    args.count = UINT64_MAX;
    refused(args, "more than 2^63 - 1 bytes");
    args.count = UINT64_C(1) << 60; /* times 4 bytes times 2 ranks */
    refused(args, "count 1152921504606846976 of f32 on each of 2 ranks");
    args.count = (UINT64_C(1) << 60) - 1;
    accepted(args);
    args = good(WEFT_COLL_ALL_TO_ALL_V);
    args.recv_counts = counts;
    refused(args, "recv_counts[1] is 9223372036854775807");
    counts[1] = 4;
    offsets[1] = UINT64_MAX;
    args.send_offsets = offsets;
    refused(args, "send_offsets[1] is 18446744073709551615");
}

TEST(arrays_are_needed_where_they_are_read)
{
    weft_collective_args args = good(WEFT_COLL_ALL_TO_ALL_V);

    args.send_counts = NULL;
    refused(args, "send_counts is NULL");
    args = good(WEFT_COLL_ALL_TO_ALL_V);
    args.recv_offsets = NULL;
    refused(args, "recv_offsets is NULL");
    args = good(WEFT_COLL_GATHER_V);
    args.recv_counts = NULL;
    refused(args, "recv_counts is NULL");
    comm.rank = 1; /* not the root */
    accepted(args);
    comm.rank = 0;
}

TEST(sizes_are_those_of_this_rank)
{
    static const struct {
        uint32_t collective;
        uint64_t send[2], recv[2]; /* by rank; rank 0 is the root */
    } wanted[] = {
        {WEFT_COLL_ALL_REDUCE, {4, 4}, {4, 4}},       {WEFT_COLL_ALL_GATHER, {4, 4}, {8, 8}},
        {WEFT_COLL_REDUCE_SCATTER, {8, 8}, {4, 4}},   {WEFT_COLL_ALL_TO_ALL, {8, 8}, {8, 8}},
        {WEFT_COLL_BROADCAST, {4, 0}, {4, 4}},        {WEFT_COLL_REDUCE, {4, 4}, {4, 0}},
        {WEFT_COLL_GATHER, {4, 4}, {8, 0}},           {WEFT_COLL_SCATTER, {8, 0}, {4, 4}},
        {WEFT_COLL_BARRIER, {0, 0}, {0, 0}},          {WEFT_COLL_ALL_GATHER_V, {3, 4}, {7, 7}},
        {WEFT_COLL_REDUCE_SCATTER_V, {7, 7}, {3, 4}}, {WEFT_COLL_ALL_TO_ALL_V, {7, 7}, {7, 7}},
        {WEFT_COLL_GATHER_V, {4, 4}, {7, 0}},         {WEFT_COLL_SCATTER_V, {7, 0}, {4, 4}}};

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (comm.rank = 0; comm.rank < 2; comm.rank++) {
            weft_collective_args args = good(wanted[i].collective);
            uint64_t send, recv;

            wf_buffers_sizes(&comm, &args, &send, &recv);
            ck_assert_uint_eq(send, wanted[i].send[comm.rank]);
            ck_assert_uint_eq(recv, wanted[i].recv[comm.rank]);
        }
    comm.rank = 0;
}
