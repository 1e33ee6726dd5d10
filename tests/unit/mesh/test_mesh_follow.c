/* The mesh of a job after a loss of ranks, compared with lists of all ranks. */
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/suite.h"

enum { JOB_MOST = 128, RANKS_MOST = 640 };

static struct random r;

/* A job before and after a loss. */
struct job {
    int32_t size, old_ranks[2 * RANKS_MOST]; /* now */
    int32_t now[RANKS_MOST];                 /* by rank of before; -1: lost */
    int32_t lost, replaced_by[RANKS_MOST];   /* of lost ranks, by rank of before; -1: nobody */
};

/* Lose some of the BEFORE ranks of a job and add FRESH ones, in a random order. */
static void random_job(int32_t before, int32_t fresh, struct job *out)
{
    int32_t order[2 * RANKS_MOST], living[RANKS_MOST], of = random_in(&r, 0, 4), next = 0;
    int32_t count = 0, total;

    out->lost = 0;
    for (int32_t i = 0; i < before; i++) {
        out->now[i] = out->replaced_by[i] = -1;
        if (random_in(&r, 1, 8) <= of)
            out->lost++;
        else
            living[count++] = i;
    }
    total = count + fresh;
    random_order(&r, total, order);
    for (int32_t i = 0; i < total; i++) {
        out->old_ranks[i] = order[i] < count ? living[order[i]] : -1;
        if (order[i] < count) out->now[living[order[i]]] = i;
    }
    out->size = total;
    for (int32_t i = 0; i < before; i++) { /* the lost and the new, both in ascending order */
        if (out->now[i] >= 0) continue;
        while (next < total && out->old_ranks[next] != -1)
            next++;
        if (next < total) out->replaced_by[i] = next++;
    }
}

static int32_t next_rank(const struct job *job, int32_t before)
{
    return job->now[before] >= 0 ? job->now[before] : job->replaced_by[before];
}

static bool is_lost(const struct job *job, const weft_mesh *mesh, int32_t position)
{
    return job->now[weft_mesh_rank_at(mesh, position)] < 0;
}

/* ---- the policies ---- */

static void check_replaced(const weft_mesh *mesh, const struct job *job)
{
    OWNED(weft_mesh) *next = NULL;
    weft_status status =
        weft_mesh_follow(mesh, (size_t)job->size, job->old_ranks, WEFT_FOLLOW_REPLACE, NULL, &next);
    bool possible = true;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        possible = possible && next_rank(job, weft_mesh_rank_at(mesh, i)) >= 0;
    if (!possible) {
        check_refused(status, WEFT_ERR_INVALID, "there are fewer new ranks");
        ck_assert_ptr_null(next);
        return;
    }
    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_mesh_axes(next), weft_mesh_axes(mesh));
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        ck_assert_int_eq(weft_mesh_axis_size(next, a), weft_mesh_axis_size(mesh, a));
        ck_assert_str_eq(weft_mesh_axis_name(next, a), weft_mesh_axis_name(mesh, a));
    }
    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        ck_assert_int_eq(weft_mesh_rank_at(next, i), next_rank(job, weft_mesh_rank_at(mesh, i)));
}

static void check_dropped(const weft_mesh *mesh, const struct job *job, int32_t axis)
{
    int32_t size = weft_mesh_size(mesh), want[RANKS_MOST], count = 0, coord[WEFT_MAX_AXES];
    bool whole[RANKS_MOST];
    char name[8];
    OWNED(weft_mesh) *next = NULL;
    weft_status status;

    for (int32_t c = 0; c < weft_mesh_axis_size(mesh, axis); c++)
        whole[c] = true;
    for (int32_t i = 0; i < size; i++) {
        wf_mesh_coord_at(mesh, i, coord);
        if (is_lost(job, mesh, i)) whole[coord[axis]] = false;
    }
    for (int32_t i = 0; i < size; i++) {
        wf_mesh_coord_at(mesh, i, coord);
        if (whole[coord[axis]]) want[count++] = job->now[weft_mesh_rank_at(mesh, i)];
    }
    snprintf(name, sizeof name, "%d", axis);
    status =
        weft_mesh_follow(mesh, (size_t)job->size, job->old_ranks, WEFT_FOLLOW_DROP, name, &next);
    if (count == 0) {
        check_refused(status, WEFT_ERR_INVALID, "no rank of the mesh is left");
        return;
    }
    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_mesh_size(next), count);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (a != axis) ck_assert_int_eq(weft_mesh_axis_size(next, a), weft_mesh_axis_size(mesh, a));
    for (int32_t i = 0; i < count; i++)
        ck_assert_int_eq(weft_mesh_rank_at(next, i), want[i]);
}

