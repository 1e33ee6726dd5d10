/* work.c - see work.h. */
#include "redistribute/work.h"

#include "common/progress.h"

uint64_t work_elements(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    uint64_t bytes = 0;

    for (int32_t p = 0; p < weft_mesh_size(mesh); p++)
        bytes += weft_spec_shard_bytes(spec, weft_mesh_rank_at(mesh, p));
    return bytes / weft_dtype_bytes(weft_spec_dtype(spec));
}

static void show(const struct work *work)
{
    cli_progress_of(work->done, work->total, "%s %d rank%s", work->doing, work->ranks,
                    WF_PLURAL(work->ranks));
}

void work_begin(struct work *work, const char *doing, int32_t ranks, uint64_t weight)
{
    work->doing = doing;
    work->ranks = ranks;
    work->weight = weight;
    show(work);
}

void work_add(void *self, uint64_t elements)
{
    struct work *work = self;

    work->done += elements * work->weight;
    show(work);
}
