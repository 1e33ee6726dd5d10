/* collective.c - runs one collective of the plugin and checks every byte of its buffers. */
#include "collective.h"

#include "frame/progress.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATENESS_NS (10 * KIT_MILLISECOND)

/* One rank's part in a case. */
struct part {
    struct kit *kit;
    const struct kit_collective *c;
    const struct kit_shape *shape;
    uint64_t seed;
    int32_t me;
    size_t bytes; /* bytes of an element */
    bool sends, receives, in_place;
    struct kit_image send, recv;     /* in place: only one of them exists */
    struct kit_image *whole;         /* in place: that one; else NULL */
    uint64_t send_start, recv_start; /* offsets within the images, in elements */
    double *slack;
};

/* Element INDEX of the send buffer of position SOURCE. */
static void input(const struct part *part, int32_t source, uint64_t index, void *element)
{
    const struct kit_collective *c = part->c;

    if (part->shape->reduces)
        kit_pattern_element(c->pattern, part->seed, c->dtype, c->reduction, c->group->size, source,
                            index, element);
    else
        kit_pattern_bits(part->seed, c->dtype, source, index, element);
}

/* ---- before ---- */

static bool make_images(struct part *part)
{
    const struct kit_collective *c = part->c;
    uint64_t send_bytes = kit_send_extent(c, part->me) * part->bytes;
    uint64_t recv_bytes = kit_recv_extent(c, part->me) * part->bytes;

    part->in_place = c->in_place && part->sends && part->receives;
    if (!part->in_place)
        return kit_image_make(part->kit, &part->send, send_bytes, c->misaligned, c->memory) &&
               kit_image_make(part->kit, &part->recv, recv_bytes, c->misaligned, c->memory);
    if (part->shape->split_send && !part->shape->split_recv) {
        part->whole = &part->send;
        part->recv_start = kit_send_offset(c, part->me, part->me);
    } else {
        part->whole = &part->recv;
        if (!part->shape->split_send) part->send_start = kit_recv_offset(c, part->me, part->me);
    }
    return kit_image_make(part->kit, part->whole,
                          part->whole == &part->send ? send_bytes : recv_bytes, c->misaligned,
                          c->memory);
}

static struct kit_image *send_image(struct part *part)
{
    return part->in_place ? part->whole : &part->send;
}

static struct kit_image *recv_image(struct part *part)
{
    return part->in_place ? part->whole : &part->recv;
}

static bool fill_and_upload(struct part *part)
{
    struct kit_image *image = send_image(part);
    uint64_t extent = kit_send_extent(part->c, part->me);

    for (uint64_t i = 0; i < extent; i++)
        input(part, part->me, i,
              image->before + image->start + (part->send_start + i) * part->bytes);
    if (part->in_place) return kit_image_upload(part->kit, part->whole);
    return kit_image_upload(part->kit, &part->send) && kit_image_upload(part->kit, &part->recv);
}

/* ---- what shall come out ---- */

static void want_moved(struct part *part, int32_t source, uint8_t *out)
{
    const struct kit_collective *c = part->c;
    uint64_t from = kit_send_offset(c, source, part->me), to = kit_recv_offset(c, part->me, source);
    uint64_t count = kit_share(c, source, part->me);

    if (part->shape->one_source && source != c->root) return;
    for (uint64_t i = 0; i < count; i++)
        input(part, source, from + i, out + (to + i) * part->bytes);
}

static double magnitude(struct wf_number number)
{
    return fabs(number.re) + fabs(number.im);
}

/* The contribution of position SOURCE to the reduction of element INDEX. */
static struct wf_number contribution(const struct part *part, int32_t source, uint64_t index)
{
    uint32_t dtype = part->c->dtype;
    uint8_t element[16], scale[16];
    struct wf_number value;

    input(part, source, index, element);
    value = wf_number_load(dtype, element);
    if (part->c->reduction != WEFT_REDUCE_PREMUL_SUM) return value;
    kit_pattern_scale(dtype, source, scale);
    return wf_number_combine(dtype, WEFT_REDUCE_PROD, value, wf_number_load(dtype, scale));
}

