/* rank.h - one rank of a job whose ranks share a sequence, for tests of calls. */
#ifndef WEFT_TESTS_CP_RANK_H
#define WEFT_TESTS_CP_RANK_H

#include "attention.h"

#include "base/base.h"
#include "support/expect.h"
#include "support/local_tensor.h"
#include "support/suite.h"

enum { RANKS = 3, LENGTH = 24, DEPTH = 4, MOST = LENGTH * 6 * DEPTH };

#define OPTIONS(...) (&(weft_cp_options){.struct_size = sizeof(weft_cp_options), __VA_ARGS__})
/* Sizes without a default. */
#define SIZES_OF(batch, heads, key_heads, depth, dtype, dim)                                       \
    (&(struct cp_sizes){batch, heads, depth, key_heads, dtype, dim})
#define SIZES SIZES_OF(1, 6, 3, DEPTH, WEFT_DTYPE_F32, 0)

/* One rank of a job of RANKS ranks on one axis. */
struct rank {
    weft_context *ctx;
    weft_mesh *mesh;
    weft_cp_options options; /* of the plan */
    weft_cp *cp;
    float q[MOST], k[MOST], v[MOST], out[MOST], lse[MOST], d_out[MOST], d_q[MOST], d_k[MOST],
        d_v[MOST];
    weft_cp_tensors tensors;
};

/* The tensors of SIZES in the memory of R. */
static inline weft_status make_tensors(struct rank *r)
{
    weft_cp_tensors *t = &r->tensors;
    const struct {
        weft_tensor **tensor;
        float *memory;
        int64_t heads;
    } all[] = {{&t->q, r->q, 6},     {&t->k, r->k, 3},         {&t->v, r->v, 3},
               {&t->out, r->out, 6}, {&t->d_out, r->d_out, 6}, {&t->d_q, r->d_q, 6},
               {&t->d_k, r->d_k, 3}, {&t->d_v, r->d_v, 3},     {&t->lse, r->lse, 6}};

    *t = (weft_cp_tensors){.struct_size = sizeof *t};
    for (size_t i = 0; i < WF_COUNT(all); i++) {
        int64_t shape[] = {1, all[i].heads, LENGTH / weft_size(r->ctx), DEPTH};

        *all[i].tensor = local_tensor(r->ctx, WEFT_DTYPE_F32, all[i].tensor == &t->lse ? 3 : 4,
                                      shape, all[i].memory, NULL);
        EXPECT(*all[i].tensor != NULL);
    }
    return WEFT_OK;
}

/* Create the attention of SIZES by the plan of R. */
static inline weft_status create(struct rank *r, const struct cp_sizes *sizes, weft_cp **out)
{
    weft_cp_options options = cp_options(&r->options, LENGTH, sizes);

    return weft_cp_create(r->ctx, r->mesh, "cp", &options, out);
}

static inline weft_status join(struct rank *r, const weft_cp_options *options)
{
    char mesh[16];

    memset(r, 0, sizeof *r);
    EXPECT(weft_init(NULL, &r->ctx) == WEFT_OK);
    snprintf(mesh, sizeof mesh, "cp=%d", weft_size(r->ctx));
    EXPECT(weft_mesh_parse(mesh, &r->mesh) == WEFT_OK);
    r->options = cp_options(options, LENGTH, NULL);
    EXPECT(make_tensors(r) == WEFT_OK);
    for (int i = 0; i < MOST; i++)
        r->k[i] = (float)weft_rank(r->ctx) + 1;
    return WEFT_OK;
}

static inline weft_status leave(struct rank *r)
{
    weft_tensor **const all[] = {&r->tensors.q,   &r->tensors.k,   &r->tensors.v,
                                 &r->tensors.out, &r->tensors.lse, &r->tensors.d_out,
                                 &r->tensors.d_q, &r->tensors.d_k, &r->tensors.d_v};

    for (size_t i = 0; i < WF_COUNT(all); i++)
        weft_tensor_release(all[i]);
    weft_cp_release(&r->cp);
    weft_mesh_release(&r->mesh);
    weft_context_release(&r->ctx);
    return WEFT_OK;
}

static inline void run_ranks(weft_status (*rank_main)(void *), void *argument)
{
    weft_status status = weft_threads_run(RANKS, rank_main, argument);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
}

static inline bool refused(weft_status got, weft_status wanted, const char *text)
{
    return got == wanted && strstr(weft_last_error(), text) != NULL;
}

#endif
