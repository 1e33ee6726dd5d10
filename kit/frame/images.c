/* images.c - buffers with guard bytes, in any memory of the plugin.
 *
 * A host copy has the expected content of the whole buffer with guards and gaps, so that one
 * comparison finds wrong results and stray writes. */
#include "kit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64u

/* ---- memory, kept from case to case ---- */

static void *take_block(struct kit *kit, uint64_t bytes, enum kit_memory kind)
{
    struct kit_block *vacant = NULL;
    uint32_t abi_kind = kind == KIT_PINNED ? WEFT_MEMORY_PINNED : WEFT_MEMORY_DEVICE;
    void *memory = NULL;

    for (size_t i = 0; i < WF_COUNT(kit->blocks); i++) {
        struct kit_block *block = &kit->blocks[i];
        if (block->memory == NULL) vacant = block;
        if (block->memory == NULL || block->used || block->kind != kind || block->bytes < bytes)
            continue;
        block->used = true;
        return block->memory;
    }
    if (bytes < 65536) bytes = 65536;
    if (kind == KIT_PLAIN)
        memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    else if (!kit_ok(kit, "allocate",
                     kit->plugin->device->allocate(kit->device, bytes, abi_kind, &memory)))
        return NULL;
    if (memory == NULL) kit_fail(kit, "allocate: WEFT_OK without a pointer");
    if (memory != NULL && vacant != NULL)
        *vacant = (struct kit_block){.memory = memory, .bytes = bytes, .kind = kind, .used = true};
    return memory;
}

static void free_block(struct kit *kit, void *memory, enum kit_memory kind)
{
    if (kind == KIT_PLAIN)
        free(memory);
    else
        kit_ok(kit, "free", kit->plugin->device->free(kit->device, memory));
}

static void return_block(struct kit *kit, void *memory, enum kit_memory kind)
{
    for (size_t i = 0; i < WF_COUNT(kit->blocks); i++)
        if (kit->blocks[i].memory == memory) {
            kit->blocks[i].used = false;
            return;
        }
    free_block(kit, memory, kind);
}

void kit_blocks_free(struct kit *kit)
{
    for (size_t i = 0; i < WF_COUNT(kit->blocks); i++) {
        if (kit->blocks[i].memory == NULL) continue;
        free_block(kit, kit->blocks[i].memory, kit->blocks[i].kind);
        kit->blocks[i] = (struct kit_block){0};
    }
}

/* ---- images ---- */

bool kit_image_make(struct kit *kit, struct kit_image *image, uint64_t bytes, uint32_t misaligned,
                    enum kit_memory kind)
{
    uint64_t start = GUARD_BYTES + misaligned;
    uint64_t total = start + bytes + GUARD_BYTES;
    uint8_t *copies = malloc(3 * total);

    *image = (struct kit_image){.kind = kind, .bytes = bytes, .start = start, .total = total};
    if (copies == NULL) {
        kit_fail(kit, "the kit is out of memory");
        return false;
    }
    image->memory = take_block(kit, total, kind);
    if (image->memory == NULL) {
        free(copies);
        return false;
    }
    image->before = copies;
    image->want = copies + total;
    image->got = copies + 2 * total;
    for (uint64_t i = 0; i < total; i++)
        copies[i] = (uint8_t)(0xa5 ^ (i * 29));
    return true;
}

void kit_image_free(struct kit *kit, struct kit_image *image)
{
    if (image->memory == NULL) return;
    return_block(kit, image->memory, image->kind);
    free(image->before);
    *image = (struct kit_image){0};
}

void *kit_image_at(const struct kit_image *image, uint64_t offset)
{
    return (uint8_t *)image->memory + image->start + offset;
}

bool kit_copy(struct kit *kit, void *target, const void *source, uint64_t bytes)
{
    const weft_device_table *device = kit->plugin->device;

    if ((kit->info.features & WEFT_FEATURE_HOST_MEMORY) != 0) {
        memcpy(target, source, bytes);
        return true;
    }
    return kit_ok(kit, "copy", device->copy(kit->device, target, source, bytes, NULL)) &&
           kit_stream_wait(kit, NULL);
}

bool kit_image_upload(struct kit *kit, struct kit_image *image)
{
    memcpy(image->want, image->before, image->total);
    return kit_copy(kit, image->memory, image->before, image->total);
}

bool kit_image_download(struct kit *kit, struct kit_image *image)
{
    return kit_copy(kit, image->got, image->memory, image->total);
}

bool kit_images_make(struct kit *kit, struct kit_image *a, struct kit_image *b, uint64_t bytes)
{
    return kit_image_make(kit, a, bytes, 0, KIT_DEVICE) &&
           kit_image_make(kit, b, bytes, 0, KIT_DEVICE) && kit_image_upload(kit, a) &&
           kit_image_upload(kit, b);
}

void kit_images_free(struct kit *kit, struct kit_image *a, struct kit_image *b)
{
    kit_image_free(kit, a);
    kit_image_free(kit, b);
}

/* ---- comparing ---- */

static bool close_enough(double got, double want, double slack)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want) || isinf(got)) return got == want;
    return fabs(got - want) <= slack;
}

static bool same_element(const struct kit_compare *compare, uint64_t index, const uint8_t *got,
                         const uint8_t *want)
{
    size_t size = wf_dtype_bytes(compare->dtype);
    double slack = compare->slack != NULL ? compare->slack[index] : 0;
    struct wf_number a, b;

    if (memcmp(got, want, size) == 0) return true;
    if (!compare->by_value || wf_dtype_epsilon(compare->dtype) == 0) return false;
    a = wf_number_load(compare->dtype, got);
    b = wf_number_load(compare->dtype, want);
    return close_enough(a.re, b.re, slack) && close_enough(a.im, b.im, slack);
}

static void fail_guard(struct kit *kit, const struct kit_image *image, const char *name,
                       uint64_t at)
{
    if (at < image->start)
        kit_fail(kit,
                 "%s: byte %" PRIu64
                 " before its start was overwritten: expected 0x%02x, got 0x%02x",
                 name, image->start - at, image->want[at], image->got[at]);
    else
        kit_fail(kit,
                 "%s: byte %" PRIu64 " past its end was overwritten: expected 0x%02x, got 0x%02x",
                 name, at - image->start - image->bytes + 1, image->want[at], image->got[at]);
}

static void fail_element(struct kit *kit, const struct kit_image *image, const char *name,
                         uint32_t dtype, uint64_t index)
{
    uint64_t at = image->start + index * wf_dtype_bytes(dtype);
    char want[128], got[128];

    wf_number_print(dtype, image->want + at, want, sizeof want);
    wf_number_print(dtype, image->got + at, got, sizeof got);
    kit_fail(kit, "%s, element %" PRIu64 ": expected %s, got %s", name, index, want, got);
}

void kit_image_check(struct kit *kit, struct kit_image *image, const char *name,
                     const struct kit_compare *compare)
{
    uint64_t size = wf_dtype_bytes(compare->dtype);

    if (!kit_image_download(kit, image)) return;
    if (memcmp(image->got, image->want, image->total) == 0) return;
    for (uint64_t i = 0; i < image->bytes / size; i++) {
        uint64_t at = image->start + i * size;
        if (same_element(compare, i, image->got + at, image->want + at)) continue;
        fail_element(kit, image, name, compare->dtype, i);
        return;
    }
    for (uint64_t i = 0; i < image->total; i++) {
        bool payload = i >= image->start && i < image->start + image->bytes;
        if (payload || image->got[i] == image->want[i]) continue;
        fail_guard(kit, image, name, i);
        return;
    }
}
