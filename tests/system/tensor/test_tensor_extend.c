/* Tensors as libraries on top of weft use them (extend.h): memory that comes and goes, tensors that
 * are kept and used again, shards with gaps, casts, and steps of some ranks. */
#include "weft/extend.h"

#include "base/base.h"
#include "holds.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/suite.h"
#include "weft/weft.h"

#include <stdlib.h>
#include <string.h>

#define OK(call) ck_assert_msg((call) == WEFT_OK, "%s: %s", #call, weft_last_error())

static weft_context *context;
static weft_spec *spec;

static void begin(int32_t simulated, const char *mesh, const char *layout)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = simulated};

    OK(weft_init(&options, &context));
    spec = spec_of(mesh, layout);
}

static void end(void)
{
    weft_spec_release(&spec);
    weft_context_release(&context);
}

static void refused(weft_status status, const char *text)
{
    ck_assert_int_eq(status, WEFT_ERR_INVALID);
    ck_assert_msg(strstr(weft_last_error(), text) != NULL, "%s", weft_last_error());
}

/* ---- memory that comes and goes ---- */

TEST(a_vacant_tensor_refuses_calls_until_it_has_memory)
{
    weft_tensor *tensor = NULL, *view = NULL, *other = NULL;
    void *memory = NULL;
    float values[6];

    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_tensor_create_vacant(context, spec, "w", "it is on its way", &tensor));
    ck_assert_uint_eq(weft_tensor_bytes(tensor), 24);
    refused(weft_tensor_fill(tensor, 1, NULL), "it is on its way");
    OK(weft_alloc(context, 24, WEFT_MEMORY_DEVICE, &memory));
    refused(weft_tensor_occupy(tensor, NULL, NULL), "memory is NULL");
    OK(weft_tensor_occupy(tensor, memory, NULL));
    refused(weft_tensor_occupy(tensor, memory, NULL), "is not vacant");
    ck_assert_ptr_eq(weft_tensor_memory(tensor), memory);
    OK(weft_tensor_fill(tensor, 2, NULL));
    OK(weft_tensor_to_host(tensor, values, sizeof values, NULL));
    ck_assert(values[0] == 2 && values[5] == 2);
    OK(weft_tensor_narrow(tensor, 0, 0, 1, &view));
    weft_tensor_vacate(tensor, "it has gone");
    refused(weft_tensor_fill(tensor, 1, NULL), "it has gone");
    refused(weft_tensor_fill(view, 1, NULL), "lost its memory");
    OK(weft_tensor_occupy(tensor, memory, NULL));
    refused(weft_tensor_fill(view, 1, NULL), "lost its memory");
    OK(weft_tensor_create(context, spec, NULL, &other));
    refused(weft_tensor_occupy(other, memory, NULL), "is not vacant");
    weft_tensor_vacate(other, "it is not one of those");
    OK(weft_tensor_fill(other, 1, NULL));
    weft_tensor_vacate(tensor, "it has gone");
    weft_tensor_release(&view);
    weft_tensor_release(&other);
    weft_tensor_release(&tensor);
    OK(weft_free(context, memory));
    end();
}

TEST(a_vacant_tensor_may_outlive_its_context)
{
    weft_tensor *tensor = NULL;

    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_tensor_create_vacant(context, spec, NULL, "it is empty", &tensor));
    end();
    ck_assert_uint_eq(weft_tensor_bytes(tensor), 24);
    refused(weft_tensor_occupy(tensor, tensor, NULL), "its context was released");
    weft_tensor_vacate(tensor, "nothing");
    weft_tensor_release(&tensor);
}

TEST(the_shards_of_simulated_ranks_share_the_memory)
{
    weft_tensor_local_info local = {.struct_size = sizeof local};
    weft_tensor *tensor = NULL;
    void *memory = NULL;

    begin(2, "2", "f32[4,3] S(0)");
    OK(weft_tensor_create_vacant(context, spec, NULL, "it is empty", &tensor));
    ck_assert_uint_eq(weft_tensor_bytes(tensor), 128);
    OK(weft_alloc(context, 128, WEFT_MEMORY_DEVICE, &memory));
    OK(weft_tensor_occupy(tensor, memory, NULL));
    OK(weft_tensor_local_of(tensor, 1, &local));
    ck_assert_ptr_eq(local.memory, (char *)memory + 64);
    weft_tensor_vacate(tensor, "it has gone");
    weft_tensor_release(&tensor);
    OK(weft_free(context, memory));
    end();
}

