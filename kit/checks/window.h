/* symm.h - windows for the cases of level symm. */
#ifndef WEFT_KIT_SYMM_H
#define WEFT_KIT_SYMM_H

#include "frame/kit.h"

struct kit_window {
    struct kit *kit;
    const weft_symm_table *table;
    const struct kit_group *group;
    void *comm, *window, *local;
    uint64_t bytes;
};

/* A window over GROUP's usual communicator.  False: the case has failed.  Collective. */
bool kit_window_make(struct kit *kit, struct kit_group *group, uint64_t bytes, uint32_t signals,
                     struct kit_window *out);
void kit_window_free(struct kit_window *w);
/* Wait for the work on STREAM; WHAT names it in an error. */
bool kit_window_done(struct kit_window *w, const char *what, weft_status status, void *stream);
/* Read BYTES of this rank's window at OFFSET. */
bool kit_window_read(struct kit_window *w, uint64_t offset, void *out, uint64_t bytes);

#endif
