/* cp_case.h - random plans of context parallel, and what their masks show, pair by pair. */
#ifndef WEFT_TESTS_CP_CASE_H
#define WEFT_TESTS_CP_CASE_H

#include "support/random.h"
#include "weft/context_parallel.h"

#include <stdio.h>
#include <string.h>

enum { CP_MOST = 96 }; /* indices of a sequence */

/* Sizes of the tensors of an attention. */
struct cp_sizes {
    int64_t batch, heads, depth, key_heads;
    uint32_t dtype;
    int32_t sequence_dim;
};

/* PLAN, or the defaults if it is NULL, for a sequence of LENGTH indices and tensors of SIZES, which
 * may be NULL. */
static inline weft_cp_options cp_options(const weft_cp_options *plan, int64_t length,
                                         const struct cp_sizes *sizes)
{
    weft_cp_options options = {0};

    if (plan != NULL) options = *plan;
    options.struct_size = sizeof options;
    options.length = length;
    if (sizes == NULL) return options;
    options.batch = sizes->batch;
    options.heads = sizes->heads;
    options.depth = sizes->depth;
    options.key_heads = sizes->key_heads;
    options.dtype = sizes->dtype;
    options.sequence_dim = sizes->sequence_dim;
    return options;
}

/* The plan of such options. */
static inline weft_status cp_plan(const weft_mesh *mesh, const char *axis, int64_t length,
                                  const weft_cp_options *plan, weft_cp_plan **out)
{
    weft_cp_options options = cp_options(plan, length, NULL);

    return weft_cp_plan_create(mesh, axis, &options, out);
}

struct cp_case {
    int32_t ranks;
    int64_t length;
    weft_cp_options options;
    int64_t documents[8], order[CP_MOST];
    weft_cp_block blocks[CP_MOST * CP_MOST];
};

/* Does query Q see key K?  Elements of custom blocks are seen if their sum is even. */
static inline bool cp_sees(const struct cp_case *c, int64_t q, int64_t k)
{
    const weft_cp_options *o = &c->options;

    if (o->mask == WEFT_CP_BLOCKS) {
        for (size_t i = 0; i < o->block_count; i++) {
            const weft_cp_block *b = &o->blocks[i];
            if (b->query != q / o->block_length || b->key != k / o->block_length) continue;
            return b->mask == WEFT_CP_FULL || (b->mask == WEFT_CP_CAUSAL && k <= q) ||
                   (b->mask == WEFT_CP_CUSTOM && (q + k) % 2 == 0);
        }
        return false;
    }
    for (size_t i = 0, at = 0; o->documents != NULL && i < o->document_count; i++) {
        int64_t start = (int64_t)at, end = start + o->documents[i];
        if (q >= start && q < end && (k < start || k >= end)) return false;
        at = (size_t)end;
    }
    if (o->mask == WEFT_CP_FULL) return true;
    return k <= q && (o->mask == WEFT_CP_CAUSAL || k > q - o->window);
}

/* Does the problem P show key J to query I, both counted from its first ones? */
static inline bool cp_problem_sees(const weft_cp_problem *p, int64_t i, int64_t j)
{
    if (p->mask == WEFT_CP_FULL) return true;
    if (p->mask == WEFT_CP_CUSTOM) return (p->query_index + i + p->key_index + j) % 2 == 0;
    return j <= i + p->diagonal && (p->mask == WEFT_CP_CAUSAL || j > i + p->diagonal - p->window);
}

static inline void cp_case_blocks(struct random *r, struct cp_case *c)
{
    int64_t size = random_in(r, 1, 8), rows = (c->length + size - 1) / size;
    uint32_t count = 0;

    for (int64_t q = 0; q < rows; q++)
        for (int64_t k = 0; k < rows; k++)
            if (random_chance(r, 3))
                c->blocks[count++] = (weft_cp_block){
                    q, k,
                    (uint32_t[]){WEFT_CP_FULL, WEFT_CP_CAUSAL, WEFT_CP_CUSTOM}[random_in(r, 0, 2)],
                    0};
    for (uint32_t i = 0; i < count; i++) { /* in any order */
        uint32_t j = (uint32_t)random_in(r, 0, (int32_t)i);
        weft_cp_block block = c->blocks[i];
        c->blocks[i] = c->blocks[j];
        c->blocks[j] = block;
    }
    c->options.blocks = c->blocks;
    c->options.block_count = count;
    c->options.block_size = sizeof(weft_cp_block);
    c->options.block_length = size;
}

static inline void cp_case_documents(struct random *r, struct cp_case *c)
{
    int64_t left = c->length;
    size_t count = (size_t)random_in(r, 1, 8);

    for (size_t i = 0; i < count; i++) {
        c->documents[i] = i + 1 == count ? left : random_in(r, 0, (int32_t)left);
        left -= c->documents[i];
    }
    c->options.documents = c->documents;
    c->options.document_count = count;
}

/* A case on RANKS ranks. */
static inline void cp_case_draw(struct random *r, int32_t ranks, struct cp_case *c)
{
    weft_cp_options *o = &c->options;
    int32_t order[CP_MOST];

    memset(c, 0, sizeof *c);
    c->ranks = ranks;
    c->length = random_in(r, random_chance(r, 10) ? 0 : 1, CP_MOST);
    o->struct_size = sizeof *o;
    o->variant = (uint32_t)random_in(r, 0, 2);
    o->mask = (uint32_t)random_in(r, 0, o->variant == WEFT_CP_GATHER ? 3 : 2);
    if (o->mask == WEFT_CP_WINDOW) o->window = random_in(r, 1, CP_MOST);
    if (o->mask == WEFT_CP_BLOCKS)
        cp_case_blocks(r, c);
    else if (random_chance(r, 2))
        cp_case_documents(r, c);
    do
        o->balance = (uint32_t)random_in(r, 0, o->variant == WEFT_CP_GATHER ? 4 : 1);
    while ((o->balance == WEFT_CP_BY_BLOCKS && o->mask != WEFT_CP_BLOCKS) ||
           (o->balance == WEFT_CP_PER_DOCUMENT && o->documents == NULL));
    if (o->balance != WEFT_CP_PERMUTED) return;
    random_order(r, (int32_t)c->length, order);
    for (int64_t i = 0; i < c->length; i++)
        c->order[i] = order[i];
    o->order = c->order;
    o->order_count = (size_t)c->length;
}

/* The case as text, for failures. */
static inline const char *cp_case_text(const struct cp_case *c)
{
    static const char *const variants[] = {"ring", "gather", "heads"},
                             *const masks[] = {"full", "causal", "window", "blocks"},
                             *const balances[] = {"contiguous", "head-tail", "per-document",
                                                  "by-blocks", "permuted"};
    static _Thread_local char text[1024];
    int at = snprintf(text, sizeof text,
                      "--mesh cp=%d --length %lld --variant %s --mask %s --balance %s", c->ranks,
                      (long long)c->length, variants[c->options.variant], masks[c->options.mask],
                      balances[c->options.balance]);

    if (c->options.window != 0)
        at += snprintf(text + at, sizeof text - (size_t)at, " --window %lld",
                       (long long)c->options.window);
    if (c->options.mask == WEFT_CP_BLOCKS)
        at += snprintf(text + at, sizeof text - (size_t)at, " --block-size %lld (%zu blocks)",
                       (long long)c->options.block_length, c->options.block_count);
    for (size_t i = 0; i < c->options.document_count; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld",
                       i == 0 ? " --documents " : ",", (long long)c->documents[i]);
    return text;
}

#endif
