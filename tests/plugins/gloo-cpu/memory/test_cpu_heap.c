/* The shared heap: blocks do not overlap, are merged, and are returned to the system. */
#include "memory/cpu_heap.h"

#include "support/suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 300

static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % limit;
}

static struct cpu_heap open_heap(void)
{
    struct cpu_heap heap = {0};

    ck_assert_int_eq(cpu_heap_create(&heap), WEFT_OK);
    return heap;
}

static bool knows_its_bins(const struct cpu_heap *heap)
{
    for (unsigned bin = 0; bin < HEAP_BINS; bin++)
        if ((heap->filled[bin / 64] >> bin % 64 & 1) != (heap->bins[bin] != NULL)) return false;
    return true;
}

TEST(blocks_keep_what_is_written_and_never_overlap)
{
    struct cpu_heap heap = open_heap();
    unsigned char *blocks[BLOCKS] = {0};
    uint64_t sizes[BLOCKS] = {0};

    test_seed_begin("blocks_keep_what_is_written_and_never_overlap");
    state = test_state(0);
    for (int rounds = test_cases(20000); rounds > 0; rounds--) {
        uint64_t i = below(BLOCKS);
        void *memory = NULL;

        ck_assert(knows_its_bins(&heap));
        if (blocks[i] != NULL) {
            for (uint64_t k = 0; k < sizes[i]; k += 61)
                ck_assert_uint_eq(blocks[i][k], (unsigned char)(i + k));
            ck_assert(cpu_heap_free(&heap, blocks[i]));
            blocks[i] = NULL;
            continue;
        }
        sizes[i] = below(10) == 0 ? below(300000) : below(3000);
        ck_assert_int_eq(cpu_heap_allocate(&heap, sizes[i], 0, &memory), WEFT_OK);
        ck_assert_uint_eq((uintptr_t)memory % HEAP_ALIGNMENT, 0);
        blocks[i] = memory;
        for (uint64_t k = 0; k < sizes[i]; k++)
            blocks[i][k] = (unsigned char)(i + k);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i] != NULL) ck_assert(cpu_heap_free(&heap, blocks[i]));
    ck_assert_uint_eq(heap.used, 0);
    ck_assert_uint_eq(heap.idle, heap.segment.bytes);
    ck_assert_ptr_eq(heap.first, heap.last);
    cpu_heap_close(&heap);
}

/* Small blocks fill the segment to its last bytes, and it grows. */
TEST(many_small_blocks_fit)
{
    for (uint64_t units = 1; units <= 8; units++) {
        struct cpu_heap heap = open_heap();
        void *memory;

        for (int i = 0; i < 20000; i++)
            ck_assert_msg(cpu_heap_allocate(&heap, units * HEAP_ALIGNMENT, 0, &memory) == WEFT_OK,
                          "block %d of %d units", i, (int)units);
        ck_assert_uint_eq(heap.used, 20000 * units * HEAP_ALIGNMENT);
        cpu_heap_close(&heap);
    }
}

TEST(the_same_memory_is_used_again)
{
    struct cpu_heap heap = open_heap();
    void *first = NULL, *again = NULL;
    uint64_t bytes;

    ck_assert_int_eq(cpu_heap_allocate(&heap, 5u << 20, 0, &first), WEFT_OK);
    bytes = heap.segment.bytes;
    for (int i = 0; i < 1000; i++) {
        ck_assert(cpu_heap_free(&heap, first));
        ck_assert_int_eq(cpu_heap_allocate(&heap, 5u << 20, 0, &again), WEFT_OK);
        ck_assert_ptr_eq(first, again);
    }
    ck_assert_uint_eq(heap.segment.bytes, bytes);
    cpu_heap_close(&heap);
}

TEST(what_was_not_handed_out_is_not_taken_back)
{
    struct cpu_heap heap = open_heap();
    struct cpu_allocation found;
    void *memory = NULL;
    int other;

    ck_assert_int_eq(cpu_heap_allocate(&heap, 1000, 7, &memory), WEFT_OK);
    ck_assert(!cpu_heap_free(&heap, &other));
    ck_assert(!cpu_heap_free(&heap, (char *)memory + 128));
    ck_assert(cpu_heap_find(&heap, (char *)memory + 999, &found));
    ck_assert_ptr_eq(found.base, memory);
    ck_assert_uint_eq(found.bytes, 1000); /* as requested, not as rounded up */
    ck_assert_uint_eq(found.kind, 7);
    ck_assert(!cpu_heap_find(&heap, &other, &found));
    ck_assert(cpu_heap_free(&heap, memory));
    ck_assert(!cpu_heap_find(&heap, memory, &found));
    ck_assert(!cpu_heap_free(&heap, memory));
    cpu_heap_close(&heap);
}

static uint64_t pages_of(const struct cpu_heap *heap)
{
    struct stat about;

    ck_assert_int_eq(fstat(heap->segment.fd, &about), 0);
    return (uint64_t)about.st_blocks * 512;
}

TEST(more_idle_memory_than_is_kept_goes_back_to_the_system)
{
    struct cpu_heap heap = open_heap();
    unsigned char *memory = NULL;
    void *pointer = NULL;

    heap.keep = 1u << 20;
    ck_assert_int_eq(cpu_heap_allocate(&heap, 8u << 20, 0, &pointer), WEFT_OK);
    ck_assert_uint_ge(pages_of(&heap), 8u << 20);
    ck_assert(cpu_heap_free(&heap, pointer));
    ck_assert_uint_lt(pages_of(&heap), 1u << 20);
    ck_assert_int_eq(cpu_heap_allocate(&heap, 6u << 20, 0, &pointer), WEFT_OK);
    memory = pointer;
    memory[0] = memory[(6u << 20) - 1] = 1;
    ck_assert_uint_ge(pages_of(&heap), 6u << 20);
    cpu_heap_close(&heap);
}

