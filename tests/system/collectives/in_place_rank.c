/* in_place_rank.c - collectives in place on ranks that are processes of any backend: gathers from a
 * rank's own part of the memory that is gathered, and reduce-scatters to it. */
#include "weft/weft.h"

#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status status_ = (call);                                                              \
        if (status_ != WEFT_OK) return status_;                                                    \
    } while (0)

enum { MOST_RANKS = 64, MOST_COUNT = 100000, GAP = 3 };

static weft_context *ctx;
static weft_tensor *tensor; /* this rank's memory, ROOM elements */
static float *host;
static size_t room;

/* The parts of all ranks: COUNTS elements at OFFSETS.  Those of VARIED have different sizes, gaps
 * between them, and the order of the ranks is reversed. */
static uint64_t counts[MOST_RANKS], offsets[MOST_RANKS];

static void set_parts(bool varied, uint64_t count)
{
    int32_t size = weft_size(ctx);
    uint64_t at = varied ? GAP : 0;

    for (int32_t i = 0; i < size; i++) {
        int32_t rank = varied ? size - 1 - i : i;

        counts[rank] = varied ? count * (uint64_t)(rank % 3) : count; /* also 0 */
        offsets[rank] = at;
        at += counts[rank] + (varied ? GAP : 0);
    }
}

/* Element I of what RANK has for the part of PART. */
static float element(int32_t rank, int32_t part, uint64_t i)
{
    return (float)(1000 * rank + 100 * part + (int32_t)(i % 97));
}

static const float untouched = -1;

/* Set the parts of this rank's memory: its own one only, or all. */
static weft_status fill(bool all)
{
    int32_t me = weft_rank(ctx);

    for (size_t i = 0; i < room; i++)
        host[i] = untouched;
    for (int32_t part = 0; part < weft_size(ctx); part++)
        for (uint64_t i = 0; i < counts[part] && (all || part == me); i++)
            host[offsets[part] + i] = element(me, all ? part : 0, i);
    return weft_tensor_from_host(tensor, host, room * sizeof *host, NULL);
}

static weft_status expect(const char *what, int32_t part, uint64_t i, float wanted)
{
    float have = host[offsets[part] + i];

    if (have == wanted) return WEFT_OK;
    return weft_fail(WEFT_ERR_INVALID, "%s in place: element %llu of part %d is %g, not %g", what,
                     (unsigned long long)i, part, (double)have, (double)wanted);
}

static weft_status check_gathered(const char *what)
{
    TRY(weft_tensor_to_host(tensor, host, room * sizeof *host, NULL));
    for (int32_t part = 0; part < weft_size(ctx); part++) {
        for (uint64_t i = 0; i < counts[part]; i++)
            TRY(expect(what, part, i, element(part, 0, i)));
        if (offsets[0] > 0) TRY(expect(what, part, counts[part], untouched)); /* the gap */
    }
    return WEFT_OK;
}

/* Other parts of memory that is reduced in place may have changed. */
static weft_status check_reduced(const char *what)
{
    int32_t me = weft_rank(ctx);

    TRY(weft_tensor_to_host(tensor, host, room * sizeof *host, NULL));
    for (uint64_t i = 0; i < counts[me]; i++) {
        float sum = 0;

        for (int32_t rank = 0; rank < weft_size(ctx); rank++)
            sum += element(rank, me, i);
        TRY(expect(what, me, i, sum));
    }
    return WEFT_OK;
}

static weft_status run(uint64_t count)
{
    float *memory = weft_tensor_memory(tensor);
    weft_comm *world = weft_world(ctx);
    int32_t me = weft_rank(ctx);

    set_parts(false, count);
    TRY(fill(false));
    TRY(weft_all_gather(world, memory + offsets[me], memory, count, WEFT_DTYPE_F32, NULL));
    TRY(check_gathered("all_gather"));
    TRY(fill(true));
    TRY(weft_reduce_scatter(world, memory, memory + offsets[me], count, WEFT_DTYPE_F32,
                            WEFT_REDUCE_SUM, NULL));
    TRY(check_reduced("reduce_scatter"));
    set_parts(true, count);
    TRY(fill(false));
    TRY(weft_all_gather_v(world, memory + offsets[me], memory, counts, offsets, WEFT_DTYPE_F32,
                          NULL));
    TRY(check_gathered("all_gather_v"));
    TRY(fill(true));
    TRY(weft_reduce_scatter_v(world, memory, memory + offsets[me], counts, offsets, WEFT_DTYPE_F32,
                              WEFT_REDUCE_SUM, NULL));
    return check_reduced("reduce_scatter_v");
}

static weft_status test(void)
{
    const uint64_t sizes[] = {1, 13, 4099, MOST_COUNT};
    const int64_t elements =
        (int64_t)weft_size(ctx) * (2 * MOST_COUNT + GAP) + GAP; /* a part has at most 2 x COUNT */
    weft_spec *spec;
    weft_mesh *mesh;

    room = (size_t)elements;
    host = malloc(room * sizeof *host);
    if (host == NULL) return WEFT_ERR_NO_MEMORY;
    TRY(weft_mesh_parse_for("all=*", weft_size(ctx), &mesh));
    TRY(weft_spec_parse_placements(mesh, WEFT_DTYPE_F32, 1, &elements, "R", &spec));
    TRY(weft_tensor_create(ctx, spec, NULL, &tensor));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        TRY(run(sizes[i]));
    weft_tensor_release(&tensor);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    free(host);
    return WEFT_OK;
}

int main(void)
{
    weft_status status = weft_init(NULL, &ctx);

    if (status == WEFT_OK && weft_size(ctx) > MOST_RANKS) return 77;
    if (status == WEFT_OK) status = test();
    if (status != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error());
        return 1;
    }
    weft_context_release(&ctx);
    return 0;
}
