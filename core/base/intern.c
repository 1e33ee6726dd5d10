/* intern.c - tables that keep one object per value, so that equality is a pointer comparison.
 *
 * One mutex guards all tables: they are looked up when a mesh or a spec is made, never when data
 * move.  An object's references drop to zero only under the mutex, so what a table holds is
 * alive. */
#include "base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static struct wf_interned **buckets_of(struct wf_intern_table *table, size_t *count)
{
    *count = table->buckets != NULL ? table->bucket_count : WF_COUNT(table->few);
    return table->buckets != NULL ? table->buckets : table->few;
}

static struct wf_interned **bucket_of(struct wf_intern_table *table, uint64_t hash)
{
    size_t count;
    struct wf_interned **buckets = buckets_of(table, &count);

    return &buckets[hash & (count - 1)];
}

/* Double the buckets when objects outnumber them.  Without memory the chains just grow longer. */
static void make_room(struct wf_intern_table *table)
{
    size_t old_count;
    struct wf_interned **old = buckets_of(table, &old_count), **grown;

    if (table->count < old_count) return;
    grown = wf_calloc(2 * old_count, sizeof *grown);
    if (grown == NULL) return;
    for (size_t i = 0; i < old_count; i++)
        for (struct wf_interned *object = old[i], *next; object != NULL; object = next) {
            struct wf_interned **bucket = &grown[object->hash & (2 * old_count - 1)];
            next = object->next;
            object->next = *bucket;
            *bucket = object;
        }
    wf_free(table->buckets);
    memset(table->few, 0, sizeof table->few);
    table->buckets = grown;
    table->bucket_count = 2 * old_count;
}

static void take_out(struct wf_intern_table *table, struct wf_interned *object)
{
    struct wf_interned **link = bucket_of(table, object->hash);

    while (*link != object)
        link = &(*link)->next;
    *link = object->next;
    if (--table->count > 0) return;
    wf_free(table->buckets);
    table->buckets = NULL;
}

weft_status wf_intern(struct wf_intern_table *table, uint64_t hash, const void *key,
                      struct wf_interned **out)
{
    struct wf_interned *object;
    weft_status status = WEFT_OK;

    pthread_mutex_lock(&guard);
    for (object = *bucket_of(table, hash); object != NULL; object = object->next)
        if (object->hash == hash && table->same(object, key)) break;
    if (object != NULL) {
        wf_intern_retain(object);
    } else if ((status = table->make(key, &object)) == WEFT_OK) {
        struct wf_interned **bucket;
        make_room(table);
        bucket = bucket_of(table, hash);
        object->hash = hash;
        object->next = *bucket;
        atomic_init(&object->references, 1);
        *bucket = object;
        table->count++;
    }
    pthread_mutex_unlock(&guard);
    if (status == WEFT_OK) *out = object;
    return status;
}

void wf_intern_retain(struct wf_interned *object)
{
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

void wf_intern_release(struct wf_intern_table *table, struct wf_interned *object)
{
    int64_t references = atomic_load_explicit(&object->references, memory_order_relaxed);
    bool last;

    while (references > 1)
        if (atomic_compare_exchange_weak_explicit(&object->references, &references, references - 1,
                                                  memory_order_release, memory_order_relaxed))
            return;
    pthread_mutex_lock(&guard);
    last = atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1;
    if (last) take_out(table, object);
    pthread_mutex_unlock(&guard);
    if (last) table->drop(object);
}