TEST(too_much_is_refused_with_both_numbers)
{
    struct cpu_heap heap = open_heap();
    void *memory = NULL;

    ck_assert_int_eq(cpu_heap_allocate(&heap, heap.segment.reserved + 1, 0, &memory),
                     WEFT_ERR_NO_MEMORY);
    ck_assert_int_eq(cpu_heap_allocate(&heap, UINT64_MAX - 10, 0, &memory), WEFT_ERR_NO_MEMORY);
    ck_assert_int_eq(cpu_heap_allocate(&heap, 0, 0, &memory), WEFT_OK);
    ck_assert(cpu_heap_free(&heap, memory));
    cpu_heap_close(&heap);
}

TEST(retired_memory_stays_until_its_counter_says_so)
{
    struct cpu_heap heap = open_heap();
    _Atomic(uint32_t) *counter;
    void *pointers[2] = {NULL, NULL};

    ck_assert_int_eq(cpu_heap_allocate(&heap, 100, 0, &pointers[0]), WEFT_OK);
    ck_assert_int_eq(cpu_heap_allocate(&heap, 100, 0, &pointers[1]), WEFT_OK);
    counter = pointers[0];
    atomic_store(counter, 0);
    cpu_heap_retire(&heap, 2, pointers, counter, 2);
    ck_assert_uint_eq(heap.used, 256);
    atomic_store(counter, 1);
    cpu_heap_sweep(&heap);
    ck_assert_uint_eq(heap.used, 256);
    atomic_store(counter, 2);
    cpu_heap_sweep(&heap);
    ck_assert_uint_eq(heap.used, 0);
    cpu_heap_close(&heap);
}

TEST(another_process_sees_memory_that_grew_after_it_was_mapped)
{
    struct cpu_heap heap = open_heap();
    struct cpu_segment_address address;
    unsigned char *memory;
    void *pointer = NULL;
    int to_child[2], to_parent[2], status;
    char byte = 0;
    pid_t child;

    ck_assert_int_eq(cpu_segment_describe(&heap.segment, &address), WEFT_OK);
    ck_assert(pipe(to_child) == 0 && pipe(to_parent) == 0);
    child = fork();
    if (child == 0) {
        uint8_t *base = NULL;
        uint64_t offset, bytes;

        if (cpu_segment_attach(&address, &base, &bytes) != WEFT_OK) _exit(1);
        if (write(to_parent[1], "m", 1) != 1) _exit(2);
        if (read(to_child[0], &offset, sizeof offset) != sizeof offset) _exit(3);
        if (base[offset] != 42) _exit(4);
        base[offset + 1] = 43;
        cpu_segment_detach(&address);
        _exit(0);
    }
    ck_assert_int_eq(read(to_parent[0], &byte, 1), 1);
    ck_assert_int_eq(cpu_heap_allocate(&heap, 3u << 20, 0, &pointer), WEFT_OK);
    memory = pointer;
    memory[2u << 20] = 42;
    uint64_t offset = (uint64_t)(memory - heap.segment.base) + (2u << 20);
    ck_assert_int_eq(write(to_child[1], &offset, sizeof offset), sizeof offset);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(memory[(2u << 20) + 1], 43);
    cpu_heap_close(&heap);
}

TEST(a_wrong_file_is_noticed)
{
    struct cpu_heap heap = open_heap();
    struct cpu_segment_address address;
    uint8_t *base = NULL;
    uint64_t bytes;
    weft_status status;

    ck_assert_int_eq(cpu_segment_describe(&heap.segment, &address), WEFT_OK);
    address.process.token[0] ^= 1; /* so the segment is looked up as another process's */
    address.inode++;
    ck_assert_int_eq(cpu_segment_attach(&address, &base, &bytes), WEFT_ERR_SYSTEM);
    address.inode--;
    status = cpu_segment_attach(&address, &base, &bytes);
    if (status == WEFT_ERR_NO_MEMORY) { /* under the thread sanitizer */
        printf("skipped: there is no address space to map the heap twice\n");
    } else {
        ck_assert_int_eq(status, WEFT_OK);
        ck_assert_ptr_ne(base, heap.segment.base);
        cpu_segment_detach(&address);
    }
    address.fd = 12345;
    ck_assert_int_eq(cpu_segment_attach(&address, &base, &bytes), WEFT_ERR_SYSTEM);
    cpu_heap_close(&heap);
}

TEST(memory_stays_while_another_rank_of_the_process_uses_it)
{
    struct cpu_heap heap = open_heap();
    struct cpu_segment_address address;
    uint8_t *base = NULL;
    uint64_t bytes;
    void *memory = NULL;

    ck_assert_int_eq(cpu_heap_allocate(&heap, 100, 0, &memory), WEFT_OK);
    ck_assert_int_eq(cpu_segment_describe(&heap.segment, &address), WEFT_OK);
    ck_assert_int_eq(cpu_segment_attach(&address, &base, &bytes), WEFT_OK);
    ck_assert_ptr_eq(base, heap.segment.base);
    ck_assert_uint_eq(bytes, heap.segment.bytes);
    cpu_heap_close(&heap);
    ((unsigned char *)memory)[0] = 1; /* still mapped */
    cpu_segment_detach(&address);
}
