/* output.h - files that appear under their names together, complete, or not at all. */
#ifndef WEFT_FILE_OUTPUT_H
#define WEFT_FILE_OUTPUT_H

#include "base/base.h"

#include <stdatomic.h>

enum wf_outputs_mode {
    WF_OUTPUT_NEW,
    WF_OUTPUT_RESUME, /* the partial files are those of an earlier run */
    WF_OUTPUT_NONE,   /* no file is made or opened: names and sizes only */
    WF_OUTPUT_JOIN    /* another process makes, commits or removes the files; this one writes */
};

/* One file, or the files of one folder, under the name PATH.weft-partial until the commit. */
struct wf_outputs {
    char *path, *partial;
    bool is_folder, replace, committed;
    enum wf_outputs_mode mode;
    bool keep; /* leave the partial files without a commit, too */
    bool lost; /* a flush failed: the system may have dropped bytes, and later flushes succeed */
    int lock;  /* descriptor of the partial folder or file, locked; -1: none */
    struct wf_output_file {
        char *name; /* in the folder; the path of a single file */
        int fd;
        uint64_t bytes;      /* size, or what the disk must have room for */
        atomic_bool written; /* by this process, after it was last flushed */
    } * files;
    size_t count;
};

/* PATH without slashes at its end, with TAIL; NULL: no memory. */
char *wf_output_path(const char *path, const char *tail) WF_NODISCARD;
#define WF_PARTIAL ".weft-partial"
#define WF_JOURNAL ".weft-journal"
#define WF_OLD     ".weft-old"
#define WF_SAMPLE  ".weft-sample"
/* The journal of process PART: PATH.weft-journal, PATH.weft-journal-1 and so on; NULL: no memory.
 */
char *wf_journal_path(const char *path, int32_t part) WF_NODISCARD;
/* Remove the journals of all processes.  In a folder that may not be listed, only the first one,
 * without which the others mean nothing. */
weft_status wf_journals_remove(const char *path) WF_NODISCARD;

/* Begin COUNT files, which wf_outputs_open opens.  WEFT_ERR_INVALID: PATH exists and may not be
 * replaced, or another process writes to it.  What an interrupted run left is removed, with its
 * journal; unless MODE is NEW, it is kept, and wf_outputs_open expects its files. */
weft_status wf_outputs_begin(struct wf_outputs *output, const char *path, bool is_folder,
                             bool replace, enum wf_outputs_mode mode, size_t count) WF_NODISCARD;
/* Make file INDEX, which will have BYTES. */
weft_status wf_outputs_open(struct wf_outputs *output, size_t index, const char *name,
                            uint64_t bytes) WF_NODISCARD;
/* Give all files their sizes, for which the disk must have room. */
weft_status wf_outputs_allocate(struct wf_outputs *output) WF_NODISCARD;
weft_status wf_outputs_write(struct wf_outputs *output, size_t index, uint64_t offset,
                             const void *bytes, size_t count) WF_NODISCARD;
/* Write one more file to the folder, whose name is weft.json. */
weft_status wf_outputs_add_sums(struct wf_outputs *output, const void *bytes,
                                size_t count) WF_NODISCARD;
/* Flush the files that this process has written to.  GOES_ON, which may be NULL, is called with
 * SELF after each part.  After a failure, all later flushes and commits fail. */
weft_status wf_outputs_flush(struct wf_outputs *output, void (*goes_on)(void *self),
                             void *self) WF_NODISCARD;
/* Flush all files, then give them their names. */
weft_status wf_outputs_commit(struct wf_outputs *output) WF_NODISCARD;
/* Close the files; without a commit, remove them, unless `keep`. */
void wf_outputs_end(struct wf_outputs *output);

#endif
