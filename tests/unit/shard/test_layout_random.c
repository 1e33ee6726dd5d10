/* Random layouts: the library's shard of each rank equals the oracle's list. */
#include "support/random_layout.h"
#include "support/suite.h"

/* Not ck_assert_msg, which makes a system call each time. */
#define HOLDS(spec, claim)                                                                         \
    do {                                                                                           \
        if (!(claim))                                                                              \
            ck_abort_msg("not so: %s\nWEFT_TEST_SEED=%llu\n%s", #claim,                            \
                         (unsigned long long)r.seed, as_command(spec));                            \
    } while (0)

static struct random r;

/* ---- one dimension of one rank ---- */

static void check_runs(const weft_spec *spec, int32_t rank, int32_t dim, const int64_t *want,
                       int64_t count)
{
    int64_t at = 0, end = -1;
    weft_index_run run;

    for (; weft_spec_run(spec, rank, dim, at, &run); at += run.length) {
        HOLDS(spec, run.length > 0 && run.start > end); /* ascending, and never touching */
        for (int64_t i = 0; i < run.length; i++)
            HOLDS(spec, at + i < count && want[at + i] == run.start + i);
        end = run.start + run.length;
    }
    HOLDS(spec, at == count);
    HOLDS(spec, !weft_spec_run(spec, rank, dim, -1, &run));
}

static void check_index(const weft_spec *spec, const struct wf_index *index, int64_t size,
                        const int64_t *want, int64_t count)
{
    int64_t place = 0;

    for (int64_t i = 0; i < count; i++)
        HOLDS(spec, wf_index_at(index, i) == want[i]);
    for (int64_t global = 0; global <= size + 1; global++) {
        while (place < count && want[place] < global)
            place++;
        HOLDS(spec, wf_index_seek(index, global) == place);
    }
}

static void check_rank(const weft_spec *spec, int32_t rank)
{
    int32_t coord[WEFT_MAX_AXES];
    int64_t want[ORACLE_LONGEST], elements;
    struct wf_shard inside;
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    wf_shard_of(spec, rank, &inside);
    HOLDS(spec, weft_mesh_coord_of(weft_spec_mesh(spec), rank, coord) == WEFT_OK);
    HOLDS(spec, shard.member && shard.dims == weft_spec_dims(spec));
    elements = oracle_owns(spec, coord);
    for (int32_t d = 0; d < shard.dims; d++) {
        int64_t size = weft_spec_shape(spec)[d], count = oracle_indices(spec, coord, d, want);
        struct wf_index index = wf_shard_index(&inside, d);
        HOLDS(spec, shard.shape[d] == count);
        HOLDS(spec, shard.offset[d] == (count > 0 ? want[0] : size));
        check_runs(spec, rank, d, want, count);
        check_index(spec, &index, size, want, count);
        elements *= count;
    }
    HOLDS(spec, shard.elements == elements);
}

/* ---- all ranks together ---- */

static int64_t flat_index(const weft_spec *spec, const struct wf_shard *shard, int64_t element)
{
    int64_t flat = 0, stride = 1;

    for (int32_t d = shard->dims - 1; d >= 0; d--) {
        struct wf_index index = wf_shard_index(shard, d);
        flat += wf_index_at(&index, element % shard->shape[d]) * stride;
        element /= shard->shape[d];
        stride *= weft_spec_shape(spec)[d];
    }
    return flat;
}

/* True if every element has one holder along AXIS. */
static bool has_one_holder(const weft_spec *spec, int32_t axis)
{
    const weft_placement *p = &weft_spec_placements(spec)[axis];

    return wf_placement_splits(p) || p->kind == WEFT_PLACE_OWNER;
}

/* Along the axes that split or have an owner every element is held once, along the others by every
 * rank. */
static void check_tiling(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t copies = weft_mesh_size(mesh), *holders;

    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        if (has_one_holder(spec, i)) copies /= weft_mesh_axis_size(mesh, i);
    holders = calloc((size_t)weft_spec_elements(spec) + 1, sizeof *holders);
    for (int32_t place = 0; place < weft_mesh_size(mesh); place++) {
        struct wf_shard shard;
        wf_shard_of(spec, weft_mesh_rank_at(mesh, place), &shard);
        for (int64_t i = 0; i < shard.elements; i++)
            holders[flat_index(spec, &shard, i)]++;
    }
    for (int64_t i = 0; i < weft_spec_elements(spec); i++)
        HOLDS(spec, holders[i] == copies);
    free(holders);
}

