/* rank_file.h - files that each rank writes for itself: their names, and writing to them. */
#ifndef WEFT_TRACE_RANK_FILE_H
#define WEFT_TRACE_RANK_FILE_H

#include "base/base.h"

/* "a.%r.b" -> "a.3.b", "a" -> "a.3".  False if it does not fit. */
bool wf_rank_file_name(const char *pattern, int32_t rank, char *out, size_t bytes);

/* Why a file that others may have made was not opened with O_NOFOLLOW: the text of ERROR. */
const char *wf_rank_file_refusal(int error);

/* Write COUNT bytes to FILE, which has LENGTH bytes.  Returns 0, or the errno: EFBIG if the
 * process may not write so long files.  A signal handler may call it. */
int wf_rank_file_write(int file, uint64_t length, const void *bytes, size_t count);

#endif
