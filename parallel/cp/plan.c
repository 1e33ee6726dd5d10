/* plan.c - plans of context parallel: their life, options and figures. */
#include "cp.h"

#include <stdlib.h>
#include <string.h>

static const char function[] = "weft_cp_plan_create";

static const char *const mask_names[] = {"FULL", "CAUSAL", "WINDOW", "BLOCKS"};
static const char *const balance_names[] = {"CONTIGUOUS", "HEAD_TAIL", "PER_DOCUMENT", "BY_BLOCKS",
                                            "PERMUTED"};
static const char *const variant_names[] = {"RING", "GATHER", "HEADS"};

void wf_cp_plan_add_fields(const weft_cp_plan *plan, struct wf_text *fields)
{
    wf_field_add(fields, "length", "%lld", (long long)plan->length);
    wf_field_add(fields, "mask", "%s", mask_names[plan->mask]);
    wf_field_add(fields, "balance", "%s", balance_names[plan->balance]);
    wf_field_add(fields, "variant", "%s", variant_names[plan->variant]);
    wf_field_add(fields, "windows, documents, orders or blocks", "plan %016llx",
                 (unsigned long long)plan->digest);
}

static void free_plan(weft_cp_plan *plan)
{
    weft_mesh_release(&plan->mesh);
    wf_free(plan->documents);
    wf_free(plan->blocks);
    wf_free(plan->runs);
    wf_free(plan->first_run);
    plan->made = wf_released(WF_KIND_CP_PLAN);
    wf_free(plan);
}

/* ---- options ---- */

static weft_status check_names(const weft_cp_options *o)
{
    int64_t length = o->length;

    if (length < 0 || length > WEFT_CP_MAX_LENGTH)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_cp_options.length is %lld; it must be within 0 .. %lld", function,
                       (long long)length, (long long)WEFT_CP_MAX_LENGTH);
    if (o->mask >= WF_COUNT(mask_names))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_cp_options.mask is %u; expected FULL, CAUSAL, WINDOW or BLOCKS",
                       function, o->mask);
    if (o->balance >= WF_COUNT(balance_names))
        return wf_fail(
            WEFT_ERR_INVALID,
            "%s: weft_cp_options.balance is %u; expected a value of enum weft_cp_balance", function,
            o->balance);
    if (o->variant >= WF_COUNT(variant_names))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_cp_options.variant is %u; expected RING, GATHER or HEADS",
                       function, o->variant);
    return WEFT_OK;
}

static weft_status check_variant(const weft_cp_options *o)
{
    bool any = o->balance == WEFT_CP_CONTIGUOUS || o->balance == WEFT_CP_HEAD_TAIL;

    if (o->variant == WEFT_CP_GATHER) return WEFT_OK;
    if (o->mask == WEFT_CP_BLOCKS)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%s: a mask of blocks needs the variant GATHER, not %s", function,
                       variant_names[o->variant]);
    if (!any)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%s: balance %s needs the variant GATHER, not %s; with %s, use HEAD_TAIL or "
                       "CONTIGUOUS",
                       function, balance_names[o->balance], variant_names[o->variant],
                       variant_names[o->variant]);
    return WEFT_OK;
}

