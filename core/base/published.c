/* published.c - a value that many threads read without a lock while one replaces it.
 *
 * Readers count themselves in and out.  A replaced value is kept until a writer finds no reader:
 * readers that enter after that see the newer value, because the counter and the pointer are
 * accessed in one total order. */
#include "published.h"

void wf_published_lock(struct wf_published *published)
{
    pthread_mutex_lock(&published->writers);
}

void wf_published_unlock(struct wf_published *published)
{
    pthread_mutex_unlock(&published->writers);
}

void wf_published_sweep(struct wf_published *published)
{
    struct wf_retired *next;

    if (published->retired == NULL || atomic_load(&published->readers) != 0) return;
    for (struct wf_retired *item = published->retired; item != NULL; item = next) {
        next = item->next;
        item->drop(item);
    }
    published->retired = NULL;
}

void wf_published_retire(struct wf_published *published, struct wf_retired *item)
{
    item->next = published->retired;
    published->retired = item;
    wf_published_sweep(published);
}
