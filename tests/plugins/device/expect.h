/* expect.h - a claim that ends a rank if it does not hold, and specs on the mesh of rank.h. */
#ifndef WEFT_TESTS_DEVICE_EXPECT_H
#define WEFT_TESTS_DEVICE_EXPECT_H

#include "rank.h"

#include <stdio.h>
#include <stdlib.h>

static inline void expect(bool claim, const char *what)
{
    if (claim) return;
    fprintf(stderr, "rank %d: %s\n", weft_rank(context), what);
    exit(1);
}

static inline weft_spec *parse(const char *text)
{
    weft_spec *spec = NULL;

    must(weft_spec_parse(mesh, text, &spec), text);
    return spec;
}

#endif
