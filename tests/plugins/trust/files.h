/* files.h - folders and files of several users below one folder, which goes with the program. */
#ifndef WEFT_TESTS_TRUST_FILES_H
#define WEFT_TESTS_TRUST_FILES_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHER_USER = 12345, SKIPPED = 77, HOSTILE_RAN = 66 };

#define REQUIRE(condition) require((condition), #condition, __FILE__, __LINE__)

static char base[256];
static char output[1 << 16]; /* of the program that ran last */

/* Defined by the test. */
static void clean_up(void);

static inline int remove_entry(const char *path, const struct stat *info, int flag,
                               struct FTW *walk)
{
    (void)info, (void)flag, (void)walk;
    return remove(path);
}

static inline void remove_base(void)
{
    nftw(base, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void require(bool holds, const char *what, const char *file, int line)
{
    if (holds) return;
    fprintf(stderr, "%s:%d: %s does not hold", file, line, what);
    fprintf(stderr, output[0] != '\0' ? "; the program printed:\n%s\n" : "%s\n", output);
    clean_up();
    exit(EXIT_FAILURE);
}

/* BASE/NAME, in one of many buffers that are used in turn. */
static inline const char *at(const char *name)
{
    static char paths[32][512];
    static unsigned next;
    char *path = paths[next++ % 32];

    snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static inline void make_folder(const char *name, uid_t owner, mode_t mode)
{
    REQUIRE(mkdir(at(name), 0755) == 0);
    REQUIRE(chown(at(name), owner, owner) == 0);
    REQUIRE(chmod(at(name), mode) == 0);
}

static inline void copy(const char *from, const char *name, uid_t owner, mode_t mode)
{
    static char bytes[16 << 20];
    int in = open(from, O_RDONLY), out = open(at(name), O_WRONLY | O_CREAT | O_EXCL, 0755);
    ssize_t length;

    REQUIRE(in >= 0 && out >= 0);
    length = read(in, bytes, sizeof bytes);
    REQUIRE(length > 0 && length < (ssize_t)sizeof bytes);
    REQUIRE(write(out, bytes, (size_t)length) == length);
    REQUIRE(fchown(out, owner, owner) == 0 && fchmod(out, mode) == 0);
    close(in);
    close(out);
}

#endif
