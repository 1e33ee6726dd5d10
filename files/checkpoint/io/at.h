/* at.h - bytes at a place of an open file. */
#ifndef WEFT_FILE_AT_H
#define WEFT_FILE_AT_H

#include "base/base.h"

/* Read BYTES at OFFSET.  The result is how many were read, which are fewer if the file ends before,
 * or -1, with the reason in errno. */
int64_t wf_read_at(int fd, void *target, size_t bytes, uint64_t offset) WF_NODISCARD;
/* A file may have BYTES under this process's limit (ulimit -f).  Beyond it, the system would end
 * the process.  False: the reason is in errno. */
bool wf_may_have_size(uint64_t bytes) WF_NODISCARD;
/* Write BYTES at OFFSET.  False: the reason is in errno. */
bool wf_write_at(int fd, const void *source, size_t bytes, uint64_t offset) WF_NODISCARD;

#endif