/* ---- tensors that are used again ---- */

static weft_tensor *kept;
static bool keeps;

static bool keep(void *user, weft_tensor *tensor)
{
    ck_assert_ptr_eq(user, &kept);
    kept = keeps ? tensor : NULL;
    return keeps;
}

TEST(a_kept_tensor_is_used_again)
{
    weft_memory_info info = {.struct_size = sizeof info};
    weft_tensor *tensor = NULL, *same;

    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_tensor_create(context, spec, NULL, &tensor));
    weft_tensor_set_keeper(tensor, keep, &kept);
    same = weft_tensor_retain(tensor);
    keeps = true;
    weft_tensor_release(&tensor);
    ck_assert_ptr_null(kept);
    weft_tensor_release(&same);
    ck_assert_ptr_nonnull(kept);
    ck_assert_int_eq(weft_tensor_fill(kept, 1, NULL), WEFT_ERR_INVALID);
    weft_tensor_reuse(kept);
    OK(weft_tensor_fill(kept, 1, NULL));
    keeps = false;
    tensor = kept;
    weft_tensor_release(&tensor);
    ck_assert_ptr_null(kept);
    OK(weft_memory_get(context, &info));
    ck_assert_uint_eq(info.pieces, 0);
    end();
}

TEST(the_first_and_the_last_stream_are_known)
{
    weft_tensor_options options = {.struct_size = sizeof options};
    weft_tensor *tensor = NULL;
    weft_stream *other = NULL;

    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_stream_create(context, &options.stream));
    OK(weft_stream_create(context, &other));
    OK(weft_tensor_create(context, spec, &options, &tensor));
    ck_assert_ptr_eq(weft_tensor_stream(tensor), options.stream);
    OK(weft_tensor_use(tensor, other));
    ck_assert_ptr_eq(weft_tensor_stream(tensor), other);
    weft_tensor_set_keeper(tensor, keep, &kept);
    keeps = true;
    kept = NULL;
    weft_stream_release(&other);
    weft_tensor_release(&tensor); /* its stream has ended, so that nobody keeps it */
    ck_assert_ptr_null(kept);
    weft_stream_release(&options.stream);
    options.stream = (weft_stream *)&options;
    refused(weft_tensor_create(context, spec, &options, &tensor), "weft_tensor_create");
    end();
}

/* ---- tensors that kernels use ---- */

TEST(kernels_get_the_shards_of_many_tensors)
{
    const weft_spec *specs[3];
    weft_tensor *tensors[3] = {NULL}, *foreign = NULL;
    weft_context *other;
    weft_stream *stream = NULL;
    weft_tensor_local locals[3];

    begin(0, "1", "f32[2,3] S(0)");
    other = context;
    OK(weft_tensor_create(context, spec, NULL, &foreign));
    weft_spec_release(&spec);
    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_stream_create(context, &stream));
    OK(weft_tensor_create(context, spec, NULL, &tensors[0]));
    OK(weft_tensor_transpose(tensors[0], 0, 1, &tensors[2]));
    OK(weft_tensors_check(context, 3, tensors, "my_call", "inputs", specs));
    ck_assert(specs[0] == spec && specs[1] == NULL && specs[2] == weft_tensor_spec(tensors[2]));
    OK(weft_tensors_lend(context, 0, 3, tensors, 2, stream, locals, sizeof locals[0]));
    ck_assert(locals[0].spec == spec && locals[0].memory == weft_tensor_memory(tensors[0]));
    ck_assert(locals[0].shard == weft_tensor_shard(tensors[0]) && !locals[0].is_written);
    ck_assert(locals[1].spec == NULL && locals[1].memory == NULL);
    ck_assert(locals[2].strides == weft_tensor_strides(tensors[2]) && locals[2].is_written);
    ck_assert_ptr_eq(weft_tensor_stream(tensors[0]), stream);
    OK(weft_tensors_check(context, 0, NULL, "my_call", "inputs", specs));
    OK(weft_tensors_lend(context, 0, 0, NULL, 0, NULL, NULL, sizeof locals[0]));
    refused(weft_tensors_check(context, 1, NULL, "my_call", "inputs", specs),
            "my_call: inputs is NULL");
    refused(weft_tensors_lend(context, 1, 1, tensors, 0, NULL, locals, sizeof locals[0]),
            "rank is 1; expected 0 to 0");
    refused(weft_tensors_lend(context, 0, 1, tensors, 0, NULL, locals, 8), "weft_tensor_local");
    tensors[1] = foreign;
    refused(weft_tensors_check(context, 3, tensors, "my_call", "inputs", specs),
            "my_call: inputs[1] belongs to another context");
    refused(weft_tensors_lend(context, 0, 3, tensors, 3, NULL, locals, sizeof locals[0]),
            "tensors[1] belongs to another context");
    weft_tensor_release(&foreign);
    weft_tensor_release(&tensors[0]);
    weft_tensor_release(&tensors[2]);
    weft_context_release(&other);
    weft_stream_release(&stream);
    end();
}

