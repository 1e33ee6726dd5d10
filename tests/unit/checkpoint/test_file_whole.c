#include "checkpoint/file.h"
#include "support/random_layout.h"
#include "support/suite.h"

/* The same by visiting the runs of every rank. */
static bool visit(const weft_spec *spec, int32_t dim, int64_t size)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t p = 0; p < weft_mesh_size(mesh); p++) {
        int32_t rank = weft_mesh_rank_at(mesh, p);
        weft_index_run run;

        for (int64_t at = 0; weft_spec_run(spec, rank, dim, at, &run); at += run.length)
            if (run.start % size != 0 || run.length % size != 0) return false;
    }
    return true;
}

TEST(heads_are_whole_where_no_run_cuts_one)
{
    struct random r = random_begin("test_file_whole");
    int whole = 0, cut = 0, cases = test_cases(4000);

    for (int i = 0; i < cases; i++) {
        weft_placement placements[WEFT_MAX_AXES];
        int64_t shape[WEFT_MAX_DIMS], size = random_in(&r, 2, 4);
        weft_mesh *mesh = random_mesh(&r);
        int32_t dims = random_shape(&r, shape);
        weft_spec *spec = NULL;

        random_placements(&r, mesh, dims, shape, placements);
        ck_assert_int_eq(WEFT_OK,
                         weft_spec_create(mesh, WEFT_DTYPE_F32, dims, shape, placements, &spec));
        for (int32_t dim = 0; dim < dims; dim++) {
            bool expected;

            if (shape[dim] % size != 0 || shape[dim] == 0) continue;
            expected = visit(spec, dim, size);
            ck_assert_int_eq(wf_heads_are_whole(spec, dim, size), expected);
            whole += expected;
            cut += !expected;
        }
        weft_spec_release(&spec);
        weft_mesh_release(&mesh);
    }
    if (cases >= 1000) ck_assert(whole > 100 && cut > 100);
}

/* Each rank has 2^40 runs. */
TEST(runs_are_not_visited)
{
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;

    ck_assert_int_eq(WEFT_OK, weft_mesh_parse("tp=4", &mesh));
    ck_assert_int_eq(WEFT_OK,
                     weft_spec_parse(mesh, "u8[8796093022208] SS(0,1099511627776)", &spec));
    ck_assert(wf_heads_are_whole(spec, 0, 2));
    ck_assert(!wf_heads_are_whole(spec, 0, 4));
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
}
