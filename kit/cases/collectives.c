/* collectives.c - which collective cases there are.
 *
 * Every claimed (collective, dtype, reduction) is run in a handful of styles on all ranks.  What
 * does not depend on the dtype (sub-communicators, every root, memory kinds, late ranks, large
 * counts) is run with the first claimed one only. */
#include "cases.h"

#include "checks/collective.h"

struct style {
    const char *name;
    uint64_t count;
    enum kit_layout layout;
    bool in_place, misaligned;
};

static const struct style even_styles[] = {
    {"out_of_place", 0, KIT_PACKED, false, false},
    {"out_of_place", 1, KIT_PACKED, false, false},
    {"out_of_place", 7, KIT_PACKED, false, false},
    {"out_of_place", 1021, KIT_PACKED, false, false},
    {"in_place", 1, KIT_PACKED, true, false},
    {"in_place", 13, KIT_PACKED, true, false},
    {"misaligned", 31, KIT_PACKED, false, true},
    {"in_place_misaligned", 67, KIT_PACKED, true, true},
};

static const struct style varied_styles[] = {
    {"packed", 5, KIT_PACKED, false, false},
    {"gapped", 7, KIT_GAPPED, false, false},
    {"permuted", 11, KIT_PERMUTED, false, false},
    {"lonely", 3, KIT_LONELY, false, false},
    {"empty", 1, KIT_EMPTY, false, false},
    {"packed_in_place", 5, KIT_PACKED, true, false},
    {"gapped_in_place", 7, KIT_GAPPED, true, false},
    {"permuted_misaligned", 13, KIT_PERMUTED, false, true},
};

/* Complex numbers are aligned to half their size, other dtypes to their size. */
static uint32_t misalignment(uint32_t dtype)
{
    uint32_t bytes = (uint32_t)wf_dtype_bytes(dtype);

    return wf_dtype_is_complex(dtype) ? bytes / 2 : bytes;
}

static void run_styles(struct kit *kit, struct kit_collective c)
{
    bool varied = kit_shapes[c.collective].varied;
    const struct style *styles = varied ? varied_styles : even_styles;
    size_t count = varied ? WF_COUNT(varied_styles) : WF_COUNT(even_styles);

    for (size_t i = 0; i < count; i++) {
        c.count = styles[i].count;
        c.layout = styles[i].layout;
        c.in_place = styles[i].in_place;
        c.misaligned = styles[i].misaligned ? misalignment(c.dtype) : 0;
        c.root = kit_is_rooted(c.collective) ? (int32_t)((c.dtype + i) % (size_t)c.group->size) : 0;
        kit_collective_case(kit, &c, "", styles[i].name);
    }
}

/* Numbers that reductions often get wrong. */
static void run_patterns(struct kit *kit, struct kit_collective c)
{
    bool floating = wf_dtype_is_float(c.dtype);
    bool small =
        c.dtype == WEFT_DTYPE_F16 || c.dtype == WEFT_DTYPE_F8E4M3 || c.dtype == WEFT_DTYPE_F8E5M2;

    if (!wf_collective_reduces(c.collective) || kit_shapes[c.collective].varied) return;
    c.count = 17;
    c.pattern = KIT_ROUNDING;
    if (wf_dtype_epsilon(c.dtype) > 0 && c.reduction == WEFT_REDUCE_SUM)
        kit_collective_case(kit, &c, "", "rounding");
    c.pattern = KIT_NAN;
    if (floating && (c.reduction == WEFT_REDUCE_SUM || c.reduction == WEFT_REDUCE_MIN ||
                     c.reduction == WEFT_REDUCE_MAX))
        kit_collective_case(kit, &c, "", "nan");
    c.pattern = KIT_EXTREME;
    if (small && c.reduction == WEFT_REDUCE_SUM) kit_collective_case(kit, &c, "", "overflow");
    if (c.dtype == WEFT_DTYPE_F8E5M2 &&
        (c.reduction == WEFT_REDUCE_MIN || c.reduction == WEFT_REDUCE_MAX))
        kit_collective_case(kit, &c, "", "infinities");
    if (c.reduction != WEFT_REDUCE_AVG) return;
    kit_collective_case(kit, &c, "", "beyond");
    c.divisor = 3;
    if (wf_dtype_epsilon(c.dtype) > 0) c.pattern = KIT_EXACT; /* sums of floats must be finite */
    kit_collective_case(kit, &c, "", "divisor");
}

/* Cases that do not depend on the dtype. */
static void run_once(struct kit *kit, struct kit_collective c)
{
    bool host = (kit->info.features & WEFT_FEATURE_HOST_MEMORY) != 0;

    c.count = 5;
    for (c.root = 0; c.root < (kit_is_rooted(c.collective) ? c.group->size : 1); c.root++)
        kit_collective_case(kit, &c, "", "roots");
    c.root = 0;
    c.count = 65537;
    kit_collective_case(kit, &c, "", "large");
    c.count = 9;
    c.own_stream = true;
    kit_collective_case(kit, &c, "", "own_stream");
    c.own_stream = false;
    c.memory = KIT_PLAIN;
    if (host) kit_collective_case(kit, &c, "", "plain_memory");
    c.memory = KIT_DEVICE;
    if (c.group->size < 2) return;
    for (c.late = 0; c.late < c.group->size; c.late += c.group->size - 1)
        kit_collective_case(kit, &c, "", "late");
}

