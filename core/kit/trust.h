/* trust.h - checks whether code from a file may run with the privileges of this process.
 *
 * A path is resolved once and then walked from / without following links.  Every directory on it,
 * and the file, must belong to root, to the effective user or to the owner of the object that asks
 * (libweft or a plugin), and nobody else may write to them.  A directory above this object may have
 * any owner, and a group may write to it: they can replace the object anyway.  Nobody else can then
 * make the resolved path name another file, so it may be given to dlopen.
 *
 * This source needs only the C library.  libweft and the plugins compile it. */
#ifndef WEFT_KIT_TRUST_H
#define WEFT_KIT_TRUST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The users whose files may run. */
struct wf_trust {
    const char *own_file; /* of the object that asks, or NULL; borrowed */
    uid_t user;           /* the effective user */
    uid_t maker;          /* the owner of the object that asks, or USER */
    bool user_counts;     /* false in a privileged program that the effective user started */
    bool secure;          /* privileged: no group may write, and own_file grants no exception */
};

enum wf_trust_answer { WF_TRUSTED, WF_TRUST_MISSING, WF_TRUST_UNREADABLE, WF_TRUST_REFUSED };

struct wf_trusted {
    int fd;              /* open for reading; the caller closes it */
    char path[PATH_MAX]; /* absolute, without links; open only this path */
    char why[1536];      /* unless WF_TRUSTED: the reason, with both sides and what helps */
};

/* OWN_FILE, the file of the object that asks, may be NULL.  Its owner is trusted only if the walk
 * accepts OWN_FILE as a file of that user. */
struct wf_trust wf_trust_of(const char *own_file, bool secure);

/* Open the regular file PATH if it may be trusted.  OUT->why is "" on success, and OUT->fd is -1 on
 * failure. [any thread] */
enum wf_trust_answer wf_trust_open(const char *path, const struct wf_trust *trust,
                                   struct wf_trusted *out);

#endif
