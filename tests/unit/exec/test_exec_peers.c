#include "exec/exec.h"
#include "support/layout.h"
#include "support/suite.h"

#include <time.h>

struct met {
    int32_t count, ranks[64];
    const weft_mesh *mesh;
    weft_status answer;
};

static weft_status take(void *self, const int32_t *coord)
{
    struct met *met = self;

    met->ranks[met->count++] = wf_mesh_rank(met->mesh, coord);
    return met->answer;
}

/* The peers of RANK's shard of MINE in the layout THEIRS, where all splitting axes are searched. */
static struct met meet(const char *mesh, const char *mine, int32_t rank, const char *theirs,
                       weft_status answer)
{
    weft_spec *a = spec_of(mesh, mine), *b = spec_of(mesh, theirs);
    struct met met = {.mesh = b->layout.mesh, .answer = answer};
    struct wf_shard shard;
    struct wf_peer_query query = {.theirs = &b->layout, .mine = &shard};

    wf_shard_of(a, rank, &shard);
    ck_assert(weft_mesh_coord_of(b->layout.mesh, rank, query.coord) == WEFT_OK);
    for (int32_t i = 0; i < b->layout.mesh->axes; i++)
        query.relation[i] =
            wf_placement_splits(&b->layout.placements[i]) ? WF_PEER_BY_INDEX : WF_PEER_SAME;
    ck_assert_int_eq(wf_peers_each(&query, 0, take, &met), answer);
    weft_spec_release(&a);
    weft_spec_release(&b);
    return met;
}

TEST(a_shard_meets_those_whose_indices_it_shares)
{
    static const struct {
        const char *what, *mesh, *mine;
        int32_t rank;
        const char *theirs;
        int32_t count, first[2]; /* peers */
    } rows[] = {
        {"the same shards", "4", "f32[12] S(0)", 1, "f32[12] S(0)", 1, {1}},
        {"a whole tensor", "4", "f32[12] R", 1, "f32[12] S(0)", 4, {0, 1}},
        {"copies", "2x2", "f32[12] R,R", 3, "f32[12] S(0),R", 2, {1, 3}},
        {"a stride of each", "4", "f32[16] S(0)", 0, "f32[16] SS(0,4)", 4, {0, 1}},
        {"strides", "4", "f32[16] SS(0,2)", 0, "f32[16] S(0)", 2, {0, 2}},
        {"groups", "4", "f32[12] S(0)", 1, "f32[12] G(0;4,0,2,6)", 2, {0, 2}},
        {"a group's", "4", "f32[12] G(0;4,0,2,6)", 3, "f32[12] S(0)", 2, {2, 3}},
        {"blocks", "4", "f32[12] S(0)", 3, "f32[12] B(0;4,8)", 2, {2, 3}},
        {"groups inside", "2x2", "f32[12] S(0),R", 2, "f32[12] G(0;8,4),S(0)", 3, {1, 2}},
        {"no element", "4", "f32[2] S(0)", 3, "f32[2] S(0)", 0, {0}},
    };

    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        struct met met = meet(rows[i].mesh, rows[i].mine, rows[i].rank, rows[i].theirs, WEFT_OK);

        ck_assert_msg(met.count == rows[i].count, "%s: %d peers", rows[i].what, met.count);
        for (int32_t n = 0; n < met.count && n < 2; n++)
            ck_assert_msg(met.ranks[n] == rows[i].first[n], "%s: peer %d is %d", rows[i].what, n,
                          met.ranks[n]);
    }
}

TEST(the_first_failure_ends_it)
{
    struct met met = meet("4", "f32[12] R", 1, "f32[12] S(0)", WEFT_ERR_INTERNAL);

    ck_assert_int_eq(met.count, 1);
}

/* The CPU time of this thread, which does not depend on other processes. */
static double worked_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* There are a billion ranks, and enumerating them all takes seconds. */
TEST(finding_peers_does_not_count_through_the_ranks)
{
    double begin = worked_s();
    struct met met =
        meet("1073741824", "f32[4294967296] S(0)", 77777, "f32[4294967296] S(0)", WEFT_OK);

    ck_assert_int_eq(met.count, 1);
    ck_assert_int_eq(met.ranks[0], 77777);
    ck_assert(worked_s() - begin < 0.2);
}