static void run_groups(struct kit *kit, struct kit_collective c)
{
    c.count = 6;
    for (int g = 1; g < kit->group_count; g++) {
        c.group = &kit->groups[g];
        if (!c.group->claims[c.collective][c.dtype][c.reduction]) continue;
        for (c.root = 0; c.root < (kit_is_rooted(c.collective) ? c.group->size : 1); c.root++)
            kit_collective_case(kit, &c, "", "out_of_place");
        c.root = c.group->size - 1;
        c.in_place = true;
        kit_collective_case(kit, &c, "", "in_place");
        c.in_place = false;
    }
}

/* The same on a communicator created by split, with another group of ranks for each collective. */
static void run_split(struct kit *kit, struct kit_collective c)
{
    const weft_comm_table *table = kit->plugin->comm;
    struct kit_comm_setup setup;
    struct kit_group group;
    void *parent;

    if (table->split == NULL || kit->group_count < 2) return;
    group = kit->groups[1 + (int)c.collective % (kit->group_count - 1)];
    if (!kit_begin(kit, "split/%s/%s/ranks=%s", wf_collective_name(c.collective),
                   wf_dtype_name(c.dtype), group.name))
        return;
    c.count = 6;
    c.group = &group;
    parent = kit_comm(kit, &kit->groups[0]);
    group.comm = kit; /* split must overwrite it, also with NULL */
    if (group.mine >= 0) kit_comm_options(kit, &group, (struct kit_comm_request){0}, &setup);
    if (parent != NULL &&
        kit_ok(kit, "split",
               table->split(parent, group.mine >= 0 ? &setup.options : NULL, &group.comm)) &&
        kit_check(kit, (group.comm != NULL) == (group.mine >= 0),
                  "split gave %s to a rank that is %s the list",
                  group.comm != NULL ? "a communicator" : "none",
                  group.mine >= 0 ? "in" : "not in")) {
        kit_collective_run(kit, &c, kit_case_seed(kit));
        kit_synchronize(kit, kit->groups[0].ranks, kit->size);
        kit_comm_drop(kit, group.comm);
    }
    kit_end(kit);
}

/* The native communicator is wrapped again.  Both work, and destroying the wrapper does not
 * affect the first.  A thread of the plugin may use the communicator when it is handed out, so the
 * case waits until such threads have begun. */
static void run_wrapped(struct kit *kit, struct kit_collective c)
{
    const weft_comm_table *table = kit->plugin->comm;
    struct kit_group group = kit->groups[0];
    struct kit_comm_setup setup;
    void *comm, *native;

    if (table->wrap == NULL || table->native == NULL) return;
    if (!kit_begin(kit, "wrapped/%s/%s", wf_collective_name(c.collective), wf_dtype_name(c.dtype)))
        return;
    c.count = 6;
    comm = kit_comm(kit, &kit->groups[0]);
    kit_nap(30 * KIT_MILLISECOND);
    native = comm != NULL ? table->native(comm) : NULL;
    kit_comm_options(kit, &group, (struct kit_comm_request){0}, &setup);
    group.comm = NULL;
    if (native != NULL &&
        kit_ok(kit, "wrap", table->wrap(kit->device, native, &setup.options, &group.comm)) &&
        kit_check(kit, group.comm != NULL, "wrap: WEFT_OK without a communicator")) {
        c.group = &group;
        kit_collective_run(kit, &c, kit_case_seed(kit));
        kit_synchronize(kit, kit->groups[0].ranks, kit->size);
        table->destroy(group.comm);
        c.group = &kit->groups[0];
        kit_collective_run(kit, &c, kit_case_seed(kit));
    }
    kit_end(kit);
}

static void run_collective(struct kit *kit, uint32_t collective)
{
    static const uint32_t first_choices[] = {WEFT_DTYPE_F32, WEFT_DTYPE_I32, WEFT_DTYPE_U8};
    struct kit_collective c = {.group = &kit->groups[0], .collective = collective, .late = -1};
    bool once = false;

    for (size_t i = 0; i < WF_COUNT(first_choices) + WEFT_DTYPE_COUNT; i++) {
        bool preferred = i < WF_COUNT(first_choices);
        c.dtype = preferred ? first_choices[i] : (uint32_t)(i - WF_COUNT(first_choices));
        for (c.reduction = 0; c.reduction < WEFT_REDUCE_COUNT; c.reduction++) {
            if (!c.group->claims[collective][c.dtype][c.reduction]) continue;
            if (!once) {
                run_once(kit, c);
                run_groups(kit, c);
                run_split(kit, c);
                run_wrapped(kit, c);
            }
            once = true;
            if (preferred) continue;
            run_styles(kit, c);
            run_patterns(kit, c);
        }
    }
}

void kit_collectives(struct kit *kit)
{
    for (uint32_t collective = 0; collective < WEFT_COLL_COUNT; collective++)
        run_collective(kit, collective);
}
