#include "cost/cost.h"
#include "support/suite.h"

static weft_cost_table *copy_of(const char *name)
{
    weft_cost_table *base, *copy;

    ck_assert_int_eq(weft_cost_table_open(name, &base), WEFT_OK);
    ck_assert_int_eq(wf_cost_copy(base, "mine", &copy), WEFT_OK);
    weft_cost_table_release(&base);
    return copy;
}

/* 1 us and 100 ns for each rank; 10 ps for each byte of the largest buffer. */
static weft_status answer(void *self, const weft_support_query *query, uint64_t bytes,
                          weft_cost *out)
{
    uint32_t unknown = *(const uint32_t *)self;

    (void)bytes;
    if (query->collective == unknown) return WEFT_ERR_UNSUPPORTED;
    *out = (weft_cost){.latency_ns = 1000 + 100 * (uint64_t)query->size,
                       .femtoseconds_per_byte = 10000};
    return WEFT_OK;
}

/* The cost of KIND in TABLE on RANKS ranks with a largest buffer of BYTES. */
static uint64_t whole_ns(const weft_cost_table *table, uint32_t kind, uint64_t ranks,
                         uint64_t bytes)
{
    struct wf_work work = {.kind = kind, .ranks = (int64_t)ranks};

    work.received = bytes / ranks * (ranks - 1);
    if (kind == WEFT_STEP_ALL_REDUCE) work.received *= 2;
    if (kind == WEFT_STEP_ALL_GATHER || kind == WEFT_STEP_ALL_TO_ALL) work.copied = bytes / ranks;
    if (kind == WEFT_STEP_REDUCE_SCATTER || kind == WEFT_STEP_ALL_REDUCE) work.reduced = bytes;
    return wf_cost_ns(table, &work);
}

TEST(a_step_costs_what_the_plugin_says_of_its_collective)
{
    static const uint32_t kinds[] = {WEFT_STEP_ALL_GATHER, WEFT_STEP_REDUCE_SCATTER,
                                     WEFT_STEP_ALL_REDUCE, WEFT_STEP_ALL_TO_ALL};
    uint32_t unknown = WEFT_COLL_COUNT;

    for (uint64_t ranks = 2; ranks <= 16; ranks *= 2) {
        OWNED(weft_cost_table) *table = copy_of("default");
        wf_cost_derive(table, (int32_t)ranks, answer, &unknown);
        for (size_t i = 0; i < WF_COUNT(kinds); i++) {
            uint64_t want = 1000 + 100 * ranks + (UINT64_C(16) << 20) / 100;
            uint64_t have = whole_ns(table, kinds[i], ranks, UINT64_C(16) << 20);
            ck_assert_msg(have > want * 99 / 100 && have < want * 101 / 100,
                          "%s on %llu ranks: %llu ns, not %llu", weft_step_name(kinds[i]),
                          (unsigned long long)ranks, (unsigned long long)have,
                          (unsigned long long)want);
        }
    }
}

TEST(what_the_plugin_does_not_know_stays)
{
    OWNED(weft_cost_table) *table = copy_of("default"), *base = copy_of("default");
    uint32_t unknown = WEFT_COLL_ALL_GATHER;

    wf_cost_derive(table, 2, answer, &unknown);
    ck_assert_mem_eq(table->rates[WEFT_STEP_ALL_GATHER], base->rates[WEFT_STEP_ALL_GATHER],
                     sizeof base->rates[0]);
    ck_assert_mem_eq(table->rates[WEFT_STEP_SLICE], base->rates[WEFT_STEP_SLICE],
                     sizeof base->rates[0]);
    ck_assert_uint_ne(table->rates[WEFT_STEP_ALL_REDUCE][WF_WITHIN_HOST].base_ns,
                      base->rates[WEFT_STEP_ALL_REDUCE][WF_WITHIN_HOST].base_ns);
    ck_assert_mem_eq(&table->rates[WEFT_STEP_ALL_REDUCE][WF_BETWEEN_HOSTS],
                     &base->rates[WEFT_STEP_ALL_REDUCE][WF_BETWEEN_HOSTS], sizeof(struct wf_rate));
}
