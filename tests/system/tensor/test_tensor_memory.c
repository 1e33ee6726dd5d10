/* Memory in stream order: of the caller, and of tensors. */
#include "base/base.h"
#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <string.h>
#include <time.h>

#define OK(call) ck_assert_msg((call) == WEFT_OK, "%s: %s", #call, weft_last_error())

enum { BYTES = 4096 };

static weft_context *context;

static weft_memory_info info(void)
{
    weft_memory_info out = {.struct_size = sizeof out};

    OK(weft_memory_get(context, &out));
    return out;
}

/* The bytes at MEMORY are all BYTE, when the work on STREAM is complete. */
static void check_bytes(const void *memory, uint8_t byte, weft_stream *stream)
{
    uint8_t host[BYTES];

    OK(weft_memory_copy(context, memory, host, BYTES, stream));
    OK(weft_context_wait(context, stream, WEFT_FOREVER));
    for (int i = 0; i < BYTES; i++)
        ck_assert_uint_eq(host[i], byte);
}

TEST(memory_follows_its_stream)
{
    weft_stream *streams[2];
    void *memory, *other;

    OK(weft_init(NULL, &context));
    for (int i = 0; i < 2; i++)
        OK(weft_stream_create(context, &streams[i]));
    for (int i = 0; i < 50; i++) {
        weft_stream *stream = streams[i % 2];

        OK(weft_alloc_on(context, BYTES, stream, &memory));
        OK(weft_memory_fill(context, memory, (uint8_t)i, BYTES, stream));
        OK(weft_alloc_on(context, BYTES, stream, &other));
        OK(weft_memory_copy(context, memory, other, BYTES, stream));
        OK(weft_free_on(context, memory, stream));
        check_bytes(other, (uint8_t)i, stream);
        OK(weft_free_on(context, other, stream));
    }
    OK(weft_alloc_on(context, 0, NULL, &memory));
    ck_assert_ptr_nonnull(memory);
    OK(weft_free(context,
                 memory)); /* weft_free takes it too, and weft_free_on memory of weft_alloc */
    OK(weft_alloc(context, BYTES, WEFT_MEMORY_DEVICE, &memory));
    OK(weft_memory_fill(context, memory, 1, BYTES, streams[0]));
    OK(weft_free_on(context, memory, streams[0]));
    OK(weft_free_on(context, NULL, NULL));
    ck_assert_uint_eq(info().pieces, 0);
    ck_assert_uint_eq(info().bytes, 0);
    for (int i = 0; i < 2; i++)
        weft_stream_release(&streams[i]);
    weft_context_release(&context);
}

TEST(bytes_are_counted)
{
    weft_memory_info small = {.struct_size = 1};
    void *memory[300];

    OK(weft_init(NULL, &context));
    ck_assert_uint_eq(info().bytes, 0);
    for (uint64_t i = 0; i < 300; i++)
        OK(i % 2 == 0 ? weft_alloc(context, 100 + i, WEFT_MEMORY_DEVICE, &memory[i])
                      : weft_alloc_on(context, 100 + i, NULL, &memory[i]));
    ck_assert_uint_eq(info().pieces, 300);
    ck_assert_uint_eq(info().bytes, 300 * 100 + 299 * 150);
    for (int i = 0; i < 300; i += 3)
        OK(weft_free_on(context, memory[i], NULL));
    ck_assert_uint_eq(info().pieces, 200);
    for (int i = 0; i < 300; i++)
        if (i % 3 != 0) OK(weft_free(context, memory[i]));
    ck_assert_uint_eq(info().pieces, 0);
    ck_assert_uint_eq(info().bytes, 0);
    ck_assert_uint_eq(info().bytes_peak, 300 * 100 + 299 * 150);
    check_refused(weft_memory_get(context, &small), WEFT_ERR_INVALID, "weft_memory_get: ");
    weft_context_release(&context);
}

TEST(wrong_calls_are_refused)
{
    weft_stream *stream;
    void *memory = NULL;
    char inside[16];

    OK(weft_init(NULL, &context));
    check_refused(weft_alloc_on(NULL, 8, NULL, &memory), WEFT_ERR_INVALID,
                  "weft_alloc_on: context is NULL");
    check_refused(weft_alloc_on(context, 8, NULL, NULL), WEFT_ERR_INVALID,
                  "weft_alloc_on: out is NULL");
    check_refused(weft_alloc_on(context, UINT64_MAX, NULL, &memory), WEFT_ERR_INVALID,
                  "weft_alloc_on: 18446744073709551615 bytes are more than 2^63 - 1");
    check_refused(weft_alloc_on(context, UINT64_C(1) << 60, NULL, &memory), WEFT_ERR_NO_MEMORY,
                  "weft_alloc_on");
    check_refused(weft_alloc_on(context, 8, (weft_stream *)inside, &memory), WEFT_ERR_INVALID,
                  "weft_alloc_on");
    ck_assert_ptr_null(memory);
    check_refused(weft_free_on(context, inside, NULL), WEFT_ERR_INVALID, "weft_free_on: ");
    OK(weft_stream_create(context, &stream));
    OK(weft_alloc_on(context, 8, stream, &memory));
    OK(weft_free_on(context, memory, stream));
    check_refused(weft_free_on(context, memory, stream), WEFT_ERR_INVALID,
                  "was not returned by weft_alloc or weft_alloc_on of this context, or was freed");
    weft_stream_release(&stream);
    weft_context_release(&context);
}

