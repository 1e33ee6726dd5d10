/* range_check.c - ranges that the vendor's tools hear, and names of vendor communicators:
 *
 *     weft run -n 2 range_check HOW LIBRARY
 *
 * LIBRARY is a simulated tool (tests/plugins/standin/ranges.h).  HOW is
 *     nvtx    the tool was attached by NVTX_INJECTION64_PATH: it hears all calls
 *     roctx   the program has loaded it before weft_init: it hears all calls, without numbers
 *     many    as nvtx, with more texts than the plugin registers
 *     silent  the program loads it later: it hears nothing
 *     names   LIBRARY is the simulated NCCL: its communicators have weft's names
 *     nameless  the same, of a version without names */
#include "../standin/ranges.h"
#include "rank.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory;
static weft_comm *pair;

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "rank %d: %s: %s\n", weft_rank(context), what, detail);
    exit(2);
}

static void *find(const char *library, const char *symbol)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = handle != NULL ? dlsym(handle, symbol) : NULL;

    if (found == NULL) fail("dlopen", dlerror());
    return found;
}

/* ---- calls ---- */

static void *call_in_thread(void *unused)
{
    (void)unused;
    must(weft_context_bind_thread(context), "weft_context_bind_thread");
    must(weft_all_reduce(pair, memory, memory, 2, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream),
         "weft_all_reduce");
    rank_wait();
    return NULL;
}

static void call_all(void)
{
    static float plain[4];
    const int32_t both[2] = {0, 1};
    const weft_subcomm_options named = {.struct_size = sizeof named, .name = "pair"};
    weft_comm *world = weft_world(context);
    char *bytes = memory;
    struct move move;
    pthread_t thread;

    must(weft_all_gather(world, memory, bytes + 8192, 1024, WEFT_DTYPE_F32, stream),
         "weft_all_gather");
    must(weft_barrier(world, stream), "weft_barrier");
    rank_wait();
    if (weft_all_reduce(world, plain, plain, 4, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, stream) !=
        WEFT_ERR_INVALID)
        fail("weft_all_reduce", "host memory was accepted");
    must(weft_comm_create(world, 2, both, &named, &pair), "weft_comm_create");
    if (pthread_create(&thread, NULL, call_in_thread, NULL) != 0) fail("pthread_create", "");
    pthread_join(thread, NULL);
    move_begin(&move, "f32[64,64]", "S(0)", "R", 0);
    move_run(&move);
    rank_wait();
    move_end(&move);
    weft_comm_release(&pair);
}

/* ---- what the tool has heard ---- */

struct expected {
    const char *name, *category;
    uint64_t bytes;
    int thread, depth;
    bool begins; /* NAME is the beginning of the name */
};

static const struct expected all[] = {
    {"all-gather world 8.0 KiB", "all-gather", 8192, 0, 0, false},
    {"barrier world", "barrier", 0, 0, 0, false},
    {"all-reduce world 16 B", "all-reduce", 16, 0, 0, false},
    {"create world", "create", 0, 0, 0, false},
    {"all-reduce pair#", "all-reduce", 8, 1, 0, true},
    {"plan world", "plan", 0, 0, 0, false},
    {"redistribute world 16.0 KiB", "redistribute", 16384, 0, 0, false},
    {"all-gather 0 16.0 KiB", "all-gather", 16384, 0, 1, false},
};

static bool is_as(const struct standin_range *range, const struct expected *expected, bool numbers)
{
    size_t length = strlen(expected->name) + (expected->begins ? 0 : 1);

    if (strncmp(range->name, expected->name, length) != 0 || !range->ended) return false;
    if (range->thread != expected->thread || range->depth != expected->depth) return false;
    if (!numbers) return true;
    return range->bytes == expected->bytes && strcmp(range->domain, "weft") == 0 &&
           strcmp(range->category, expected->category) == 0;
}

