/* cases_signals.c - signals, channels, waits. */
#include "rank.h"

#include <stdio.h>

static void whoever_sees_the_signal_has_the_data(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 4096, 3);
    uint8_t host[1000], seen[1000] = {0}, *source = take(self, sizeof host);
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;

    for (uint64_t i = 0; i < sizeof host; i++)
        host[i] = byte_of(self->number, right, i);
    if (symm != NULL && source != NULL && upload(self, source, host, sizeof host) &&
        OK(weft_symm_put_signal_to(symm, source, right, 17, sizeof host, 2, 77, WEFT_SIGNAL_SET,
                                   self->stream)) &&
        OK(weft_symm_wait_from(symm, left, 2, WEFT_COMPARE_EQ, 77, 0, self->stream)) &&
        finish(self, self->stream) &&
        download(self, seen, (char *)weft_symm_local(symm) + 17, sizeof seen))
        for (uint64_t i = 0; i < sizeof seen; i++)
            check(self, seen[i] == byte_of(left, self->number, i), "byte %d", (int)i);
    give(self, source);
    weft_symm_release(&symm);
}

/* Every rank adds to its slot on every rank.  Each slot has one sender's sum. */
static void every_sender_has_a_slot_of_its_own(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 3);
    int adds = self->rounds / 4 + 1;

    for (int i = 0; symm != NULL && i < adds; i++)
        for (int32_t peer = 0; peer < self->size; peer++)
            if (!OK(weft_symm_signal_to(symm, peer, 1, (uint64_t)self->number + 1, WEFT_SIGNAL_ADD,
                                        NULL)))
                adds = 0;
    for (int32_t peer = 0; symm != NULL && peer < self->size; peer++)
        OK(weft_symm_wait_from(symm, peer, 1, WEFT_COMPARE_EQ,
                               (uint64_t)adds * ((uint64_t)peer + 1), 0, NULL));
    if (symm != NULL && finish(self, NULL) && OK(weft_symm_barrier(symm, NULL)) &&
        finish(self, NULL))
        for (int32_t peer = 0; peer < self->size; peer++) {
            OK(weft_symm_test_from(symm, peer, 0, WEFT_COMPARE_EQ, 0));
            OK(weft_symm_test_from(symm, peer, 1, WEFT_COMPARE_EQ,
                                   (uint64_t)adds * ((uint64_t)peer + 1)));
            OK(weft_symm_test_from(symm, peer, 2, WEFT_COMPARE_EQ, 0));
        }
    weft_symm_release(&symm);
}

static bool set_own(struct rank *self, weft_symm *symm, uint64_t value)
{
    return OK(weft_symm_signal_to(symm, self->number, 0, value, WEFT_SIGNAL_SET, NULL)) &&
           OK(weft_symm_quiet(symm, NULL)) && finish(self, NULL);
}

/* The slot is 5.  Comparisons that do not hold are waited for on a stream, until the slot has a
 * matching value. */
struct comparison {
    uint32_t compare;
    uint64_t value;
    bool holds;
    uint64_t until;
};

static void wait_until_it_holds(struct rank *self, weft_symm *symm, const struct comparison *one)
{
    if (self->stream == NULL ||
        !OK(weft_symm_wait_from(symm, self->number, 0, one->compare, one->value, 0, self->stream)))
        return;
    pause_ns(SECOND / 200);
    check(self, weft_stream_test(self->stream) == WEFT_IN_PROGRESS,
          "comparison %u of 5 with %llu ends a wait", one->compare, (unsigned long long)one->value);
    set_own(self, symm, one->until);
    finish(self, self->stream);
    set_own(self, symm, 5);
}

