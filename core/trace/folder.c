/* folder.c - the folder of run-time files: $XDG_RUNTIME_DIR/weft, or /dev/shm/weft-UID.
 *
 * Only its user can enter it.  A recorder's owner holds a lock on the file, which ends with its
 * process, however that ends. */
#include "config/config.h"
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEPT               32 /* recorders whose owner has ended */
#define UNFINISHED_SECONDS 60

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

size_t wf_folder_list(char paths[WF_FOLDERS][WF_FOLDER_PATH])
{
    const char *runtime = wf_config_getenv("XDG_RUNTIME_DIR");
    size_t count = 0;

    if (runtime != NULL && runtime[0] == '/' && getauxval(AT_SECURE) == 0 &&
        snprintf(paths[count], WF_FOLDER_PATH, "%s/weft", runtime) < WF_FOLDER_PATH)
        count++;
    snprintf(paths[count++], WF_FOLDER_PATH, "/dev/shm/weft-%u", (unsigned)geteuid());
    return count;
}

static weft_status check_owner(const char *path, int folder)
{
    struct stat info;

    if (fstat(folder, &info) != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "the folder %s cannot be examined: %s", path,
                       kit_error_text(errno));
    if (info.st_uid != geteuid())
        return wf_fail(WEFT_ERR_SYSTEM, "the folder %s belongs to user %u, not to user %u", path,
                       (unsigned)info.st_uid, (unsigned)geteuid());
    if ((info.st_mode & 077) != 0)
        return wf_fail(WEFT_ERR_SYSTEM,
                       "other users can enter the folder %s: its mode is %03o, not 700", path,
                       (unsigned)(info.st_mode & 0777));
    return WEFT_OK;
}

weft_status wf_folder_enter(const char *path, int *out)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    weft_status status;

    if (folder < 0)
        return wf_fail(errno == ENOENT ? WEFT_ERR_NOT_FOUND : WEFT_ERR_SYSTEM,
                       "the folder %s cannot be opened: %s", path, kit_error_text(errno));
    status = check_owner(path, folder);
    if (status != WEFT_OK) {
        close(folder);
        return status;
    }
    *out = folder;
    return WEFT_OK;
}

weft_status wf_folder_make(const char *path, int *out)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return wf_fail(WEFT_ERR_SYSTEM, "the folder %s cannot be created: %s", path,
                       kit_error_text(errno));
    return wf_folder_enter(path, out);
}

bool wf_folder_is_recorder(const char *name)
{
    return has_prefix(name, WF_RECORDER_PREFIX);
}

/* The lock is asked for, not taken: a reader that held it for a moment would keep an owner from
 * taking it. */
bool wf_folder_is_owned(int file)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool wf_folder_own(int file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

/* ---- recorders that were left ---- */

struct left {
    char name[64];
    struct timespec time;
};

/* True if the owner of recorder NAME in FOLDER has ended. */
static bool is_left(int folder, const char *name, struct left *out)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    bool left;

    if (file < 0 || strlen(name) >= sizeof out->name) {
        if (file >= 0) close(file);
        return false;
    }
    left = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && !wf_folder_is_owned(file);
    close(file);
    if (!left) return false;
    snprintf(out->name, sizeof out->name, "%s", name);
    out->time = info.st_mtim;
    return true;
}

static bool is_older(const struct left *one, const struct left *other)
{
    if (one->time.tv_sec != other->time.tv_sec) return one->time.tv_sec < other->time.tv_sec;
    return one->time.tv_nsec < other->time.tv_nsec;
}

/* The newest recorders that were left. */
struct newest {
    struct left list[KEPT];
    size_t count;
};

/* Add RECORDER, and remove the oldest if there are too many. */
static void keep_newest(int folder, struct newest *newest, const struct left *recorder)
{
    struct left *oldest = &newest->list[0];

    if (newest->count < KEPT) {
        newest->list[newest->count++] = *recorder;
        return;
    }
    for (size_t i = 1; i < KEPT; i++)
        if (is_older(&newest->list[i], oldest)) oldest = &newest->list[i];
    if (is_older(recorder, oldest)) {
        unlinkat(folder, recorder->name, 0);
        return;
    }
    unlinkat(folder, oldest->name, 0);
    *oldest = *recorder;
}

/* A recorder whose owner has just begun to make it has no lock yet, so it must be old. */
static void remove_unfinished(int folder, const char *name)
{
    struct left left;

    if (is_left(folder, name, &left) && left.time.tv_sec + UNFINISHED_SECONDS < time(NULL))
        unlinkat(folder, name, 0);
}

void wf_folder_clean(int folder)
{
    struct newest newest = {.count = 0};
    int again = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;
    struct left recorder;

    if (entries == NULL) {
        if (again >= 0) close(again);
        return;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (has_prefix(entry->d_name, WF_MADE_PREFIX))
            remove_unfinished(folder, entry->d_name);
        else if (wf_folder_is_recorder(entry->d_name) && is_left(folder, entry->d_name, &recorder))
            keep_newest(folder, &newest, &recorder);
    }
    closedir(entries);
}