static void check_packed(const weft_mesh *mesh, const struct job *job)
{
    int32_t count = 0;
    OWNED(weft_mesh) *next = NULL;
    weft_status status =
        weft_mesh_follow(mesh, (size_t)job->size, job->old_ranks, WEFT_FOLLOW_PACK, "dp", &next);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        if (is_lost(job, mesh, i)) continue;
        ck_assert_int_eq(weft_mesh_rank_at(next, count++), job->now[weft_mesh_rank_at(mesh, i)]);
    }
    if (count == 0) {
        check_refused(status, WEFT_ERR_INVALID, "no rank of the mesh is left");
        return;
    }
    ck_assert_int_eq(status, WEFT_OK);
    ck_assert(weft_mesh_axes(next) == 1 && weft_mesh_size(next) == count);
    ck_assert_str_eq(weft_mesh_axis_name(next, 0), "dp");
}

TEST(meshes_follow_the_ranks_that_are_left)
{
    static struct job job;
    int cases;

    r = random_begin("test_mesh_follow");
    cases = test_cases(3000);
    for (int i = 0; i < cases; i++) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int32_t before = 0;

        for (int32_t k = 0; k < weft_mesh_size(mesh); k++)
            if (weft_mesh_rank_at(mesh, k) >= before) before = weft_mesh_rank_at(mesh, k) + 1;
        if (before > JOB_MOST) continue;
        random_job(before, random_in(&r, 0, 6), &job);
        check_replaced(mesh, &job);
        check_dropped(mesh, &job, random_in(&r, 0, weft_mesh_axes(mesh) - 1));
        check_packed(mesh, &job);
    }
}

static weft_mesh *follow(const char *text, size_t count, const int32_t *old_ranks,
                         enum weft_follow policy, const char *axis)
{
    OWNED(weft_mesh) *mesh = mesh_of(text);
    weft_mesh *next = NULL;

    ck_assert_msg(weft_mesh_follow(mesh, count, old_ranks, policy, axis, &next) == WEFT_OK, "%s",
                  weft_last_error());
    return next;
}

TEST(known_meshes)
{
    static const int32_t replaced[] = {0, 1, 2, -1, 4, 5, 6, 7}, shrunk[] = {0, 1, 2, 4, 5, 6, 7};
    OWNED(weft_mesh) *same = follow("dp=4,tp=2/4", 8, replaced, WEFT_FOLLOW_REPLACE, NULL);
    OWNED(weft_mesh) *dropped = follow("dp=4,tp=2/4", 7, shrunk, WEFT_FOLLOW_DROP, "dp");
    OWNED(weft_mesh) *packed = follow("dp=4,tp=2", 7, shrunk, WEFT_FOLLOW_PACK, "dp");
    OWNED(weft_mesh) *unnamed = follow("4x2", 7, shrunk, WEFT_FOLLOW_PACK, NULL);

    check_mesh_is(same, "dp=4,tp=2/4"); /* the same object */
    check_mesh_is(dropped, "dp=3,tp=2@0,1,3-6");
    check_mesh_is(packed, "dp=7");
    check_mesh_is(unnamed, "7");
}

TEST(meshes_that_share_no_rank_share_none_afterwards)
{
    static const int32_t old_ranks[] = {0, -1, 2, -1};
    OWNED(weft_mesh) *first = follow("2@0-1", 4, old_ranks, WEFT_FOLLOW_REPLACE, NULL);
    OWNED(weft_mesh) *second = follow("2@2-3", 4, old_ranks, WEFT_FOLLOW_REPLACE, NULL);

    check_mesh_is(first, "2");
    check_mesh_is(second, "2@2-3");
}

TEST(arguments_are_checked)
{
    OWNED(weft_mesh) *mesh = mesh_of("dp=2,tp=2");
    weft_mesh *next = NULL;
    const int32_t twice[] = {0, 1, 1}, below[] = {0, -2}, none[] = {9};

    check_refused(weft_mesh_follow(mesh, 3, twice, WEFT_FOLLOW_PACK, NULL, &next), WEFT_ERR_INVALID,
                  "old_ranks[1] and old_ranks[2] are both 1");
    check_refused(weft_mesh_follow(mesh, 2, below, WEFT_FOLLOW_PACK, NULL, &next), WEFT_ERR_INVALID,
                  "old_ranks[1] is -2");
    check_refused(weft_mesh_follow(mesh, 1, none, WEFT_FOLLOW_PACK, NULL, &next), WEFT_ERR_INVALID,
                  "no rank of the mesh is left");
    check_refused(weft_mesh_follow(mesh, 3, twice, WEFT_FOLLOW_DROP, NULL, &next), WEFT_ERR_INVALID,
                  "axis");
    check_refused(weft_mesh_follow(mesh, 1, none, WEFT_FOLLOW_DROP, "cp", &next),
                  WEFT_ERR_NOT_FOUND, "cp");
    check_refused(weft_mesh_follow(mesh, 1, none, (enum weft_follow)3, NULL, &next),
                  WEFT_ERR_INVALID, "policy is 3");
    check_refused(weft_mesh_follow(mesh, 1, NULL, WEFT_FOLLOW_PACK, NULL, &next), WEFT_ERR_INVALID,
                  "old_ranks");
    check_refused(weft_mesh_follow(NULL, 0, NULL, WEFT_FOLLOW_PACK, NULL, &next), WEFT_ERR_INVALID,
                  "mesh");
    ck_assert_ptr_null(next);
}
