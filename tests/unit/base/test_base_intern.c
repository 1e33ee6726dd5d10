#include "base/base.h"
#include "support/suite.h"

#include <pthread.h>

struct number {
    struct wf_interned head;
    int value;
};

static bool same(const struct wf_interned *object, const void *key)
{
    return ((const struct number *)object)->value == *(const int *)key;
}

static weft_status make(const void *key, struct wf_interned **out)
{
    struct number *number = wf_alloc(sizeof *number);

    if (number == NULL) return wf_fail_memory(sizeof *number);
    number->value = *(const int *)key;
    *out = &number->head;
    return WEFT_OK;
}

static void drop(struct wf_interned *object)
{
    wf_free(object);
}

static struct wf_intern_table table = {.same = same, .make = make, .drop = drop};

static struct wf_interned *intern(int value, uint64_t hash)
{
    struct wf_interned *object = NULL;

    ck_assert_int_eq(wf_intern(&table, hash, &value, &object), WEFT_OK);
    return object;
}

TEST(equal_values_are_one_object)
{
    int64_t live = wf_mem_live();
    struct wf_interned *a = intern(7, 70), *b = intern(7, 70), *c = intern(8, 70);

    ck_assert_ptr_eq(a, b);
    ck_assert_ptr_ne(a, c);
    wf_intern_release(&table, a);
    ck_assert_ptr_eq(intern(7, 70), b);
    wf_intern_release(&table, b);
    wf_intern_release(&table, b);
    wf_intern_release(&table, c);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(a_table_grows_and_shrinks_to_nothing)
{
    enum { MANY = 5000 };
    static struct wf_interned *objects[MANY];
    int64_t live = wf_mem_live();

    for (int i = 0; i < MANY; i++)
        objects[i] = intern(i, wf_hash_mix(0, (uint64_t)i));
    ck_assert_uint_eq(table.count, MANY);
    for (int i = 0; i < MANY; i++) {
        ck_assert_ptr_eq(intern(i, wf_hash_mix(0, (uint64_t)i)), objects[i]);
        wf_intern_release(&table, objects[i]);
    }
    for (int i = 0; i < MANY; i++)
        wf_intern_release(&table, objects[i]);
    ck_assert_uint_eq(table.count, 0);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(without_memory_for_more_buckets_it_still_finds)
{
    struct wf_interned *objects[64];
    int64_t live = wf_mem_live();

    for (int i = 0; i < 64; i++) {
        if (i >= 16) wf_mem_fail_at(2); /* the object, then the buckets */
        objects[i] = intern(i, (uint64_t)i);
        wf_mem_fail_at(0);
    }
    ck_assert_ptr_null(table.buckets);
    for (int i = 0; i < 64; i++) {
        ck_assert_ptr_eq(intern(i, (uint64_t)i), objects[i]);
        wf_intern_release(&table, objects[i]);
        wf_intern_release(&table, objects[i]);
    }
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(what_cannot_be_made_is_not_kept)
{
    int value = 3;
    struct wf_interned *object = NULL;

    wf_mem_fail_at(1);
    ck_assert_int_eq(wf_intern(&table, 3, &value, &object), WEFT_ERR_NO_MEMORY);
    wf_mem_fail_at(0);
    ck_assert_ptr_null(object);
    ck_assert_uint_eq(table.count, 0);
}

static void *come_and_go(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20000; i++) {
        struct wf_interned *object;
        int value = i % 5;
        if (wf_intern(&table, (uint64_t)value, &value, &object) != WEFT_OK) return "no memory";
        if (((struct number *)object)->value != value) return "another's object";
        if (i % 3 == 0) {
            wf_intern_retain(object);
            wf_intern_release(&table, object);
        }
        wf_intern_release(&table, object);
    }
    return NULL;
}

TEST(threads_share_objects)
{
    pthread_t threads[4];
    int64_t live = wf_mem_live();

    for (size_t i = 0; i < WF_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (size_t i = 0; i < WF_COUNT(threads); i++) {
        void *complaint;
        ck_assert_int_eq(pthread_join(threads[i], &complaint), 0);
        ck_assert_msg(complaint == NULL, "%s", (const char *)complaint);
    }
    ck_assert_uint_eq(table.count, 0);
    ck_assert_int_eq(wf_mem_live(), live);
}