static void want_reduced(struct part *part, uint8_t *out)
{
    const struct kit_collective *c = part->c;
    int32_t size = c->group->size;
    int64_t divisor = c->divisor != 0 ? (int64_t)c->divisor : size;
    struct wf_number values[KIT_MAX_RANKS];
    bool averages = c->reduction == WEFT_REDUCE_AVG;

    for (uint64_t i = 0; i < kit_share(c, 0, part->me); i++) {
        double sum = 0;
        for (int32_t source = 0; source < size; source++) {
            values[source] = contribution(part, source, kit_send_offset(c, source, part->me) + i);
            sum += magnitude(values[source]) / (averages ? (double)divisor : 1);
        }
        wf_number_store_reduced(c->dtype, c->reduction, values, size, divisor,
                                out + i * part->bytes);
        if (part->slack != NULL)
            part->slack[part->recv_start + i] = wf_dtype_epsilon(c->dtype) * (size + 1) * sum;
    }
}

static bool may_round(const struct kit_collective *c)
{
    uint32_t parts = c->divisor != 0 ? c->divisor : (uint32_t)c->group->size;
    bool power_of_two = (parts & (parts - 1)) == 0;

    return c->pattern == KIT_ROUNDING || (c->reduction == WEFT_REDUCE_AVG && !power_of_two);
}

static bool want_results(struct part *part)
{
    struct kit_image *image = recv_image(part);
    uint8_t *out = image->want + image->start + part->recv_start * part->bytes;

    if (!part->receives) return true;
    if (part->shape->reduces && may_round(part->c)) {
        part->slack = calloc(image->bytes / part->bytes + 1, sizeof *part->slack);
        if (part->slack == NULL) return false;
    }
    if (part->shape->reduces)
        want_reduced(part, out);
    else
        for (int32_t source = 0; source < part->c->group->size; source++)
            want_moved(part, source, out);
    return true;
}

/* ---- the call ---- */

struct arrays {
    uint64_t send_counts[KIT_MAX_RANKS], send_offsets[KIT_MAX_RANKS];
    uint64_t recv_counts[KIT_MAX_RANKS], recv_offsets[KIT_MAX_RANKS];
};

static void set_arrays(struct part *part, struct arrays *arrays, weft_collective_args *args)
{
    const struct kit_collective *c = part->c;

    for (int32_t peer = 0; peer < c->group->size; peer++) {
        arrays->send_counts[peer] = kit_share(c, part->me, peer);
        arrays->send_offsets[peer] = kit_send_offset(c, part->me, peer);
        arrays->recv_counts[peer] = kit_share(c, peer, part->me);
        arrays->recv_offsets[peer] = kit_recv_offset(c, part->me, peer);
    }
    if (part->shape->split_send && part->sends) {
        args->send_counts = arrays->send_counts;
        args->send_offsets = arrays->send_offsets;
    }
    if (part->shape->split_recv && part->receives) {
        args->recv_counts = arrays->recv_counts;
        args->recv_offsets = arrays->recv_offsets;
    }
    if (c->collective == WEFT_COLL_GATHER_V)
        args->count = arrays->send_counts[c->root];
    else if (c->collective == WEFT_COLL_SCATTER_V)
        args->count = arrays->recv_counts[c->root];
    else
        args->count = 0; /* not read */
}

/* Buffers that this rank does not use are NULL, which the ABI allows. */
static void set_memory(struct part *part, weft_collective_args *args)
{
    if (part->sends && kit_send_extent(part->c, part->me) > 0)
        args->send = kit_image_at(send_image(part), part->send_start * part->bytes);
    if (part->receives && kit_recv_extent(part->c, part->me) > 0)
        args->recv = kit_image_at(recv_image(part), part->recv_start * part->bytes);
}

static bool has_entered(const struct part *part, int32_t rank)
{
    return atomic_load(&part->kit->progress->places[rank].entered) >= part->kit->case_number;
}

/* Delay this rank, so that the other ranks wait in the call. */
static void come_late(const struct part *part)
{
    const struct kit_group *group = part->c->group;
    uint64_t deadline = wf_now_ns() + (uint64_t)KIT_SECOND;

    for (int32_t i = 0; i < group->size; i++)
        while (i != part->me && !has_entered(part, group->ranks[i]) && wf_now_ns() < deadline)
            sched_yield();
    kit_nap(LATENESS_NS);
}

