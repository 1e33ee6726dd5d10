/* wrong_regions_cast_rounds.c - a regions_cast that rounds toward zero.
 * Runs: --only kernel/regions_cast
 * Fails: kernel/regions_cast/strided/f32/bf16 */
#include "casts.h"

static weft_status regions_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                                void *const *targets, void *stream)
{
    (void)stream;
    return cast_regions(list, (struct cast){.from = from, .to = to, .convert = convert_cut},
                        sources, targets);
}

void wrong_install(void)
{
    install_casts();
    wrong.kernel.regions_cast = regions_cast;
}
