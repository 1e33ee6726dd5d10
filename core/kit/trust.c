/* trust.c - see trust.h. */
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The state of one walk along a path. */
struct walk {
    const char *asked;
    const struct wf_trust *trust;
    struct wf_trusted *out;
    size_t length; /* of the prefix of OUT->path that is being examined */
};

static enum wf_trust_answer refuse(struct walk *walk, enum wf_trust_answer answer,
                                   const char *format, ...) __attribute__((format(printf, 3, 4)));

static enum wf_trust_answer refuse(struct walk *walk, enum wf_trust_answer answer,
                                   const char *format, ...)
{
    struct wf_trusted *out = walk->out;
    bool is_link = out->path[0] != '\0' && strcmp(walk->asked, out->path) != 0;
    size_t used = 0;
    va_list args;

    if (is_link) {
        snprintf(out->why, sizeof out->why, "%.500s leads to %.500s: ", walk->asked, out->path);
        used = strlen(out->why);
    }
    va_start(args, format);
    vsnprintf(out->why + used, sizeof out->why - used, format, args);
    va_end(args);
    return answer;
}

static bool owner_trusted(const struct wf_trust *trust, uid_t owner)
{
    return owner == 0 || (trust->user_counts && owner == trust->user) ||
           (trust->maker != trust->user && owner == trust->maker);
}

/* True if the current directory contains the object that asks. */
static bool holds_own_file(const struct walk *walk)
{
    const char *own = walk->trust->own_file;

    if (own == NULL || walk->trust->secure) return false;
    if (walk->length == 1) return own[0] == '/';
    return strncmp(own, walk->out->path, walk->length) == 0 && own[walk->length] == '/';
}

/* "root, user 1000 or user 2000" */
static void list_owners(const struct wf_trust *trust, char *out, size_t bytes)
{
    bool user = trust->user_counts && trust->user != 0;
    bool maker = trust->maker != trust->user && trust->maker != 0;
    char first[32] = "", second[32] = "";

    if (user) snprintf(first, sizeof first, "%suser %u", maker ? ", " : " or ", trust->user);
    if (maker) snprintf(second, sizeof second, " or user %u", trust->maker);
    snprintf(out, bytes, "root%s%s", first, second);
}

/* ---- groups ---- */

static bool is_user(const char *name, uid_t user)
{
    struct passwd entry, *found = NULL;
    char text[4096];

    return getpwnam_r(name, &entry, text, sizeof text, &found) == 0 && found != NULL &&
           found->pw_uid == user;
}

/* True if GROUP has other members than USER.  A list of members that does not fit into TEXT has
 * others. */
static bool lists_others(gid_t group, uid_t user)
{
    struct group entry, *found = NULL;
    char text[4096];

    if (getgrgid_r(group, &entry, text, sizeof text, &found) != 0) return true;
    for (char **member = found != NULL ? found->gr_mem : NULL; member != NULL && *member != NULL;
         member++)
        if (!is_user(*member, user)) return true;
    return false;
}

/* True if GROUP is the primary group of others.  These are not in the list of its members. */
static bool is_primary_of_others(gid_t group, uid_t user)
{
    FILE *users = fopen("/etc/passwd", "re");
    struct passwd entry, *found;
    char text[4096];
    bool others = users == NULL;

    while (!others && fgetpwent_r(users, &entry, text, sizeof text, &found) == 0)
        others = found->pw_gid == group && found->pw_uid != user;
    if (users != NULL) fclose(users);
    return others;
}

/* True if the file may have an access control list, which appears as permissions of the group.  An
 * error counts as "none" for two values of errno only. */
static bool has_access_list(int fd)
{
    char link[32];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (getxattr(link, "system.posix_acl_access", NULL, 0) >= 0) return true;
    return errno != ENODATA && errno != ENOTSUP;
}

/* Distributions give each user a private group and a umask that lets it write.  Group 0 is not
 * private: containers run other users in it. */
static bool group_is_owners(int fd, const struct stat *info)
{
    return info->st_gid == info->st_uid && info->st_gid != 0 && !has_access_list(fd) &&
           !lists_others(info->st_gid, info->st_uid) &&
           !is_primary_of_others(info->st_gid, info->st_uid);
}

/* ---- one directory, or the file ---- */

static enum wf_trust_answer refuse_writers(struct walk *walk, const struct stat *info,
                                           const char *what)
{
    bool others = (info->st_mode & S_IWOTH) != 0;
    bool sticky = S_ISDIR(info->st_mode) && (info->st_mode & S_ISVTX) != 0;
    char who[64] = "every user";

    if (!others) snprintf(who, sizeof who, "group %u", (unsigned)info->st_gid);
    return refuse(walk, WF_TRUST_REFUSED,
                  "%.*s belongs to user %u and has mode %04o, so %s may %s%s; expected mode %04o: "
                  "run chmod %s-w, or move the file",
                  (int)walk->length, walk->out->path, (unsigned)info->st_uid,
                  (unsigned)(info->st_mode & 07777), who, what,
                  sticky ? " (the sticky bit protects existing files only)" : "",
                  (unsigned)(info->st_mode & 07777 & ~(mode_t)(S_IWOTH | S_IWGRP)),
                  others ? "go" : "g");
}

/* LAST is the directory that contains the file.  A sticky directory further up, such as /tmp, may
 * be writable: only the owner can rename the next entry, and that owner is checked as well. */
static enum wf_trust_answer judge(struct walk *walk, int fd, const struct stat *info, bool last)
{
    bool folder = S_ISDIR(info->st_mode), above = folder && holds_own_file(walk);
    bool group = (info->st_mode & S_IWGRP) != 0, others = (info->st_mode & S_IWOTH) != 0;
    const char *what = folder ? "replace its files" : "change it";
    char owners[96];

