#include "symm/symm.h"
#include "support/allocfail.h"
#include "support/fake_symm.h"
#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

TEST(a_backend_without_it_says_so)
{
    OWNED(weft_context) *context = NULL;
    weft_symm *symm = NULL;

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(),
               "weft_symm_create on world: fake has no symmetric memory; name a second plugin"));
    ck_assert_ptr_null(symm);
}

TEST(null_has_an_answer)
{
    OWNED(weft_context) *context = NULL;
    weft_symm *symm = NULL;
    weft_symm_device device;
    uint64_t offset;
    char memory[8];

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_symm_create(NULL, 8, NULL, &symm), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_create(weft_world(context), 8, NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_register(weft_world(context), NULL, 8, NULL, &symm),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_register(weft_world(context), memory, 0, NULL, &symm),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_offset(NULL, memory, 1, &offset), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_symm_device_get(NULL, &device), WEFT_ERR_INVALID);
    ck_assert_ptr_null(weft_symm_comm(NULL));
    ck_assert_ptr_null(weft_symm_local(NULL));
    ck_assert_ptr_null(weft_symm_peer(NULL, 0));
    ck_assert_uint_eq(weft_symm_bytes(NULL), 0);
    ck_assert_uint_eq(weft_symm_channels(NULL), 0);
    ck_assert_ptr_null(weft_symm_backend(NULL));
    weft_symm_release(NULL);
    weft_symm_release(&symm);
}

TEST(options_of_a_smaller_size_are_refused)
{
    weft_symm_options options = {.struct_size = sizeof options, .channels = 3};
    weft_context *context;
    weft_symm *symm = NULL;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, &options, &symm), WEFT_OK);
    ck_assert_uint_eq(weft_symm_channels(symm), 3);
    weft_symm_release(&symm);
    options.struct_size = sizeof options.struct_size;
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, &options, &symm), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "struct_size is 8"));
    weft_context_release(&context);
    ck_assert_int_eq(fake.windows, 0);
}

TEST(a_backend_never_sees_nothing)
{
    OWNED(weft_context) *context = NULL;
    weft_symm *symm = NULL;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_symm_create(weft_world(context), 0, NULL, &symm), WEFT_OK);
    ck_assert_uint_eq(fake.last_bytes, 8);
    ck_assert_uint_eq(weft_symm_bytes(symm), 0);
    weft_symm_release(&symm);
}

TEST(registered_memory_stays_the_callers)
{
    OWNED(weft_context) *context = NULL;
    weft_symm *symm = NULL;
    char memory[64] = "mine";

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_symm_register(weft_world(context), memory, 64, NULL, &symm), WEFT_OK);
    ck_assert_ptr_eq(weft_symm_local(symm), memory);
    ck_assert_ptr_eq(weft_symm_peer(symm, 0), memory);
    weft_symm_release(&symm);
    ck_assert_str_eq(memory, "mine");
}

TEST(kernels_get_device_memory_or_a_refusal)
{
    OWNED(weft_context) *context = NULL;
    weft_symm *symm = NULL;
    weft_symm_device device;
    void *copy[2] = {&copy, &copy[1]};

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    ck_assert_int_eq(weft_symm_create(weft_world(context), 64, NULL, &symm), WEFT_OK);
    ck_assert_int_eq(weft_symm_device_get(symm, &device), WEFT_OK);
    ck_assert_ptr_eq(device.buffers[0], weft_symm_local(symm));
    ck_assert_ptr_eq(weft_symm_address(&device, 0, 5), (char *)weft_symm_local(symm) + 5);
    ck_assert_ptr_eq(weft_symm_slot(&device, 0, 2, 0), device.signals[0] + 2);
    symm->host_memory = false;
    ck_assert_int_eq(weft_symm_device_get(symm, &device), WEFT_ERR_UNSUPPORTED);
    symm->handle.device_copy = copy;
    ck_assert_int_eq(weft_symm_device_get(symm, &device), WEFT_OK);
    ck_assert_ptr_eq(device.buffers, copy);
    ck_assert_ptr_eq(device.signals, &copy[1]);
    symm->host_memory = true;
    weft_symm_release(&symm);
}

/* The last rank requests a different size. */
static void want_different_sizes(struct world_rank *self)
{
    uint64_t bytes = self->rank == self->size - 1 ? 128 : 64;
    weft_symm *symm = NULL;

    note_seen(&self->seen, weft_symm_create(weft_world(self->context), bytes, NULL, &symm));
    HOLDS(symm == NULL);
    HOLDS(weft_symm_create(weft_world(self->context), 64, NULL, &symm) == WEFT_OK);
    weft_symm_release(&symm);
}

TEST(different_sizes_are_reported_to_all_ranks)
{
    fake_reset();
    world_begin(ranks, 3, want_different_sizes, NULL);
    for (int i = 0; i < 3; i++)
        ranks[i].plugin = fake_symm_plugin();
    world_go(ranks, 3);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH,
            "symmetric memory on world: rank 0 asks for 64 bytes and 8 channels and calls "
            "weft_symm_create, but rank 2 asks for 128 bytes and 8 channels and calls "
            "weft_symm_create");
    ck_assert_int_eq(fake.windows, 0);
}

/* A plugin that fails on one rank only, contrary to the ABI. */
static void fail_on_one(struct world_rank *self)
{
    weft_symm *symm = NULL;

    note_seen(&self->seen, weft_symm_create(weft_world(self->context), 64, NULL, &symm));
    HOLDS(symm == NULL);
}

TEST(one_rank_without_memory_is_an_error_on_all)
{
    fake_reset();
    fake.window_fails = 1;
    world_begin(ranks, 3, fail_on_one, NULL);
    for (int i = 0; i < 3; i++)
        ranks[i].plugin = fake_symm_plugin();
    world_go(ranks, 3);
    all_saw(ranks, 3, WEFT_ERR_NO_MEMORY, "scripted: no window");
    ck_assert_int_eq(fake.windows, 0);
}

static weft_status create_and_release(void *context)
{
    weft_symm *symm;

    WF_TRY(weft_symm_create(weft_world(context), 64, NULL, &symm));
    weft_symm_release(&symm);
    return WEFT_OK;
}

TEST(every_allocation_may_fail)
{
    weft_context *context;

    fake_reset();
    context = world_alone_on(fake_symm_plugin());
    for (int i = 0; i < WF_REMNANTS; i++) /* the context keeps as many released objects */
        ck_assert_int_eq(create_and_release(context), WEFT_OK);
    ck_assert_uint_ge(ALLOCATIONS_FAIL(create_and_release(context), (void)0), 3);
    weft_context_release(&context);
    ck_assert_int_eq(fake.windows, 0);
}
