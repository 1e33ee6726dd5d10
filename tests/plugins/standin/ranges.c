/* ranges.c - see ranges.h. */
#include "ranges.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct standin_ranges heard;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int threads;
static _Thread_local int my_thread = -1, my_depth, my_open[64];

__attribute__((visibility("default"))) const struct standin_ranges *standin_ranges(void)
{
    return &heard;
}

static void complain(const char *problem)
{
    if (heard.problem[0] == '\0') snprintf(heard.problem, sizeof heard.problem, "%s", problem);
}

void ranges_complain(const char *problem)
{
    pthread_mutex_lock(&lock);
    complain(problem);
    pthread_mutex_unlock(&lock);
}

void ranges_register(void)
{
    pthread_mutex_lock(&lock);
    heard.registrations++;
    pthread_mutex_unlock(&lock);
}

void ranges_push(const char *domain, const char *category, const char *name, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    if (my_thread < 0) my_thread = threads++;
    if (heard.count == STANDIN_RANGES || my_depth == 64) {
        complain("too many ranges");
    } else {
        struct standin_range *range = &heard.ranges[heard.count];

        *range = (struct standin_range){.thread = my_thread, .depth = my_depth, .bytes = bytes};
        snprintf(range->domain, sizeof range->domain, "%s", domain);
        snprintf(range->category, sizeof range->category, "%s", category);
        snprintf(range->name, sizeof range->name, "%s", name);
        my_open[my_depth++] = heard.count++;
    }
    pthread_mutex_unlock(&lock);
}

void ranges_pop(const char *domain)
{
    pthread_mutex_lock(&lock);
    if (my_depth == 0) {
        complain("a thread ends a range, and none is open");
    } else {
        struct standin_range *range = &heard.ranges[my_open[--my_depth]];

        range->ended = 1;
        if (strcmp(range->domain, domain) != 0) complain("a range ends in another domain");
    }
    pthread_mutex_unlock(&lock);
}
