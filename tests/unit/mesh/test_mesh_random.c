/* Random meshes: coordinates, text and derived meshes, compared with a plain array of ranks. */
#include "support/random_layout.h"
#include "support/suite.h"

static struct random r;

static const char *mesh_text(const weft_mesh *mesh)
{
    static char text[16384];

    ck_assert_int_eq(weft_mesh_print(mesh, text, sizeof text, NULL), WEFT_OK);
    return text;
}

#define HOLDS(mesh, claim)                                                                         \
    do {                                                                                           \
        if (!(claim))                                                                              \
            ck_abort_msg("not so: %s\nWEFT_TEST_SEED=%llu\n--mesh %s\n%s", #claim,                 \
                         (unsigned long long)r.seed, mesh_text(mesh), weft_last_error());          \
    } while (0)

static void check_coordinates(const weft_mesh *mesh)
{
    int32_t largest = 0, members = 0;

    for (int32_t place = 0; place < weft_mesh_size(mesh); place++) {
        int32_t want[WEFT_MAX_AXES], coord[WEFT_MAX_AXES], rank, rest = place;
        for (int32_t i = weft_mesh_axes(mesh) - 1; i >= 0; i--) {
            want[i] = rest % weft_mesh_axis_size(mesh, i);
            rest /= weft_mesh_axis_size(mesh, i);
        }
        HOLDS(mesh, weft_mesh_rank(mesh, want, &rank) == WEFT_OK);
        HOLDS(mesh, rank == weft_mesh_rank_at(mesh, place));
        HOLDS(mesh, weft_mesh_coord_of(mesh, rank, coord) == WEFT_OK);
        HOLDS(mesh, memcmp(coord, want, (size_t)weft_mesh_axes(mesh) * sizeof *coord) == 0);
        if (rank > largest) largest = rank;
    }
    for (int32_t rank = -2; rank <= largest + 5; rank++) {
        int32_t coord[WEFT_MAX_AXES];
        members += weft_mesh_coord_of(mesh, rank, coord) == WEFT_OK;
    }
    HOLDS(mesh, members == weft_mesh_size(mesh));
}

static void check_hosts(const weft_mesh *mesh)
{
    bool seen[4096] = {false};
    int32_t hosts = 0;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        int32_t host = weft_mesh_host_of(mesh, weft_mesh_rank_at(mesh, i));
        hosts += !seen[host];
        seen[host] = true;
    }
    HOLDS(mesh, weft_mesh_hosts(mesh) == hosts);
}

static void check_text(const weft_mesh *mesh)
{
    OWNED(weft_mesh) *again = NULL;

    HOLDS(mesh, weft_mesh_parse(mesh_text(mesh), &again) == WEFT_OK);
    HOLDS(mesh, again == mesh);
}

/* A mesh that is built from the attributes of MESH equals MESH. */
static void check_canonical(const weft_mesh *mesh)
{
    int32_t sizes[WEFT_MAX_AXES], ranks[2048];
    const char *names[WEFT_MAX_AXES];
    weft_mesh_options options = {.struct_size = sizeof options, .ranks = ranks};
    OWNED(weft_mesh) *again = NULL;

    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++) {
        sizes[i] = weft_mesh_axis_size(mesh, i);
        names[i] = weft_mesh_axis_name(mesh, i);
    }
    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        ranks[i] = weft_mesh_rank_at(mesh, i);
    if (names[0][0] != '\0') options.names = names;
    options.devices_per_host = weft_mesh_devices_per_host(mesh);
    HOLDS(mesh, weft_mesh_create(weft_mesh_axes(mesh), sizes, &options, &again) == WEFT_OK);
    HOLDS(mesh, again == mesh);
}

static void check_mesh(const weft_mesh *mesh)
{
    check_coordinates(mesh);
    check_hosts(mesh);
    check_text(mesh);
    check_canonical(mesh);
}

/* ---- derived meshes ---- */

/* Some of MESH's axes in any order, as text. */
static int32_t random_axes(const weft_mesh *mesh, int32_t *axes, char *text)
{
    int32_t count = random_in(&r, 1, weft_mesh_axes(mesh));

    random_order(&r, weft_mesh_axes(mesh), axes);
    text[0] = '\0';
    for (int32_t i = 0; i < count; i++) {
        const char *name = weft_mesh_axis_name(mesh, axes[i]);
        char digit[2] = {(char)('0' + axes[i]), '\0'};
        if (i > 0) strcat(text, ",");
        strcat(text, name[0] != '\0' && random_chance(&r, 2) ? name : digit);
    }
    return count;
}

static weft_mesh *checked_slice(const weft_mesh *mesh)
{
    int32_t axes[WEFT_MAX_AXES], coord[WEFT_MAX_AXES], count, rank;
    char text[256];
    weft_mesh *slice;

    count = random_axes(mesh, axes, text);
    rank = weft_mesh_rank_at(mesh, random_in(&r, 0, weft_mesh_size(mesh) - 1));
    HOLDS(mesh, weft_mesh_slice(mesh, text, rank, &slice) == WEFT_OK);
    HOLDS(mesh, weft_mesh_axes(slice) == count);
    HOLDS(mesh, weft_mesh_coord_of(mesh, rank, coord) == WEFT_OK);
    for (int32_t place = 0; place < weft_mesh_size(slice); place++) {
        int32_t within[WEFT_MAX_AXES], want;
        wf_mesh_coord_at(slice, place, within);
        for (int32_t i = 0; i < count; i++)
            coord[axes[i]] = within[i];
        HOLDS(mesh, weft_mesh_rank(mesh, coord, &want) == WEFT_OK);
        HOLDS(mesh, weft_mesh_rank_at(slice, place) == want);
    }
    return slice;
}

