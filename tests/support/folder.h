/* folder.h - a temporary folder with files in it, for tests that search the file system. */
#ifndef WEFT_TESTS_FOLDER_H
#define WEFT_TESTS_FOLDER_H

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64];
};

static inline struct folder folder_create(void)
{
    struct folder folder = {"/tmp/weft-test-XXXXXX"};

    ck_assert_ptr_nonnull(mkdtemp(folder.path));
    return folder;
}

static inline int folder_remove_entry(const char *path, const struct stat *info, int flag,
                                      struct FTW *walk)
{
    (void)info, (void)flag, (void)walk;
    return remove(path);
}

static inline void folder_remove(const struct folder *folder)
{
    nftw(folder->path, folder_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* FOLDER/NAME, in one of four static buffers that are used in turn. */
static inline const char *folder_path(const struct folder *folder, const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder->path, name);
    return path;
}

static inline const char *folder_write(const struct folder *folder, const char *name,
                                       const void *bytes, size_t count)
{
    const char *path = folder_path(folder, name);
    FILE *file = fopen(path, "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0644), 0);
    return path;
}

/* Up to LONGEST bytes of FROM as FOLDER/NAME. */
static inline const char *folder_copy(const struct folder *folder, const char *name,
                                      const char *from, size_t longest)
{
    static char bytes[4 << 20];
    FILE *file = fopen(from, "rb");
    size_t count;

    ck_assert_msg(file != NULL, "%s", from);
    count = fread(bytes, 1, longest < sizeof bytes ? longest : sizeof bytes, file);
    fclose(file);
    ck_assert_uint_lt(count, sizeof bytes);
    return folder_write(folder, name, bytes, count);
}

#endif
