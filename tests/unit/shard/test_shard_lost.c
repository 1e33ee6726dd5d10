/* What is lost with some ranks, compared with a search through all elements and ranks. */
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/suite.h"

static struct random r;

/* ---- the oracle ---- */

static bool oracle_holds(const weft_spec *spec, const int32_t *coord, const int64_t *element)
{
    int64_t indices[ORACLE_LONGEST];

    if (!oracle_owns(spec, coord)) return false;
    for (int32_t d = 0; d < weft_spec_dims(spec); d++) {
        int64_t count = oracle_indices(spec, coord, d, indices), at = 0;
        while (at < count && indices[at] != element[d])
            at++;
        if (at == count) return false;
    }
    return true;
}

/* True if two coordinates are the same along all axes of contributions. */
static bool same_contribution(const weft_spec *spec, const int32_t *a, const int32_t *b)
{
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_PARTIAL && a[i] != b[i]) return false;
    return true;
}

/* A rank that holds ELEMENT, and each of those is lost that hold the same contribution to it. */
static bool oracle_lost(const weft_spec *spec, const bool *lost, const int64_t *element)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t size = weft_mesh_size(mesh), a[WEFT_MAX_AXES], b[WEFT_MAX_AXES];

    for (int32_t i = 0; i < size; i++) {
        bool survives = false;
        wf_mesh_coord_at(mesh, i, a);
        if (!oracle_holds(spec, a, element)) continue;
        for (int32_t k = 0; k < size && !survives; k++) {
            wf_mesh_coord_at(mesh, k, b);
            survives = !lost[k] && same_contribution(spec, a, b) && oracle_holds(spec, b, element);
        }
        if (!survives) return true;
    }
    return false;
}

/* ---- comparison ---- */

#define HOLDS(claim)                                                                               \
    do {                                                                                           \
        if (!(claim))                                                                              \
            ck_abort_msg("not so: %s\nWEFT_TEST_SEED=%llu\n%s", #claim,                            \
                         (unsigned long long)r.seed, as_command(spec));                            \
    } while (0)

enum { ELEMENTS_MOST = 400, RANKS_MOST = 64 };

/* Count how often the shards of RANKS have each element of SPEC. */
static void count_found(const weft_spec *spec, const int32_t *ranks, size_t shards, int *found)
{
    memset(found, 0, ELEMENTS_MOST * sizeof *found);
    for (size_t i = 0; i < shards; i++) {
        weft_segment segment;
        for (int64_t at = 0; weft_spec_segment(spec, ranks[i], NULL, at, &segment);
             at += segment.length)
            for (int64_t k = 0; k < segment.length; k++)
                found[segment.global + k]++;
    }
}

static void element_at(const weft_spec *spec, int64_t flat, int64_t *out)
{
    for (int32_t d = weft_spec_dims(spec) - 1; d >= 0; d--) {
        out[d] = flat % weft_spec_shape(spec)[d];
        flat /= weft_spec_shape(spec)[d];
    }
}

static void check_lost(const weft_spec *spec, const int32_t *ranks, size_t count)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    weft_lost_info info = {.struct_size = sizeof info}, again = info;
    bool lost[RANKS_MOST] = {false};
    int found[ELEMENTS_MOST];
    int32_t of[2 * RANKS_MOST];
    int64_t sum = 0, first[WEFT_MAX_DIMS] = {0};

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        for (size_t k = 0; k < count; k++)
            lost[i] |= weft_mesh_rank_at(mesh, i) == ranks[k];
    HOLDS(weft_spec_lost(spec, count, ranks, of, &info) == WEFT_OK);
    HOLDS(weft_spec_lost(spec, count, ranks, NULL, &again) == WEFT_OK);
    HOLDS(memcmp(&info, &again, sizeof info) == 0);
    HOLDS(info.shards <= count);
    for (size_t i = info.shards; i < count; i++)
        HOLDS(of[i] == -1);
    count_found(spec, of, info.shards, found);
    for (int64_t flat = 0; flat < weft_spec_elements(spec); flat++) {
        int64_t element[WEFT_MAX_DIMS] = {0};
        bool is_lost;
        element_at(spec, flat, element);
        is_lost = oracle_lost(spec, lost, element);
        HOLDS(found[flat] == is_lost);
        if (is_lost && sum++ == 0) memcpy(first, element, sizeof first);
    }
    HOLDS(info.elements == sum && info.bytes == 4 * (uint64_t)sum);
    HOLDS(memcmp(info.first, first, sizeof first) == 0);
}

