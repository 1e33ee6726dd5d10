/* fake.h - a kit of one rank, over a device that is the host, for tests of the kit's parts. */
#ifndef WEFT_TESTS_CONFORM_FAKE_H
#define WEFT_TESTS_CONFORM_FAKE_H

#include "frame/progress.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

struct fake {
    struct kit kit;
    struct kit_options options;
    struct kit_progress *progress;
    weft_plugin plugin;
};

static weft_status fake_allocate(void *device, uint64_t bytes, uint32_t kind, void **pointer)
{
    (void)device;
    (void)kind;
    *pointer = aligned_alloc(64, (bytes + 64) / 64 * 64);
    return *pointer != NULL ? WEFT_OK : WEFT_ERR_NO_MEMORY;
}

static weft_status fake_free(void *device, void *pointer)
{
    (void)device;
    free(pointer);
    return WEFT_OK;
}

static weft_status fake_copy(void *device, void *target, const void *source, uint64_t bytes,
                             void *stream)
{
    (void)device;
    (void)stream;
    memcpy(target, source, bytes);
    return WEFT_OK;
}

static weft_status fake_wait(void *device, void *stream, int64_t timeout_ns)
{
    (void)device;
    (void)stream;
    (void)timeout_ns;
    return WEFT_OK;
}

static const weft_device_table fake_device = {.struct_size = sizeof fake_device,
                                              .allocate = fake_allocate,
                                              .free = fake_free,
                                              .copy = fake_copy,
                                              .stream_wait = fake_wait};

/* FEATURES: with or without HOST_MEMORY, for both ways to access memory. */
static inline struct fake *fake_make(uint64_t features)
{
    struct fake *fake = calloc(1, sizeof *fake);

    ck_assert_ptr_nonnull(fake);
    fake->progress = calloc(1, sizeof *fake->progress);
    ck_assert_ptr_nonnull(fake->progress);
    fake->options =
        (struct kit_options){.ranks = 1, .seed = 1, .timeout_ns = KIT_SECOND, .patience = 1};
    fake->plugin = (weft_plugin){.struct_size = sizeof fake->plugin, .device = &fake_device};
    fake->kit = (struct kit){.options = &fake->options,
                             .progress = fake->progress,
                             .size = 1,
                             .plugin = &fake->plugin,
                             .info = {.features = features},
                             .level_name = "load",
                             .case_failed = true};
    kit_groups_make(&fake->kit);
    return fake;
}

static inline void fake_free_all(struct fake *fake)
{
    kit_blocks_free(&fake->kit);
    free(fake->progress);
    free(fake);
}

/* The text of the first failure, or NULL. */
static inline const char *fake_failure(const struct fake *fake)
{
    return atomic_load(&fake->progress->failure_count) > 0 ? fake->progress->failures[0].text
                                                           : NULL;
}

#endif
