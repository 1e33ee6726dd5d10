/* folder.c - the folder of run-time files: $XDG_RUNTIME_DIR/weft, or /dev/shm/weft-UID.
 *
 * Only its user can enter it.  A ring's owner holds a lock on the file, which ends with its
 * process, however that ends. */
#include "config/config.h"
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT 32 /* rings whose owner has ended */

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
                       strerror(errno));
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
                       "the folder %s cannot be opened: %s", path, strerror(errno));
    status = check_owner(path, folder);
    if (status != WEFT_OK) {
        close(folder);
        return status;
    }
    *out = folder;
    return WEFT_OK;
}

weft_status wf_folder_open(char *path, size_t bytes, int *out)
{
    char paths[WF_FOLDERS][WF_FOLDER_PATH];
    size_t count = wf_folder_list(paths);
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < count; i++) {
        if (mkdir(paths[i], 0700) != 0 && errno != EEXIST)
            status = wf_fail(WEFT_ERR_SYSTEM, "the folder %s cannot be created: %s", paths[i],
                             strerror(errno));
        else
            status = wf_folder_enter(paths[i], out);
        if (status != WEFT_OK) continue;
        snprintf(path, bytes, "%s", paths[i]);
        return WEFT_OK;
    }
    return status;
}

bool wf_folder_is_ring(const char *name)
{
    return has_prefix(name, WF_RING_PREFIX);
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

/* ---- rings that were left ---- */

struct left {
    char name[64];
    struct timespec time;
};

/* True if the owner of ring NAME in FOLDER has ended. */
static bool is_left(int folder, const char *name, struct left *out)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
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

static int newest_first(const void *a, const void *b)
{
    const struct left *one = a, *other = b;

    if (one->time.tv_sec != other->time.tv_sec)
        return one->time.tv_sec > other->time.tv_sec ? -1 : 1;
    if (one->time.tv_nsec != other->time.tv_nsec)
        return one->time.tv_nsec > other->time.tv_nsec ? -1 : 1;
    return strcmp(one->name, other->name);
}

void wf_folder_clean(int folder)
{
    struct left *list = NULL;
    size_t count = 0, room = 0;
    int again = dup(folder);
    DIR *entries = again >= 0 ? fdopendir(again) : NULL;

    if (entries == NULL) {
        if (again >= 0) close(again);
        return;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (!wf_folder_is_ring(entry->d_name)) continue;
        if (count == room) {
            struct left *more = wf_realloc(list, (room = 2 * room + KEPT) * sizeof *list);

            if (more == NULL) break;
            list = more;
        }
        if (is_left(folder, entry->d_name, &list[count])) count++;
    }
    closedir(entries);
    if (count > KEPT) qsort(list, count, sizeof *list, newest_first);
    for (size_t i = KEPT; i < count; i++)
        unlinkat(folder, list[i].name, 0);
    wf_free(list);
}