static void comparisons_are_what_they_say(struct rank *self)
{
    static const struct comparison table[] = {
        {WEFT_COMPARE_EQ, 5, true, 0},
        {WEFT_COMPARE_EQ, 4, false, 4},
        {WEFT_COMPARE_EQ, 6, false, 6},
        {WEFT_COMPARE_NE, 4, true, 0},
        {WEFT_COMPARE_NE, 6, true, 0},
        {WEFT_COMPARE_NE, 5, false, 6},
        {WEFT_COMPARE_GE, 4, true, 0},
        {WEFT_COMPARE_GE, 5, true, 0},
        {WEFT_COMPARE_GE, 6, false, 6},
        {WEFT_COMPARE_GT, 4, true, 0},
        {WEFT_COMPARE_GT, 5, false, 6},
        {WEFT_COMPARE_GT, UINT64_MAX - 1, false, UINT64_MAX},
        {WEFT_COMPARE_LE, 6, true, 0},
        {WEFT_COMPARE_LE, 5, true, 0},
        {WEFT_COMPARE_LE, UINT64_MAX, true, 0},
        {WEFT_COMPARE_LE, 4, false, 4},
        {WEFT_COMPARE_LT, 6, true, 0},
        {WEFT_COMPARE_LT, UINT64_MAX, true, 0},
        {WEFT_COMPARE_LT, 5, false, 4},
    };
    weft_symm *symm = make(self, self->world, 0, 1);

    if (symm == NULL || !set_own(self, symm, 5)) return;
    for (size_t i = 0; i < COUNT(table) && !self->failed; i++) {
        const struct comparison *one = &table[i];
        weft_status status = weft_symm_test_from(symm, self->number, 0, one->compare, one->value);

        check(self, status == (one->holds ? WEFT_OK : WEFT_IN_PROGRESS),
              "comparison %u of 5 with %llu gives %s", one->compare, (unsigned long long)one->value,
              weft_status_name(status));
        if (!one->holds)
            wait_until_it_holds(self, symm, one);
        else if (OK(weft_symm_wait_from(symm, self->number, 0, one->compare, one->value, 0, NULL)))
            finish(self, NULL);
    }
    weft_symm_release(&symm);
}

static void values_have_all_their_bits(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 0, 1);
    uint64_t large = UINT64_C(0xfedcba9876543210);

    if (symm == NULL) return;
    OK(weft_symm_signal_to(symm, self->number, 0, large, WEFT_SIGNAL_SET, NULL));
    OK(weft_symm_signal_to(symm, self->number, 0, UINT64_MAX, WEFT_SIGNAL_ADD, NULL));
    OK(weft_symm_wait_from(symm, self->number, 0, WEFT_COMPARE_EQ, large - 1, 0, NULL));
    finish(self, NULL);
    check(self,
          weft_symm_test_from(symm, self->number, 0, WEFT_COMPARE_EQ, (uint32_t)(large - 1)) ==
                  WEFT_IN_PROGRESS &&
              weft_symm_test_from(symm, self->number, 0, WEFT_COMPARE_EQ,
                                  (large - 1) ^ UINT64_C(1) << 63) == WEFT_IN_PROGRESS,
          "a comparison leaves bits out");
    weft_symm_release(&symm);
}

/* Rank 0 begins each round with a new number.  Each rank passes it on, and rank 0 receives it at
 * the end. */
static bool relay(struct rank *self, weft_symm *symm, void *number, uint64_t round)
{
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;
    char *got = (char *)weft_symm_local(symm) + 8;

    if (self->number == 0)
        OK(weft_memory_fill(self->context, number, (uint8_t)round, 8, self->stream));
    else
        OK(weft_symm_wait_from(symm, left, 0, WEFT_COMPARE_GE, round, 0, self->stream));
    OK(weft_symm_put_signal_to(symm, self->number == 0 ? number : got, right, 8, 8, 0, round,
                               WEFT_SIGNAL_SET, self->stream));
    if (self->number == 0)
        OK(weft_symm_wait_from(symm, left, 0, WEFT_COMPARE_GE, round, 0, self->stream));
    return !self->failed;
}

