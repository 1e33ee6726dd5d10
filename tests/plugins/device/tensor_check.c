/* tensor_check.c - one rank that uses tensors on any backend: create, fill, moves, lists,
 * comparison, copies, views, text, DLPack, memory in stream order.  Started by `weft run` with any
 * number of ranks; prints JSON. */
#include "../../support/move.h"
#include "expect.h"
#include "weft/dlpack.h"
#include "weft/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static weft_spec *rows, *columns, *whole;
static int32_t dl_device; /* enum weft_dl_device_type of the backend */

/* A tensor of SPEC with the numbers of SEED. */
static weft_tensor *drawn(const weft_spec *spec, uint64_t seed)
{
    weft_random random = {.seed = seed};
    weft_tensor *tensor = NULL;

    must(weft_tensor_create(context, spec, NULL, &tensor), "weft_tensor_create");
    must(weft_tensor_normal(tensor, &random, 0, 1, stream), "weft_tensor_normal");
    return tensor;
}

static weft_tensor_difference_info compare(weft_tensor *a, weft_tensor *b)
{
    weft_tensor_difference_info info = {.struct_size = sizeof info};

    must(weft_tensor_compare(a, b, NULL, stream, &info), "weft_tensor_compare");
    return info;
}

/* ---- checks ---- */

/* A move gives what a draw in the target's layout gives. */
static void check_moves(void)
{
    weft_tensor *source = drawn(rows, 3), *want = drawn(columns, 3), *moved = NULL, *into = NULL;
    weft_tensor *full = NULL, *other = drawn(columns, 4);
    weft_tensor_difference_info info;

    must(weft_tensor_move(source, columns, NULL, stream, &moved), "weft_tensor_move");
    expect(compare(moved, want).equal, "a move changes elements");
    must(weft_tensor_create(context, columns, NULL, &into), "weft_tensor_create");
    for (int i = 0; i < 3; i++)
        must(move_into(source, into, stream, NULL), "weft_tensors_move_into");
    expect(compare(source, into).equal, "a move into a tensor changes elements");
    must(weft_tensor_full(source, weft_size(context) - 1, NULL, stream, &full), "weft_tensor_full");
    expect(compare(full, want).equal, "a full copy changes elements");
    info = compare(other, want);
    expect(!info.equal && info.differing > 0 && info.largest > 0, "different tensors are equal");
    weft_tensor_release(&source);
    weft_tensor_release(&want);
    weft_tensor_release(&moved);
    weft_tensor_release(&into);
    weft_tensor_release(&full);
    weft_tensor_release(&other);
}

/* Fill; a partial of ones has the number of ranks when it is reduced. */
static void check_fill(void)
{
    weft_spec *partial = parse("f32[257,130] P");
    weft_tensor *ones = NULL, *sum = NULL;
    float *host = malloc(257 * 130 * sizeof *host);

    if (host == NULL) exit(1);
    must(weft_tensor_create(context, partial, NULL, &ones), "weft_tensor_create");
    must(weft_tensor_fill(ones, 1, stream), "weft_tensor_fill");
    must(weft_tensor_move(ones, whole, NULL, stream, &sum), "weft_tensor_move");
    must(weft_tensor_to_host(sum, host, 257 * 130 * sizeof *host, stream), "weft_tensor_to_host");
    for (int i = 0; i < 257 * 130; i++)
        expect(host[i] == (float)weft_size(context), "a sum of ones is wrong");
    for (int i = 0; i < 257 * 130; i++)
        host[i] = (float)i;
    must(weft_tensor_from_host(sum, host, 257 * 130 * sizeof *host, stream),
         "weft_tensor_from_host");
    memset(host, 0, 257 * 130 * sizeof *host);
    must(weft_tensor_to_host(sum, host, 257 * 130 * sizeof *host, stream), "weft_tensor_to_host");
    for (int i = 0; i < 257 * 130; i++)
        expect(host[i] == (float)i, "host memory does not come back");
    free(host);
    weft_tensor_release(&ones);
    weft_tensor_release(&sum);
    weft_spec_release(&partial);
}

