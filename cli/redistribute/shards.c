/* shards.c - see shards.h. */
#include "redistribute/shards.h"

#include "base/base.h"
#include "redistribute/npy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { ALIGNMENT = 64 };

static size_t shard_bytes(const weft_spec *spec, int32_t place)
{
    return (size_t)weft_spec_shard_bytes(spec, weft_mesh_rank_at(weft_spec_mesh(spec), place));
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

weft_status shards_make(const weft_spec *spec, struct shards *out)
{
    int32_t size = weft_mesh_size(weft_spec_mesh(spec));
    struct shards shards = {.at = wf_alloc((size_t)size * sizeof(void *)), .bytes = ALIGNMENT};
    size_t at = 0;

    if (shards.at == NULL) return wf_fail_memory((size_t)size * sizeof(void *));
    for (int32_t i = 0; i < size; i++)
        shards.bytes += aligned(shard_bytes(spec, i));
    shards.memory = mmap(NULL, shards.bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shards.memory == MAP_FAILED) {
        wf_free(shards.at);
        return wf_fail_memory(shards.bytes);
    }
    for (int32_t i = 0; i < size; i++) {
        shards.at[i] = (char *)shards.memory + at;
        at += aligned(shard_bytes(spec, i));
    }
    *out = shards;
    return WEFT_OK;
}

void shards_free(struct shards *shards)
{
    if (shards->memory != NULL) munmap(shards->memory, shards->bytes);
    wf_free(shards->at);
    *shards = (struct shards){0};
}

int32_t shards_place(const weft_spec *spec, int32_t rank)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES], place = 0;

    if (weft_mesh_coord_of(mesh, rank, coord) != WEFT_OK) return -1;
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        place = place * weft_mesh_axis_size(mesh, a) + coord[a];
    return place;
}

weft_status shards_dump(const weft_spec *spec, const struct shards *shards, const char *directory)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    char path[4096];

    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return wf_fail(WEFT_ERR_SYSTEM, "%s: %s", directory, kit_error_text(errno));
    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        weft_shard shard;
        weft_spec_shard(spec, rank, &shard);
        snprintf(path, sizeof path, "%s/rank-%d.npy", directory, rank);
        WF_TRY(npy_write(path, weft_spec_dtype(spec), shard.dims, shard.shape, shards->at[i]));
    }
    return WEFT_OK;
}
