/* call_suite.c - every public function with NULL for each pointer, and with wrong struct sizes. */
#include "call_suite.h"

#include <string.h>

/* The call failed because of an argument.  The text begins with the function's name. */
static void expect_refusal(const struct answer *answer, const uintptr_t *p, const char *argument)
{
    size_t length = strlen(function->name);
    const char *text = weft_last_error();

    expect(answer->status == WEFT_ERR_INVALID, "the status is not WEFT_ERR_INVALID");
    expect(strncmp(text, function->name, length) == 0 &&
               (text[length] == ':' || text[length] == ' '),
           "the text does not begin with the function");
    expect(strstr(text, "NULL") != NULL, "the text does not contain NULL");
    if (argument != NULL) expect(strstr(text, argument) != NULL, "the text lacks the argument");
    expect_untouched(p);
}

/* The call is an accessor without its object. */
static void expect_nothing(const struct answer *answer)
{
    if (function->returns == RETURNS_POINTER)
        expect(answer->pointer == NULL, "the pointer is not NULL");
    if (function->returns == RETURNS_NUMBER)
        expect(answer->number == function->nothing || answer->number == -1,
               "the number is not the one for NULL");
}

/* The call failed with STATUS, or is an accessor, which has nothing to tell. */
static void expect_failure(const struct answer *answer, weft_status status, const char *otherwise)
{
    if (function->returns == RETURNS_STATUS)
        expect(answer->status == status, otherwise);
    else
        expect_nothing(answer);
}

static void test_null(int i)
{
    const struct pointer *one = &function->pointer[i];
    uintptr_t p[MAX_POINTERS];
    struct answer answer;

    if (!begin_case("%s is NULL", one->name)) return;
    fill(p);
    p[i] = 0;
    answer = call(p);
    if (one->is_optional) {
        if (function->returns == RETURNS_STATUS)
            expect(answer.status == function->valid, "NULL is not accepted");
    } else if (function->returns == RETURNS_STATUS) {
        expect_refusal(&answer, p, one->name);
    } else if (one->role == ROLE_INPUT) {
        expect_nothing(&answer);
    }
}

static bool all_are_optional(void)
{
    for (int i = 0; i < function->pointers; i++)
        if (!function->pointer[i].is_optional) return false;
    return true;
}

static void test_all_null(void)
{
    uintptr_t p[MAX_POINTERS] = {0};
    struct answer answer;

    if (function->pointers < 2 || !begin_case("all pointers are NULL")) return;
    answer = call(p);
    if (function->returns == RETURNS_STATUS && !all_are_optional())
        expect_refusal(&answer, p, NULL);
    else
        expect_nothing(&answer);
}

/* A list of NULL, and a pointer to an object that was released. */
static void test_null_inside(int i)
{
    static void *const nothing[4];
    const struct pointer *one = &function->pointer[i];
    uintptr_t p[MAX_POINTERS];
    struct answer answer;

    if (one->role == ROLE_LIST && begin_case("%s[0] is NULL", one->name)) {
        fill(p);
        p[i] = (uintptr_t)nothing;
        answer = call(p);
        if (function->returns == RETURNS_STATUS)
            expect_refusal(&answer, p, NULL);
        else
            expect_nothing(&answer);
    }
    if (one->role == ROLE_RELEASED && begin_case("*%s is NULL", one->name)) {
        fill(p);
        released(&world, i, NULL);
        call(p);
    }
}

static void set_size(int i, size_t bytes)
{
    enum role role = function->pointer[i].role;
    uint32_t narrow = (uint32_t)bytes;

    if (role == ROLE_ABI_INFO || role == ROLE_ABI_OPTIONS)
        memcpy(world.slots[i], &narrow, sizeof narrow);
    else
        memcpy(world.slots[i], &bytes, sizeof bytes);
}

static struct answer call_with_size(int i, size_t bytes, size_t mark)
{
    uintptr_t p[MAX_POINTERS];
    struct answer answer;

    fill(p);
    set_size(i, bytes);
    if (mark > 0) world.slots[i][mark] = 1;
    answer = call(p);
    if (answer.status < 0) expect_untouched(p);
    return answer;
}

static void test_options(int i)
{
    const struct pointer *one = &function->pointer[i];
    struct answer answer;

    if (begin_case("%s.struct_size is 0", one->name)) {
        answer = call_with_size(i, 0, 0);
        expect_failure(&answer, WEFT_ERR_INVALID, "it is not WEFT_ERR_INVALID");
        expect(strstr(weft_last_error(), one->type) != NULL, "the text lacks the struct");
        expect(strstr(weft_last_error(), "struct_size") != NULL, "the text lacks struct_size");
    }
    if (begin_case("a newer %s with an option", one->type)) {
        answer = call_with_size(i, one->bytes + 64, one->bytes + 63);
        expect_failure(&answer, WEFT_ERR_VERSION, "it is not WEFT_ERR_VERSION");
        expect(strstr(weft_last_error(), one->type) != NULL, "the text lacks the struct");
    }
    if (function->returns == RETURNS_STATUS &&
        begin_case("a newer %s without an option", one->type))
        expect(call_with_size(i, one->bytes + 64, 0).status == function->valid,
               "the zeros behind the struct are not accepted");
}

static void test_info(int i)
{
    const struct pointer *one = &function->pointer[i];
    size_t head = one->role == ROLE_INFO ? sizeof(size_t) : sizeof(uint32_t);

    if (begin_case("%s.struct_size is 0", one->name)) {
        expect(call_with_size(i, 0, 0).status == WEFT_ERR_INVALID, "it is not WEFT_ERR_INVALID");
        expect(strstr(weft_last_error(), "struct_size") != NULL, "the text lacks struct_size");
    }
    for (size_t bytes = head; bytes <= one->bytes + 8; bytes++) {
        size_t end = bytes < one->bytes ? bytes : one->bytes;
        unsigned char before[16];
        bool same = true;

        if (!begin_case("%s.struct_size is %zu", one->name, bytes)) continue;
        expect(call_with_size(i, bytes, 0).status == function->valid,
               "the status is not that of valid arguments");
        for (size_t at = end; at < SLOT_BYTES; at++)
            if (world.slots[i][at] != UNTOUCHED) same = false;
        expect(same, "bytes behind the struct are written");
        memcpy(before, world.slots[i], head);
        set_size(i, bytes);
        expect(memcmp(before, world.slots[i], head) == 0, "struct_size is overwritten");
    }
}

/* Runs last, because a call may end its objects. */
static void test_valid(void)
{
    uintptr_t p[MAX_POINTERS];
    struct answer answer;

    if (!begin_case("all arguments are valid")) return;
    fill(p);
    answer = call(p);
    if (function->returns == RETURNS_STATUS)
        expect(answer.status == function->valid, "the status is not the expected one");
    for (int i = 0; i < function->pointers; i++)
        if (function->pointer[i].role == ROLE_RELEASED)
            expect(*(void **)world.slots[i] == NULL, "the pointer is not NULL after the release");
}

void test_function(void)
{
    make_world(&world);
    prepare_call(&world, function->name);
    test_all_null();
    for (int i = 0; i < function->pointers; i++) {
        enum role role = function->pointer[i].role;

        test_null_inside(i);
        if (role == ROLE_OPTIONS || role == ROLE_ABI_OPTIONS) test_options(i);
        if (role == ROLE_INFO || role == ROLE_ABI_INFO) test_info(i);
        if (!function->pointer[i].is_optional) test_null(i);
    }
    for (int i = 0; i < function->pointers; i++)
        if (function->pointer[i].is_optional) test_null(i);
    test_valid();
}