static void check_replicas(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t place = 0; place < weft_mesh_size(mesh); place++) {
        int32_t coord[WEFT_MAX_AXES], twin;
        weft_shard a, b;
        wf_mesh_coord_at(mesh, place, coord);
        for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
            if (!has_one_holder(spec, i)) coord[i] = 0;
        HOLDS(spec, weft_mesh_rank(mesh, coord, &twin) == WEFT_OK);
        weft_spec_shard(spec, weft_mesh_rank_at(mesh, place), &a);
        weft_spec_shard(spec, twin, &b);
        HOLDS(spec, memcmp(a.shape, b.shape, sizeof a.shape) == 0);
        HOLDS(spec, memcmp(a.offset, b.offset, sizeof a.offset) == 0);
    }
}

static void check_outsiders(const weft_spec *spec)
{
    static const int32_t others[] = {-1, INT32_MIN, INT32_MAX, 100000};

    for (size_t i = 0; i < WF_COUNT(others); i++) {
        weft_shard shard;
        weft_index_run run;
        weft_segment segment;
        weft_intersection overlap;
        weft_spec_shard(spec, others[i], &shard);
        HOLDS(spec, !shard.member && shard.elements == 0);
        for (int32_t d = 0; d < shard.dims; d++) {
            HOLDS(spec, shard.shape[d] == 0 && shard.offset[d] == weft_spec_shape(spec)[d]);
            HOLDS(spec, !weft_spec_run(spec, others[i], d, 0, &run));
            HOLDS(spec, !weft_spec_intersection(spec, others[i], spec, 0, d, 0, &overlap));
        }
        HOLDS(spec, !weft_spec_segment(spec, others[i], NULL, 0, &segment));
    }
}

static void check_text(const weft_spec *spec)
{
    char text[1024];
    weft_spec *again;

    HOLDS(spec, weft_spec_print(spec, text, sizeof text, NULL) == WEFT_OK);
    HOLDS(spec, weft_spec_parse(weft_spec_mesh(spec), text, &again) == WEFT_OK);
    HOLDS(spec, again == spec);
    weft_spec_release(&again);
    HOLDS(spec,
          weft_spec_create(weft_spec_mesh(spec), weft_spec_dtype(spec), weft_spec_dims(spec),
                           weft_spec_shape(spec), weft_spec_placements(spec), &again) == WEFT_OK);
    HOLDS(spec, again == spec);
    weft_spec_release(&again);
}

TEST(every_rank_holds_what_the_oracle_lists)
{
    r = random_begin("every_rank_holds_what_the_oracle_lists");
    for (int cases = test_cases(3000); cases > 0; cases--) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *spec = random_spec(&r, mesh, dims, shape);
        for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
            check_rank(spec, weft_mesh_rank_at(mesh, i));
        check_tiling(spec);
        check_replicas(spec);
        check_outsiders(spec);
        check_text(spec);
    }
    ck_assert_int_eq(wf_mem_live(), 0);
}

/* ---- memory ---- */

/* Strides of memory whose dimensions lie in any order, with gaps. */
static void random_strides(const struct wf_shard *shard, int64_t *strides)
{
    int32_t order[WEFT_MAX_DIMS];
    int64_t stride = 1;

    random_order(&r, shard->dims, order);
    if (random_chance(&r, 2))
        for (int32_t i = 0; i < shard->dims; i++)
            order[i] = shard->dims - 1 - i;
    for (int32_t i = 0; i < shard->dims; i++) {
        strides[order[i]] = stride;
        stride *= shard->shape[order[i]] + (random_chance(&r, 3) ? random_in(&r, 0, 2) : 0);
        if (stride == 0) stride = 1;
    }
}

static int64_t offset_in_memory(const struct wf_shard *shard, const int64_t *strides, int64_t at)
{
    int64_t offset = 0;

    for (int32_t d = shard->dims - 1; d >= 0; d--) {
        offset += at % shard->shape[d] * strides[d];
        at /= shard->shape[d];
    }
    return offset;
}

