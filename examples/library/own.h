/* own.h - what the sources of the library share. */
#ifndef EMA_OWN_H
#define EMA_OWN_H

#include "ema.h"

#include <weft/extend.h>
#include <weft/weft.h>

#include <pthread.h>
#include <stdatomic.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status try_status = (call);                                                           \
        if (try_status != WEFT_OK) return try_status;                                              \
    } while (0)

struct entry {
    weft_tensor *parameter, *average;
    _Atomic(weft_tensor *) spare; /* a snapshot that the program has released */
};

struct save {
    ema_writer writer;
    void *user;
    float *elements;         /* of all averages, one after the other */
    weft_open_record record; /* of ema_save */
    weft_answers *agreed;    /* by all ranks in ema_save */
    pthread_t thread;
    bool has_thread, was_told; /* of its end */
    weft_status status;
    char error[1024];
};

struct ema {
    weft_object object; /* first: weft_object_check reads it */
    weft_context *context;
    weft_dependent *dependent;
    char cause[64]; /* why the context has ended; "": it has not */
    double decay;
    uint64_t updates;
    size_t count;
    struct entry *entries;
    weft_tensor **averages;    /* those of the entries, as calls take them */
    weft_tensor_local *locals; /* room for as many */
    uint64_t bytes;            /* of all averages, each from a multiple of 64 on */
    void *device, *host;       /* their memory; DEVICE is NULL while they rest */
    struct save save;
};

/* Check that FUNCTION can use AVERAGES and STREAM. */
weft_status ema_check(ema *averages, weft_stream *stream, const char *function);
/* Return STATUS.  The text of an error begins with FUNCTION from now on. */
weft_status ema_named(weft_status status, const char *function);

/* The ranks whose shards are here: from *FIRST to before *END. */
void ema_ranks_here(const ema *averages, int32_t *first, int32_t *end);

/* Give the averages device memory, if they rest. */
weft_status ema_wake(ema *averages, weft_stream *stream);
/* Set the averages to the parameters. */
weft_status ema_begin(ema *averages, weft_stream *stream);

/* End the thread of a save. */
void ema_save_join(ema *averages);
/* Free the copy and what the ranks agreed on. */
void ema_save_free(ema *averages);

#endif
