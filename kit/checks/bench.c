/* bench.c - source buffers and a target for one kernel, and what the target shall get. */
#include "bench.h"

bool kit_bench_make(struct kit_bench *bench, uint64_t source_elements, uint64_t target_elements)
{
    struct kit *kit = bench->kit;
    uint64_t bytes = wf_dtype_bytes(bench->from);

    for (uint32_t i = 0; i < bench->size; i++) {
        struct kit_image *image = &bench->sources[i];
        if (!kit_image_make(kit, image, source_elements * bytes, 0, KIT_DEVICE)) return false;
        for (uint64_t n = 0; n < source_elements; n++)
            bench->element(bench, i, n, image->before + image->start + n * bytes);
        if (!kit_image_upload(kit, image)) return false;
        bench->source_pointers[i] = kit_image_at(image, 0);
    }
    if (!kit_image_make(kit, &bench->target, target_elements * wf_dtype_bytes(bench->to), 0,
                        KIT_DEVICE) ||
        !kit_image_upload(kit, &bench->target))
        return false;
    bench->target_pointers[0] = kit_image_at(&bench->target, 0);
    return true;
}

struct walk {
    struct kit_bench *bench;
    uint32_t source;
};

static void want_element(void *self, uint64_t source_index, uint64_t target_index)
{
    const struct walk *walk = self;
    struct kit_bench *bench = walk->bench;
    struct kit_image *target = &bench->target;

    bench->slack[target_index] =
        bench->want(bench, walk->source, source_index,
                    target->want + target->start + target_index * wf_dtype_bytes(bench->to));
}

bool kit_bench_make_array(struct kit_bench *bench, uint64_t count)
{
    struct walk walk = {bench, 0};

    if (!kit_bench_make(bench, count, count)) return false;
    for (uint64_t i = 0; i < count; i++)
        want_element(&walk, i, i);
    return true;
}

bool kit_bench_make_regions(struct kit_bench *bench, const struct kit_region_list *list)
{
    const weft_kernel_table *table = bench->kit->plugin->kernel;

    if (!kit_bench_make(bench, list->source_elements, list->target_elements)) return false;
    for (uint32_t i = 0; i < list->count; i++) {
        struct walk walk = {bench, list->regions[i].source};
        kit_region_walk(&list->regions[i], want_element, &walk);
    }
    return kit_ok(bench->kit, "regions_create",
                  table->regions_create(bench->kit->device, (uint32_t)wf_dtype_bytes(bench->from),
                                        list->count, list->regions, &bench->regions));
}

void kit_bench_check(struct kit_bench *bench)
{
    struct kit_compare compare = {
        .dtype = bench->to, .by_value = bench->by_value, .slack = bench->slack};

    kit_image_check(bench->kit, &bench->target, "target", &compare);
    for (uint32_t i = 0; i < bench->size; i++)
        kit_image_check(bench->kit, &bench->sources[i], "a source",
                        &(struct kit_compare){.dtype = bench->from});
}

void kit_bench_free(struct kit_bench *bench)
{
    if (bench->regions != NULL) bench->kit->plugin->kernel->regions_destroy(bench->regions);
    for (uint32_t i = 0; i < bench->size; i++)
        kit_image_free(bench->kit, &bench->sources[i]);
    kit_image_free(bench->kit, &bench->target);
}

void kit_bench_cast(struct kit_bench *b, const char *name, uint64_t count)
{
    const weft_kernel_table *table = b->kit->plugin->kernel;

    if (!kit_begin(b->kit, "%s/%s/%s", name, wf_dtype_name(b->from), wf_dtype_name(b->to))) return;
    if (kit_bench_make_array(b, count) &&
        kit_done_if_supported(b->kit, "cast",
                              table->cast(b->kit->device, b->from, b->to, count,
                                          b->source_pointers[0], b->target_pointers[0], NULL)))
        kit_bench_check(b);
    kit_bench_free(b);
    kit_end(b->kit);
}
