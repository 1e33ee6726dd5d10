/* pull.c - each rank reads regions of its peers' buffers in one call: pull, and exchange, in which
 * the peers say what is read of them. */
#include "cases.h"

#include "checks/collective.h"
#include "checks/casts.h"
#include "checks/regions.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One pull: every rank reads a list of regions, whose sources are shifted by its rank. */
struct request {
    struct kit *kit;
    struct kit_group *group;
    struct kit_region_list list;
    uint32_t dtype, reduction, holders, divisor;
    bool casts; /* by pull_cast */
    uint32_t to;
    bool exchanges; /* by exchange */
    struct kit_region_list served;
    enum kit_pattern pattern;
    int32_t sources[KIT_MAX_RANKS + KIT_MAX_RANKS]; /* positions in the group */
    int32_t readers[KIT_MAX_RANKS];
    uint32_t reader_count;
    enum kit_memory memory;
    struct kit_image send, recv;
    double *slack;
    const weft_region *region; /* the element whose value is computed */
};

/* Element INDEX of the buffer of position SOURCE. */
static void element(const struct request *request, int32_t source, uint64_t index, void *out)
{
    uint64_t seed = kit_case_seed(request->kit);

    if (request->holders > 1)
        kit_pattern_element(request->pattern, seed, request->dtype, request->reduction,
                            (int32_t)request->holders, source, index, out);
    else
        kit_pattern_bits(seed, request->dtype, source, index, out);
}

static void want_cast(const struct request *request, const uint8_t *element, uint8_t *out)
{
    if (request->casts)
        kit_cast_want(request->dtype, request->to, element, out);
    else
        memcpy(out, element, wf_dtype_bytes(request->dtype));
}

static void want_element(void *self, uint64_t source_index, uint64_t target_index)
{
    struct request *request = self;
    uint8_t *out =
        request->recv.want + request->recv.start + target_index * wf_dtype_bytes(request->to);
    struct wf_number values[KIT_MAX_RANKS] = {{0}};
    uint32_t divisor = request->divisor != 0 ? request->divisor : request->holders;
    uint8_t bytes[16];
    double sum = 0;

    if (request->holders == 1) {
        element(request, request->sources[request->region->source], source_index, bytes);
        want_cast(request, bytes, out);
        return;
    }
    for (uint32_t k = 0; k < request->holders; k++) {
        element(request, request->sources[request->region->source + k], source_index, bytes);
        values[k] = wf_number_load(request->dtype, bytes);
        sum += fabs(values[k].re) + fabs(values[k].im);
    }
    wf_number_store_reduced(request->dtype, request->reduction, values, (int32_t)request->holders,
                            divisor, bytes);
    want_cast(request, bytes, out);
    request->slack[target_index] =
        request->reduction == WEFT_REDUCE_AVG
            ? wf_dtype_epsilon(request->dtype) * (request->holders + 1) * sum / divisor
            : 0;
}

static bool make(struct request *request)
{
    uint64_t bytes = wf_dtype_bytes(request->dtype);
    uint64_t elements = request->list.source_elements;
    struct kit_image *send = &request->send;

    request->slack = calloc(request->list.target_elements, sizeof *request->slack);
    if (request->slack == NULL ||
        !kit_image_make(request->kit, send, elements * bytes, 0, request->memory) ||
        !kit_image_make(request->kit, &request->recv,
                        request->list.target_elements * wf_dtype_bytes(request->to), 0,
                        request->memory))
        return false;
    for (uint64_t i = 0; i < elements; i++)
        element(request, request->group->mine, i, send->before + send->start + i * bytes);
    if (!kit_image_upload(request->kit, send) || !kit_image_upload(request->kit, &request->recv))
        return false;
    for (uint32_t i = 0; i < request->list.count; i++) {
        request->region = &request->list.regions[i];
        kit_region_walk(request->region, want_element, request);
    }
    return true;
}