static weft_mesh *checked_flat(const weft_mesh *mesh)
{
    int32_t axes[WEFT_MAX_AXES], count, at = 0;
    bool listed[WEFT_MAX_AXES] = {false}, named = weft_mesh_axis_name(mesh, 0)[0] != '\0';
    static int fresh;
    char text[256], name[16];
    weft_mesh *flat;

    count = random_axes(mesh, axes, text);
    snprintf(name, sizeof name, "f%d", fresh++);
    HOLDS(mesh, weft_mesh_flatten(mesh, text, named ? name : NULL, &flat) == WEFT_OK);
    HOLDS(mesh, weft_mesh_axes(flat) == weft_mesh_axes(mesh) - count + 1);
    for (int32_t i = 0; i < count; i++)
        listed[axes[i]] = true;
    for (int32_t place = 0; place < weft_mesh_size(mesh); place++) {
        int32_t coord[WEFT_MAX_AXES], want[WEFT_MAX_AXES], rank = weft_mesh_rank_at(mesh, place);
        int32_t joint = 0;
        wf_mesh_coord_at(mesh, place, coord);
        for (int32_t i = 0; i < count; i++)
            joint = joint * weft_mesh_axis_size(mesh, axes[i]) + coord[axes[i]];
        at = 0;
        for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
            if (i == axes[0])
                want[at++] = joint;
            else if (!listed[i])
                want[at++] = coord[i];
        HOLDS(mesh, weft_mesh_coord_of(flat, rank, coord) == WEFT_OK);
        HOLDS(mesh, memcmp(coord, want, (size_t)at * sizeof *want) == 0);
    }
    return flat;
}

/* Split one axis in any way that its size allows. */
static weft_mesh *checked_unflat(const weft_mesh *mesh)
{
    static int fresh;
    char buffers[3][16];
    const char *names[3];
    int32_t axis = random_in(&r, 0, weft_mesh_axes(mesh) - 1), sizes[3];
    int32_t rest = weft_mesh_axis_size(mesh, axis);
    bool named = weft_mesh_axis_name(mesh, 0)[0] != '\0';
    weft_mesh *out;

    for (int32_t i = 0; i < 3; i++) {
        snprintf(buffers[i], sizeof buffers[i], "u%d", fresh++);
        names[i] = buffers[i];
    }
    for (int32_t i = 0; i < 2; i++) {
        do
            sizes[i] = random_in(&r, 1, rest);
        while (rest % sizes[i] != 0);
        rest /= sizes[i];
    }
    sizes[2] = rest;
    HOLDS(mesh, weft_mesh_unflatten(mesh, axis, 3, sizes, named ? names : NULL, &out) == WEFT_OK);
    HOLDS(mesh, weft_mesh_axes(out) == weft_mesh_axes(mesh) + 2);
    for (int32_t place = 0; place < weft_mesh_size(mesh); place++)
        HOLDS(mesh, weft_mesh_rank_at(out, place) == weft_mesh_rank_at(mesh, place));
    return out;
}

/* The concatenation of two slices of different axes through one rank is the slice of all the
 * axes. */
static void check_concatenation(const weft_mesh *mesh)
{
    int32_t order[WEFT_MAX_AXES], axes = weft_mesh_axes(mesh), count, first;
    int32_t rank = weft_mesh_rank_at(mesh, random_in(&r, 0, weft_mesh_size(mesh) - 1));
    weft_mesh *a, *b, *both, *together;

    if (axes < 2) return;
    random_order(&r, axes, order);
    count = random_in(&r, 2, axes);
    first = random_in(&r, 1, count - 1);
    HOLDS(mesh, wf_mesh_slice(mesh, first, order, rank, &a) == WEFT_OK);
    HOLDS(mesh, wf_mesh_slice(mesh, count - first, order + first, rank, &b) == WEFT_OK);
    HOLDS(mesh, wf_mesh_slice(mesh, count, order, rank, &both) == WEFT_OK);
    HOLDS(mesh, weft_mesh_concatenate(mesh, a, b, &together) == WEFT_OK);
    HOLDS(mesh, together == both);
    weft_mesh_release(&together);
    if (mesh->ranks == NULL) {
        HOLDS(mesh, weft_mesh_concatenate(NULL, a, b, &together) == WEFT_OK);
        HOLDS(mesh, together == both);
        weft_mesh_release(&together);
    }
    weft_mesh_release(&a);
    weft_mesh_release(&b);
    weft_mesh_release(&both);
}

TEST(meshes_and_what_is_made_of_them_agree_with_plain_arrays)
{
    r = random_begin("meshes_and_what_is_made_of_them_agree_with_plain_arrays");
    for (int cases = test_cases(2000); cases > 0; cases--) {
        weft_mesh *mesh = random_mesh(&r);
        check_mesh(mesh);
        for (int steps = random_in(&r, 1, 4); steps > 0; steps--) {
            weft_mesh *next;
            int32_t kind = random_in(&r, 0, 2);
            if (kind == 2 &&
                (weft_mesh_axes(mesh) + 2 > WEFT_MAX_AXES || strstr(mesh_text(mesh), "u1") != NULL))
                kind = 0;
            next = kind == 0   ? checked_slice(mesh)
                   : kind == 1 ? checked_flat(mesh)
                               : checked_unflat(mesh);
            check_concatenation(mesh);
            weft_mesh_release(&mesh);
            mesh = next;
            check_mesh(mesh);
        }
        weft_mesh_release(&mesh);
    }
    ck_assert_int_eq(wf_mem_live(), 0);
}