static weft_status check_fields(const weft_cp_options *o)
{
    int64_t length = o->length;

    if (o->reserved != 0)
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_cp_options.reserved is %u; it must be 0",
                       function, o->reserved);
    if ((o->mask == WEFT_CP_WINDOW) != (o->window != 0) || o->window < 0)
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_cp_options.window is %lld with the mask %s; %s",
                       function, (long long)o->window, mask_names[o->mask],
                       o->mask == WEFT_CP_WINDOW ? "it must be at least 1" : "only WINDOW has one");
    if ((o->mask == WEFT_CP_BLOCKS) != (o->block_length != 0) || o->block_length < 0 ||
        (o->mask != WEFT_CP_BLOCKS && (o->block_count > 0 || o->blocks != NULL)))
        return wf_fail(
            WEFT_ERR_INVALID, "%s: weft_cp_options.block_length is %lld with the mask %s; %s",
            function, (long long)o->block_length, mask_names[o->mask],
            o->mask == WEFT_CP_BLOCKS ? "it must be at least 1" : "only BLOCKS has blocks");
    if (o->block_count > 0 && o->blocks == NULL)
        return wf_fail_null(function, "weft_cp_options.blocks");
    if (o->document_count > 0 && o->documents == NULL)
        return wf_fail_null(function, "weft_cp_options.documents");
    if (o->mask == WEFT_CP_BLOCKS && o->documents != NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: documents with a mask of BLOCKS; list only blocks within documents, "
                       "with CUSTOM where a block has a boundary",
                       function);
    if (o->balance == WEFT_CP_PER_DOCUMENT && o->documents == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: balance PER_DOCUMENT without documents", function);
    if (o->balance == WEFT_CP_BY_BLOCKS && o->mask != WEFT_CP_BLOCKS)
        return wf_fail(WEFT_ERR_INVALID, "%s: balance BY_BLOCKS needs the mask BLOCKS, not %s",
                       function, mask_names[o->mask]);
    if ((o->balance == WEFT_CP_PERMUTED) != (o->order != NULL))
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_cp_options.order is %s with balance %s",
                       function, o->order != NULL ? "set" : "NULL", balance_names[o->balance]);
    if (o->order != NULL && o->order_count != (uint64_t)length)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_cp_options.order_count is %zu, but the sequence has length %lld",
                       function, o->order_count, (long long)length);
    return WEFT_OK;
}

static weft_status copy_documents(weft_cp_plan *plan, const weft_cp_options *o)
{
    int64_t at = 0;

    if (o->documents == NULL) return WEFT_OK;
    plan->documents = wf_calloc(o->document_count + 1, sizeof *plan->documents);
    if (plan->documents == NULL)
        return wf_fail_memory((o->document_count + 1) * sizeof *plan->documents);
    for (size_t i = 0; i < o->document_count; i++) {
        plan->documents[i] = at;
        if (o->documents[i] < 0 || o->documents[i] > plan->length - at)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: document %zu has length %lld; the sequence has %lld indices left",
                           function, i, (long long)o->documents[i], (long long)(plan->length - at));
        at += o->documents[i];
    }
    if (at != plan->length)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: the documents add up to %lld, but the sequence has length %lld",
                       function, (long long)at, (long long)plan->length);
    plan->documents[o->document_count] = at;
    plan->document_count = o->document_count;
    return WEFT_OK;
}

static int compare_blocks(const void *a, const void *b)
{
    const weft_cp_block *x = a, *y = b;

    if (x->query != y->query) return x->query < y->query ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

static weft_status check_block(const weft_cp_plan *plan, const weft_cp_block *block)
{
    int64_t rows = plan->length / plan->block_length + (plan->length % plan->block_length != 0);

    if (block->query < 0 || block->query >= rows || block->key < 0 || block->key >= rows)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: block (%lld, %lld) is not in the sequence, which has %lld blocks of "
                       "%lld indices",
                       function, (long long)block->query, (long long)block->key, (long long)rows,
                       (long long)plan->block_length);
    if ((block->mask != WEFT_CP_FULL && block->mask != WEFT_CP_CAUSAL &&
         block->mask != WEFT_CP_CUSTOM) ||
        block->reserved != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: block (%lld, %lld) has mask %u and reserved %u; the mask is FULL, "
                       "CAUSAL or CUSTOM, and reserved is 0",
                       function, (long long)block->query, (long long)block->key, block->mask,
                       block->reserved);
    return WEFT_OK;
}

static weft_status copy_blocks(weft_cp_plan *plan, const weft_cp_options *o)
{
    if (o->block_count == 0) return WEFT_OK;
    plan->blocks = wf_calloc(o->block_count, sizeof *plan->blocks);
    if (plan->blocks == NULL) return wf_fail_memory(o->block_count * sizeof *plan->blocks);
    plan->block_count = o->block_count;
    memcpy(plan->blocks, o->blocks, o->block_count * sizeof *plan->blocks);
    qsort(plan->blocks, plan->block_count, sizeof *plan->blocks, compare_blocks);
    for (size_t i = 0; i < plan->block_count; i++) {
        WF_TRY(check_block(plan, &plan->blocks[i]));
        if (i > 0 && compare_blocks(&plan->blocks[i - 1], &plan->blocks[i]) == 0)
            return wf_fail(WEFT_ERR_INVALID, "%s: block (%lld, %lld) is listed twice", function,
                           (long long)plan->blocks[i].query, (long long)plan->blocks[i].key);
    }
    return WEFT_OK;
}