static void check_segments(const weft_spec *spec, int32_t rank)
{
    int64_t strides[WEFT_MAX_DIMS], at = 0, last_global = -2, last_local = -2;
    struct wf_shard shard;
    weft_segment s;
    bool dense = random_chance(&r, 2);

    wf_shard_of(spec, rank, &shard);
    if (dense)
        wf_row_major(shard.dims, shard.shape, strides);
    else
        random_strides(&shard, strides);
    for (; weft_spec_segment(spec, rank, dense ? NULL : strides, at, &s); at += s.length) {
        HOLDS(spec, s.length > 0 && at + s.length <= shard.elements);
        HOLDS(spec, s.global != last_global ||
                        s.local != last_local); /* no segment continues the previous one */
        for (int64_t i = 0; i < s.length; i++) {
            HOLDS(spec, s.global + i == flat_index(spec, &shard, at + i));
            HOLDS(spec, s.local + i == offset_in_memory(&shard, strides, at + i));
        }
        last_global = s.global + s.length;
        last_local = s.local + s.length;
    }
    HOLDS(spec, at == shard.elements);
}

TEST(segments_say_where_every_element_lies)
{
    r = random_begin("segments_say_where_every_element_lies");
    for (int cases = test_cases(2000); cases > 0; cases--) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *spec = random_spec(&r, mesh, dims, shape);
        for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
            check_segments(spec, weft_mesh_rank_at(mesh, i));
    }
}

/* ---- two layouts ---- */

static void check_overlap(const weft_spec *a, int32_t i, const weft_spec *b, int32_t j, int32_t dim)
{
    int64_t in_a[ORACLE_LONGEST], in_b[ORACLE_LONGEST], at = 0, sum = 0, common = 0;
    int32_t coord_a[WEFT_MAX_AXES], coord_b[WEFT_MAX_AXES];
    struct wf_shard shard_a, shard_b;
    struct wf_index index_a, index_b;
    int64_t count_a, count_b;
    weft_intersection o;

    HOLDS(a, weft_mesh_coord_of(weft_spec_mesh(a), i, coord_a) == WEFT_OK);
    HOLDS(b, weft_mesh_coord_of(weft_spec_mesh(b), j, coord_b) == WEFT_OK);
    count_a = oracle_indices(a, coord_a, dim, in_a);
    count_b = oracle_indices(b, coord_b, dim, in_b);
    for (int64_t x = 0; x < count_a; x++)
        for (int64_t y = 0; y < count_b; y++)
            common += in_a[x] == in_b[y];
    for (; weft_spec_intersection(a, i, b, j, dim, at, &o); at = o.start + o.length) {
        HOLDS(a, o.start >= at && o.length > 0 && o.first + o.length <= count_a);
        HOLDS(b, o.second + o.length <= count_b);
        for (int64_t k = 0; k < o.length; k++) {
            HOLDS(a, in_a[o.first + k] == o.start + k);
            HOLDS(b, in_b[o.second + k] == o.start + k);
        }
        sum += o.length;
    }
    HOLDS(a, sum == common);
    wf_shard_of(a, i, &shard_a);
    wf_shard_of(b, j, &shard_b);
    index_a = wf_shard_index(&shard_a, dim);
    index_b = wf_shard_index(&shard_b, dim);
    HOLDS(a, wf_index_common(&index_a, &index_b) == common);
}

TEST(overlaps_are_what_both_hold)
{
    r = random_begin("overlaps_are_what_both_hold");
    for (int cases = test_cases(4000); cases > 0; cases--) {
        OWNED(weft_mesh) *mesh_a = random_mesh(&r), *mesh_b = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *a = random_spec(&r, mesh_a, dims, shape);
        OWNED(weft_spec) *b = random_spec(&r, mesh_b, dims, shape);
        for (int pairs = 0; pairs < 8; pairs++)
            for (int32_t d = 0; d < dims; d++)
                check_overlap(
                    a, weft_mesh_rank_at(mesh_a, random_in(&r, 0, weft_mesh_size(mesh_a) - 1)), b,
                    weft_mesh_rank_at(mesh_b, random_in(&r, 0, weft_mesh_size(mesh_b) - 1)), d);
    }
}

/* ---- order and strides ---- */

static void check_same_layout(const weft_spec *a, const weft_spec *b)
{
    for (int32_t place = 0; place < weft_mesh_size(weft_spec_mesh(a)); place++)
        for (int32_t d = 0; d < weft_spec_dims(a); d++) {
            int64_t in_a[ORACLE_LONGEST], in_b[ORACLE_LONGEST], count;
            int32_t coord[WEFT_MAX_AXES];
            wf_mesh_coord_at(weft_spec_mesh(a), place, coord);
            count = oracle_indices(a, coord, d, in_a);
            HOLDS(a, oracle_indices(b, coord, d, in_b) == count);
            HOLDS(a, memcmp(in_a, in_b, (size_t)count * sizeof *in_a) == 0);
        }
}

