/* own_image.h - the segments of the test program itself. */
#ifndef WEFT_TESTS_OWN_IMAGE_H
#define WEFT_TESTS_OWN_IMAGE_H

#include "plugin/plugin.h"

#include <check.h>
#include <dlfcn.h>

static inline struct wf_image own_image(void)
{
    void *handle = dlopen(NULL, RTLD_NOW);
    struct wf_image image;

    ck_assert_ptr_nonnull(handle);
    ck_assert(wf_image_of_handle(handle, &image));
    dlclose(handle);
    return image;
}

#endif