static weft_status call(struct part *part, void *comm, void *stream)
{
    const struct kit_collective *c = part->c;
    struct arrays arrays;
    uint8_t scale[16];
    weft_collective_args args = {
        .struct_size = sizeof args,
        .collective = c->collective,
        .dtype = c->dtype,
        .reduction = c->reduction,
        .root = c->root,
        .count = c->count,
        .stream = stream,
        .divisor = c->divisor,
    };

    if (part->shape->varied) set_arrays(part, &arrays, &args);
    set_memory(part, &args);
    kit_pattern_scale(c->dtype, part->me, scale);
    if (c->reduction == WEFT_REDUCE_PREMUL_SUM) args.scale = scale;
    if (c->late == part->me) come_late(part);
    atomic_store(&part->kit->progress->places[part->kit->rank].entered, part->kit->case_number);
    return part->kit->plugin->comm->collective(comm, &args);
}

/* After the work is done the caller may change the send buffer, even if other ranks are late. */
static void reuse_send(struct part *part)
{
    if (part->c->late < 0 || part->in_place || !part->sends) return;
    memset(part->send.before + part->send.start, 0x5a, part->send.bytes);
    kit_image_upload(part->kit, &part->send);
}

/* No rank leaves a barrier before all ranks have entered it. */
static void check_all_entered(struct part *part)
{
    const struct kit_group *group = part->c->group;

    for (int32_t i = 0; i < group->size; i++)
        kit_check(part->kit, has_entered(part, group->ranks[i]),
                  "it was complete before rank %d had called it", group->ranks[i]);
}

static void run(struct part *part, void *comm)
{
    void *stream = NULL;
    weft_status status;

    if (part->c->own_stream && !kit_stream_make(part->kit, &stream)) return;
    status = call(part, comm, stream);
    if (kit_ok(part->kit, "collective", status)) {
        status = kit_finish(part->kit, comm, stream, 2 * part->kit->options->timeout_ns);
        if (kit_ok(part->kit, "the collective's work", status)) {
            if (part->c->collective == WEFT_COLL_BARRIER) check_all_entered(part);
            reuse_send(part);
        }
    }
    kit_stream_drop(part->kit, stream);
}

static void check(struct part *part)
{
    struct kit_compare compare = {
        .dtype = part->c->dtype, .by_value = part->shape->reduces, .slack = part->slack};

    if (part->in_place) {
        kit_image_check(part->kit, part->whole, "the buffer in place", &compare);
        return;
    }
    kit_image_check(part->kit, &part->recv, "recv", &compare);
    kit_image_check(part->kit, &part->send, "send, which is only read",
                    &(struct kit_compare){.dtype = part->c->dtype});
}

void kit_collective_run(struct kit *kit, const struct kit_collective *c, uint64_t seed)
{
    const struct kit_shape *shape = &kit_shapes[c->collective];
    struct part part = {.kit = kit, .c = c, .shape = shape, .seed = seed, .me = c->group->mine};
    void *comm;

    if (c->group->mine < 0) return;
    part.bytes = wf_dtype_bytes(c->dtype);
    part.sends = !shape->one_source || c->root == part.me;
    part.receives = !shape->one_target || c->root == part.me;
    comm = kit_comm(kit, c->group);
    if (comm != NULL && make_images(&part) && fill_and_upload(&part) && want_results(&part)) {
        run(&part, comm);
        check(&part);
    }
    kit_images_free(kit, &part.send, &part.recv);
    free(part.slack);
}

void kit_collective_case(struct kit *kit, const struct kit_collective *c, const char *prefix,
                         const char *style)
{
    char reduction[32] = "", root[32] = "", late[32] = "";

    if (wf_collective_reduces(c->collective))
        snprintf(reduction, sizeof reduction, "/%s", wf_reduction_name(c->reduction));
    if (kit_is_rooted(c->collective)) snprintf(root, sizeof root, "/root=%d", c->root);
    if (c->late >= 0) snprintf(late, sizeof late, "/late=%d", c->late);
    if (!kit_begin(kit, "%s%s/%s%s/%s/count=%llu%s%s/ranks=%s", prefix,
                   wf_collective_name(c->collective), wf_dtype_name(c->dtype), reduction, style,
                   (unsigned long long)c->count, root, late, c->group->name))
        return;
    kit_collective_run(kit, c, kit_case_seed(kit));
    kit_end(kit);
}
