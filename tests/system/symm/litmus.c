/* litmus.c - orders of events between ranks that must not be observed, tried many times.  The ranks
 * communicate through the memory only, because any other way would order accesses. */
#include "rank.h"

#define WORDS 48 /* several cache lines, which never arrive at once */

static bool tell(struct rank *self, weft_symm *symm, uint32_t channel, uint64_t value, int32_t peer)
{
    return OK(weft_symm_signal_to(symm, peer, channel, value, WEFT_SIGNAL_SET, NULL));
}

static bool hear(struct rank *self, weft_symm *symm, uint32_t channel, uint64_t value, int32_t peer)
{
    return OK(weft_symm_wait_from(symm, peer, channel, WEFT_COMPARE_GE, value, 0, NULL)) &&
           finish(self, NULL);
}

static bool check_message(struct rank *self, const void *memory, uint64_t round)
{
    uint64_t seen[WORDS];

    if (!download(self, seen, memory, sizeof seen)) return false;
    for (uint64_t i = 0; i < WORDS; i++)
        if (!check(self, seen[i] == round * 1000 + i,
                   "round %llu: the signal came, but word %d was still %llu",
                   (unsigned long long)round, (int)i, (unsigned long long)seen[i]))
            return false;
    return true;
}

static bool write_message(struct rank *self, void *source, uint64_t round)
{
    uint64_t words[WORDS];

    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = round * 1000 + i;
    return upload(self, source, words, sizeof words);
}

/* Rank 0 writes to rank 1 and then notifies it in one of three ways.  Rank 1 must see all data. */
enum way { WITH_THE_PUT, AFTER_FENCE, AFTER_QUIET };

static bool send_message(struct rank *self, weft_symm *symm, void *source, uint64_t round,
                         enum way way)
{
    if (way == WITH_THE_PUT)
        return OK(weft_symm_put_signal_to(symm, source, 1, 64, WORDS * 8, 0, round, WEFT_SIGNAL_SET,
                                          NULL));
    return OK(weft_symm_put_to(symm, source, 1, 64, WORDS * 8, NULL)) &&
           (way == AFTER_FENCE ? OK(weft_symm_fence(symm, NULL))
                               : OK(weft_symm_quiet(symm, NULL))) &&
           tell(self, symm, 0, round, 1);
}

static void pass_messages(struct rank *self, enum way way)
{
    weft_symm *symm = make(self, self->world, 64 + WORDS * 8, 2);
    void *source = take(self, WORDS * 8);
    uint64_t rounds = (uint64_t)self->rounds;

    for (uint64_t round = 1; symm != NULL && source != NULL && round <= rounds; round++) {
        bool good = true;

        if (self->number == 0)
            good = write_message(self, source, round) &&
                   send_message(self, symm, source, round, way) && hear(self, symm, 1, round, 1);
        else if (self->number == 1)
            good = hear(self, symm, 0, round, 0) &&
                   check_message(self, (char *)weft_symm_local(symm) + 64, round) &&
                   tell(self, symm, 1, round, 0);
        if (!good) break;
    }
    finish(self, NULL);
    give(self, source);
    weft_symm_release(&symm);
}

static void a_put_arrives_before_its_signal(struct rank *self)
{
    pass_messages(self, WITH_THE_PUT);
}

static void a_put_arrives_before_a_signal_after_fence(struct rank *self)
{
    pass_messages(self, AFTER_FENCE);
}

static void a_put_has_arrived_after_quiet(struct rank *self)
{
    pass_messages(self, AFTER_QUIET);
}

/* Two puts with a fence between them: a rank that sees the second sees the first.  Rank 1 reads its
 * own memory with gets, the later word first. */
static void puts_arrive_in_order_across_a_fence(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 4096, 1);
    uint64_t *words = take(self, 16), rounds = (uint64_t)self->rounds, seen[2] = {0, 0};
    bool good = symm != NULL && words != NULL;

    for (uint64_t round = 1; good && self->number == 0 && round <= rounds; round++)
        good = upload(self, words, &round, 8) && OK(weft_symm_put_to(symm, words, 1, 0, 8, NULL)) &&
               OK(weft_symm_fence(symm, NULL)) &&
               OK(weft_symm_put_to(symm, words, 1, 2048, 8, NULL)) &&
               OK(weft_symm_fence(symm, NULL)) && finish(self, NULL);
    while (good && self->number == 1 && seen[1] < rounds)
        good = OK(weft_symm_get_from(symm, 1, 2048, words + 1, 8, NULL)) && finish(self, NULL) &&
               OK(weft_symm_get_from(symm, 1, 0, words, 8, NULL)) && finish(self, NULL) &&
               download(self, seen, words, 16) &&
               check(self, seen[0] >= seen[1], "the second put of round %llu came before the first",
                     (unsigned long long)seen[1]);
    give(self, words);
    weft_symm_release(&symm);
}