static void compare(const struct standin_ranges *heard, bool numbers)
{
    int count = (int)(sizeof all / sizeof all[0]);

    if (heard->problem[0] != '\0') fail("the tool complains", heard->problem);
    for (int i = 0; i < heard->count; i++) {
        const struct standin_range *r = &heard->ranges[i];

        printf("thread %d depth %d: %s [%s] %llu\n", r->thread, r->depth, r->name, r->category,
               (unsigned long long)r->bytes);
        if (i >= count || !is_as(r, &all[i], numbers)) fail("not expected", r->name);
    }
    if (heard->count != count) fail("not heard", all[heard->count].name);
}

/* ---- more texts than are registered ---- */

enum { SIZES = 1000, REGISTERED = 768 };

static void call_many(void)
{
    weft_comm *world = weft_world(context);

    for (uint64_t bytes = 1; bytes <= SIZES; bytes++) {
        must(weft_broadcast(world, memory, memory, bytes, WEFT_DTYPE_U8, 0, stream),
             "weft_broadcast");
        must(weft_all_reduce(world, memory, memory, bytes, WEFT_DTYPE_U8, WEFT_REDUCE_SUM, stream),
             "weft_all_reduce");
    }
    rank_wait();
}

/* Each has its own text, whether or not that is registered. */
static void check_many(const struct standin_ranges *heard)
{
    char wanted[64];

    if (heard->problem[0] != '\0') fail("the tool complains", heard->problem);
    if (heard->count != 2 * SIZES) fail("not heard", "all ranges");
    for (int i = 0; i < heard->count; i++) {
        snprintf(wanted, sizeof wanted, "%s world %d B", i % 2 == 0 ? "broadcast" : "all-reduce",
                 i / 2 + 1);
        if (strcmp(heard->ranges[i].name, wanted) != 0 || !heard->ranges[i].ended)
            fail(wanted, heard->ranges[i].name);
    }
    if (heard->registrations != REGISTERED) fail("the registered texts", "another number");
}

/* ---- names ---- */

static void check_name(const char *(*name_of)(const void *native), weft_comm *comm,
                       const char *wanted)
{
    const char *have = name_of(weft_comm_native(comm));

    printf("\"%s\"\n", have);
    if (strncmp(have, wanted, strlen(wanted)) != 0 || (have[0] == '\0') != (wanted[0] == '\0'))
        fail("another name than that of weft", have);
}

static void check_names(const char *library, bool has_names)
{
    const char *(*name_of)(const void *native);
    const weft_subcomm_options named = {.struct_size = sizeof named, .name = "pair"};
    const int32_t both[2] = {0, 1};
    weft_comm *world = weft_world(context), *parts = NULL;

    *(void **)(void *)&name_of = find(library, "standinCommName");
    must(weft_comm_create(world, 2, both, &named, &pair), "weft_comm_create");
    must(weft_comm_split(world, weft_rank(context), 0, &named, &parts), "weft_comm_split");
    check_name(name_of, world, has_names ? "world" : "");
    check_name(name_of, pair, has_names ? "pair#" : "");
    check_name(name_of, parts, has_names ? "pair#" : "");
    weft_comm_release(&parts);
    weft_comm_release(&pair);
}

int main(int argc, char **argv)
{
    const char *how = argc == 3 ? argv[1] : "", *library = argv[argc - 1];
    standin_ranges_function heard = NULL;

    if (argc != 3) return 1;
    if (strcmp(how, "roctx") == 0) *(void **)(void *)&heard = find(library, "standin_ranges");
    rank_begin();
    if (strncmp(how, "name", 4) == 0) {
        check_names(library, strcmp(how, "names") == 0);
    } else {
        must(weft_alloc(context, 65536, WEFT_MEMORY_DEVICE, &memory), "weft_alloc");
        if (heard == NULL) *(void **)(void *)&heard = find(library, "standin_ranges");
        if (strcmp(how, "many") == 0)
            call_many();
        else
            call_all();
        must(weft_free(context, memory), "weft_free");
        if (strcmp(how, "many") == 0)
            check_many(heard());
        else if (strcmp(how, "silent") != 0)
            compare(heard(), strcmp(how, "nvtx") == 0);
        else if (heard()->count > 0)
            fail("heard without a tool", heard()->ranges[0].name);
    }
    rank_end();
    printf("as expected\n");
    return 0;
}
