/* item.h - a tensor that torch.save wrote: a zip archive, not compressed, inside a file. */
#ifndef WEFT_FILE_ITEM_H
#define WEFT_FILE_ITEM_H

#include "checkpoint/file.h"

/* Where an item is, and what it contains. */
struct wf_item {
    uint32_t file;
    uint64_t at, bytes; /* in the file */
    /* found by wf_item_read: */
    uint64_t elements; /* offset in the file of the first element */
    const char *dtype; /* torch's name; a constant text */
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS]; /* in elements */
};

/* Find the elements of ITEM, and check that they lie within it.  WHAT names it in errors. */
weft_status wf_item_read(struct wf_inputs *inputs, const char *what,
                         struct wf_item *item) WF_NODISCARD;

#endif
