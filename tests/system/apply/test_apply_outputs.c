/* Outputs that are released: their memory serves the next output of the same layout and stream. */
#include "base/base.h"
#include "kernels.h"
#include "support/move.h"
#include "support/suite.h"
#include "system/tensor/holds.h"
#include "weft/context.h"
#include "weft/launch.h"
#include "weft/log.h"

#include <pthread.h>
#include <stdio.h>

/* ---- what weft logs ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char logged[1024];

static void collect(void *argument, enum weft_log_level level, const char *line)
{
    size_t used;

    (void)argument;
    if (level > WEFT_LOG_WARNING) return;
    pthread_mutex_lock(&lock);
    used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%s\n", line);
    pthread_mutex_unlock(&lock);
}

/* Nothing is left when the contexts end. */
static void run_silently(weft_status (*rank)(void *))
{
    logged[0] = '\0';
    weft_log_to(collect, NULL);
    ck_assert_msg(weft_threads_run(2, rank, NULL) == WEFT_OK, "%s", weft_last_error());
    weft_log_to(NULL, NULL);
    ck_assert_str_eq(logged, "");
}

/* ---- outputs ---- */

static weft_status make_on(const char *ranks, weft_context *context, const char *text, double value,
                           weft_tensor **out)
{
    weft_mesh *mesh;
    weft_spec *spec;

    WF_TRY(weft_mesh_parse(ranks, &mesh));
    WF_TRY(weft_spec_parse(mesh, text, &spec));
    weft_mesh_release(&mesh);
    WF_TRY(weft_tensor_create(context, spec, NULL, out));
    weft_spec_release(&spec);
    return weft_tensor_fill(*out, value, NULL);
}

static weft_status make(weft_context *context, const char *text, double value, weft_tensor **out)
{
    return make_on("2", context, text, value, out);
}

static weft_status relu(weft_tensor *x, weft_stream *stream, weft_tensor **out)
{
    weft_op_call call = {.struct_size = sizeof call, .name = "relu", .input_count = 1};

    if (weft_op_output_count(&call, &x) != 1)
        return weft_fail(WEFT_ERR_INVALID, "relu has %zu outputs", weft_op_output_count(&call, &x));
    return weft_op_apply(weft_tensor_context(x), &call, &x, NULL, plain_kernel, NULL, stream, 1,
                         out);
}

static bool is_all(const weft_tensor *tensor, float value)
{
    for (int64_t i = 0; i < weft_tensor_shard(tensor)->elements; i++)
        if (((const float *)weft_tensor_memory(tensor))[i] != value) return false;
    return true;
}

TEST_BY(run_silently, a_released_output_serves_the_next_one, void *unused)
{
    weft_tensor *x, *z, *a = NULL, *b = NULL, *held;
    weft_context *context;
    void *memory;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "f32[6,4] S(0)", 3, &x));
    WF_TRY(make(context, "f32[6,4] S(1)", 5, &z));
    WF_TRY(relu(x, NULL, &a));
    memory = weft_tensor_memory(a);
    weft_tensor_release(&a);
    wf_mem_fail_at(0);
    for (int i = 0; i < 10; i++) {
        WF_TRY(relu(x, NULL, &a));
        HOLDS(weft_tensor_memory(a) == memory && is_all(a, 3));
        weft_tensor_release(&a);
    }
    HOLDS(wf_mem_made() == 0);
    /* a tensor that somebody holds is not used again, and another layout has memory of its own */
    WF_TRY(relu(x, NULL, &a));
    held = weft_tensor_retain(a);
    weft_tensor_release(&a);
    WF_TRY(relu(x, NULL, &b));
    HOLDS(b != held && weft_tensor_memory(b) != weft_tensor_memory(held));
    WF_TRY(relu(z, NULL, &a));
    HOLDS(is_all(a, 5) && is_all(b, 3) && is_all(held, 3));
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    weft_tensor_release(&held);
    weft_tensor_release(&x);
    weft_tensor_release(&z);
    weft_context_release(&context);
    return WEFT_OK;
}