/* Call pull, pull_cast or exchange. */
static weft_status post(const struct request *request, void *comm, weft_pull_args *args)
{
    struct kit *kit = request->kit;
    const weft_comm_table *table = kit->plugin->comm;
    const weft_kernel_table *kernel = kit->plugin->kernel;
    weft_status status;

    if (request->casts) return table->pull_cast(comm, args, request->to);
    if (!request->exchanges) return table->pull(comm, args);
    if (!kit_ok(kit, "regions_create of what others read",
                kernel->regions_create(kit->device, (uint32_t)wf_dtype_bytes(request->dtype),
                                       request->served.count, request->served.regions,
                                       &args->served)))
        return WEFT_ERR_INTERNAL;
    status = table->exchange(comm, args);
    if (status == WEFT_OK) status = kit_finish(kit, comm, NULL, 2 * kit->options->timeout_ns);
    kernel->regions_destroy(args->served);
    return status;
}

static void pull(struct request *request, void *comm, bool late)
{
    struct kit *kit = request->kit;
    const weft_kernel_table *kernel = kit->plugin->kernel;
    struct kit_compare exactly = {.dtype = request->dtype}, by_value = {.dtype = request->to};
    weft_pull_args args = {.struct_size = sizeof args,
                           .dtype = request->dtype,
                           .reduction = request->reduction,
                           .holders = request->holders,
                           .sources = request->sources,
                           .readers = request->readers,
                           .reader_count = request->reader_count,
                           .send = kit_image_at(&request->send, 0),
                           .send_bytes = request->send.bytes,
                           .recv = kit_image_at(&request->recv, 0),
                           .divisor = request->divisor};

    by_value.by_value = request->holders > 1;
    by_value.slack = request->slack;
    if (!kit_ok(kit, "regions_create",
                kernel->regions_create(kit->device, (uint32_t)wf_dtype_bytes(request->dtype),
                                       request->list.count, request->list.regions, &args.regions)))
        return;
    if (late && request->group->mine == 0) kit_nap(10 * KIT_MILLISECOND);
    if (kit_ok(kit,
               request->casts       ? "pull_cast"
               : request->exchanges ? "exchange"
                                    : "pull",
               post(request, comm, &args)) &&
        kit_ok(kit, "the pull's work", kit_finish(kit, comm, NULL, 2 * kit->options->timeout_ns)) &&
        late) {
        /* After the pull the caller may change SEND, even if other ranks are late. */
        memset(request->send.before + request->send.start, 0x5a, request->send.bytes);
        kit_image_upload(kit, &request->send);
    }
    kit_image_check(kit, &request->recv, "recv", &by_value);
    kit_image_check(kit, &request->send, "send, which is only read", &exactly);
    kernel->regions_destroy(args.regions);
}

static bool is_empty(const weft_region *region)
{
    for (uint32_t d = 0; d < region->dims; d++)
        if (region->extent[d] == 0) return true;
    return false;
}

static bool reads(const struct request *request, int32_t reader, int32_t source)
{
    int32_t size = request->group->size;

    for (uint32_t i = 0; i < request->list.count; i++)
        for (uint32_t k = 0; k < request->holders && !is_empty(&request->list.regions[i]); k++)
            if ((reader + (int32_t)(request->list.regions[i].source + k)) % size == source)
                return true;
    return false;
}

static void find_readers(struct request *request, bool only_first)
{
    for (int32_t r = 0; r < (only_first ? 1 : request->group->size); r++)
        if (reads(request, r, request->group->mine)) request->readers[request->reader_count++] = r;
}

/* List what the readers read of this rank, one reader after the other. */
static void list_served(struct request *request)
{
    const struct kit_region_list *list = &request->list;
    int32_t size = request->group->size;

    request->served.count = 0;
    for (uint32_t reader = 0; reader < request->reader_count; reader++)
        for (uint32_t i = 0; i < list->count; i++) {
            weft_region *region = &request->served.regions[request->served.count];
            int32_t source = request->readers[reader] + (int32_t)list->regions[i].source;

            if (source % size != request->group->mine) continue;
            *region = list->regions[i];
            region->source = 0;
            region->target = reader;
            request->served.count++;
        }
}

/* Put the regions of one source after one another, otherwise in their order. */
static void sort_by_source(struct kit_region_list *list)
{
    for (uint32_t i = 1; i < list->count; i++)
        for (uint32_t k = i; k > 0 && list->regions[k].source < list->regions[k - 1].source; k--) {
            weft_region region = list->regions[k];

            list->regions[k] = list->regions[k - 1];
            list->regions[k - 1] = region;
        }
}