enum { LISTED = 40 };

static void check_lists(void)
{
    weft_tensor *sources[LISTED], *targets[LISTED];

    for (int i = 0; i < LISTED; i++) {
        sources[i] = drawn(i % 2 != 0 ? rows : columns, (uint64_t)i);
        must(weft_tensor_create(context, i % 3 != 0 ? columns : whole, NULL, &targets[i]),
             "weft_tensor_create");
    }
    for (int again = 0; again < 2; again++)
        must(weft_tensors_move_into(LISTED, sources, targets, NULL, stream, NULL),
             "weft_tensors_move_into");
    for (int i = 0; i < LISTED; i++) {
        expect(compare(sources[i], targets[i]).equal, "a list changes elements");
        weft_tensor_release(&sources[i]);
        weft_tensor_release(&targets[i]);
    }
}

/* Views share memory; a move of a view with gaps is right. */
static void check_views(void)
{
    weft_tensor *base = drawn(whole, 5), *turned = NULL, *part = NULL, *moved = NULL, *back = NULL;
    weft_spec *spec = parse("f32[130,100] S(0)");

    must(weft_tensor_transpose(base, 0, 1, &turned), "weft_tensor_transpose");
    must(weft_tensor_narrow(turned, 1, 11, 100, &part), "weft_tensor_narrow");
    must(weft_tensor_move(part, spec, NULL, stream, &moved), "weft_tensor_move of a view");
    expect(compare(moved, part).equal, "a move of a view changes elements");
    must(weft_tensor_fill(part, 7, stream), "weft_tensor_fill of a view");
    must(weft_tensor_full(part, WEFT_EVERY_RANK, NULL, stream, &back),
         "weft_tensor_full of a view");
    must(weft_tensor_fill(moved, 7, stream), "weft_tensor_fill");
    expect(compare(moved, back).equal, "a view was not filled");
    weft_tensor_release(&moved);
    weft_tensor_release(&back);
    weft_tensor_release(&part);
    weft_tensor_release(&turned);
    weft_tensor_release(&base);
    weft_spec_release(&spec);
}

static void check_text(void)
{
    weft_spec *small = parse("i32[3,4] S(1)");
    weft_tensor *tensor = NULL;
    char text[4096];

    must(weft_tensor_create(context, small, NULL, &tensor), "weft_tensor_create");
    must(weft_tensor_fill(tensor, 42, stream), "weft_tensor_fill");
    must(weft_tensor_full_print(tensor, NULL, stream, text, sizeof text, NULL),
         "weft_tensor_full_print");
    expect(strstr(text, "[42 42 42 42]") != NULL, "the text has no row of the tensor");
    weft_tensor_release(&tensor);
    weft_spec_release(&small);
}

/* Export on one stream, import on another. */
static void check_dlpack(void)
{
    weft_stream *consumer = NULL;
    weft_dlpack_options options = {.struct_size = sizeof options, .device_type = dl_device};
    weft_tensor *source = drawn(rows, 6), *again = NULL, *moved = NULL;
    weft_dl_versioned *shared = NULL;
    void *old = NULL;

    must(weft_stream_create(context, &consumer), "weft_stream_create");
    options.producer = stream;
    options.consumer = consumer;
    must(weft_tensor_to_dlpack(source, &options, (void **)&shared), "weft_tensor_to_dlpack");
    expect(shared->tensor.device.type == dl_device, "the shared tensor has another device");
    must(weft_tensor_from_dlpack(context, rows, shared, &options, &again),
         "weft_tensor_from_dlpack");
    expect(weft_tensor_memory(again) == weft_tensor_memory(source), "the memory is not shared");
    must(weft_tensor_move(again, columns, NULL, consumer, &moved), "weft_tensor_move");
    must(weft_context_wait(context, consumer, WEFT_FOREVER), "weft_context_wait");
    expect(compare(source, moved).equal, "an imported tensor has other elements");
    weft_tensor_release(&again);
    options.unversioned = true;
    must(weft_tensor_to_dlpack(source, &options, &old), "weft_tensor_to_dlpack");
    must(weft_tensor_from_dlpack(context, rows, old, &options, &again), "weft_tensor_from_dlpack");
    expect(compare(source, again).equal, "an imported tensor of the old form has other elements");
    weft_tensor_release(&again);
    weft_tensor_release(&moved);
    weft_tensor_release(&source);
    must(weft_context_wait(context, consumer, WEFT_FOREVER), "weft_context_wait");
    weft_stream_release(&consumer);
}