/* 20 outputs of 1 MiB on a rank, of 20 layouts: 16 are kept at most, and each is used again. */
TEST_BY(run_silently, large_outputs_are_kept_up_to_a_limit, void *unused)
{
    weft_memory_info before = {.struct_size = sizeof before}, after = before;
    weft_tensor *x[20], *out[20] = {NULL};
    weft_context *context;
    char text[64];

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    for (int i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "f32[%d,%d] S(0)", 512 << i % 10, 1024 >> i % 10);
        if (i >= 10)
            snprintf(text, sizeof text, "f32[%d,1,%d] S(0)", 512 << i % 10, 1024 >> i % 10);
        WF_TRY(make(context, text, i, &x[i]));
    }
    WF_TRY(weft_memory_get(context, &before));
    for (int i = 0; i < 20; i++)
        WF_TRY(relu(x[i], NULL, &out[i]));
    for (int i = 0; i < 20; i++) {
        HOLDS(is_all(out[i], (float)i));
        weft_tensor_release(&out[i]);
    }
    WF_TRY(weft_memory_get(context, &after));
    HOLDS(after.bytes > before.bytes && after.bytes <= before.bytes + (16 << 20));
    WF_TRY(relu(x[0], NULL, &out[0]));
    weft_tensor_release(&out[0]);
    wf_mem_fail_at(0);
    for (int i = 0; i < 10; i++) {
        WF_TRY(relu(x[0], NULL, &out[0]));
        HOLDS(is_all(out[0], 0));
        weft_tensor_release(&out[0]);
    }
    HOLDS(wf_mem_made() == 0);
    for (int i = 0; i < 20; i++)
        weft_tensor_release(&x[i]);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST_BY(run_silently, a_stream_has_outputs_of_its_own, void *unused)
{
    weft_memory_info before = {.struct_size = sizeof before}, after = before;
    weft_tensor *x, *a = NULL, *b = NULL, *first;
    weft_context *context;
    weft_stream *stream;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "f32[6,4] S(0)", 3, &x));
    WF_TRY(weft_stream_create(context, &stream));
    WF_TRY(relu(x, NULL, &a));
    WF_TRY(relu(x, stream, &b));
    first = b;
    weft_tensor_release(&a);
    weft_tensor_release(&b);
    WF_TRY(relu(x, stream, &a));
    HOLDS(a == first && is_all(a, 3)); /* not the one of the default stream */
    weft_tensor_release(&a);
    weft_stream_release(&stream); /* with what it kept */
    WF_TRY(relu(x, NULL, &a));
    HOLDS(is_all(a, 3));
    weft_tensor_release(&a);
    /* what is too large is freed */
    weft_tensor_release(&x);
    WF_TRY(make(context, "f32[1024,514] S(0)", 2, &x));
    WF_TRY(weft_memory_get(context, &before));
    WF_TRY(relu(x, NULL, &a));
    HOLDS(is_all(a, 2));
    weft_tensor_release(&a);
    WF_TRY(weft_memory_get(context, &after));
    HOLDS(after.pieces == before.pieces && after.bytes == before.bytes);
    weft_tensor_release(&x);
    weft_context_release(&context);
    return WEFT_OK;
}

/* A kernel on the host writes at once; the stream still reads the output before it. */
TEST_BY(run_silently, an_output_that_the_stream_reads_is_not_used_again, void *unused)
{
    enum { LONG = 1 << 26 };
    weft_tensor *x, *y, *z, *a = NULL;
    weft_context *context;
    weft_stream *stream;
    void *large;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "f32[6,4] S(0)", 3, &x));
    WF_TRY(make(context, "f32[6,4] S(0)", 5, &y));
    WF_TRY(make(context, "f32[6,4] S(0)", 0, &z));
    WF_TRY(weft_stream_create(context, &stream));
    WF_TRY(weft_alloc(context, LONG, WEFT_MEMORY_DEVICE, &large));
    WF_TRY(relu(x, stream, &a));
    WF_TRY(weft_memory_fill(context, large, 1, LONG, stream));
    WF_TRY(move_into(a, z, stream, NULL));
    weft_tensor_release(&a);
    WF_TRY(relu(y, stream, &a));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    HOLDS(is_all(z, 3) && is_all(a, 5));
    weft_tensor_release(&a);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    weft_tensor_release(&z);
    WF_TRY(weft_free(context, large));
    weft_stream_release(&stream);
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- threads ---- */

enum { CALLS = 3000 };

struct beside {
    weft_tensor *x;
    pthread_barrier_t *start;
    float value; /* of x */
    int refused;
    char wrong[512]; /* empty: nothing */
};

static weft_context *alone(void)
{
    weft_init_options options = {.struct_size = sizeof options, .size = 1};
    weft_context *context = NULL;

    ck_assert_msg(weft_init(&options, &context) == WEFT_OK, "%s", weft_last_error());
    return context;
}

static weft_tensor *fill(weft_context *context, float value)
{
    weft_tensor *x = NULL;

    ck_assert_int_eq(make_on("1", context, "f32[6,4] S(0)", value, &x), WEFT_OK);
    return x;
}

/* The call was refused because another thread is in one. */
static bool is_refused(weft_status status, const char *function)
{
    const char *text = weft_last_error();

    return status == WEFT_ERR_INVALID && strncmp(text, function, strlen(function)) == 0 &&
           strstr(text, ": another thread is moving tensors of this context or applying") != NULL &&
           strstr(text, "functions of weft/move.h, weft/apply.h and weft/phases.h on") != NULL;
}

