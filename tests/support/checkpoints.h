/* checkpoints.h - checkpoints for tests: files made by hand, and tensors whose elements tell their
 * place. */
#ifndef WEFT_TESTS_CHECKPOINTS_H
#define WEFT_TESTS_CHECKPOINTS_H

#include "support/folder.h"
#include "weft/file.h"
#include "weft/weft.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) ck_assert_msg((call) == WEFT_OK, "%s: %s", #call, weft_last_error())
/* CALL fails with STATUS, and the error text contains PART. */
#define REFUSED(call, status, part)                                                                \
    do {                                                                                           \
        ck_assert_int_eq(call, status);                                                            \
        ck_assert_msg(strstr(weft_last_error(), part) != NULL, "\"%s\" has no \"%s\"",             \
                      weft_last_error(), part);                                                    \
    } while (0)

/* A safetensors file with the JSON text HEADER and ELEMENTS bytes 0, 1, 2, ... */
static inline const char *write_safetensors(const struct folder *folder, const char *name,
                                            const char *header, size_t elements)
{
    size_t length = strlen(header);
    char *bytes = calloc(1, 8 + length + elements);
    const char *path;

    ck_assert_ptr_nonnull(bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)((uint64_t)length >> (8 * i) & 255);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < elements; i++)
        bytes[8 + length + i] = (char)(i & 255);
    path = folder_write(folder, name, bytes, 8 + length + elements);
    free(bytes);
    return path;
}

/* The bytes of a file; the caller frees them. */
static inline char *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes;

    ck_assert_msg(file != NULL, "%s", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*size + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    bytes[*size] = '\0';
    fclose(file);
    return bytes;
}

static inline bool path_exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}

/* Number of the tensor NAME. */
static inline size_t tensor_index(const weft_checkpoint *checkpoint, const char *name)
{
    size_t index = 0;

    OK(weft_checkpoint_find(checkpoint, name, &index));
    return index;
}

/* A folder for the files of a test program, removed at its end. */
static struct folder folder;

static inline void remove_test_folder(void)
{
    folder_remove(&folder);
}

__attribute__((constructor)) static void make_test_folder(void)
{
    snprintf(folder.path, sizeof folder.path, "/tmp/weft-test-XXXXXX");
    if (mkdtemp(folder.path) == NULL) abort();
    atexit(remove_test_folder);
}

#endif
