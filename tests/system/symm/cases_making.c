/* cases_making.c - creation and queries of symmetric memory. */
#include "rank.h"

#include <stdio.h>
#include <string.h>

static void check_zero(struct rank *self, weft_symm *symm)
{
    uint8_t bytes[5000];

    if (download(self, bytes, weft_symm_local(symm), sizeof bytes))
        for (size_t i = 0; i < sizeof bytes; i++)
            check(self, bytes[i] == 0, "byte %zu is %d", i, bytes[i]);
    for (uint32_t channel = 0; channel < 3; channel++)
        for (int32_t peer = 0; peer < self->size; peer++)
            OK(weft_symm_test_from(symm, peer, channel, WEFT_COMPARE_EQ, 0));
}

/* Also in memory that was used before. */
static void it_is_zero_at_first(struct rank *self)
{
    for (int round = 0; round < 3 && !self->failed; round++) {
        weft_symm *symm = make(self, self->world, 5000, 3);

        if (symm == NULL) return;
        check_zero(self, symm);
        OK(weft_symm_barrier(symm, NULL));
        finish(self, NULL);
        OK(weft_memory_fill(self->context, weft_symm_local(symm), 0xff, 5000, NULL));
        for (uint32_t channel = 0; channel < 3; channel++)
            for (int32_t peer = 0; peer < self->size; peer++)
                OK(weft_symm_signal_to(symm, peer, channel, UINT64_MAX, WEFT_SIGNAL_SET, NULL));
        OK(weft_symm_barrier(symm, NULL));
        finish(self, NULL);
        weft_symm_release(&symm);
    }
}

static void it_answers(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 4096, 0);
    uint64_t offset = 0;
    char *local;

    if (symm == NULL) return;
    local = weft_symm_local(symm);
    check(self, weft_symm_comm(symm) == self->world, "another communicator");
    check(self, weft_symm_bytes(symm) == 4096, "bytes");
    check(self, weft_symm_channels(symm) == WEFT_SYMM_CHANNELS, "channels");
    check(self, strlen(weft_symm_backend(symm)) > 0, "no backend");
    check(self, weft_symm_peer(symm, self->number) == local, "the own pointer is not the own");
    check(self, weft_symm_peer(symm, -1) == NULL && weft_symm_peer(symm, self->size) == NULL,
          "pointers of no rank");
    OK(weft_symm_offset(symm, local + 96, 4000, &offset));
    check(self, offset == 96, "the offset is %llu", (unsigned long long)offset);
    refused(self, "a pointer past the end", weft_symm_offset(symm, local + 97, 4000, &offset),
            WEFT_ERR_INVALID, "4000 bytes at");
    refused(self, "a pointer before the start", weft_symm_offset(symm, local - 1, 1, &offset),
            WEFT_ERR_INVALID, "do not lie in this rank's memory, 4096 bytes");
    refused(self, "a pointer elsewhere", weft_symm_offset(symm, &symm, 1, &offset),
            WEFT_ERR_INVALID, "do not lie in");
    weft_symm_release(&symm);
    check(self, symm == NULL, "it is still there");
}

/* Access the peers' memory through their pointers, if they have any: the data that each rank wrote
 * itself, followed by a word from the left. */