    if (!owner_trusted(walk->trust, info->st_uid) && !above) {
        list_owners(walk->trust, owners, sizeof owners);
        return refuse(walk, WF_TRUST_REFUSED,
                      "%.*s belongs to user %u and has mode %04o, so user %u may %s; expected %s "
                      "as owner: run chown, or move the file",
                      (int)walk->length, walk->out->path, (unsigned)info->st_uid,
                      (unsigned)(info->st_mode & 07777), (unsigned)info->st_uid, what, owners);
    }
    if (folder && !last && (info->st_mode & S_ISVTX) != 0) return WF_TRUSTED;
    if (above && !others) return WF_TRUSTED;
    if (group && !others && !walk->trust->secure && group_is_owners(fd, info)) return WF_TRUSTED;
    return group || others ? refuse_writers(walk, info, what) : WF_TRUSTED;
}

static enum wf_trust_answer judge_file(struct walk *walk, int fd)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return refuse(walk, WF_TRUST_UNREADABLE, "%s: %s", walk->out->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return refuse(walk, WF_TRUST_UNREADABLE, "%s is %s; expected a regular file",
                      walk->out->path, S_ISDIR(info.st_mode) ? "a directory" : "a special file");
    return judge(walk, fd, &info, false);
}

/* ---- the walk ---- */

static enum wf_trust_answer fail_open(struct walk *walk)
{
    if (errno == ELOOP || errno == ENOTDIR)
        return refuse(walk, WF_TRUST_REFUSED, "%.*s was replaced while it was examined",
                      (int)walk->length, walk->out->path);
    return refuse(walk, errno == ENOENT ? WF_TRUST_MISSING : WF_TRUST_UNREADABLE,
                  "%.*s cannot be opened for reading: %s", (int)walk->length, walk->out->path,
                  strerror(errno));
}

/* Open the file NAME in the directory FOLDER. */
static enum wf_trust_answer enter_file(struct walk *walk, int folder, const char *name)
{
    /* Nonblocking, because opening a pipe without a writer would block. */
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    enum wf_trust_answer answer;

    if (fd < 0) return fail_open(walk);
    answer = judge_file(walk, fd);
    if (answer == WF_TRUSTED)
        walk->out->fd = fd;
    else
        close(fd);
    return answer;
}

static enum wf_trust_answer judge_folder(struct walk *walk, int fd, bool last)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return refuse(walk, WF_TRUST_UNREADABLE, "%.*s: %s", (int)walk->length, walk->out->path,
                      strerror(errno));
    return judge(walk, fd, &info, last);
}

/* False if the name is too long.  Some file systems allow names longer than NAME_MAX. */
static bool copy_component(char out[NAME_MAX + 1], const char *name, size_t length)
{
    if (length > NAME_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(out, name, length);
    out[length] = '\0';
    return true;
}

/* OUT->path is "/a/b/c": check and open "/", "/a" and "/a/b", then "/a/b/c". */
static enum wf_trust_answer walk_path(struct walk *walk)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const char *path = walk->out->path, *name = path + 1;
    int folder = open("/", flags);
    enum wf_trust_answer answer;

    walk->length = 1;
    if (folder < 0) return fail_open(walk);
    for (;;) {
        const char *end = strchr(name, '/');
        char component[NAME_MAX + 1];
        int next;

        answer = judge_folder(walk, folder, end == NULL);
        if (answer != WF_TRUSTED) break;
        walk->length = end != NULL ? (size_t)(end - path) : strlen(path);
        if (!copy_component(component, name, (size_t)(path + walk->length - name))) {
            answer = fail_open(walk);
            break;
        }
        if (end == NULL) {
            answer = enter_file(walk, folder, component);
            break;
        }
        next = openat(folder, component, flags);
        if (next < 0) {
            answer = fail_open(walk);
            break;
        }
        close(folder);
        folder = next;
        name = end + 1;
    }
    close(folder);
    return answer;
}

enum wf_trust_answer wf_trust_open(const char *path, const struct wf_trust *trust,
                                   struct wf_trusted *out)
{
    struct walk walk = {path, trust, out, 0};

    out->fd = -1;
    out->why[0] = out->path[0] = '\0';
    if (realpath(path, out->path) == NULL) {
        out->path[0] = '\0';
        return refuse(&walk, errno == ENOENT ? WF_TRUST_MISSING : WF_TRUST_UNREADABLE,
                      "%s cannot be opened for reading: %s", path, strerror(errno));
    }
    if (strcmp(out->path, "/") == 0)
        return refuse(&walk, WF_TRUST_UNREADABLE, "/ is a directory; expected a regular file");
    if (strchr(out->path, '$') != NULL)
        return refuse(&walk, WF_TRUST_REFUSED,
                      "%s has a $, which the dynamic linker may expand to another path; expected a "
                      "path without $",
                      out->path);
    return walk_path(&walk);
}

struct wf_trust wf_trust_of(const char *own_file, bool secure)
{
    uid_t user = geteuid();
    struct wf_trust trust = {.own_file = own_file,
                             .user = user,
                             .maker = user,
                             .user_counts = !secure || user != (uid_t)getauxval(AT_UID),
                             .secure = secure};
    struct wf_trusted own;
    struct stat info;

    if (own_file == NULL || stat(own_file, &info) != 0 || owner_trusted(&trust, info.st_uid))
        return trust;
    trust.maker = info.st_uid;
    if (wf_trust_open(own_file, &trust, &own) == WF_TRUSTED)
        close(own.fd);
    else
        trust.maker = user;
    return trust;
}
