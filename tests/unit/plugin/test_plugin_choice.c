#include "plugin/plugin.h"
#include "support/allocfail.h"
#include "support/suite.h"

#include <stdio.h>

/* The items of TEXT as "nNAME" "pPATH" "a" "x" joined by spaces. */
static const char *parsed(const char *text)
{
    static const char letters[] = {'n', 'p', 'a', 'x'};
    static char out[512];
    struct wf_choice choice;
    size_t used = 0;

    if (wf_choice_parse(text, &choice) != WEFT_OK) return NULL;
    out[0] = '\0';
    for (size_t i = 0; i < choice.count; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%c:%s", i > 0 ? " " : "",
                                 letters[choice.items[i].kind], choice.items[i].text);
    wf_choice_free(&choice);
    return out;
}

TEST(the_grammar_is_read)
{
    ck_assert_str_eq(parsed("auto"), "a:auto");
    ck_assert_str_eq(parsed("nccl"), "n:nccl");
    ck_assert_str_eq(parsed("nccl,gloo-cpu"), "n:nccl n:gloo-cpu");
    ck_assert_str_eq(parsed(" nccl , auto "), "n:nccl a:auto");
    ck_assert_str_eq(parsed("/opt/my lib.so"), "p:/opt/my lib.so");
    ck_assert_str_eq(parsed("/a.so,/b.so,nccl"), "p:/a.so p:/b.so n:nccl");
    ck_assert_str_eq(parsed("nccl,^rccl,auto"), "n:nccl x:rccl a:auto");
}

TEST(exclusions_alone_end_in_auto)
{
    ck_assert_str_eq(parsed("^nccl"), "x:nccl a:auto");
    ck_assert_str_eq(parsed("^nccl,^rccl"), "x:nccl x:rccl a:auto");
}

TEST(what_cannot_be_meant_is_refused_in_words)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "expected auto"},
        {",", "expected auto"},
        {"nccl,", "expected auto"},
        {"nccl,,x", "position 6"},
        {"NCCL", "\"NCCL\" is not a plugin's name: names have lower-case letters, digits and -; "
                 "write nccl"},
        {"nccl,ncCl", "write nccl"},
        {"gloo_cpu", "\"gloo_cpu\" is not a plugin's name: names have lower-case letters, digits "
                     "and -; write gloo-cpu"},
        {"^Gloo_CPU", "write gloo-cpu"},
        {"gloo_cpu:1", "names have lower-case letters, digits and -"},
        {"./x.so", "must begin with /"},
        {"lib/x.so", "must begin with /"},
        {"x.so", "a path to a plugin must begin with /; write $PWD/x.so"},
        {"libweft_plugin_x.so", "must begin with /; write $PWD/libweft_plugin_x.so"},
        {"gloo-cpu,../x.so,^a", "must begin with /; write $PWD/../x.so"},
        {"/", "is not a plugin"},
        {"^auto", "cannot be excluded"},
        {"^^nccl", "write ^ once"},
        {"^/x.so", "must begin with /"},
        {"nccl rccl", "comma"},
        {"nccl,nccl", "twice"},
        {"auto,auto", "cannot follow"},
        {"auto,nccl", "cannot follow"},
        {"nccl,^nccl,auto", "both named and excluded"},
        {"^nccl,rccl", "the list has no auto"},
        {"nccl;rccl", "comma"},
        {"n\xc3\xa9", "comma"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        struct wf_choice choice = {0};
        ck_assert_msg(wf_choice_parse(cases[i].text, &choice) == WEFT_ERR_PARSE, "\"%s\"",
                      cases[i].text);
        ck_assert_msg(strstr(weft_last_error(), cases[i].words) != NULL, "\"%s\": %s",
                      cases[i].text, weft_last_error());
        ck_assert_uint_eq(choice.count, 0);
    }
}

TEST(names_have_a_form)
{
    char long_name[65];

    memset(long_name, 'a', sizeof long_name);
    ck_assert(wf_plugin_name_valid("gloo-cpu", 8));
    ck_assert(wf_plugin_name_valid(long_name, 63));
    ck_assert(!wf_plugin_name_valid(long_name, 64));
    ck_assert(!wf_plugin_name_valid("", 0));
    ck_assert(!wf_plugin_name_valid("auto", 4));
    ck_assert(!wf_plugin_name_valid("a_b", 3));
    ck_assert(!wf_plugin_name_valid("A", 1));
}

TEST(every_allocation_may_fail)
{
    struct wf_choice choice = {0};

    ck_assert_uint_ge(ALLOCATIONS_FAIL(wf_choice_parse("^nccl,/a/b.so,auto,^rccl", &choice),
                                       wf_choice_free(&choice)),
                      8);
}
