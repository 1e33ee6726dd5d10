/* host.c - what weft needs of a plugin without kernels: copies between device and host
 * memory of single elements, in place of regions and fills.
 *
 * The cases run on plugins without a kernel table, or without regions_reduce in it. */
#include "cases.h"

#include "checks/collective.h"
#include "checks/regions.h"

#include <string.h>

#define SOURCES 3

/* A list of regions, copied through host memory. */
struct trip {
    struct kit *kit;
    uint64_t element; /* bytes */
    void *stream;
    const weft_region *region;
    struct kit_image sources[SOURCES], staging[SOURCES], target;
    weft_status status; /* of the first copy that failed to start */
};

static weft_status copy(struct trip *trip, void *target, const void *source, uint64_t bytes)
{
    return trip->kit->plugin->device->copy(trip->kit->device, target, source, bytes, trip->stream);
}

static bool wait(struct trip *trip)
{
    return kit_ok(trip->kit, "copies", kit_finish(trip->kit, NULL, trip->stream, 10 * KIT_SECOND));
}

static bool make(struct trip *trip, const struct kit_region_list *list)
{
    struct kit *kit = trip->kit;
    uint64_t bytes = list->source_elements * trip->element;

    for (uint32_t s = 0; s < SOURCES; s++) {
        struct kit_image *source = &trip->sources[s];

        if (!kit_image_make(kit, source, bytes, 0, KIT_DEVICE) ||
            !kit_image_make(kit, &trip->staging[s], bytes, 0, KIT_PINNED) ||
            !kit_image_upload(kit, &trip->staging[s]))
            return false;
        for (uint64_t i = 0; i < bytes; i++)
            kit_pattern_bits(kit_case_seed(kit), WEFT_DTYPE_U8, (int32_t)s, i,
                             source->before + source->start + i);
        if (!kit_image_upload(kit, source)) return false;
    }
    return kit_image_make(kit, &trip->target, list->target_elements * trip->element, 0,
                          KIT_DEVICE) &&
           kit_image_upload(kit, &trip->target);
}

static void drop(struct trip *trip)
{
    for (uint32_t s = 0; s < SOURCES; s++) {
        kit_image_free(trip->kit, &trip->sources[s]);
        kit_image_free(trip->kit, &trip->staging[s]);
    }
    kit_image_free(trip->kit, &trip->target);
}

static bool fetch(struct trip *trip)
{
    for (uint32_t s = 0; s < SOURCES; s++)
        if (!kit_ok(trip->kit, "copy to host memory",
                    copy(trip, kit_image_at(&trip->staging[s], 0),
                         kit_image_at(&trip->sources[s], 0), trip->sources[s].bytes)))
            return false;
    return wait(trip);
}

static void store_element(void *self, uint64_t source_index, uint64_t target_index)
{
    struct trip *trip = self;
    const struct kit_image *source = &trip->sources[trip->region->source];
    const struct kit_image *staging = &trip->staging[trip->region->source];
    uint64_t from = source_index * trip->element, to = target_index * trip->element;

    memcpy(trip->target.want + trip->target.start + to, source->before + source->start + from,
           trip->element);
    if (trip->status == WEFT_OK)
        trip->status =
            copy(trip, kit_image_at(&trip->target, to), kit_image_at(staging, from), trip->element);
}

static void copy_list(struct kit *kit, const struct kit_region_list *list, uint64_t element)
{
    struct trip trip = {.kit = kit, .element = element};
    struct kit_compare exactly = {.dtype = WEFT_DTYPE_U8};

    if (!kit_begin(kit, "copies/%s/element=%u", list->name, (unsigned)element)) return;
    if (kit_stream_make(kit, &trip.stream)) {
        if (make(&trip, list) && fetch(&trip)) {
            for (uint32_t i = 0; i < list->count; i++) {
                trip.region = &list->regions[i];
                kit_region_walk(trip.region, store_element, &trip);
            }
            if (kit_ok(kit, "copy of an element", trip.status) && wait(&trip))
                kit_image_check(kit, &trip.target, "target", &exactly);
        }
        kit_stream_drop(kit, trip.stream);
    }
    drop(&trip);
    kit_end(kit);
}

/* One element from the host; then copies of what is there, each behind the other. */
static void fill(struct kit *kit, uint64_t count)
{
    struct trip trip = {.kit = kit, .element = sizeof(double)};
    struct kit_compare exactly = {.dtype = WEFT_DTYPE_F64};
    uint64_t bytes = count * sizeof(double), done = sizeof(double);
    const double value = 1.5;
    weft_status status;

    if (!kit_begin(kit, "fill/count=%u", (unsigned)count)) return;
    if (kit_image_make(kit, &trip.target, bytes, 0, KIT_DEVICE) &&
        kit_image_upload(kit, &trip.target)) {
        for (uint64_t i = 0; i < bytes; i += sizeof value)
            memcpy(trip.target.want + trip.target.start + i, &value, sizeof value);
        status = copy(&trip, kit_image_at(&trip.target, 0), &value, done);
        for (uint64_t more; done < bytes && status == WEFT_OK; done += more) {
            more = bytes - done < done ? bytes - done : done;
            status =
                copy(&trip, kit_image_at(&trip.target, done), kit_image_at(&trip.target, 0), more);
        }
        if (kit_ok(kit, "copy within device memory", status) && wait(&trip))
            kit_image_check(kit, &trip.target, "target", &exactly);
    }
    kit_image_free(kit, &trip.target);
    kit_end(kit);
}

void kit_host_copies(struct kit *kit)
{
    struct kit_region_list list;

    for (uint32_t which = 0; kit_region_list(which, SOURCES, &list); which++)
        for (uint64_t element = 1; element <= 16; element *= 2)
            copy_list(kit, &list, element);
}

void kit_host_fills(struct kit *kit)
{
    fill(kit, 1);
    fill(kit, 1021);
}

bool kit_when_host_works(struct kit *kit)
{
    const weft_kernel_table *kernel = kit->plugin->kernel;

    if (!kit_when_comm(kit)) return false;
    if (kernel != NULL && kernel->regions_reduce != NULL) {
        kit_skip(kit, "the plugin has the kernels that redistributions need");
        return false;
    }
    kit_skip(kit, kernel == NULL
                      ? "no kernel table: weft does the local work of redistributions on the host"
                      : "no regions_reduce: weft reduces in redistributions on the host");
    return true;
}