TEST(kernels_get_the_shards_of_simulated_ranks)
{
    weft_tensor_local_info info = {.struct_size = sizeof info};
    weft_tensor *tensor = NULL;
    weft_tensor_local local;

    begin(2, "2", "f32[4,3] S(0)");
    OK(weft_tensor_create(context, spec, NULL, &tensor));
    OK(weft_tensor_local_of(tensor, 1, &info));
    OK(weft_tensors_lend(context, 1, 1, &tensor, 0, NULL, &local, sizeof local));
    ck_assert(local.memory == info.memory && local.shard->offset[0] == 2 && local.is_written);
    refused(weft_tensors_lend(context, 2, 1, &tensor, 0, NULL, &local, sizeof local),
            "rank is 2; expected 0 to 1");
    weft_tensor_release(&tensor);
    end();
}

/* ---- shards with gaps ---- */

TEST(a_shard_with_gaps_is_packed_and_unpacked)
{
    const int64_t strides[] = {1, 2}; /* as columns */
    weft_tensor_options options = {.struct_size = sizeof options, .strides = strides};
    const float given[] = {1, 2, 3, 4, 5, 6}, packed[] = {1, 3, 5, 2, 4, 6};
    float values[6], changed[] = {7, 3, 5, 2, 4, 6};
    weft_tensor *tensor = NULL, *dense = NULL;
    void *memory = NULL, *elements = NULL;

    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_alloc(context, sizeof given, WEFT_MEMORY_DEVICE, &memory));
    OK(weft_memory_copy(context, given, memory, sizeof given, NULL));
    OK(weft_tensor_wrap(context, spec, memory, &options, &tensor));
    refused(weft_tensor_unpack(tensor, 0, NULL), "was not packed");
    ck_assert_int_ne(weft_tensor_pack(tensor, 1, NULL, &elements), WEFT_OK);
    OK(weft_tensor_pack(tensor, 0, NULL, &elements));
    OK(weft_memory_copy(context, elements, values, sizeof values, NULL));
    OK(weft_context_wait(context, NULL, WEFT_FOREVER));
    ck_assert_mem_eq(values, packed, sizeof packed);
    OK(weft_memory_copy(context, changed, elements, sizeof changed, NULL));
    OK(weft_tensor_unpack(tensor, 0, NULL));
    OK(weft_memory_copy(context, memory, values, sizeof values, NULL));
    OK(weft_context_wait(context, NULL, WEFT_FOREVER));
    ck_assert(values[0] == 7 && values[1] == 2);
    OK(weft_tensor_create(context, spec, NULL, &dense));
    OK(weft_tensor_pack(dense, 0, NULL, &elements));
    ck_assert_ptr_eq(elements, weft_tensor_memory(dense));
    OK(weft_tensor_unpack(dense, 0, NULL));
    weft_tensor_release(&dense);
    weft_tensor_release(&tensor);
    OK(weft_free(context, memory));
    end();
}

/* ---- the context ---- */