static void set_digest(weft_cp_plan *plan)
{
    uint64_t h = wf_hash_mix(wf_hash_mix(1, weft_mesh_hash(plan->mesh)), (uint64_t)plan->axis);

    h = wf_hash_mix(wf_hash_mix(h, (uint64_t)plan->length), (uint64_t)plan->window);
    h = wf_hash_mix(h, (uint64_t)plan->mask << 32 | plan->balance << 8 | plan->variant);
    if (plan->documents != NULL)
        h = wf_hash(h, plan->documents, (plan->document_count + 1) * sizeof *plan->documents);
    if (plan->blocks != NULL)
        h = wf_hash(h, plan->blocks, plan->block_count * sizeof *plan->blocks);
    h = wf_hash_mix(h, (uint64_t)plan->block_length);
    plan->digest = wf_hash(h, plan->runs, plan->run_count * sizeof *plan->runs);
}

static weft_status fill_plan(weft_cp_plan *plan, const weft_cp_options *o)
{
    plan->mask = o->mask;
    plan->balance = o->balance;
    plan->variant = o->variant;
    plan->window = o->window;
    plan->block_length = o->block_length;
    WF_TRY(copy_documents(plan, o));
    WF_TRY(copy_blocks(plan, o));
    WF_TRY(wf_cp_balance(plan, o->order));
    set_digest(plan);
    return WEFT_OK;
}

static weft_status make_plan(const weft_mesh *mesh, int32_t axis, const weft_cp_options *o,
                             weft_cp_plan **out)
{
    weft_cp_plan *plan = wf_calloc(1, sizeof *plan);
    weft_status status;

    if (plan == NULL) return wf_fail_memory(sizeof *plan);
    plan->made = WF_OF_KIND(WF_KIND_CP_PLAN);
    atomic_init(&plan->references, 1);
    plan->mesh = weft_mesh_retain(mesh);
    plan->axis = axis;
    plan->ranks = weft_mesh_axis_size(mesh, axis);
    plan->length = o->length;
    status = fill_plan(plan, o);
    if (status != WEFT_OK)
        free_plan(plan);
    else
        *out = plan;
    return status;
}

weft_status weft_cp_plan_create(const weft_mesh *mesh, const char *axis,
                                const weft_cp_options *options, weft_cp_plan **out)
{
    weft_cp_options o = {0};
    weft_status status;
    void *copy = NULL;
    int32_t index;

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_cp_plan_create: mesh"));
    if (axis == NULL) return wf_fail_null(function, "axis");
    if (options == NULL) return wf_fail_null(function, "options");
    if (out == NULL) return wf_fail_null(function, "out");
    WF_TRY(wf_fail_named(wf_options_read("weft_cp_options", options, &o, sizeof o), function));
    WF_TRY(wf_fail_named(weft_mesh_find_axis(mesh, axis, &index), function));
    if (weft_mesh_axis_size(mesh, index) > WEFT_MAX_SIZES)
        return wf_fail(WEFT_ERR_INVALID, "%s: the axis has %d ranks; at most %d share a sequence",
                       function, weft_mesh_axis_size(mesh, index), WEFT_MAX_SIZES);
    WF_TRY(check_names(&o));
    WF_TRY(check_fields(&o));
    WF_TRY(check_variant(&o));
    if (o.block_count > 0)
        WF_TRY(wf_fail_named(wf_items_read("weft_cp_block", o.block_count, o.blocks, o.block_size,
                                           sizeof *o.blocks, &copy),
                             function));
    if (copy != NULL) o.blocks = copy;
    status = make_plan(mesh, index, &o, out);
    wf_free(copy);
    return status;
}

weft_cp_plan *weft_cp_plan_retain(const weft_cp_plan *plan)
{
    weft_cp_plan *mine = (weft_cp_plan *)(uintptr_t)plan; /* only its reference count changes */

    if (!wf_is_kind(plan, WF_KIND_CP_PLAN)) return NULL;
    atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void weft_cp_plan_release(weft_cp_plan **plan)
{
    weft_cp_plan *mine = wf_take(plan, WF_KIND_CP_PLAN, "weft_cp_plan_release");

    if (mine == NULL) return;
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) == 1) free_plan(mine);
}

/* ---- figures ---- */

