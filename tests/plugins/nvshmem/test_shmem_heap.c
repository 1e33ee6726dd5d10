/* The arena's allocator: parts never overlap, free parts are merged, and errors give the missing
 * bytes. */
#include "shmem.h"

#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20, PARTS = 200, STEPS = 20000 };

static char said[1024];

static void set_error(weft_status status, const char *vendor, int64_t code, const char *text)
{
    (void)status;
    (void)vendor;
    (void)code;
    snprintf(said, sizeof said, "%s", text);
}

static void log_nothing(int32_t level, const char *text)
{
    (void)level;
    (void)text;
}

static const weft_host host = {.struct_size = sizeof host,
                               .log = log_nothing,
                               .set_error = set_error,
                               .allocate = malloc,
                               .release = free};

static struct shmem_heap heap;

static void begin(void)
{
    plug_host_set(&host);
    ck_assert_int_eq(shmem_heap_open(&heap, ROOM + 100), WEFT_OK);
    ck_assert_uint_eq(heap.bytes, ROOM);
}

static void end(void)
{
    plug_free(heap.blocks);
    heap = (struct shmem_heap){0};
}

TEST(parts_are_aligned_and_apart)
{
    uint64_t a, b, c;

    begin();
    ck_assert_int_eq(shmem_heap_take(&heap, 1, &a), WEFT_OK);
    ck_assert_int_eq(shmem_heap_take(&heap, 0, &b), WEFT_OK);
    ck_assert_int_eq(shmem_heap_take(&heap, 257, &c), WEFT_OK);
    ck_assert_uint_eq(a, 0);
    ck_assert_uint_eq(b, 256);
    ck_assert_uint_eq(c, 512);
    ck_assert_uint_eq(heap.used, 1024);
    ck_assert(shmem_heap_give(&heap, b));
    ck_assert(!shmem_heap_give(&heap, b));
    ck_assert(!shmem_heap_give(&heap, c + 256));
    ck_assert_ptr_null(shmem_heap_find(&heap, b));
    ck_assert_uint_eq(shmem_heap_find(&heap, c + 300)->offset, c);
    ck_assert_ptr_null(shmem_heap_find(&heap, ROOM));
    end();
}

TEST(what_is_missing_is_said_in_numbers)
{
    uint64_t a, b, offset = 77;

    begin();
    ck_assert_int_eq(shmem_heap_take(&heap, ROOM / 2, &a), WEFT_OK);
    ck_assert_int_eq(shmem_heap_take(&heap, ROOM / 4, &b), WEFT_OK);
    ck_assert(shmem_heap_give(&heap, a));
    ck_assert_int_eq(shmem_heap_take(&heap, ROOM / 2 + 1, &offset), WEFT_ERR_NO_MEMORY);
    ck_assert_uint_eq(offset, 77);
    ck_assert_uint_eq(shmem_heap_largest(&heap), ROOM / 2);
    ck_assert_msg(strstr(said, "cannot allocate 524289 bytes of symmetric memory: of 1048576 bytes "
                               "786432 are free, 524288 of them in one piece") != NULL,
                  "%s", said);
    ck_assert_int_eq(shmem_heap_take(&heap, UINT64_MAX, &offset), WEFT_ERR_NO_MEMORY);
    ck_assert_int_eq(shmem_heap_take(&heap, ROOM / 2, &offset), WEFT_OK);
    end();
}

/* A map of the owner of each 256-byte piece. */
TEST(parts_come_and_go_and_never_overlap)
{
    static int owner[ROOM / 256];
    struct {
        uint64_t offset, pieces;
    } parts[PARTS] = {{0, 0}};
    uint64_t state;

    begin();
    memset(owner, 0, sizeof owner);
    test_seed_begin("parts_come_and_go_and_never_overlap");
    state = test_state(0);
    for (int steps = test_cases(STEPS); steps > 0; steps--) {
        uint64_t drawn =
            (state = state * UINT64_C(6364136223846793005) + 1442695040888963407) >> 33;
        int i = (int)(drawn % PARTS);
        uint64_t bytes = drawn / PARTS % 20000;
        if (parts[i].pieces > 0) {
            ck_assert(shmem_heap_give(&heap, parts[i].offset));
        } else if (shmem_heap_take(&heap, bytes, &parts[i].offset) == WEFT_OK) {
            parts[i].pieces = (bytes > 0 ? bytes + 255 : 256) / 256;
            for (uint64_t p = 0; p < parts[i].pieces; p++) {
                ck_assert_int_eq(owner[parts[i].offset / 256 + p], 0);
                owner[parts[i].offset / 256 + p] = 1;
            }
            continue;
        }
        for (uint64_t p = 0; p < parts[i].pieces; p++)
            owner[parts[i].offset / 256 + p] = 0;
        parts[i].pieces = 0;
    }
    for (int i = 0; i < PARTS; i++)
        if (parts[i].pieces > 0) ck_assert(shmem_heap_give(&heap, parts[i].offset));
    ck_assert_uint_eq(heap.count, 1);
    ck_assert_uint_eq(heap.used, 0);
    end();
}