static void *call_often(void *argument)
{
    struct beside *b = argument;
    bool bound = weft_context_bind_thread(weft_tensor_context(b->x)) == WEFT_OK;

    pthread_barrier_wait(b->start);
    for (int i = 0; i < CALLS && bound && b->wrong[0] == '\0'; i++) {
        OWNED(weft_tensor) *out = NULL;
        weft_status status = relu(b->x, NULL, &out);

        if (is_refused(status, "weft_op_apply"))
            b->refused++;
        else if (status != WEFT_OK || !is_all(out, b->value))
            snprintf(b->wrong, sizeof b->wrong, "call %d: %d, %s", i, status, weft_last_error());
    }
    return NULL;
}

TEST(threads_get_right_outputs_or_are_refused)
{
    OWNED(weft_context) *context = alone();
    pthread_barrier_t start;
    struct beside b[2];
    pthread_t threads[2];

    ck_assert_int_eq(pthread_barrier_init(&start, NULL, 2), 0);
    for (int i = 0; i < 2; i++) {
        b[i] = (struct beside){.start = &start, .value = (float)(i + 3)};
        b[i].x = fill(context, b[i].value);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &b[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_str_eq(b[i].wrong, "");
        ck_assert_int_le(b[i].refused, CALLS);
        weft_tensor_release(&b[i].x);
    }
    pthread_barrier_destroy(&start);
}

/* While the kernel of another thread runs. */
static void *call_beside(void *argument)
{
    struct beside *b = argument;
    weft_context *context = weft_tensor_context(b->x);
    weft_tensor *out = NULL, *moved = NULL;
    weft_spec *whole = NULL;

    if (weft_context_bind_thread(context) != WEFT_OK ||
        weft_spec_with(weft_tensor_spec(b->x), "R", &whole) != WEFT_OK)
        return b;
    b->refused += is_refused(relu(b->x, NULL, &out), "weft_op_apply");
    b->refused += is_refused(weft_tensor_move(b->x, whole, NULL, NULL, &moved), "weft_tensor_move");
    b->refused += is_refused(weft_move_clear(context), "weft_move_clear");
    weft_tensor_release(&out);
    weft_tensor_release(&moved);
    weft_spec_release(&whole);
    return NULL;
}

/* A kernel may apply an operator itself. */
static weft_status call_within(void *user, const weft_op_run *run)
{
    struct beside *b = user;
    weft_tensor *out = NULL;
    pthread_t thread;

    HOLDS(pthread_create(&thread, NULL, call_beside, b) == 0);
    pthread_join(thread, NULL);
    WF_TRY(relu(b->x, NULL, &out));
    HOLDS(is_all(out, b->value));
    weft_tensor_release(&out);
    return plain_kernel(NULL, run);
}

TEST(another_thread_is_refused_while_a_kernel_runs)
{
    weft_op_call call = {.struct_size = sizeof call, .name = "relu", .input_count = 1};
    OWNED(weft_context) *context = alone();
    struct beside b = {.value = 3, .x = fill(context, 3)};
    weft_tensor *out = NULL;

    ck_assert_msg(weft_op_apply(context, &call, &b.x, NULL, call_within, &b, NULL, 1, &out) ==
                      WEFT_OK,
                  "%s", weft_last_error());
    ck_assert_int_eq(b.refused, 3);
    ck_assert(is_all(out, 3));
    weft_tensor_release(&out);
    ck_assert_ptr_null(call_beside(&b)); /* nobody is in a call any more */
    ck_assert_int_eq(b.refused, 3);
    weft_tensor_release(&b.x);
}

/* The array of the inputs is also that of the outputs, and one input is moved. */
TEST_BY(run_silently, outputs_may_replace_inputs_in_their_array, void *unused)
{
    const weft_op_apply_options made = {.struct_size = sizeof made, .moves = WEFT_OP_MOVES_MADE};
    weft_op_call add = {.struct_size = sizeof add, .name = "add", .input_count = 2};
    weft_tensor *x, *y, *tensors[2];
    weft_context *context;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(make(context, "f32[6,4] S(0)", 3, &x));
    WF_TRY(make(context, "f32[6,4] S(1)", 5, &y));
    tensors[0] = x;
    tensors[1] = y;
    WF_TRY(weft_op_apply(context, &add, tensors, &made, plain_kernel, NULL, NULL, 2, tensors));
    HOLDS(tensors[1] == NULL && is_all(tensors[0], 8) && is_all(x, 3) && is_all(y, 5));
    weft_tensor_release(&tensors[0]);
    weft_tensor_release(&x);
    weft_tensor_release(&y);
    weft_context_release(&context);
    return WEFT_OK;
}
