/* file.c - may this file be opened as a plugin?  Opening runs its code with our privileges, so
 * whoever can change it must be somebody who could change this program anyway. */
#include "plugin.h"
#undef wf_refuse

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool wf_refuse(struct wf_verdict *verdict, enum weft_reason reason, const char *format, ...)
{
    va_list args;

    verdict->reason = (uint32_t)reason;
    va_start(args, format);
    vsnprintf(verdict->text, sizeof verdict->text, format, args);
    va_end(args);
    return false;
}

static bool owner_trusted(uid_t owner, const char *own_file)
{
    struct stat own;

    if (owner == 0 || owner == geteuid()) return true;
    return own_file != NULL && stat(own_file, &own) == 0 && own.st_uid == owner;
}

/* SECURE also minds the group: with the usual per-user groups it is nobody else. */
static bool may_trust(const struct stat *info, const char *path, const char *own_file, bool secure,
                      struct wf_verdict *verdict)
{
    bool sticky = S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX) != 0;

    if (!owner_trusted(info->st_uid, own_file) && !sticky)
        return wf_refuse(verdict, WEFT_REASON_NOT_TRUSTED,
                         "%s belongs to user %u; wanted is root, user %u or the owner of libweft",
                         path, (unsigned)info->st_uid, (unsigned)geteuid());
    if ((info->st_mode & S_IWOTH) != 0 && !sticky)
        return wf_refuse(verdict, WEFT_REASON_NOT_TRUSTED,
                         "%s has mode %04o: anybody may change it; wanted is %04o", path,
                         (unsigned)(info->st_mode & 07777),
                         (unsigned)(info->st_mode & 07775 & ~(mode_t)S_IWOTH));
    if (secure && (info->st_mode & S_IWGRP) != 0)
        return wf_refuse(verdict, WEFT_REASON_NOT_TRUSTED,
                         "%s has mode %04o and this program is privileged: wanted is %04o", path,
                         (unsigned)(info->st_mode & 07777), (unsigned)(info->st_mode & 07755));
    return true;
}

static bool folder_trusted(const char *file, const char *own_file, bool secure,
                           struct wf_verdict *verdict)
{
    char folder[4096];
    const char *slash = strrchr(file, '/');
    struct stat info;

    snprintf(folder, sizeof folder, "%.*s", slash > file ? (int)(slash - file) : 1, file);
    if (stat(folder, &info) != 0)
        return wf_refuse(verdict, WEFT_REASON_NOT_READABLE, "%s: %s", folder, strerror(errno));
    return may_trust(&info, folder, own_file, secure, verdict);
}

static bool judge_opened(int fd, const char *file, const char *own_file, bool secure,
                         struct wf_verdict *verdict)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return wf_refuse(verdict, WEFT_REASON_NOT_READABLE, "%s: %s", file, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return wf_refuse(verdict, WEFT_REASON_NOT_READABLE, "%s is %s; wanted is a regular file",
                         file, S_ISDIR(info.st_mode) ? "a directory" : "a special file");
    return may_trust(&info, file, own_file, secure, verdict) &&
           folder_trusted(file, own_file, secure, verdict);
}

bool wf_file_open(const char *file, const char *own_file, bool secure, int *fd,
                  struct wf_verdict *verdict)
{
    /* Without blocking: a pipe without a writer would hold us up. */
    int opened = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (opened < 0)
        return wf_refuse(verdict,
                         errno == ENOENT ? WEFT_REASON_NOT_FOUND : WEFT_REASON_NOT_READABLE,
                         "%s cannot be opened for reading: %s", file, strerror(errno));
    if (!judge_opened(opened, file, own_file, secure, verdict)) {
        close(opened);
        return false;
    }
    *fd = opened;
    return true;
}
