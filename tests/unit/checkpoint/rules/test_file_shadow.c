/* Rules to which earlier rules leave nothing. */
#include "checkpoint/rules/rules.h"
#include "support/checkpoints.h"
#include "support/suite.h"

/* The last line of RULES can never apply because of LINE, or it can: 0. */
static const struct shadowed {
    const char *rules;
    uint32_t line;
} shadows[] = {
    {"* = *\nadam.* : drop", 1},
    {"* = *\n?adam.* : drop", 1},
    {"adam.* : drop\n* = *", 0},
    {"a.* : drop\n? a.b.* = a.b.*", 1},
    {"a.b.* : drop\na.* : drop", 0},
    {"x.* = cast(*, bf16)\na : drop", 1},
    {"x.{i} = {i}\na : drop", 1},
    {"x.{i} = {i}\na.b : drop", 0},
    {"x.{i} = {i}\n* = *", 0},
    {"x.{i} = a.{i}\ny.{k} = a.{k}", 1},
    {"x.{i} = a.{i}.{i}\ny.{k}.{m} = a.{k}.{m}", 0},
    {"x.{i} = a.{i}.{i}\ny.{k} = a.{k}.{k}", 1},
    {"x.{n} = {a,b,c}\n{p,q} = {a,b}", 1},
    {"{p,q,r} = {a,b,c}\n{s,t} = {a,d}", 0},
    {"x = cat0(a.*)\na.1 : drop", 1},
    {"x = slice0(a, 0:4)\na : drop", 0},
    {"x = tie(a)\ny = a", 0},
    {"* = *\nx = tie(a)", 0},
    {"b = b\n* = *\n? c.* : drop", 2},
    {"* : cast bf16\n* = *", 0},
    {"* : cast bf16\n* = *\n*norm* : cast f32", 1},
    {"*norm* : cast f32\n* = *\n* : cast bf16", 0},
    {"w : cast f32\nw : cast bf16", 1},
    {"* = *\n* : cast bf16", 0},
    {"a.* : drop\na.* : cast bf16", 0},
};

TEST(a_rule_that_can_never_apply_is_refused)
{
    for (size_t i = 0; i < sizeof shadows / sizeof *shadows; i++) {
        weft_checkpoint_rules *rules = NULL;
        weft_status status = weft_checkpoint_rules_parse(shadows[i].rules, NULL, &rules);
        char want[64];

        weft_checkpoint_rules_release(&rules);
        snprintf(want, sizeof want, "\" of line %u takes every tensor", shadows[i].line);
        if (shadows[i].line == 0)
            ck_assert_msg(status == WEFT_OK, "%s: %s", shadows[i].rules, weft_last_error());
        else
            ck_assert_msg(status == WEFT_ERR_PARSE && strstr(weft_last_error(), want) != NULL,
                          "%s: %s", shadows[i].rules, weft_last_error());
    }
}

TEST(the_error_says_what_to_do)
{
    weft_checkpoint_rules *rules = NULL;

    REFUSED(weft_checkpoint_rules_parse("# all\n* = *\n?adam.* : drop", NULL, &rules),
            WEFT_ERR_PARSE,
            "weft_checkpoint_rules_parse: rules, line 3: this rule can never apply: \"*\" of line "
            "2 takes every "
            "tensor that \"adam.*\" matches; put line 3 before line 2, or remove it");
}