weft_status weft_cp_plan_get(const weft_cp_plan *plan, weft_cp_plan_info *out)
{
    weft_cp_plan_info info = {0};

    WF_TRY(wf_require_kind(plan, WF_KIND_CP_PLAN, "weft_cp_plan_get: plan"));
    if (out == NULL) return wf_fail_null("weft_cp_plan_get", "out");
    WF_TRY(wf_fail_named(wf_info_check("weft_cp_plan_info", out), "weft_cp_plan_get"));
    info.ranks = plan->ranks;
    info.steps = wf_cp_steps(plan);
    info.length = plan->length;
    for (int32_t c = 0; c < plan->ranks; c++)
        info.longest = wf_max_i64(info.longest, wf_cp_held(plan, c));
    if (plan->variant == WEFT_CP_HEADS) { /* all have the same queries and keys, of their heads */
        uint64_t ranks = (uint64_t)plan->ranks;

        info.work_total = wf_cp_work(plan, 0);
        info.work_largest = info.work_total / ranks + (info.work_total % ranks != 0);
    }
    for (int32_t c = 0; plan->variant != WEFT_CP_HEADS && c < plan->ranks; c++) {
        uint64_t work = wf_cp_work(plan, c);

        info.work_total = wf_add_capped(info.work_total, work);
        if (work > info.work_largest) info.work_largest = work;
    }
    return wf_info_write("weft_cp_plan_info", &info, sizeof info, out);
}

static bool has_coordinate(const weft_cp_plan *plan, int32_t coordinate)
{
    return wf_is_kind(plan, WF_KIND_CP_PLAN) && coordinate >= 0 && coordinate < plan->ranks;
}

int64_t weft_cp_plan_length(const weft_cp_plan *plan, int32_t coordinate)
{
    return has_coordinate(plan, coordinate) ? wf_cp_held(plan, coordinate) : 0;
}

uint64_t weft_cp_plan_work(const weft_cp_plan *plan, int32_t coordinate)
{
    uint64_t work;

    if (!has_coordinate(plan, coordinate)) return 0;
    work = wf_cp_work(plan, coordinate);
    if (plan->variant != WEFT_CP_HEADS) return work;
    return (work + (uint64_t)plan->ranks - 1) / (uint64_t)plan->ranks;
}

bool weft_cp_plan_run(const weft_cp_plan *plan, int32_t coordinate, int64_t position,
                      weft_index_run *out)
{
    size_t low, high;

    if (out == NULL || position < 0 || !has_coordinate(plan, coordinate) ||
        position >= wf_cp_held(plan, coordinate))
        return false;
    low = plan->first_run[coordinate];
    high = plan->first_run[coordinate + 1];
    while (high - low > 1) { /* the last run that begins at or before POSITION */
        size_t middle = low + (high - low) / 2;

        if (plan->runs[middle].position <= position)
            low = middle;
        else
            high = middle;
    }
    position -= plan->runs[low].position;
    *out = (weft_index_run){plan->runs[low].start + position, plan->runs[low].length - position};
    return true;
}

weft_status weft_cp_plan_problems(const weft_cp_plan *plan, int32_t coordinate, int32_t step,
                                  size_t capacity, weft_cp_problem *problems, size_t problem_size,
                                  size_t *count)
{
    static const char name[] = "weft_cp_plan_problems";
    struct wf_cp_problems list = {0};
    weft_status status;

    WF_TRY(wf_require_kind(plan, WF_KIND_CP_PLAN, "weft_cp_plan_problems: plan"));
    if (count == NULL) return wf_fail_null(name, "count");
    if (problems == NULL && capacity > 0) return wf_fail_null(name, "problems");
    if (capacity > 0)
        WF_TRY(
            wf_fail_named(wf_items_check("weft_cp_problem", problem_size, sizeof *problems), name));
    if (!has_coordinate(plan, coordinate) || step < 0 || step >= wf_cp_steps(plan))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: coordinate %d, step %d; the plan has %d coordinate%s and %d step%s",
                       name, coordinate, step, plan->ranks, plan->ranks == 1 ? "" : "s",
                       wf_cp_steps(plan), wf_cp_steps(plan) == 1 ? "" : "s");
    status = wf_cp_problems(plan, coordinate, step, &list);
    if (status == WEFT_OK) {
        if (capacity > 0 && list.count > 0)
            memcpy(problems, list.items,
                   (list.count < capacity ? list.count : capacity) * sizeof *problems);
        *count = list.count;
    }
    wf_free(list.items);
    return status;
}