TEST(order_and_strides_convert_only_where_nothing_moves)
{
    int converted = 0, refused = 0;

    r = random_begin("order_and_strides_convert_only_where_nothing_moves");
    for (int cases = test_cases(4000); cases > 0; cases--) {
        weft_mesh *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        weft_spec *spec = random_spec(&r, mesh, dims, shape), *other, *back;
        if (weft_spec_order_to_strides(spec, &other) == WEFT_OK) {
            check_same_layout(spec, other);
            HOLDS(spec, weft_spec_strides_to_order(other, &back) == WEFT_OK);
            check_same_layout(spec, back);
            weft_spec_release(&back);
            weft_spec_release(&other);
            converted++;
        } else {
            refused++;
        }
        if (weft_spec_strides_to_order(spec, &other) == WEFT_OK) {
            check_same_layout(spec, other);
            weft_spec_release(&other);
        }
        weft_spec_release(&spec);
        weft_mesh_release(&mesh);
    }
    printf("converted %d, refused %d\n", converted, refused);
    ck_assert_int_gt(converted, refused / 10);
    ck_assert_int_gt(refused, converted / 100);
}

/* ---- shapes from shards ---- */

/* All ranks' local shapes of SPEC, to be freed. */
static int64_t *local_shapes(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t dims = weft_spec_dims(spec);
    int64_t *sizes = calloc((size_t)(weft_mesh_size(mesh) * dims) + 1, sizeof *sizes);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        weft_shard shard;
        weft_spec_shard(spec, weft_mesh_rank_at(mesh, i), &shard);
        memcpy(&sizes[i * dims], shard.shape, (size_t)dims * sizeof *sizes);
    }
    return sizes;
}

/* One rank with another size: the layout either has another shape, or is refused. */
static void check_contradiction(const weft_spec *spec, int64_t *sizes)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t dims = weft_spec_dims(spec), liar;
    int64_t shape[WEFT_MAX_DIMS], *again;
    OWNED(weft_spec) *other = NULL;

    if (dims == 0) return;
    liar = random_in(&r, 0, weft_mesh_size(mesh) * dims - 1);
    sizes[liar] += sizes[liar] == 0 || random_chance(&r, 2) ? 1 : -1;
    if (weft_shape_from_shards(mesh, dims, weft_spec_placements(spec), sizes, shape) != WEFT_OK)
        return;
    HOLDS(spec, weft_spec_create(mesh, WEFT_DTYPE_F32, dims, shape, weft_spec_placements(spec),
                                 &other) == WEFT_OK);
    again = local_shapes(other);
    HOLDS(spec, memcmp(again, sizes, (size_t)(weft_mesh_size(mesh) * dims) * sizeof *sizes) == 0);
    free(again);
}

TEST(the_shape_follows_from_the_shards)
{
    r = random_begin("the_shape_follows_from_the_shards");
    for (int cases = test_cases(3000); cases > 0; cases--) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS], found[WEFT_MAX_DIMS], *sizes;
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *spec = random_spec(&r, mesh, dims, shape);
        sizes = local_shapes(spec);
        HOLDS(spec, weft_shape_from_shards(mesh, dims, weft_spec_placements(spec), sizes, found) ==
                        WEFT_OK);
        for (int32_t d = 0; d < dims; d++)
            HOLDS(spec, found[d] == shape[d]);
        check_contradiction(spec, sizes);
        free(sizes);
    }
}

TEST(the_spec_follows_from_the_shards)
{
    int listed = 0;

    r = random_begin("the_spec_follows_from_the_shards");
    for (int cases = test_cases(3000); cases > 0; cases--) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS], *sizes;
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *spec = random_spec(&r, mesh, dims, shape), *found = NULL;
        weft_placement p[WEFT_MAX_AXES];
        memcpy(p, weft_spec_placements(spec), (size_t)weft_mesh_axes(mesh) * sizeof *p);
        for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
            if (p[a].kind == WEFT_PLACE_SIZES && ++listed > 0)
                p[a] =
                    (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = p[a].dim, .turn = p[a].turn};
        sizes = local_shapes(spec);
        HOLDS(spec, weft_spec_from_shards(mesh, WEFT_DTYPE_F32, dims, p, sizes, &found) == WEFT_OK);
        HOLDS(spec, found == spec);
        free(sizes);
    }
    ck_assert_int_ge(listed, test_cases(3000) / 100);
    ck_assert_int_eq(wf_mem_live(), 0);
}