static void peer_pointers_reach_the_peers(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 264, 1);
    uint8_t mine[256], theirs[264];
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;
    bool reached;

    for (uint64_t i = 0; i < sizeof mine; i++)
        mine[i] = byte_of(self->number, 0, i);
    if (symm == NULL || !upload(self, weft_symm_local(symm), mine, sizeof mine)) return;
    reached = weft_symm_peer(symm, left) != NULL; /* and so does left */
    if (weft_symm_peer(symm, right) != NULL)
        upload(self, (char *)weft_symm_peer(symm, right) + 256, mine, 8);
    if (!OK(weft_symm_barrier(symm, NULL)) || !finish(self, NULL)) return;
    for (int32_t peer = 0; peer < self->size; peer++) {
        void *pointer = weft_symm_peer(symm, peer);

        if (pointer == NULL) {
            printf("skipped: the memory of rank %d has no address here\n", peer);
            continue;
        }
        if (!download(self, theirs, pointer, sizeof theirs)) break;
        for (uint64_t i = 0; i < 256; i++)
            check(self, theirs[i] == byte_of(peer, 0, i), "byte %d of rank %d", (int)i, peer);
        for (uint64_t i = 0; peer == self->number && reached && i < 8; i++)
            check(self, theirs[256 + i] == byte_of(left, 0, i), "what rank %d wrote here", left);
    }
    OK(weft_symm_barrier(symm, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
}

/* Store to the slot of channel 1 on the right, as a kernel would. */
static void store_signal(struct rank *self, weft_symm_device device, void *const *buffers,
                         uint64_t *const *signals)
{
    int32_t right = (self->number + 1) % self->size;
    uint64_t value = 70 + (uint64_t)self->number;

    device.buffers = buffers;
    device.signals = signals;
    if (signals[right] != NULL)
        upload(self, weft_symm_slot(&device, right, 1, self->number), &value, sizeof value);
}

/* The arrays are in memory that kernels read: they are read as device memory. */
static void kernels_get_the_same_addresses(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 2);
    int32_t left = (self->number + self->size - 1) % self->size;
    uint64_t bytes = (uint64_t)self->size * sizeof(void *), *signals[64] = {NULL};
    weft_symm_device device = {0};
    void *buffers[64];
    weft_status status;

    if (symm == NULL) return;
    status = weft_symm_device_get(symm, &device);
    if (status == WEFT_ERR_UNSUPPORTED) {
        if (self->number == 0) printf("skipped: %s\n", weft_last_error());
    } else if (OK(status) && self->size <= 64 &&
               download(self, buffers, (const void *)device.buffers, bytes) &&
               download(self, signals, (const void *)device.signals, bytes)) {
        check(self, device.rank == self->number && device.size == self->size, "rank or size");
        check(self, device.bytes == 64 && device.channels == 2, "bytes or channels");
        for (int32_t peer = 0; peer < self->size; peer++)
            check(self, buffers[peer] == weft_symm_peer(symm, peer), "the address of rank %d",
                  peer);
        check(self, signals[self->number] != NULL, "no own signals");
        store_signal(self, device, buffers, signals);
        OK(weft_symm_barrier(symm, NULL));
        finish(self, NULL);
        if (weft_symm_peer(symm, left) != NULL)
            OK(weft_symm_test_from(symm, left, 1, WEFT_COMPARE_EQ, 70 + (uint64_t)left));
        OK(weft_symm_test_from(symm, left, 0, WEFT_COMPARE_EQ, 0));
    }
    weft_symm_release(&symm);
}

static void signals_need_no_memory(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 0, 1);
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;

    if (symm == NULL) return;
    OK(weft_symm_signal_to(symm, right, 0, 7, WEFT_SIGNAL_SET, NULL));
    OK(weft_symm_wait_from(symm, left, 0, WEFT_COMPARE_EQ, 7, 0, NULL));
    finish(self, NULL);
    refused(self, "a put to no memory", weft_symm_put_to(symm, &symm, right, 0, 1, NULL),
            WEFT_ERR_INVALID, "which has 0");
    weft_symm_release(&symm);
}

/* In an order different from the world's, and with one rank less. */
static void parts_of_the_world_have_their_own(struct rank *self)
{
    weft_comm *part = NULL;
    weft_symm *symm;
    int32_t rank, size, to, from;
    uint64_t value, *source, seen = 0;

    if (!OK(weft_comm_split(self->world, self->number == 0 ? 0 : 1, -self->number, NULL, &part)))
        return;
    rank = weft_comm_rank(part);
    size = weft_comm_size(part);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    value = 1000 + (uint64_t)self->number;
    symm = make(self, part, 8, 1);
    source = take(self, 8);
    if (symm != NULL && source != NULL && upload(self, source, &value, 8) &&
        OK(weft_symm_put_signal_to(symm, source, to, 0, 8, 0, 1, WEFT_SIGNAL_SET, NULL)) &&
        OK(weft_symm_wait_from(symm, from, 0, WEFT_COMPARE_EQ, 1, 0, NULL)) && finish(self, NULL) &&
        download(self, &seen, weft_symm_local(symm), 8))
        check(self, seen == 1000 + (uint64_t)weft_comm_world_rank(part, from), "it has %llu",
              (unsigned long long)seen);
    give(self, source);
    weft_symm_release(&symm);
    weft_comm_release(&part);
}

