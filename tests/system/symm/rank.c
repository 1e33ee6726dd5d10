/* rank.c - checks, and memory that may be device memory. */
#include "rank.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

bool check(struct rank *self, bool holds, const char *format, ...)
{
    char text[512];
    va_list args;

    if (holds || self->failed) return holds;
    self->failed = true;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("not so: rank %d of %d, %s: %s\n", self->number, self->size, self->name, text);
    fflush(stdout);
    return false;
}

bool ok(struct rank *self, weft_status status, const char *what)
{
    return check(self, status == WEFT_OK, "%s: %s: %s", what, weft_status_name(status),
                 weft_last_error());
}

bool refused(struct rank *self, const char *what, weft_status status, weft_status wanted,
             const char *part)
{
    if (!check(self, status == wanted, "%s: %s, not %s: %s", what, weft_status_name(status),
               weft_status_name(wanted), status != WEFT_OK ? weft_last_error() : ""))
        return false;
    return check(self, strstr(weft_last_error(), part) != NULL, "%s: no \"%s\" in: %s", what, part,
                 weft_last_error());
}

int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

void pause_ns(int64_t ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)}, NULL);
}

bool finish(struct rank *self, weft_stream *stream)
{
    return OK(weft_context_wait(self->context, stream, 300 * SECOND));
}

bool upload(struct rank *self, void *device, const void *host, uint64_t bytes)
{
    return OK(weft_memory_copy(self->context, host, device, bytes, NULL)) && finish(self, NULL);
}

bool download(struct rank *self, void *host, const void *device, uint64_t bytes)
{
    return OK(weft_memory_copy(self->context, device, host, bytes, NULL)) && finish(self, NULL);
}

void *take(struct rank *self, uint64_t bytes)
{
    void *memory = NULL;

    return OK(weft_alloc(self->context, bytes, WEFT_MEMORY_DEVICE, &memory)) ? memory : NULL;
}

void give(struct rank *self, void *memory)
{
    if (memory != NULL) OK(weft_free(self->context, memory));
}

weft_comm *spare_comm(struct rank *self)
{
    weft_comm *comm = NULL;

    OK(weft_comm_split(self->world, 0, 0, NULL, &comm));
    return comm;
}

weft_symm *make(struct rank *self, weft_comm *comm, uint64_t bytes, uint32_t channels)
{
    weft_symm_options options = {.struct_size = sizeof options, .channels = channels};
    weft_symm *symm = NULL;

    OK(weft_symm_create(comm, bytes, &options, &symm));
    return symm;
}

uint8_t byte_of(int32_t from, int32_t to, uint64_t i)
{
    return (uint8_t)(i * 7 + (uint64_t)from * 31 + (uint64_t)to * 11 + 1);
}

static void run_case(struct rank *self, const struct symm_case *one)
{
    self->name = one->name;
    self->failed = false;
    one->run(self);
    OK(weft_barrier(self->world, NULL));
    finish(self, NULL);
    if (self->failed) self->failures++;
}

void run_cases(struct rank *self, const struct symm_case *const *groups, size_t count,
               const char *only)
{
    for (size_t g = 0; g < count; g++)
        for (const struct symm_case *one = groups[g]; one->name != NULL; one++)
            if (self->size >= one->least && (only == NULL || strcmp(only, one->name) == 0))
                run_case(self, one);
}
