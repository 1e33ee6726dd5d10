/* alone.h - symmetric memory of one rank, on the fake plugin. */
#ifndef WEFT_TEST_SYMM_ALONE_H
#define WEFT_TEST_SYMM_ALONE_H

#include "symm/symm.h"
#include "support/fake_symm.h"
#include "support/fake_world.h"
#include "support/suite.h"

static weft_context *context;
static weft_symm *symm;

static inline void begin(void)
{
    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_OK);
}

static inline void end(void)
{
    weft_symm_release(&symm);
    weft_context_release(&context);
}

#endif