static void sleep_a_little(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* A tensor is released while its stream has still to move it. */
TEST(tensors_are_released_before_their_work_is_complete)
{
    const weft_plugin *plugin;
    weft_tensor *first = NULL, *second = NULL, *later = NULL, *view = NULL;
    OWNED(weft_spec) *spec = spec_of("1", "u8[64,64] R");
    weft_stream *stream = NULL;
    uint8_t host[BYTES];

    OK(weft_init(NULL, &context));
    plugin = weft_context_plugin(context);
    OK(weft_stream_create(context, &stream));
    for (int i = 0; i < 10; i++) {
        OK(weft_tensor_create(context, spec, NULL, &first));
        OK(plugin->device->stream_call(weft_context_device(context), stream, sleep_a_little, NULL));
        OK(weft_tensor_fill(first, i + 1, stream));
        OK(weft_tensor_move(first, spec, NULL, stream, &second));
        weft_tensor_release(&first);
        OK(weft_tensor_create(context, spec, NULL, &later)); /* not the memory of FIRST */
        OK(weft_tensor_fill(later, 99, NULL));
        OK(weft_tensor_to_host(second, host, sizeof host, stream));
        for (int k = 0; k < BYTES; k++)
            ck_assert_uint_eq(host[k], (uint8_t)(i + 1));
        OK(weft_tensor_transpose(second, 0, 1, &view));
        OK(plugin->device->stream_call(weft_context_device(context), stream, sleep_a_little, NULL));
        OK(weft_tensor_fill(view, 7, stream));
        weft_tensor_release(&second);
        weft_tensor_release(&view); /* the last user of SECOND's memory, and of its own copy */
        OK(weft_tensor_to_host(later, host, sizeof host, NULL));
        for (int k = 0; k < BYTES; k++)
            ck_assert_uint_eq(host[k], 99);
        weft_tensor_release(&later);
    }
    ck_assert_uint_eq(info().bytes, 0);
    ck_assert_uint_ge(info().bytes_peak, 3 * BYTES);
    OK(weft_tensor_create(context, spec, NULL, &first));
    OK(weft_tensor_fill(first, 1, stream));
    weft_stream_release(&stream); /* before the tensor */
    weft_tensor_release(&first);
    ck_assert_uint_eq(info().pieces, 0);
    weft_context_release(&context);
}

/* The same for work of the program, which copies the tensor's memory. */
TEST(work_of_the_program_keeps_the_memory)
{
    weft_tensor *first = NULL, *later = NULL;
    OWNED(weft_spec) *spec = spec_of("1", "u8[64,64] R");
    weft_stream *stream = NULL;
    uint8_t host[BYTES], inside[16];
    const weft_plugin *plugin;

    OK(weft_init(NULL, &context));
    plugin = weft_context_plugin(context);
    OK(weft_stream_create(context, &stream));
    for (int i = 0; i < 10; i++) {
        OK(weft_tensor_create(context, spec, NULL, &first));
        OK(weft_tensor_fill(first, i + 1, stream));
        OK(plugin->device->stream_call(weft_context_device(context), stream, sleep_a_little, NULL));
        OK(weft_memory_copy(context, weft_tensor_memory(first), host, BYTES, stream));
        OK(weft_tensor_use(first, stream));
        weft_tensor_release(&first);
        OK(weft_tensor_create(context, spec, NULL, &later)); /* not the memory of FIRST */
        OK(weft_tensor_fill(later, 99, NULL));
        OK(weft_stream_wait(stream, WEFT_FOREVER));
        for (int k = 0; k < BYTES; k++)
            ck_assert_uint_eq(host[k], (uint8_t)(i + 1));
        check_refused(weft_tensor_use(later, (weft_stream *)inside), WEFT_ERR_INVALID,
                      "weft_tensor_use: the stream does not belong to this context");
        weft_tensor_release(&later);
    }
    weft_stream_release(&stream);
    weft_context_release(&context);
}

TEST(every_allocation_may_fail)
{
    void *memory = NULL;

    OK(weft_init(NULL, &context));
    (void)ALLOCATIONS_FAIL(weft_alloc_on(context, 64, NULL, &memory),
                           OK(weft_free_on(context, memory, NULL)));
    weft_context_release(&context);
}
