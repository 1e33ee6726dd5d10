/* The memory of collectives and messages with WEFT_CHECK. */
#include "comm/check.h"
#include "support/fake_world.h"
#include "support/suite.h"

enum { RANKS = 3, ROOM = 4096 };

/* Memory of which the device knows the size: SEND_BYTES at `pieces[0]`, RECV_BYTES at `pieces[1]`.
 */
static _Alignas(16) char pieces[2][ROOM];
static uint64_t bytes_of[2];

static weft_status query_piece(void *device, const void *pointer, weft_pointer_info *out)
{
    (void)device;
    for (int i = 0; i < 2; i++) {
        uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)pieces[i];

        if (at < start || at >= start + ROOM) continue;
        out->base = pieces[i];
        out->bytes = bytes_of[i];
    }
    return WEFT_OK;
}

static weft_device_table device = {.struct_size = sizeof device, .query_pointer = query_piece};
static weft_plugin plugin = {.struct_size = sizeof plugin, .device = &device};
static weft_context context = {.rank = 5};
static weft_comm comm = {.size = RANKS,
                         .rank = 1,
                         .name = "trio",
                         .checked = true,
                         .plugin = &plugin,
                         .context = &context};

/* Blocks of 2, 3 and 4 elements, with a gap of 1 before each. */
static const uint64_t counts[RANKS] = {2, 3, 4}, offsets[RANKS] = {1, 4, 8};

/* 10 f32 for each rank, from the first piece to the second. */
static weft_collective_args args_of(uint32_t collective, int32_t root)
{
    return (weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                  .collective = collective,
                                  .dtype = WEFT_DTYPE_F32,
                                  .root = root,
                                  .send = pieces[0],
                                  .recv = pieces[1],
                                  .count = 10,
                                  .send_counts = counts,
                                  .send_offsets = offsets,
                                  .recv_counts = counts,
                                  .recv_offsets = offsets};
}

static void refused(weft_collective_args args, const char *text)
{
    ck_assert_msg(wf_check_collective(&comm, &args) == WEFT_ERR_INVALID, "collective %u: \"%s\"",
                  args.collective, text);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "no \"%s\" in: %s", text,
                  weft_last_error());
}

static void accepted(weft_collective_args args)
{
    ck_assert_msg(wf_check_collective(&comm, &args) == WEFT_OK, "%s", weft_last_error());
}

static void give_room(uint64_t send, uint64_t recv)
{
    bytes_of[0] = send;
    bytes_of[1] = recv;
}

/* The elements that rank 1 of 3 needs; 0: the memory is not used. */
static const struct needs {
    uint32_t collective;
    int32_t root;
    uint64_t send, recv;
} all_needs[] = {{WEFT_COLL_ALL_REDUCE, -1, 10, 10},      {WEFT_COLL_ALL_GATHER, -1, 10, 30},
                 {WEFT_COLL_REDUCE_SCATTER, -1, 30, 10},  {WEFT_COLL_ALL_TO_ALL, -1, 30, 30},
                 {WEFT_COLL_BROADCAST, 1, 10, 10},        {WEFT_COLL_BROADCAST, 0, 0, 10},
                 {WEFT_COLL_REDUCE, 1, 10, 10},           {WEFT_COLL_REDUCE, 0, 10, 0},
                 {WEFT_COLL_GATHER, 1, 10, 30},           {WEFT_COLL_GATHER, 0, 10, 0},
                 {WEFT_COLL_SCATTER, 1, 30, 10},          {WEFT_COLL_SCATTER, 0, 0, 10},
                 {WEFT_COLL_ALL_GATHER_V, -1, 3, 12},     {WEFT_COLL_ALL_TO_ALL_V, -1, 12, 12},
                 {WEFT_COLL_REDUCE_SCATTER_V, -1, 12, 3}, {WEFT_COLL_GATHER_V, 1, 10, 12},
                 {WEFT_COLL_GATHER_V, 0, 10, 0},          {WEFT_COLL_SCATTER_V, 1, 12, 10},
                 {WEFT_COLL_SCATTER_V, 0, 0, 10}};

TEST(memory_has_room_for_what_the_call_needs)
{
    for (size_t i = 0; i < WF_COUNT(all_needs); i++) {
        const struct needs *n = &all_needs[i];
        weft_collective_args args = args_of(n->collective, n->root);

        give_room(n->send > 0 ? 4 * n->send : 1, n->recv > 0 ? 4 * n->recv : 1);
        accepted(args);
        give_room(4 * n->send - 1, ROOM);
        if (n->send > 0) refused(args, "send; the allocation has ");
        give_room(ROOM, 4 * n->recv - 1);
        if (n->recv > 0) refused(args, "recv; the allocation has ");
    }
}