TEST(memory_is_cast)
{
    const float given[] = {1, 2.5F, 65504};
    double values[3];
    void *from = NULL, *to = NULL, *device = NULL;

    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_alloc(context, sizeof given, WEFT_MEMORY_DEVICE, &from));
    OK(weft_alloc(context, sizeof values, WEFT_MEMORY_DEVICE, &to));
    OK(weft_memory_copy(context, given, from, sizeof given, NULL));
    OK(weft_memory_cast(context, WEFT_DTYPE_F32, WEFT_DTYPE_F64, 3, from, to, NULL));
    OK(weft_memory_copy(context, to, values, sizeof values, NULL));
    OK(weft_context_wait(context, NULL, WEFT_FOREVER));
    ck_assert(values[0] == 1 && values[1] == 2.5 && values[2] == 65504);
    OK(weft_memory_cast(context, WEFT_DTYPE_F32, WEFT_DTYPE_F32, 3, from, to, NULL));
    ck_assert_int_eq(weft_memory_cast(context, WEFT_DTYPE_F32, WEFT_DTYPE_I8, 3, from, to, NULL),
                     WEFT_ERR_UNSUPPORTED);
    refused(weft_memory_cast(context, WEFT_DTYPE_F32, WEFT_DTYPE_F64, 3, from, NULL, NULL),
            "weft_memory_cast: target is NULL");
    ck_assert_ptr_nonnull(weft_context_kernels(context, &device));
    ck_assert_ptr_nonnull(device);
    ck_assert(weft_context_kernels(context, &device)->cast != NULL);
    ck_assert(weft_comm_timeout(weft_world(context)) != 0);
    ck_assert(weft_context_checks(context) == (getenv("WEFT_CHECK") != NULL));
    OK(weft_free(context, from));
    OK(weft_free(context, to));
    end();
}

TEST(a_call_that_moves_tensors_may_move_and_enter_again)
{
    weft_tensor *from = NULL, *to = NULL;

    begin(0, "1", "f32[2,3] S(0)");
    OK(weft_tensor_create(context, spec, NULL, &from));
    OK(weft_tensor_create(context, spec, NULL, &to));
    OK(weft_tensor_fill(from, 1, NULL));
    OK(weft_moves_enter(context, "my_call"));
    OK(weft_moves_enter(context, "my_call"));
    OK(weft_tensors_move_into(1, &from, &to, NULL, NULL, NULL));
    ck_assert_int_eq(weft_moves_leave(context, WEFT_ERR_DEVICE), WEFT_ERR_DEVICE);
    OK(weft_moves_leave(context, WEFT_OK));
    OK(weft_tensors_move_into(1, &from, &to, NULL, NULL, NULL));
    weft_tensor_release(&from);
    weft_tensor_release(&to);
    end();
}

/* ---- steps of some ranks ---- */

/* Ranks 1 and 2 agree, bind a plan and run it, while rank 0 does nothing of it. */
TEST_ON_RANKS(3, some_ranks_agree_and_bind)
{
    weft_agree_options agree = {.struct_size = sizeof agree};
    weft_bind_options bind = {.struct_size = sizeof bind};
    OWNED(weft_spec) *columns = NULL, *rows = NULL;
    weft_answers *answers = NULL;
    weft_bound *bound = NULL;
    OWNED(weft_plan) *plan = NULL;
    OWNED(weft_context) *mine = NULL;
    void *from = NULL, *to = NULL;
    int32_t rank;

    WF_TRY(weft_init(NULL, &mine));
    rank = weft_rank(mine);
    rows = spec_of("2@2,1", "f32[4,6] S(0)");
    columns = spec_of("2@2,1", "f32[4,6] S(1)");
    agree.mesh = bind.mesh = weft_spec_mesh(rows);
    WF_TRY(weft_agree(weft_world(mine), "two", WEFT_OK, &rank, sizeof rank, &agree, &answers));
    HOLDS((answers == NULL) == (rank == 0));
    if (rank > 0) HOLDS(*(const int32_t *)weft_answers_data(answers, 0) == 2);
    if (rank > 0) HOLDS(*(const int32_t *)weft_answers_data(answers, 1) == 1);
    if (rank == 1) {
        agree.after = answers;
        REFUSES(weft_agree(weft_world(mine), "two", WEFT_OK, NULL, 0, &agree, &answers),
                "both set");
    }
    weft_answers_release(&answers);
    WF_TRY(weft_plan_create(rows, columns, NULL, &plan));
    WF_TRY(weft_plan_bind(plan, weft_world(mine), &bind, &bound));
    HOLDS((bound == NULL) == (rank == 0));
    if (rank > 0) {
        WF_TRY(weft_alloc(mine, 64, WEFT_MEMORY_DEVICE, &from));
        WF_TRY(weft_alloc(mine, 64, WEFT_MEMORY_DEVICE, &to));
        WF_TRY(weft_memory_fill(mine, from, 0, 64, NULL));
        WF_TRY(weft_redistribute(bound, from, to, NULL, NULL));
        WF_TRY(weft_context_wait(mine, NULL, WEFT_FOREVER));
        WF_TRY(weft_free(mine, from));
        WF_TRY(weft_free(mine, to));
    }
    weft_bound_release(&bound);
    return WEFT_OK;
}