static void memory_there_is_may_be_registered(struct rank *self)
{
    char *memory = take(self, 8192);
    weft_symm *symm = NULL;
    uint64_t value = 5 + (uint64_t)self->number, seen = 0;
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;
    weft_status status = weft_symm_register(self->world, memory, 4096, NULL, &symm);

    if (status == WEFT_ERR_UNSUPPORTED) {
        if (self->number == 0) printf("skipped: %s\n", weft_last_error());
    } else if (OK(status)) {
        check(self, weft_symm_local(symm) == memory, "other memory");
        if (upload(self, memory + 4096, &value, 8) &&
            OK(weft_symm_put_signal_to(symm, memory + 4096, right, 64, 8, 0, 1, WEFT_SIGNAL_SET,
                                       NULL)) &&
            OK(weft_symm_wait_from(symm, left, 0, WEFT_COMPARE_EQ, 1, 0, NULL)) &&
            finish(self, NULL) && download(self, &seen, memory + 64, 8))
            check(self, seen == 5 + (uint64_t)left, "it has %llu", (unsigned long long)seen);
    }
    weft_symm_release(&symm);
    give(self, memory);
}

/* Neither created memory nor memory that is registered. */
static void only_its_release_frees_it(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 4096, 1), *registered = NULL;
    char *memory = take(self, 8192), *other = take(self, 4096), *local;
    weft_status status = weft_symm_register(self->world, memory + 4096, 64, NULL, &registered);

    if (status == WEFT_ERR_UNSUPPORTED && self->number == 0)
        printf("skipped: registering: %s\n", weft_last_error());
    if (symm == NULL) return;
    local = weft_symm_local(symm);
    refused(self, "freeing it", weft_free(self->context, local), WEFT_ERR_INVALID,
            "belongs to symmetric memory on world; weft_symm_release frees it");
    refused(self, "freeing it from within", weft_free(self->context, local + 4095),
            WEFT_ERR_INVALID, "belongs to symmetric memory");
    give(self, other);
    if (status != WEFT_ERR_UNSUPPORTED && OK(status))
        refused(self, "freeing what is registered in part", weft_free(self->context, memory),
                WEFT_ERR_INVALID, "is registered as symmetric memory on world");
    weft_symm_release(&registered);
    give(self, memory);
    weft_symm_release(&symm);
}

/* More than a small heap has at once. */
/* The release of one would free the memory of the other. */
static void symmetric_memory_is_not_registered_again(struct rank *self)
{
    weft_symm *outer = make(self, self->world, 4096, 1), *inner = NULL;
    weft_status status;

    if (outer == NULL) return;
    status = weft_symm_register(self->world, (char *)weft_symm_local(outer) + 64, 64, NULL, &inner);
    if (status != WEFT_ERR_UNSUPPORTED)
        refused(self, "a part of symmetric memory", status, WEFT_ERR_INVALID,
                "belongs to symmetric memory that weft_symm_create");
    weft_symm_release(&inner);
    weft_symm_release(&outer);
}

static void much_of_it_comes_and_goes(struct rank *self)
{
    for (int i = 0; i < 20 && !self->failed; i++) {
        weft_symm *a = make(self, self->world, 8 << 20, 1), *b = make(self, self->world, 100, 4);

        if (i % 2 == 0) weft_symm_release(&a);
        weft_symm_release(&b);
        weft_symm_release(&a);
    }
}

const struct symm_case making_cases[] = {
    {"it_is_zero_at_first", it_is_zero_at_first, 1},
    {"it_answers", it_answers, 1},
    {"peer_pointers_reach_the_peers", peer_pointers_reach_the_peers, 1},
    {"kernels_get_the_same_addresses", kernels_get_the_same_addresses, 1},
    {"signals_need_no_memory", signals_need_no_memory, 1},
    {"parts_of_the_world_have_their_own", parts_of_the_world_have_their_own, 2},
    {"memory_there_is_may_be_registered", memory_there_is_may_be_registered, 1},
    {"only_its_release_frees_it", only_its_release_frees_it, 1},
    {"symmetric_memory_is_not_registered_again", symmetric_memory_is_not_registered_again, 1},
    {"much_of_it_comes_and_goes", much_of_it_comes_and_goes, 1},
    {NULL, NULL, 0}};
