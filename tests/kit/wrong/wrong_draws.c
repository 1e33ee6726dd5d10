/* wrong_draws.c - a draw succeeds and sets nothing.
 * Runs: --only kernel/regions_draw
 * Fails: kernel/regions_draw/row/f32/uniform */
#include "wrong.h"

static weft_status regions_draw(void *list, const weft_draw *draw, void *const *targets,
                                void *stream)
{
    (void)list;
    (void)draw;
    (void)targets;
    (void)stream;
    return WEFT_OK;
}

INSTALL(wrong.kernel.regions_draw = regions_draw)
