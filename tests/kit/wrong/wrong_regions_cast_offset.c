/* wrong_regions_cast_offset.c - a regions_cast that writes a region one element too late.
 * Runs: --only kernel/regions_cast
 * Fails: kernel/regions_cast/many/u8/i16 */
#include "casts.h"

static weft_status regions_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                                void *const *targets, void *stream)
{
    (void)stream;
    return cast_regions(list, (struct cast){.from = from, .to = to, .shift = 1}, sources, targets);
}

void wrong_install(void)
{
    install_casts();
    wrong.kernel.regions_cast = regions_cast;
}