TEST(the_text_names_the_call_and_both_sizes)
{
    weft_collective_args args = args_of(WEFT_COLL_ALL_GATHER, -1);

    give_room(ROOM, 40);
    refused(args, "weft_all_gather on trio: rank 5 needs 120 bytes (30 elements of f32) at recv; "
                  "the allocation has 40 bytes, and recv begins 0 bytes into it");
    args.recv = pieces[1] + 16;
    give_room(ROOM, 120);
    refused(args, "and recv begins 16 bytes into it");
    args = args_of(WEFT_COLL_ALL_TO_ALL_V, -1);
    give_room(ROOM, 40);
    refused(args, "weft_all_to_all_v on trio: rank 5 needs 44 bytes (11 elements of f32) at "
                  "element 1 of recv; the allocation has 40 bytes");
    give_room(0, 0); /* not known */
    accepted(args);
}

TEST(memory_is_aligned_to_its_elements)
{
    weft_collective_args args = args_of(WEFT_COLL_ALL_REDUCE, -1);

    give_room(ROOM, ROOM);
    args.send = pieces[0] + 2;
    refused(args, "weft_all_reduce on trio: on rank 5, send is 0x");
    refused(args, "is not aligned to 4 bytes, as f32 requires");
    args.dtype = WEFT_DTYPE_BF16;
    accepted(args);
    args.recv = pieces[1] + 8;
    args.send = pieces[0];
    args.dtype = WEFT_DTYPE_C128;
    accepted(args);
    args.recv = pieces[1] + 4;
    refused(args, "recv is 0x");
    args.count = 0;
    accepted(args);
}

/* SEND begins at element S, RECV at element R of one piece. */
static weft_collective_args overlapping(uint32_t collective, int32_t root, uint64_t s, uint64_t r)
{
    weft_collective_args args = args_of(collective, root);

    args.send = pieces[0] + 4 * s;
    args.recv = pieces[0] + 4 * r;
    return args;
}

TEST(memory_overlaps_in_place_only)
{
    give_room(ROOM, ROOM);
    accepted(overlapping(WEFT_COLL_ALL_REDUCE, -1, 0, 0));
    accepted(overlapping(WEFT_COLL_ALL_REDUCE, -1, 0, 10));
    refused(overlapping(WEFT_COLL_ALL_REDUCE, -1, 0, 9), "send (40 bytes at 0x");
    refused(overlapping(WEFT_COLL_ALL_REDUCE, -1, 4, 0),
            "overlap; this is allowed only if send and recv are equal");
    accepted(overlapping(WEFT_COLL_ALL_GATHER, -1, 10, 0));
    refused(overlapping(WEFT_COLL_ALL_GATHER, -1, 0, 0),
            "allowed only if send is this rank's own part of recv");
    accepted(overlapping(WEFT_COLL_REDUCE_SCATTER, -1, 0, 10));
    refused(overlapping(WEFT_COLL_REDUCE_SCATTER, -1, 0, 20),
            "allowed only if recv is this rank's own part of send");
    accepted(overlapping(WEFT_COLL_ALL_TO_ALL, -1, 7, 7));
    refused(overlapping(WEFT_COLL_ALL_TO_ALL, -1, 0, 10),
            "allowed only if send and recv are equal");
    accepted(overlapping(WEFT_COLL_BROADCAST, 1, 0, 0));
    refused(overlapping(WEFT_COLL_BROADCAST, 1, 0, 1), "weft_broadcast on trio");
    accepted(overlapping(WEFT_COLL_BROADCAST, 0, 0, 1)); /* send is not used */
    accepted(overlapping(WEFT_COLL_REDUCE, 0, 0, 1));
    refused(overlapping(WEFT_COLL_REDUCE, 1, 0, 1), "overlap");
    accepted(overlapping(WEFT_COLL_GATHER, 1, 10, 0));
    refused(overlapping(WEFT_COLL_GATHER, 1, 0, 0), "overlap");
    accepted(overlapping(WEFT_COLL_SCATTER, 1, 0, 10));
    refused(overlapping(WEFT_COLL_SCATTER, 1, 0, 0), "overlap");
}

