/* folder.h - the folder of run-time files: $XDG_RUNTIME_DIR/weft, or /dev/shm/weft-UID. */
#ifndef WEFT_TRACE_FOLDER_H
#define WEFT_TRACE_FOLDER_H

#include "base/base.h"

#define WF_FOLDERS     2
#define WF_FOLDER_PATH 192
#define WF_RING_PREFIX "ring."

/* The folders in which rings of this user may be, the preferred one first.  Returns how many. */
size_t wf_folder_list(char paths[WF_FOLDERS][WF_FOLDER_PATH]);

/* Open the folder PATH, which must belong to this user alone.  WEFT_ERR_NOT_FOUND: it does not
 * exist.  The caller closes *OUT. */
weft_status wf_folder_enter(const char *path, int *out) WF_NODISCARD;

/* Open the first folder that can be used, and create it if it is missing.  PATH, of BYTES, gets its
 * path.  WEFT_ERR_SYSTEM: there is none; the text says why.  The caller closes *OUT. */
weft_status wf_folder_open(char *path, size_t bytes, int *out) WF_NODISCARD;

/* Remove the rings in FOLDER whose owner has ended, except the newest 32. */
void wf_folder_clean(int folder);

bool wf_folder_is_ring(const char *name);
/* True if a process holds FILE, an open ring, as its owner. */
bool wf_folder_is_owned(int file);
/* Become the owner of FILE, which is open for writing, until the last copy of its descriptor and
 * the last mapping of it end.  False: see errno. */
bool wf_folder_own(int file);

#endif