/* All of it is posted to streams before any wait. */
static void a_relay_runs_on_streams_alone(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64, 1);
    uint64_t round = 0, rounds = (uint64_t)self->rounds / 8 + 1, seen = 0;
    uint64_t *number = take(self, 8);

    if (symm != NULL && number != NULL) {
        while (round < rounds && relay(self, symm, number, round + 1))
            round++;
        if (finish(self, self->stream) &&
            download(self, &seen, (char *)weft_symm_local(symm) + 8, 8))
            check(self, seen == (rounds & 255) * UINT64_C(0x0101010101010101),
                  "after %d rounds it has %llx", (int)rounds, (unsigned long long)seen);
    }
    give(self, number);
    if (symm != NULL) OK(weft_symm_barrier(symm, NULL));
    finish(self, NULL);
    weft_symm_release(&symm);
}

/* A work can represent a wait. */
static void a_work_may_stand_for_a_wait(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 0, 1);
    int32_t right = (self->number + 1) % self->size;
    int32_t left = (self->number + self->size - 1) % self->size;
    weft_work *work = NULL;

    if (symm == NULL) return;
    if (self->stream == NULL) { /* the wait would block the test */
        weft_symm_release(&symm);
        return;
    }
    if (OK(weft_symm_wait_from(symm, left, 0, WEFT_COMPARE_GE, 3, 0, self->stream)) &&
        OK(weft_work_record(self->context, self->stream, &work))) {
        check(self, weft_work_test(work) == WEFT_IN_PROGRESS || self->size > 1, "it is done");
        OK(weft_symm_signal_to(symm, right, 0, 3, WEFT_SIGNAL_SET, NULL));
        OK(weft_work_wait(work, 300 * SECOND));
    }
    weft_work_release(&work);
    finish(self, NULL);
    weft_symm_release(&symm);
}

/* A pending wait on a stream does not block a test from the host. */
static void a_test_waits_for_no_stream(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 0, 2);
    weft_device_info info = {.struct_size = sizeof info};
    bool done_on_return;
    int64_t began;

    if (symm == NULL || self->stream == NULL) {
        weft_symm_release(&symm);
        return;
    }
    OK(weft_device_get(self->context, &info));
    done_on_return = (info.features & WEFT_FEATURE_INLINE) != 0;
    OK(weft_symm_wait_from(symm, self->number, 0, WEFT_COMPARE_GE, 1, 3600 * SECOND,
                           done_on_return ? self->stream : NULL));
    began = now_ns();
    check(self, weft_symm_test_from(symm, self->number, 0, WEFT_COMPARE_GE, 1) == WEFT_IN_PROGRESS,
          "the signal is there already");
    OK(weft_symm_test_from(symm, self->number, 1, WEFT_COMPARE_EQ, 0));
    check(self, now_ns() - began < 1800 * SECOND, "it waited for the stream");
    OK(weft_symm_signal_to(symm, self->number, 0, 1, WEFT_SIGNAL_SET,
                           done_on_return ? NULL : self->stream));
    finish(self, NULL);
    finish(self, self->stream);
    weft_symm_release(&symm);
}

const struct symm_case signal_cases[] = {
    {"whoever_sees_the_signal_has_the_data", whoever_sees_the_signal_has_the_data, 1},
    {"every_sender_has_a_slot_of_its_own", every_sender_has_a_slot_of_its_own, 1},
    {"comparisons_are_what_they_say", comparisons_are_what_they_say, 1},
    {"values_have_all_their_bits", values_have_all_their_bits, 1},
    {"a_relay_runs_on_streams_alone", a_relay_runs_on_streams_alone, 1},
    {"a_work_may_stand_for_a_wait", a_work_may_stand_for_a_wait, 1},
    {"a_test_waits_for_no_stream", a_test_waits_for_no_stream, 1},
    {NULL, NULL, 0}};
