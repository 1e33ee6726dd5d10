/* cases_moving.c - results of put, get and barrier. */
#include "rank.h"

#include <stdlib.h>
#include <string.h>

/* Each rank has a share of every rank's memory.  The byte between two shares is never written. */
static uint64_t share_at(uint64_t bytes, int32_t rank)
{
    return (bytes + 1) * (uint64_t)rank + 1;
}

static bool put_shares(struct rank *self, weft_symm *symm, uint64_t bytes, uint8_t *host,
                       uint8_t *source, weft_stream *stream)
{
    for (int32_t peer = 0; peer < self->size; peer++) {
        for (uint64_t i = 0; i < bytes; i++)
            host[i] = byte_of(self->number, peer, i);
        if (!upload(self, source + share_at(bytes, peer), host, bytes) ||
            !OK(weft_symm_put_to(symm, source + share_at(bytes, peer), peer,
                                 share_at(bytes, self->number), bytes, stream)))
            return false;
    }
    return OK(weft_symm_barrier(symm, stream)) && finish(self, stream);
}

static void check_shares(struct rank *self, const uint8_t *all, uint64_t bytes)
{
    for (int32_t peer = 0; peer < self->size; peer++) {
        const uint8_t *share = all + share_at(bytes, peer);

        check(self, share[-1] == 0 && share[bytes] == 0, "rank %d wrote beyond %llu bytes", peer,
              (unsigned long long)bytes);
        for (uint64_t i = 0; i < bytes; i++)
            if (!check(self, share[i] == byte_of(peer, self->number, i),
                       "byte %llu of %llu of rank %d is %d, not %d", (unsigned long long)i,
                       (unsigned long long)bytes, peer, share[i], byte_of(peer, self->number, i)))
                return;
    }
}

static void put_some(struct rank *self, uint64_t bytes, weft_stream *stream)
{
    uint64_t all = share_at(bytes, self->size);
    weft_symm *symm = make(self, self->world, all, 1);
    uint8_t *host = malloc(all), *source = take(self, all);

    if (symm != NULL && host != NULL && source != NULL &&
        put_shares(self, symm, bytes, host, source, stream) &&
        download(self, host, weft_symm_local(symm), all))
        check_shares(self, host, bytes);
    give(self, source);
    free(host);
    weft_symm_release(&symm);
}

static const uint64_t sizes[] = {1, 2, 4, 7, 8, 16, 1021, 100003};

static void puts_land_where_they_are_sent(struct rank *self)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        put_some(self, sizes[i], NULL);
}

static void puts_on_streams_do_so_too(struct rank *self)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        put_some(self, sizes[i], self->stream);
}

/* Each round fills, puts, overwrites the source and reads the received data, without waits in
 * between. */
static bool move_in_order(struct rank *self, weft_symm *symm, uint8_t *memory, uint8_t round)
{
    int32_t right = (self->number + 1) % self->size;
    uint8_t *source = memory, *target = memory + 4096, *kept = memory + 8192;
    weft_stream *stream = self->stream;
    uint8_t seen[4096];

    if (!OK(weft_memory_fill(self->context, source, round, 4096, stream)) ||
        !OK(weft_symm_put_to(symm, source, right, 0, 4096, stream)) ||
        !OK(weft_memory_fill(self->context, source, 0xee, 4096, stream)) ||
        !OK(weft_symm_barrier(symm, stream)) ||
        !OK(weft_symm_get_from(symm, right, 0, target, 4096, stream)) ||
        !OK(weft_memory_copy(self->context, target, kept, 4096, stream)) ||
        !OK(weft_memory_fill(self->context, target, 0xdd, 4096, stream)) ||
        !OK(weft_symm_barrier(symm, stream)) || !finish(self, stream) ||
        !download(self, seen, kept, sizeof seen))
        return false;
    for (size_t i = 0; i < sizeof seen; i++)
        if (!check(self, seen[i] == round, "round %d: byte %zu is %d", round, i, seen[i]))
            return false;
    return true;
}

static void moves_keep_the_order_of_their_stream(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 4096, 1);
    uint8_t *memory = take(self, 3 * 4096);
    int rounds = self->rounds / 16 + 1;

    for (int round = 1; symm != NULL && memory != NULL && round <= rounds; round++)
        if (!move_in_order(self, symm, memory, (uint8_t)(round % 200))) break;
    give(self, memory);
    weft_symm_release(&symm);
}

