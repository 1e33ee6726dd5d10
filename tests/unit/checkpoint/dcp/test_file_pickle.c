#include "checkpoint/dcp/pickle.h"
#include "support/checkpoints.h"
#include "support/suite.h"

static struct wf_arena arena;
static struct wf_pickle *root;

#define READ(text) wf_pickle_read(&arena, "doc", text, sizeof text - 1, &root)

TEST(values_are_read)
{
    OK(READ(
        "\x80\x02}(X\1\0\0\0aK\7X\1\0\0\0b](J\xff\xff\xff\xffM\1\2\x8a\2\0\x80\x88\x89NeuX\1\0\0"
        "\0c)s."));
    ck_assert_int_eq(root->kind, WF_PICKLE_DICT);
    ck_assert_int_eq(wf_pickle_member(root, "a")->number, 7);
    ck_assert_uint_eq(wf_pickle_member(root, "b")->count, 6);
    ck_assert_int_eq(wf_pickle_member(root, "b")->items[0]->number, -1);
    ck_assert_int_eq(wf_pickle_member(root, "b")->items[1]->number, 513);
    ck_assert_int_eq(wf_pickle_member(root, "b")->items[2]->number, -32768);
    ck_assert_int_eq(wf_pickle_member(root, "c")->kind, WF_PICKLE_TUPLE);
    ck_assert_ptr_null(wf_pickle_member(root, "d"));
    wf_arena_free(&arena);
}

TEST(objects_are_noted_and_not_made)
{
    int64_t sizes[WEFT_MAX_DIMS];
    int32_t dims;

    OK(READ("ctorch\nSize\n(K\2K\3t\x85R."));
    ck_assert(wf_pickle_is(root, WF_NAME_SIZE));
    ck_assert(wf_pickle_sizes(root, &dims, sizes));
    ck_assert_int_eq(dims, 2);
    ck_assert_int_eq(sizes[1], 3);
    OK(READ("ctorch\nfloat32\n."));
    ck_assert_int_eq(root->name, WF_NAME_DTYPE);
    ck_assert_str_eq(root->text, "float32");
    wf_arena_free(&arena);
}

TEST(code_is_refused_by_name)
{
    REFUSED(READ("cos\nsystem\n(X\2\0\0\0lstR."), WEFT_ERR_UNSUPPORTED, "it names os.system");
    REFUSED(READ("cbuiltins\neval\n."), WEFT_ERR_UNSUPPORTED, "builtins.eval");
    REFUSED(READ("ctorch\nload\n."), WEFT_ERR_UNSUPPORTED, "torch.load");
    REFUSED(READ("\x8c\2os\x8c\6system\x93."), WEFT_ERR_UNSUPPORTED, "os.system");
    REFUSED(READ("(i__main__\nx\n."), WEFT_ERR_UNSUPPORTED, "opcode 0x69");
    REFUSED(READ("\x82\1."), WEFT_ERR_UNSUPPORTED, "opcode 0x82");
    wf_arena_free(&arena);
}

TEST(malformed_pickles_are_refused)
{
    REFUSED(READ(""), WEFT_ERR_PARSE, "doc, byte 0: the pickle is cut short");
    REFUSED(READ("."), WEFT_ERR_PARSE, "does not have one value");
    REFUSED(READ("K\1K\2."), WEFT_ERR_PARSE, "does not have one value");
    REFUSED(READ("(."), WEFT_ERR_PARSE, "the stack is empty");
    REFUSED(READ("X\xff\xff\0\0a."), WEFT_ERR_PARSE, "cut short");
    REFUSED(READ("X\2\0\0\0a\0."), WEFT_ERR_PARSE, "a NUL character");
    REFUSED(READ("h\5."), WEFT_ERR_PARSE, "a memo is used that was not set");
    REFUSED(READ("Nr\xff\xff\xff\xff."), WEFT_ERR_PARSE, "the number of a memo is too large");
    REFUSED(READ("t."), WEFT_ERR_PARSE, "no mark");
    REFUSED(READ("K\1\x86."), WEFT_ERR_PARSE, "the stack is empty");
    REFUSED(READ("](K\1K\2u."), WEFT_ERR_PARSE, "another kind of container");
    REFUSED(READ("}(K\1u."), WEFT_ERR_PARSE, "another kind of container");
    REFUSED(READ("K\1)R."), WEFT_ERR_PARSE, "an object has no class");
    REFUSED(READ("K\1Nb."), WEFT_ERR_PARSE, "a state has no object");
    REFUSED(READ("\x8a\x09xxxxxxxxx."), WEFT_ERR_PARSE, "more than 64 bits");
    REFUSED(READ("ctorch\nSize"), WEFT_ERR_PARSE, "a name has no end");
    wf_arena_free(&arena);
}

TEST(a_list_may_contain_itself)
{
    OK(READ("]q\0h\0a."));
    ck_assert_ptr_eq(root->items[0], root);
    wf_arena_free(&arena);
}
