/* folder.h - the folder of run-time files: $XDG_RUNTIME_DIR/weft, or /dev/shm/weft-UID. */
#ifndef WEFT_TRACE_FOLDER_H
#define WEFT_TRACE_FOLDER_H

#include "base/base.h"

#define WF_FOLDERS         2
#define WF_FOLDER_PATH     192
#define WF_RECORDER_PREFIX "recorder."
#define WF_MADE_PREFIX     "made." /* a recorder that its owner still makes */

/* The folders in which recorders of this user may be, the preferred one first.  Returns how many.
 */
size_t wf_folder_list(char paths[WF_FOLDERS][WF_FOLDER_PATH]);

/* Open the folder PATH, which must belong to this user alone.  WEFT_ERR_NOT_FOUND: it does not
 * exist.  The caller closes *OUT. */
weft_status wf_folder_enter(const char *path, int *out) WF_NODISCARD;

/* The same, and create the folder if it is missing. */
weft_status wf_folder_make(const char *path, int *out) WF_NODISCARD;

/* Remove the recorders in FOLDER whose owner has ended, except the newest 32, and those whose owner
 * ended a minute ago or longer before they were complete. */
void wf_folder_clean(int folder);

bool wf_folder_is_recorder(const char *name);
/* True if a process holds FILE, an open recorder, as its owner. */
bool wf_folder_is_owned(int file);
/* Become the owner of FILE, which is open for writing, until the last copy of its descriptor and
 * the last mapping of it end.  False: see errno. */
bool wf_folder_own(int file);

#endif