/* Memory that is freed on a stream while work on the stream uses it. */
static void check_memory(void)
{
    weft_memory_info before = {.struct_size = sizeof before}, info = before;
    enum { BYTES = 1 << 20, ROUNDS = 50 };
    unsigned char *host = malloc(BYTES);
    void *kept = NULL;

    if (host == NULL) exit(1);
    must(weft_memory_get(context, &before), "weft_memory_get");
    must(weft_alloc(context, (uint64_t)ROUNDS * BYTES, WEFT_MEMORY_DEVICE, &kept), "weft_alloc");
    for (int i = 0; i < ROUNDS; i++) {
        void *piece = NULL;

        must(weft_alloc_on(context, BYTES, stream, &piece), "weft_alloc_on");
        must(weft_memory_fill(context, piece, (uint8_t)(i + 1), BYTES, stream), "weft_memory_fill");
        must(weft_memory_copy(context, piece, (char *)kept + (size_t)i * BYTES, BYTES, stream),
             "weft_memory_copy");
        must(weft_free_on(context, piece, stream), "weft_free_on");
    }
    must(weft_memory_get(context, &info), "weft_memory_get");
    expect(info.bytes == before.bytes + (uint64_t)ROUNDS * BYTES, "the bytes are wrong");
    expect(info.bytes_peak >= info.bytes + BYTES, "the peak is wrong");
    for (int i = 0; i < ROUNDS; i++) {
        must(weft_memory_copy(context, (char *)kept + (size_t)i * BYTES, host, BYTES, stream),
             "weft_memory_copy");
        rank_wait();
        for (int b = 0; b < BYTES; b++)
            expect(host[b] == (unsigned char)(i + 1), "memory was given out too early");
    }
    must(weft_free(context, kept), "weft_free");
    must(weft_memory_get(context, &info), "weft_memory_get");
    expect(info.bytes == before.bytes && info.pieces == before.pieces, "memory is not freed");
    free(host);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } checks[] = {{"moves", check_moves},  {"fill", check_fill}, {"lists", check_lists},
                  {"views", check_views},  {"text", check_text}, {"dlpack", check_dlpack},
                  {"memory", check_memory}};
    const char *backend;

    rank_begin();
    backend = weft_context_plugin(context)->name;
    dl_device = strcmp(backend, "gloo-cpu") == 0 ? WEFT_DL_CPU
                : strcmp(backend, "rccl") == 0   ? WEFT_DL_ROCM
                                                 : WEFT_DL_CUDA;
    rows = parse("f32[257,130] S(0)");
    columns = parse("f32[257,130] S(1)");
    whole = parse("f32[257,130] R");
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"ranks\": %d, \"passed\": [", backend, weft_size(context));
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        checks[i].run();
        if (weft_rank(context) == 0) printf("%s\"%s\"", i > 0 ? ", " : "", checks[i].name);
    }
    rank_wait();
    must(weft_barrier(weft_world(context), stream), "weft_barrier");
    rank_wait();
    if (weft_rank(context) == 0) printf("]}\n");
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    weft_spec_release(&whole);
    rank_end();
    return 0;
}