/* Run list number WHICH, or REQUEST's own if it has regions, inside the open case. */
static void run(struct kit *kit, struct request *request, uint32_t which, bool late,
                bool only_first)
{
    struct kit_group *group = request->group;
    void *comm;

    if (group->mine < 0) return;
    if (!request->casts) request->to = request->dtype;
    for (int32_t i = 0; i < 2 * group->size; i++)
        request->sources[i] = (group->mine + i) % group->size;
    if (request->list.count == 0) kit_region_list(which, (uint32_t)group->size, &request->list);
    find_readers(request, only_first);
    if (request->exchanges) {
        list_served(request);
        sort_by_source(&request->list);
    }
    if (only_first && group->mine != 0) request->list.count = 0;
    comm = kit_comm(kit, group);
    if (comm != NULL && make(request)) pull(request, comm, late);
    kit_images_free(kit, &request->send, &request->recv);
    free(request->slack);
}

/* REQUEST with each list of regions, in the cases PREFIX/LIST/FORMAT. */
WF_PRINTF(3, 4)
static void run_lists(const struct request *request, const char *prefix, const char *format, ...)
{
    struct kit_region_list list;
    char rest[3 * KIT_MAX_RANKS + 64];
    va_list args;

    va_start(args, format);
    vsnprintf(rest, sizeof rest, format, args);
    va_end(args);
    for (uint32_t which = 0; kit_region_list(which, 1, &list); which++) {
        struct request one = *request;

        if (!kit_begin(request->kit, "%s/%s/%s", prefix, list.name, rest)) continue;
        run(request->kit, &one, which, false, false);
        kit_end(request->kit);
    }
}

static struct request request_of_all(struct kit *kit, uint32_t dtype, uint32_t reduction,
                                     uint32_t holders)
{
    return (struct request){.kit = kit,
                            .group = &kit->groups[0],
                            .dtype = dtype,
                            .reduction = reduction,
                            .holders = holders};
}

static void moved(struct kit *kit, struct kit_group *group, uint32_t dtype)
{
    struct request request = request_of_all(kit, dtype, 0, 1);

    request.group = group;
    run_lists(&request, "move", "%s/ranks=%s", wf_dtype_name(dtype), group->name);
}

static void reduced(struct kit *kit, uint32_t dtype, uint32_t reduction, uint32_t holders)
{
    struct request request = request_of_all(kit, dtype, reduction, holders);

    run_lists(&request, "reduce", "%s/%s/holders=%u", wf_dtype_name(dtype),
              wf_reduction_name(reduction), holders);
}

/* An average of integers whose sum overflows their dtype, with a divisor that is not the number
 * of holders. */
static void averaged(struct kit *kit, uint32_t dtype, uint32_t divisor)
{
    struct request request = request_of_all(kit, dtype, WEFT_REDUCE_AVG, (uint32_t)kit->size);

    request.divisor = divisor;
    request.pattern = KIT_EXTREME;
    run_lists(&request, "average", "%s/divisor=%u", wf_dtype_name(dtype), divisor);
}

/* Each element, or its reduction, in another dtype. */
static void cast(struct kit *kit, uint32_t from, uint32_t to, uint32_t holders)
{
    struct request request = request_of_all(kit, from, WEFT_REDUCE_SUM, holders);

    request.casts = true;
    request.to = to;
    run_lists(&request, "cast", "%s/%s/holders=%u", wf_dtype_name(from), wf_dtype_name(to),
              holders);
}

static void casts(struct kit *kit)
{
    uint32_t size = (uint32_t)kit->size;

    if (kit->plugin->comm->pull_cast == NULL) return;
    cast(kit, WEFT_DTYPE_F32, WEFT_DTYPE_BF16, 1);
    cast(kit, WEFT_DTYPE_BF16, WEFT_DTYPE_F64, 1);
    cast(kit, WEFT_DTYPE_F8E5M2, WEFT_DTYPE_F8E4M3, 1);
    cast(kit, WEFT_DTYPE_I8, WEFT_DTYPE_I64, 1);
    if (size < 2) return;
    cast(kit, WEFT_DTYPE_F32, WEFT_DTYPE_F16, size);
    cast(kit, WEFT_DTYPE_F64, WEFT_DTYPE_F8E4M3, size);
}

/* Memory that the plugin did not allocate, if it accepts any memory. */
static void plain(struct kit *kit, uint32_t holders)
{
    struct request request = request_of_all(kit, WEFT_DTYPE_I32, WEFT_REDUCE_SUM, holders);

    request.memory = KIT_PLAIN;
    run_lists(&request, "plain", "holders=%u", holders);
}

