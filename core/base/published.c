/* published.c - a value that many threads read without a lock while one replaces it.
 *
 * Readers count themselves in and out of the current epoch.  A new epoch begins when no reader of
 * the epoch before the current one is left.  What was retired in an epoch can be read by readers of
 * that epoch and of earlier ones, so it is dropped when they are gone.  New readers enter the new
 * epoch, so old ones always become fewer. */
#include "published.h"

void wf_published_lock(struct wf_published *published)
{
    pthread_mutex_lock(&published->writers);
}

void wf_published_unlock(struct wf_published *published)
{
    pthread_mutex_unlock(&published->writers);
}

static void drop_items(struct wf_retired *items)
{
    for (struct wf_retired *next; items != NULL; items = next) {
        next = items->next;
        items->drop(items);
    }
}

void wf_published_sweep(struct wf_published *published)
{
    /* twice, so that without readers nothing is left */
    for (int i = 0; i < 2; i++) {
        uint64_t epoch = atomic_load(&published->epoch);
        struct wf_retired *items = published->retired[1];
        if (atomic_load(&published->readers[(epoch & 1) ^ 1]) != 0) return;
        published->retired[1] = published->retired[0];
        published->retired[0] = NULL;
        atomic_store(&published->epoch, epoch + 1);
        drop_items(items);
    }
}

void wf_published_retire(struct wf_published *published, struct wf_retired *item)
{
    item->next = published->retired[0];
    published->retired[0] = item;
    wf_published_sweep(published);
}
