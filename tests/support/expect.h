/* expect.h - assertions for ranks that are threads.  Check's assertions work in the main thread
 * only, so a rank returns its failure. */
#ifndef WEFT_TESTS_EXPECT_H
#define WEFT_TESTS_EXPECT_H

#include "base/base.h"
#include "weft/status.h"

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return wf_fail(WEFT_ERR_INTERNAL, "line %d: %s: %s", __LINE__, #condition,             \
                           weft_last_error());                                                     \
    } while (0)

#endif