void kit_pull_lists(struct kit *kit)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_U8, WEFT_DTYPE_BF16, WEFT_DTYPE_F32,
                                      WEFT_DTYPE_I64, WEFT_DTYPE_C128};

    for (size_t i = 0; i < WF_COUNT(dtypes); i++)
        moved(kit, &kit->groups[0], dtypes[i]);
    for (int g = 1; g < kit->group_count; g++)
        moved(kit, &kit->groups[g], WEFT_DTYPE_F32);
    if (kit_when_host_memory(kit)) {
        plain(kit, 1);
        if (kit->size > 1) plain(kit, (uint32_t)kit->size);
    }
    casts(kit);
    if (kit->size < 2) return;
    reduced(kit, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, 2);
    reduced(kit, WEFT_DTYPE_F16, WEFT_REDUCE_SUM, (uint32_t)kit->size);
    reduced(kit, WEFT_DTYPE_I32, WEFT_REDUCE_MAX, (uint32_t)kit->size);
    reduced(kit, WEFT_DTYPE_F64, WEFT_REDUCE_AVG, (uint32_t)kit->size);
    averaged(kit, WEFT_DTYPE_I8, 0);
    averaged(kit, WEFT_DTYPE_I32, 3);
    averaged(kit, WEFT_DTYPE_U64, 3);
}

static void special(struct kit *kit, const char *name, bool exchanges, bool late, bool only_first)
{
    enum { MANY = 7 };
    struct request request = request_of_all(kit, WEFT_DTYPE_F32, 0, 1);

    request.exchanges = exchanges;
    if (!kit_begin(kit, "%s", name)) return;
    run(kit, &request, MANY, late, only_first);
    kit_end(kit);
}

void kit_pull_special(struct kit *kit)
{
    special(kit, "late", false, true, false);
    special(kit, "only_first", false, false, true);
}

/* ---- exchange ---- */

static void exchanged(struct kit *kit, struct kit_group *group, uint32_t dtype,
                      enum kit_memory memory)
{
    struct request request = request_of_all(kit, dtype, 0, 1);

    request.group = group;
    request.exchanges = true;
    request.memory = memory;
    run_lists(&request, "exchange", "%s/ranks=%s%s", wf_dtype_name(dtype), group->name,
              memory == KIT_PLAIN ? "/plain" : "");
}

/* More than one piece of any transport: runs that begin anywhere, and rows. */
static void exchange_large(struct kit *kit)
{
    enum { ROWS = 40, ROW = 1000, STEP = 1500, RUN = 70000 };
    struct request request = request_of_all(kit, WEFT_DTYPE_C128, 0, 1);
    struct kit_region_list *list = &request.list;
    uint32_t sources = (uint32_t)kit->size < KIT_MAX_REGIONS / 2 ? (uint32_t)kit->size : 2;

    request.exchanges = true;
    list->source_elements = 13 + RUN + ROWS * STEP;
    list->target_elements = (uint64_t)sources * (RUN + ROWS * ROW);
    for (uint32_t s = 0; s < sources; s++) {
        int64_t at = (int64_t)s * (RUN + ROWS * ROW);

        list->regions[list->count++] = (weft_region){.source = s,
                                                     .source_offset = 13,
                                                     .target_offset = at,
                                                     .dims = 1,
                                                     .extent = {RUN},
                                                     .source_stride = {1},
                                                     .target_stride = {1}};
        list->regions[list->count++] = (weft_region){.source = s,
                                                     .source_offset = 13 + RUN,
                                                     .target_offset = at + RUN,
                                                     .dims = 2,
                                                     .extent = {ROWS, ROW},
                                                     .source_stride = {STEP, 1},
                                                     .target_stride = {1, ROWS}};
    }
    if (!kit_begin(kit, "exchange/large")) return;
    run(kit, &request, 0, false, false);
    kit_end(kit);
}