TEST(blocks_overlap_in_place_only)
{
    static const uint64_t other[RANKS] = {13, 15, 18};
    weft_collective_args args = overlapping(WEFT_COLL_ALL_TO_ALL_V, -1, 0, 0);

    give_room(ROOM, ROOM);
    accepted(args);
    args.recv_offsets = other; /* disjoint blocks in the same memory */
    accepted(args);
    refused(overlapping(WEFT_COLL_ALL_TO_ALL_V, -1, 0, 1),
            "send and recv, and the counts and offsets of both, are equal");
    accepted(overlapping(WEFT_COLL_ALL_GATHER_V, -1, 4, 0));
    accepted(overlapping(WEFT_COLL_ALL_GATHER_V, -1, 12, 0));
    refused(overlapping(WEFT_COLL_ALL_GATHER_V, -1, 5, 0), "overlap");
    args = overlapping(WEFT_COLL_GATHER_V, 1, 3, 0); /* the gap before the rank's own block */
    args.count = 1;
    accepted(args);
    args.count = 2;
    refused(args, "overlap");
    accepted(overlapping(WEFT_COLL_REDUCE_SCATTER_V, -1, 0, 4));
    refused(overlapping(WEFT_COLL_REDUCE_SCATTER_V, -1, 0, 8), "overlap");
    args = overlapping(WEFT_COLL_SCATTER_V, 1, 0, 4);
    args.count = 3;
    accepted(args);
    args.recv = pieces[0] + 4 * 8;
    refused(args, "overlap");
}

TEST(blocks_of_recv_do_not_overlap)
{
    static const uint64_t twice[RANKS] = {4, 2, 8}, apart[RANKS] = {20, 2, 6};
    weft_collective_args args = args_of(WEFT_COLL_ALL_GATHER_V, -1);

    give_room(ROOM, ROOM);
    args.recv_offsets = apart; /* in any order, with gaps */
    accepted(args);
    args.recv_offsets = twice;
    refused(args,
            "on rank 5, the blocks of recv of ranks 1 and 0 overlap: 3 elements at offset 2, and "
            "2 at offset 4");
    args = args_of(WEFT_COLL_REDUCE_SCATTER_V, -1);
    args.send_offsets = twice; /* elements of send may be read twice */
    accepted(args);
}

TEST(messages_are_checked)
{
    weft_message message = {
        .struct_size = sizeof message, .dtype = WEFT_DTYPE_F32, .buffer = pieces[0], .count = 10};

    give_room(40, 0);
    ck_assert_int_eq(wf_buffers_check_message(&comm, "weft_send", &message), WEFT_OK);
    give_room(39, 0);
    ck_assert_int_eq(wf_buffers_check_message(&comm, "weft_send", &message), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_send on trio: rank 5 needs 40 bytes (10 elements of f32) at buffer; the "
                     "allocation has 39 bytes, and buffer begins 0 bytes into it");
    give_room(ROOM, 0);
    message.buffer = pieces[0] + 1;
    ck_assert_int_eq(wf_buffers_check_message(&comm, "weft_receive", &message), WEFT_ERR_INVALID);
    message.count = 0;
    ck_assert_int_eq(wf_buffers_check_message(&comm, "weft_receive", &message), WEFT_OK);
}

/* With WEFT_CHECK no collective takes the fast path; a step of a bound plan was checked before. */
TEST(calls_are_checked_only_where_they_should)
{
    weft_collective_args args = overlapping(WEFT_COLL_ALL_REDUCE, -1, 0, 1);

    give_room(ROOM, ROOM);
    wf_check_begin(&comm);
    ck_assert(!wf_check_fast(&comm, &args));
    args.plan = 7;
    accepted(args);
    args.plan = 0;
    comm.checked = false;
    wf_check_begin(&comm);
    ck_assert(wf_check_fast(&comm, &args));
    accepted(args);
    comm.checked = true;
}

/* Without WEFT_CHECK: sizes are compared, and known until memory is freed. */
TEST(sizes_are_always_compared)
{
    weft_collective_args args = args_of(WEFT_COLL_ALL_REDUCE, -1);
    weft_message message = {
        .struct_size = sizeof message, .dtype = WEFT_DTYPE_F32, .buffer = pieces[1], .count = 11};

    comm.checked = false;
    wf_check_begin(&comm);
    context.ledger.frees++; /* what the communicator knows of these addresses counts no more */
    give_room(40, 40);
    ck_assert(!wf_check_is_last(&comm, &args));
    ck_assert_int_eq(wf_check_call(&comm, &args), WEFT_OK);
    ck_assert(wf_check_is_last(&comm, &args));
    args.count = 11;
    ck_assert(!wf_check_is_last(&comm, &args));
    ck_assert_int_eq(wf_check_call(&comm, &args), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "needs 44 bytes (11 elements of f32) at send; "
                                                    "the allocation has 40 bytes"));
    ck_assert_int_eq(wf_buffers_check_message(&comm, "weft_receive", &message), WEFT_ERR_INVALID);
    args.count = 10;
    ck_assert(wf_check_is_last(&comm, &args));
    context.ledger.frees++; /* and the same addresses are smaller now */
    give_room(40, 36);
    ck_assert(!wf_check_is_last(&comm, &args));
    ck_assert_int_eq(wf_check_call(&comm, &args), WEFT_ERR_INVALID);
    comm.checked = true;
}