/* Exchange with the other rank what was SEEN in ROUND. */
static bool compare_notes(struct rank *self, weft_symm *symm, uint64_t round, uint64_t seen,
                          uint64_t *theirs)
{
    int32_t other = 1 - self->number;

    if (!tell(self, symm, 0, round * 2 + seen, other) || !hear(self, symm, 0, round * 2, other))
        return false;
    *theirs = weft_symm_test_from(symm, other, 0, WEFT_COMPARE_EQ, round * 2 + 1) == WEFT_OK;
    /* Neither rank continues before both have read. */
    return tell(self, symm, 1, round, other) && hear(self, symm, 1, round, other);
}

/* Each rank writes to the other and, after quiet, reads its own memory.  At least one must see the
 * other's put. */
static void of_two_crossing_puts_one_is_seen(struct rank *self)
{
    uint64_t rounds = (uint64_t)self->rounds / 2 + 1;
    weft_symm *symm = make(self, self->world, 8 * (rounds + 1), 2);
    uint64_t *words = take(self, 16), one = 1, seen = 0, theirs = 0;
    bool good = symm != NULL && words != NULL && upload(self, words, &one, 8);

    for (uint64_t round = 1; good && self->number < 2 && round <= rounds; round++)
        good = OK(weft_symm_put_to(symm, words, 1 - self->number, round * 8, 8, NULL)) &&
               OK(weft_symm_quiet(symm, NULL)) &&
               OK(weft_symm_get_from(symm, self->number, round * 8, words + 1, 8, NULL)) &&
               finish(self, NULL) && download(self, &seen, words + 1, 8) &&
               compare_notes(self, symm, round, seen, &theirs) &&
               check(self, seen == 1 || theirs == 1,
                     "round %llu: both wrote, called quiet, and then read nothing",
                     (unsigned long long)round);
    give(self, words);
    weft_symm_release(&symm);
}

/* Rank 0 writes to rank 2 and, after quiet, notifies rank 1, which notifies rank 2. */
static void what_is_known_second_hand_has_arrived(struct rank *self)
{
    weft_symm *symm = make(self, self->world, 64 + WORDS * 8, 2);
    void *source = take(self, WORDS * 8);
    uint64_t rounds = (uint64_t)self->rounds / 2 + 1;
    bool good = symm != NULL && source != NULL;

    for (uint64_t round = 1; good && round <= rounds; round++) {
        if (self->number == 0)
            good = write_message(self, source, round) &&
                   OK(weft_symm_put_to(symm, source, 2, 64, WORDS * 8, NULL)) &&
                   OK(weft_symm_quiet(symm, NULL)) && tell(self, symm, 0, round, 1) &&
                   hear(self, symm, 1, round, 2);
        else if (self->number == 1)
            good = hear(self, symm, 0, round, 0) && tell(self, symm, 0, round, 2);
        else if (self->number == 2)
            good = hear(self, symm, 0, round, 1) &&
                   check_message(self, (char *)weft_symm_local(symm) + 64, round) &&
                   tell(self, symm, 1, round, 0);
    }
    finish(self, NULL);
    give(self, source);
    weft_symm_release(&symm);
}

const struct symm_case litmus_cases[] = {
    {"a_put_arrives_before_its_signal", a_put_arrives_before_its_signal, 2},
    {"a_put_arrives_before_a_signal_after_fence", a_put_arrives_before_a_signal_after_fence, 2},
    {"a_put_has_arrived_after_quiet", a_put_has_arrived_after_quiet, 2},
    {"puts_arrive_in_order_across_a_fence", puts_arrive_in_order_across_a_fence, 2},
    {"of_two_crossing_puts_one_is_seen", of_two_crossing_puts_one_is_seen, 2},
    {"what_is_known_second_hand_has_arrived", what_is_known_second_hand_has_arrived, 3},
    {NULL, NULL, 0}};