/* Some ranks of MESH, perhaps all, perhaps repeated or outside. */
static size_t random_lost(const weft_mesh *mesh, int32_t *out)
{
    int32_t size = weft_mesh_size(mesh), of = random_in(&r, 1, 6);
    size_t count = 0;

    for (int32_t i = 0; i < size; i++)
        if (random_in(&r, 1, 6) <= of) out[count++] = weft_mesh_rank_at(mesh, i);
    if (count > 1 && random_chance(&r, 4)) out[count++] = out[random_in(&r, 0, 1)];
    if (random_chance(&r, 8)) out[count++] = 5000;
    for (size_t i = 0; i + 1 < count; i++) { /* in any order */
        size_t other = (size_t)random_in(&r, (int32_t)i, (int32_t)count - 1);
        int32_t kept = out[i];
        out[i] = out[other];
        out[other] = kept;
    }
    return count;
}

TEST(lost_elements_are_those_that_no_rank_holds)
{
    int cases = test_cases(4000), checked = 0, with_loss = 0;

    r = random_begin("test_shard_lost");
    for (int i = 0; i < cases; i++) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape), ranks[2 * RANKS_MOST];
        OWNED(weft_spec) *spec = random_spec(&r, mesh, dims, shape);
        weft_lost_info info = {.struct_size = sizeof info};
        size_t count;

        if (weft_spec_elements(spec) > ELEMENTS_MOST || weft_mesh_size(mesh) > RANKS_MOST) continue;
        count = random_lost(mesh, ranks);
        check_lost(spec, ranks, count);
        ck_assert_int_eq(weft_spec_lost(spec, count, ranks, NULL, &info), WEFT_OK);
        with_loss += info.elements > 0;
        checked++;
    }
    ck_assert_int_gt(checked, cases / 4);
    ck_assert_int_gt(with_loss, checked / 10);
}

TEST(known_losses)
{
    OWNED(weft_spec) *hsdp = spec_of("dp=2,tp=2", "f32[4,6] R,S(1)");
    OWNED(weft_spec) *partial = spec_of("dp=2,tp=2", "bf16[4,6] P,R");
    OWNED(weft_spec) *scalar = spec_of("dp=2,tp=2", "f64[] O(1),R");
    weft_lost_info info = {.struct_size = sizeof info};
    int32_t ranks[3];

    ck_assert_int_eq(weft_spec_lost(hsdp, 1, (const int32_t[]){3}, ranks, &info), WEFT_OK);
    ck_assert(info.elements == 0 && info.bytes == 0 && info.shards == 0 && ranks[0] == -1);
    ck_assert_int_eq(weft_spec_lost(hsdp, 3, (const int32_t[]){3, 0, 1}, ranks, &info), WEFT_OK);
    ck_assert(info.elements == 12 && info.bytes == 48 && info.shards == 1);
    ck_assert(info.first[0] == 0 && info.first[1] == 3);
    ck_assert(ranks[0] == 1 && ranks[1] == -1 && ranks[2] == -1);
    ck_assert_int_eq(weft_spec_lost(partial, 2, (const int32_t[]){2, 3}, ranks, &info), WEFT_OK);
    ck_assert(info.elements == 24 && info.bytes == 48 && info.shards == 1);
    ck_assert_int_eq(weft_spec_lost(scalar, 2, (const int32_t[]){0, 1}, ranks, &info), WEFT_OK);
    ck_assert(info.elements == 0);
    ck_assert_int_eq(weft_spec_lost(scalar, 2, (const int32_t[]){2, 3}, ranks, &info), WEFT_OK);
    ck_assert(info.elements == 1 && info.bytes == 8);
    ck_assert_int_eq(weft_spec_lost(hsdp, 0, NULL, NULL, &info), WEFT_OK);
    ck_assert(info.elements == 0 && info.shards == 0);
}

TEST(arguments_are_checked)
{
    OWNED(weft_spec) *spec = spec_of("2", "f32[4] S(0)");
    weft_lost_info info = {.struct_size = sizeof info, .shards = 7}, empty = {0};
    int32_t lost = -1, rank = 9;

    ck_assert_int_eq(weft_spec_lost(NULL, 1, &lost, &rank, &info), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_spec_lost(spec, 1, NULL, &rank, &info), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_spec_lost(spec, 1, &rank, &rank, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_spec_lost(spec, 1, &rank, &lost, &empty), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_spec_lost(spec, 1, &lost, &rank, &info), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_spec_lost: lost[0] is -1; a rank must not be negative");
    ck_assert(info.shards == 7 && rank == 9); /* nothing is written */
}
