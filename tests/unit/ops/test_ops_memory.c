/* Each allocation of a choice, and of a list of strategies, may fail. */
#include "support/allocfail.h"
#include "support/ops.h"
#include "support/suite.h"

static weft_status answer_columns(void *user, const weft_op_query *query, char *text, size_t size)
{
    (void)user, (void)query;
    snprintf(text, size, "S(1) -> S(1)");
    return WEFT_OK;
}

enum call { CHECK, PROPOSE, PRICED, LIST };

struct asked {
    enum call call;
    op_text text;
};

static weft_status ask(void *argument)
{
    struct asked *asked = argument;
    weft_op_options options = op_uncached;
    OWNED(weft_op_choice) *choice = NULL;
    OWNED(weft_op_list) *list = NULL;

    if (asked->call == LIST) return weft_op_list_create(&asked->text.call, NULL, &list);
    if (asked->call == CHECK) return weft_op_check(&asked->text.call, &options, &choice);
    if (asked->call == PRICED) options.flags = WEFT_OP_FLAG_PRICE_PARTIALS;
    return weft_op_propose(&asked->text.call, &options, &choice);
}

TEST(every_allocation_may_fail)
{
    static const struct {
        enum call call;
        const char *name, *mesh, *inputs, *attrs;
        uint64_t least; /* allocations of the call */
    } rows[] = {
        {CHECK, "linear", "2x2", "f32[8,6] R,S(1) ; f32[4,6] R,S(1) ; f32[4] R,R", "", 5},
        {CHECK, "reshape", "2x2", "f32[8,6] R,S(1)", "shape=48,", 5},
        {PROPOSE, "mm", "2x2", "f32[8,6] R,S(1) ; f32[6,4] R,S(1)", "", 11},
        {LIST, "mm", "2x2", "f32[8,6] R,S(1) ; f32[6,4] R,S(1)", "", 11},
        {LIST, "zeros_like", "2", "f32[8] S(0)", "", 11},
        /* lists of sizes and blocks */
        {PROPOSE, "reshape", "2", "f32[24] G(0;16,8)", "shape=6,4", 1},
        {PROPOSE, "reshape", "2", "f32[3,8] B(1;6,2)", "shape=24,", 1},
        {PROPOSE, "split", "2", "f32[16,6] B(0;8,4,4)", "dim=0 sizes=12,4", 1},
        {PROPOSE, "cat", "2", "f32[16,6] B(0;8,4,4) ; f32[3,6] R", "dim=0", 1},
        /* partial outputs with a price, also of a chain */
        {PRICED, "mm", "4", "f32[64,8] S(1) ; f32[8,64] R", "", 1},
        {PRICED, "mm_neg", "4", "f32[64,8] S(1) ; f32[8,64] R", "", 1},
        {PROPOSE, "two", "2", "f32[4,4] S(0) ; f32[4,4] S(1)", "", 1},
        {LIST, "two", "2", "f32[4,4] S(0) ; f32[4,4] S(1)", "", 1},
        /* a function of the program answers */
        {PROPOSE, "turned", "2", "f32[4,6] S(1)", "dim=1", 1},
    };

    ck_assert_int_eq(weft_op_register("mm_neg is mm; neg"), WEFT_OK);
    ck_assert_int_eq(weft_op_register("two is neg; linear"), WEFT_OK);
    ck_assert_int_eq(weft_op_register("turned(dim): x[.. k@dim ..] -> y[.. k@dim ..]; whole k; "
                                      "pass x; use turned"),
                     WEFT_OK);
    ck_assert_int_eq(weft_op_use_register("turned", answer_columns, NULL), WEFT_OK);
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        struct asked asked = {.call = rows[i].call};
        uint64_t made;

        op_begin(&asked.text, rows[i].name, rows[i].mesh, rows[i].inputs, rows[i].attrs, NULL);
        made = ALLOCATIONS_FAIL(ask(&asked), (void)0);
        ck_assert_msg(made >= rows[i].least, "row %zu: %" PRIu64 " allocations", i, made);
        op_text_release(&asked.text);
    }
    ck_assert_int_eq(weft_op_remove("mm_neg"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("two"), WEFT_OK);
    ck_assert_int_eq(weft_op_use_remove("turned"), WEFT_OK);
    ck_assert_int_eq(weft_op_remove("turned"), WEFT_OK);
    weft_op_cache_clear();
}
