/* The arguments that each rank passes to a collective, compared with the definitions. */
#include "kit/collective.h"
#include "kit/names.h"

#include "support/suite.h"

#include <string.h>

enum { SIZE = 3, ROOT = 1 };

/* 4 + 0 + 2 elements are sent to the ranks, 1 + 5 + 3 received from them. */
static const uint64_t sent[SIZE] = {4, 0, 2}, received[SIZE] = {1, 5, 3},
                      offsets[SIZE] = {0, 8, 16};

static struct kit_use use_of(uint32_t collective, int32_t rank)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = collective,
                                 .root = ROOT,
                                 .count = 7,
                                 .send_counts = sent,
                                 .send_offsets = offsets,
                                 .recv_counts = received,
                                 .recv_offsets = offsets};

    return kit_collective_use(&args, rank, SIZE);
}

static void uses(uint32_t collective, int32_t rank, uint64_t send, uint64_t recv, bool send_arrays,
                 bool recv_arrays)
{
    struct kit_use use = use_of(collective, rank);

    ck_assert_msg(use.send == send && use.recv == recv && use.send_arrays == send_arrays &&
                      use.recv_arrays == recv_arrays,
                  "%s on rank %d: send %d, recv %d, arrays %d %d", kit_collective_name(collective),
                  (int)rank, (int)use.send, (int)use.recv, use.send_arrays, use.recv_arrays);
}

TEST(every_rank_takes_part)
{
    for (int32_t r = 0; r < SIZE; r++) {
        uses(WEFT_COLL_BARRIER, r, 0, 0, false, false);
        uses(WEFT_COLL_ALL_REDUCE, r, 7, 7, false, false);
        uses(WEFT_COLL_ALL_GATHER, r, 7, 7, false, false);
        uses(WEFT_COLL_REDUCE_SCATTER, r, 7, 7, false, false);
        uses(WEFT_COLL_ALL_TO_ALL, r, 7, 7, false, false);
        uses(WEFT_COLL_ALL_GATHER_V, r, received[r], 9, false, true);
        uses(WEFT_COLL_REDUCE_SCATTER_V, r, 6, sent[r], true, false);
        uses(WEFT_COLL_ALL_TO_ALL_V, r, 6, 9, true, true);
    }
}

TEST(roots_differ_from_other_ranks)
{
    uses(WEFT_COLL_BROADCAST, ROOT, 7, 7, false, false);
    uses(WEFT_COLL_BROADCAST, 0, 0, 7, false, false);
    uses(WEFT_COLL_REDUCE, ROOT, 7, 7, false, false);
    uses(WEFT_COLL_REDUCE, 0, 7, 0, false, false);
    uses(WEFT_COLL_GATHER, ROOT, 7, 7, false, false);
    uses(WEFT_COLL_GATHER, 2, 7, 0, false, false);
    uses(WEFT_COLL_SCATTER, ROOT, 7, 7, false, false);
    uses(WEFT_COLL_SCATTER, 2, 0, 7, false, false);
    uses(WEFT_COLL_GATHER_V, ROOT, 7, 9, false, true);
    uses(WEFT_COLL_GATHER_V, 0, 7, 0, false, false);
    uses(WEFT_COLL_SCATTER_V, ROOT, 6, 7, true, false);
    uses(WEFT_COLL_SCATTER_V, 0, 0, 7, false, false);
}

TEST(counts_beyond_a_word_are_not_nothing)
{
    static const uint64_t huge[SIZE] = {UINT64_C(1) << 63, UINT64_C(1) << 63, 0};
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_REDUCE_SCATTER_V,
                                 .send_counts = huge,
                                 .send_offsets = offsets};

    ck_assert_uint_eq(kit_collective_use(&args, 0, SIZE).send, UINT64_MAX);
}

TEST(needs_and_names_agree)
{
    uint32_t reduces = 0;

    for (uint32_t c = 0; c < WEFT_COLL_COUNT; c++) {
        uint32_t needs = kit_collective_needs(c);
        const char *name = kit_collective_name(c);
        size_t length = strlen(name);
        bool varied = length > 2 && name[length - 2] == '_' && name[length - 1] == 'v';

        ck_assert_int_eq((needs & (KIT_SEND_ARRAYS | KIT_RECV_ARRAYS)) != 0, varied);
        ck_assert_int_eq((needs & KIT_REDUCES) != 0, kit_collective_reduces(c));
        ck_assert_int_eq((needs & KIT_REDUCES) != 0, strstr(name, "reduce") != NULL);
        if (kit_collective_reduces(c)) reduces++;
    }
    ck_assert_uint_eq(reduces, 4);
    ck_assert_uint_eq(kit_collective_needs(WEFT_COLL_COUNT), 0);
    ck_assert(!kit_reduction_defined(WEFT_REDUCE_MAX, WEFT_DTYPE_C64));
    ck_assert(kit_reduction_defined(WEFT_REDUCE_MAX, WEFT_DTYPE_F32));
    ck_assert_uint_eq(kit_dtype_bytes(WEFT_DTYPE_BF16), 2);
    ck_assert_uint_eq(kit_dtype_bytes(WEFT_DTYPE_COUNT), 0);
}