/* Every rank reads its share of every rank's memory. */
static void get_some(struct rank *self, uint64_t bytes)
{
    uint64_t all = share_at(bytes, self->size);
    weft_symm *symm = make(self, self->world, all, 1);
    uint8_t *host = calloc(1, all), *target = take(self, all);
    bool good = symm != NULL && host != NULL && target != NULL;

    for (int32_t peer = 0; good && peer < self->size; peer++)
        for (uint64_t i = 0; i < bytes; i++)
            host[share_at(bytes, peer) + i] = byte_of(self->number, peer, i);
    good = good && upload(self, weft_symm_local(symm), host, all) &&
           OK(weft_memory_fill(self->context, target, 0, all, NULL)) && finish(self, NULL) &&
           OK(weft_symm_barrier(symm, self->stream));
    for (int32_t peer = 0; good && peer < self->size; peer++)
        good = OK(weft_symm_get_from(symm, peer, share_at(bytes, self->number),
                                     target + share_at(bytes, peer), bytes, self->stream));
    if (good && finish(self, self->stream) && download(self, host, target, all))
        check_shares(self, host, bytes);
    if (good) OK(weft_symm_barrier(symm, self->stream));
    finish(self, self->stream);
    give(self, target);
    free(host);
    weft_symm_release(&symm);
}

static void gets_read_what_is_there(struct rank *self)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        get_some(self, sizes[i]);
}

static void nothing_may_be_moved(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 1);

    if (symm == NULL) return;
    OK(weft_symm_put_to(symm, NULL, 0, 64, 0, NULL));
    OK(weft_symm_get_from(symm, 0, 64, NULL, 0, NULL));
    OK(weft_symm_put_signal_to(symm, NULL, self->number, 0, 0, 0, 1, WEFT_SIGNAL_SET, NULL));
    OK(weft_symm_wait_from(symm, self->number, 0, WEFT_COMPARE_EQ, 1, 0, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
}

/* In every round each rank receives a word from the left.  The barriers separate rounds. */
static void rounds_are_kept_apart_by_barriers(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 8, 1);
    uint64_t *source = take(self, 8), value, seen;
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;

    for (int round = 0; symm != NULL && source != NULL && round < self->rounds / 4 + 1; round++) {
        value = (uint64_t)round * 100 + (uint64_t)self->number;
        if (!upload(self, source, &value, 8) ||
            !OK(weft_symm_put_to(symm, source, right, 0, 8, NULL)) ||
            !OK(weft_symm_barrier(symm, NULL)) || !finish(self, NULL) ||
            !download(self, &seen, weft_symm_local(symm), 8) ||
            !OK(weft_symm_barrier(symm, NULL)) || !finish(self, NULL))
            break;
        if (!check(self, seen == (uint64_t)round * 100 + (uint64_t)left, "round %d: %llu", round,
                   (unsigned long long)seen))
            break;
    }
    give(self, source);
    weft_symm_release(&symm);
}

static void two_memories_do_not_mix(struct rank *self)
{
    weft_symm *a = make(self, self->world, 64, 2), *b = make(self, self->world, 64, 2);
    uint8_t ones[64], *source = take(self, 64), seen[64];
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;

    memset(ones, 1, sizeof ones);
    if (a != NULL && b != NULL && source != NULL && upload(self, source, ones, 64) &&
        OK(weft_symm_put_signal_to(a, source, right, 0, 64, 1, 9, WEFT_SIGNAL_SET, NULL)) &&
        OK(weft_symm_wait_from(a, left, 1, WEFT_COMPARE_EQ, 9, 0, NULL)) && finish(self, NULL) &&
        download(self, seen, weft_symm_local(b), 64)) {
        for (size_t i = 0; i < sizeof seen; i++)
            check(self, seen[i] == 0, "what was put into the one is in the other");
        check(self, weft_symm_test_from(b, left, 1, WEFT_COMPARE_EQ, 9) == WEFT_IN_PROGRESS,
              "the signal of the one is the other's");
        OK(weft_symm_test_from(a, left, 1, WEFT_COMPARE_EQ, 9));
    }
    give(self, source);
    weft_symm_release(&a);
    weft_symm_release(&b);
}

const struct symm_case moving_cases[] = {
    {"puts_land_where_they_are_sent", puts_land_where_they_are_sent, 1},
    {"puts_on_streams_do_so_too", puts_on_streams_do_so_too, 1},
    {"moves_keep_the_order_of_their_stream", moves_keep_the_order_of_their_stream, 1},
    {"gets_read_what_is_there", gets_read_what_is_there, 1},
    {"nothing_may_be_moved", nothing_may_be_moved, 1},
    {"rounds_are_kept_apart_by_barriers", rounds_are_kept_apart_by_barriers, 1},
    {"two_memories_do_not_mix", two_memories_do_not_mix, 1},
    {NULL, NULL, 0}};