void kit_pull_exchanges(struct kit *kit)
{
    exchanged(kit, &kit->groups[0], WEFT_DTYPE_U8, KIT_DEVICE);
    exchanged(kit, &kit->groups[0], WEFT_DTYPE_BF16, KIT_DEVICE);
    for (int g = 0; g < kit->group_count; g++)
        exchanged(kit, &kit->groups[g], WEFT_DTYPE_F32, KIT_DEVICE);
    if (kit_when_host_memory(kit)) exchanged(kit, &kit->groups[0], WEFT_DTYPE_I32, KIT_PLAIN);
    exchange_large(kit);
    special(kit, "exchange/late", true, true, false);
    special(kit, "exchange/only_first", true, false, true);
}

/* On a communicator that checks, all ranks pull, or exchange if they cannot, but the last one calls
 * a barrier, or pulls for another binding of the plan. */
static void mismatch(struct kit *kit, const char *name, bool is_barrier, weft_pull_args args)
{
    const weft_comm_table *table = kit->plugin->comm;
    const weft_kernel_table *kernel = kit->plugin->kernel;
    struct kit_comm_request request = {.timeout_ns = 4 * KIT_SECOND, .flags = WEFT_COMM_CHECK};
    weft_collective_args barrier = {.struct_size = sizeof barrier, .collective = WEFT_COLL_BARRIER};
    void *comm = NULL, *nothing = NULL;
    bool reads = kit_when_reads(kit);

    if (!kit_begin(kit, "%s", name)) return;
    if (kit_ok(kit, "a communicator with WEFT_COMM_CHECK",
               kit_comm_try(kit, &kit->groups[0], request, &comm)) &&
        kit_ok(kit, "regions_create of nothing",
               kernel->regions_create(kit->device, 4, 0, NULL, &nothing))) {
        bool odd = kit->rank == kit->size - 1;
        weft_status status;

        args.regions = nothing;
        if (!reads) args.served = nothing;
        if (odd && !is_barrier) args.binding++;
        if (odd && is_barrier)
            status = table->collective(comm, &barrier);
        else
            status = reads ? table->pull(comm, &args) : table->exchange(comm, &args);
        if (status == WEFT_OK) status = kit_finish(kit, comm, NULL, 8 * KIT_SECOND);
        kit_expect(kit,
                   is_barrier ? "a pull that is a barrier on one rank"
                              : "a pull of another binding on one rank",
                   status, WEFT_ERR_MISMATCH);
        kernel->regions_destroy(nothing);
    }
    /* A rank that destroys its communicator may end the calls of the others. */
    kit_synchronize(kit, kit->groups[0].ranks, kit->size);
    kit_comm_drop(kit, comm);
    kit_end(kit);
}

void kit_pull_mismatches(struct kit *kit)
{
    weft_pull_args args = {.struct_size = sizeof args, .dtype = WEFT_DTYPE_F32, .holders = 1};

    if (kit->groups[0].claims[WEFT_COLL_BARRIER][0][0] != WEFT_SUPPORT_NO)
        mismatch(kit, "mismatch", true, args);
    args.plan = UINT64_C(0x123456789abcdef0);
    args.binding = args.step = 1;
    mismatch(kit, "mismatch/plan", false, args);
}

/* Both find out with a call without regions, which a plugin that has it must refuse otherwise. */
bool kit_when_reads(struct kit *kit)
{
    weft_pull_args question = {.struct_size = sizeof question};
    void *comm = kit->plugin->comm->pull != NULL ? kit_comm(kit, &kit->groups[0]) : NULL;

    return comm != NULL && kit->plugin->comm->pull(comm, &question) != WEFT_ERR_UNSUPPORTED;
}

bool kit_when_exchanges(struct kit *kit)
{
    weft_pull_args question = {.struct_size = sizeof question};
    void *comm = kit->plugin->comm->exchange != NULL ? kit_comm(kit, &kit->groups[0]) : NULL;

    return comm != NULL && kit->plugin->comm->exchange(comm, &question) != WEFT_ERR_UNSUPPORTED;
}

bool kit_when_pull(struct kit *kit)
{
    const weft_comm_table *comm = kit->plugin->comm;

    if (comm == NULL || (comm->pull == NULL && comm->exchange == NULL))
        kit_skip(kit, "the plugin has no pull");
    else if (kit->plugin->kernel == NULL)
        kit_skip(kit, "pull needs the regions of a kernel table, and the plugin has no such table");
    else if (!kit_when_reads(kit) && !kit_when_exchanges(kit))
        kit_skip(kit, "the plugin says that these ranks cannot read each other's memory");
    else
        return true;
    return false;
}
