/* What a communicator has to carry operations that its backend denies. */
#include "comm/carry/carry.h"
#include "support/suite.h"

#include <check.h>
#include <string.h>

/* What the plugin has. */
static struct {
    bool all_to_all_v, all_gather, pulls;
    weft_status send;
} has;

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    bool found = (query->collective == WEFT_COLL_ALL_TO_ALL_V && has.all_to_all_v) ||
                 (query->collective == WEFT_COLL_ALL_GATHER && has.all_gather);

    (void)device;
    *level = found && query->dtype == WEFT_DTYPE_U8 ? WEFT_SUPPORT_EMULATED : WEFT_SUPPORT_NO;
    return WEFT_OK;
}

static weft_status send(void *comm, const weft_message *message)
{
    (void)comm;
    ck_assert_int_eq(message->peer, -1); /* a question, which moves nothing */
    return has.send;
}

static weft_status pull(void *comm, const weft_pull_args *args)
{
    (void)comm;
    ck_assert_ptr_null(args->regions);
    return has.pulls ? WEFT_ERR_INVALID : WEFT_ERR_UNSUPPORTED;
}

static weft_status create(void *device, uint32_t element, uint64_t count,
                          const weft_region *regions, void **list)
{
    (void)device, (void)element, (void)count, (void)regions, (void)list;
    return WEFT_ERR_INTERNAL;
}

static const weft_comm_table table = {
    .struct_size = sizeof table, .support = support, .send = send, .pull = pull};
static const weft_kernel_table kernel = {.struct_size = sizeof kernel, .regions_create = create};
static const weft_plugin with = {.name = "some", .comm = &table, .kernel = &kernel};
static const weft_plugin without = {.name = "some", .comm = &table};

static enum wf_transport transport_of(const weft_plugin *plugin)
{
    static weft_comm comm;

    memset(&comm, 0, sizeof comm);
    comm.plugin = plugin;
    comm.table = plugin->comm;
    comm.size = 2;
    return wf_transport_of(&comm);
}

TEST(the_first_operation_that_a_plugin_has_carries_the_others)
{
    has.all_to_all_v = has.all_gather = has.pulls = true;
    has.send = WEFT_ERR_INVALID;
    ck_assert_int_eq(transport_of(&with), WF_TRANSPORT_ALL_TO_ALL_V);
    has.all_to_all_v = false;
    ck_assert_int_eq(transport_of(&with), WF_TRANSPORT_MESSAGES);
    has.send = WEFT_ERR_UNSUPPORTED;
    ck_assert_int_eq(transport_of(&with), WF_TRANSPORT_PULL);
    ck_assert_int_eq(transport_of(&without), WF_TRANSPORT_ALL_GATHER);
    has.all_gather = false;
    ck_assert_int_eq(transport_of(&without), WF_TRANSPORT_NONE);
    has.pulls = false;
    ck_assert_int_eq(transport_of(&with), WF_TRANSPORT_NONE);
}

TEST(refusals_name_the_plugin_and_what_it_needs)
{
    static weft_comm comm;

    comm.plugin = &with;
    comm.table = with.comm;
    comm.size = 2;
    strcpy(comm.name, "world");
    ck_assert_int_eq(wf_transport_refuse(&comm, "all_to_all_v of f32"), WEFT_ERR_UNSUPPORTED);
    ck_assert_str_eq(
        weft_last_error(),
        "all_to_all_v of f32 on world: backend some does not have it, and has nothing "
        "to carry it: a plugin needs all_to_all_v of u8, send and receive, pull with a "
        "kernel table, or all_gather of u8");
}

TEST(a_communicator_tells_whether_it_has_messages)
{
    static weft_comm comm;

    comm.made = wf_made_now(WF_KIND_COMM);
    comm.table = with.comm;
    has.send = WEFT_ERR_INVALID;
    ck_assert(weft_comm_has_messages(&comm));
    has.send = WEFT_ERR_UNSUPPORTED;
    ck_assert(!weft_comm_has_messages(&comm));
    comm.made = wf_made_now(WF_KIND_SIMULATED_COMM);
    ck_assert(!weft_comm_has_messages(&comm));
    ck_assert(!weft_comm_has_messages(NULL));
}
