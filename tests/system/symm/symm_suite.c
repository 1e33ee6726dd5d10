/* symm_suite.c - symmetric memory, on whatever backend WEFT_BACKEND names:
 *
 *     weft run -n 3 symm_suite [--rounds N] [--only CASE] [--gone RANK] [--leave HOW]
 *     symm_suite --threads 3 ...
 *
 * Prints a line for each case that fails and one at the end; exit code 0, 1 for failures, 77 where
 * the backend has no symmetric memory. */
#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int32_t threads, gone;
    int rounds;
    const char *only, *leave;
} options = {.gone = -1, .rounds = 2000};

static void run_all(struct rank *self)
{
    static const struct symm_case *const groups[] = {making_cases, moving_cases, signal_cases,
                                                     litmus_cases, fault_cases,  end_cases};

    run_cases(self, groups, COUNT(groups), options.only);
}

/* Memory of a second plugin may not support streams of the first plugin. */
static void look_for_streams(struct rank *self, weft_symm *symm)
{
    weft_status status;

    if (!OK(weft_stream_create(self->context, &self->stream))) return;
    status = weft_symm_fence(symm, self->stream);
    if (status == WEFT_ERR_UNSUPPORTED) {
        if (self->number == 0) printf("skipped: streams: %s\n", weft_last_error());
        weft_stream_release(&self->stream);
    } else if (OK(status)) {
        finish(self, self->stream);
    }
}

/* 0, or 77 after the reason is printed. */
static int look_for_memory(struct rank *self)
{
    weft_symm *symm = NULL;
    weft_status status = weft_symm_create(self->world, 64, NULL, &symm);

    if (status == WEFT_ERR_UNSUPPORTED) {
        printf("skipped: %s\n", weft_last_error());
        return 77;
    }
    OK(status);
    if (symm != NULL && self->number == 0)
        printf("symmetric memory of %s, %d ranks\n", weft_symm_backend(symm), self->size);
    if (symm != NULL) {
        self->second =
            strcmp(weft_symm_backend(symm), weft_context_plugin(self->context)->name) != 0;
        look_for_streams(self, symm);
    }
    weft_symm_release(&symm);
    return 0;
}

static int run_rank(struct rank *self)
{
    const char *checks = getenv("WEFT_CHECK");
    weft_device_info info = {.struct_size = sizeof info};
    int code;

    self->world = weft_world(self->context);
    self->number = weft_rank(self->context);
    self->size = weft_size(self->context);
    self->rounds = options.rounds;
    self->threads = options.threads > 0;
    self->checks = checks != NULL && strcmp(checks, "1") == 0;
    self->name = "beginning";
    if (OK(weft_device_get(self->context, &info)))
        self->host_memory = (info.features & WEFT_FEATURE_HOST_MEMORY) != 0;
    code = look_for_memory(self);
    if (code == 0 && options.gone >= 0) return run_gone(self, options.gone);
    if (code == 0 && options.leave != NULL) return run_leaving(self, options.leave);
    if (code == 0) run_all(self);
    weft_stream_release(&self->stream);
    if (code == 0 && self->failures == 0) printf("rank %d: all as it should be\n", self->number);
    return code != 0 ? code : self->failed || self->failures > 0;
}

static weft_status main_of_rank(void *worst)
{
    struct rank self = {0};
    int code;

    if (weft_init(NULL, &self.context) != WEFT_OK) {
        fprintf(stderr, "weft_init: %s\n", weft_last_error());
        return WEFT_ERR_INTERNAL;
    }
    code = run_rank(&self);
    weft_context_release(&self.context);
    if (code != 0) __atomic_store_n((int *)worst, code, __ATOMIC_SEQ_CST);
    return WEFT_OK;
}

static int number_after(int argc, char **argv, int i)
{
    if (i + 1 < argc) return atoi(argv[i + 1]);
    fprintf(stderr, "%s wants a number\n", argv[i]);
    exit(2);
}

int main(int argc, char **argv)
{
    int worst = 0;
    weft_status status;

    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            options.threads = number_after(argc, argv, i);
        else if (strcmp(argv[i], "--rounds") == 0)
            options.rounds = number_after(argc, argv, i);
        else if (strcmp(argv[i], "--gone") == 0)
            options.gone = number_after(argc, argv, i);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            options.only = argv[i + 1];
        else if (strcmp(argv[i], "--leave") == 0 && i + 1 < argc)
            options.leave = argv[i + 1];
        else
            return 2;
    }
    status = options.threads > 0 ? weft_threads_run(options.threads, main_of_rank, &worst)
                                 : main_of_rank(&worst);
    return status != WEFT_OK ? 1 : worst;
}
