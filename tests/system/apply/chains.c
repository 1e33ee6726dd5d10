#include "chains.h"

#include "base/base.h"
#include "kernels.h"
#include "support/seed.h"
#include "weft/random.h"

#include <stdio.h>
#include <string.h>

enum { POOL = 6, SIDE = 5, LARGEST = 1000 };

/* A square matrix in a random layout and whole on every rank. */
struct pair {
    weft_tensor *parts, *whole;
    double bound; /* of the elements */
};

struct chain {
    weft_context *context;
    weft_mesh *mesh;
    uint64_t state; /* of the random numbers; the same on all ranks */
    struct pair pool[POOL];
    char text[2048]; /* what was done */
    size_t length;
};

static uint32_t draw(struct chain *c, uint32_t below)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 33) % below;
}

static void note(struct chain *c, const char *what, uint32_t a, uint32_t b)
{
    if (c->length < sizeof c->text)
        c->length += (size_t)snprintf(c->text + c->length, sizeof c->text - c->length, " %s(%u,%u)",
                                      what, a, b);
}

/* ---- layouts ---- */

static weft_status random_spec(struct chain *c, weft_spec **out)
{
    static const char *const kinds[] = {"R", "S(0)", "S(1)", "S(0)",   "S(1)",
                                        "R", "P",    "O(1)", "SS(0,2)"};
    char text[128] = "f32[5,5] ";

    for (int32_t a = 0; a < weft_mesh_axes(c->mesh); a++) {
        uint32_t kind = draw(c, sizeof kinds / sizeof *kinds);
        if (weft_mesh_axis_size(c->mesh, a) < 2 && kinds[kind][0] == 'O') kind = 0;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", a > 0 ? "," : "",
                 kinds[kind]);
    }
    return weft_spec_parse(c->mesh, text, out);
}

static weft_status begin_pair(struct chain *c, struct pair *pair, uint64_t seed)
{
    weft_op_call sign = {.struct_size = sizeof sign, .name = "sign", .input_count = 1};
    weft_random random = {.seed = seed};
    weft_tensor *drawn;
    weft_spec *spec = NULL;
    char text[64];

    snprintf(text, sizeof text, "f32[5,5] %s", &",R,R,R"[7 - 2 * (size_t)weft_mesh_axes(c->mesh)]);
    WF_TRY(weft_spec_parse(c->mesh, text, &spec));
    WF_TRY(weft_tensor_create(c->context, spec, NULL, &drawn));
    weft_spec_release(&spec);
    WF_TRY(weft_tensor_normal(drawn, &random, 0, 1, NULL));
    WF_TRY(
        weft_op_apply(c->context, &sign, &drawn, NULL, plain_kernel, NULL, NULL, 1, &pair->whole));
    weft_tensor_release(&drawn);
    pair->bound = 1;
    WF_TRY(random_spec(c, &spec));
    WF_TRY(weft_tensor_move(pair->whole, spec, NULL, NULL, &pair->parts));
    weft_spec_release(&spec);
    return WEFT_OK;
}

/* ---- steps ---- */

/* Inputs may be moved. */
static const weft_op_apply_options moving = {.struct_size = sizeof moving,
                                             .moves = WEFT_OP_MOVES_MADE};

static weft_status apply_both(struct chain *c, const char *name, const struct pair *a,
                              const struct pair *b, struct pair *out)
{
    weft_op_call call = {
        .struct_size = sizeof call, .name = name, .input_count = b != NULL ? 2 : 1};
    weft_tensor *parts[] = {a->parts, b != NULL ? b->parts : NULL};
    weft_tensor *whole[] = {a->whole, b != NULL ? b->whole : NULL};

    WF_TRY(
        weft_op_apply(c->context, &call, parts, &moving, plain_kernel, NULL, NULL, 1, &out->parts));
    return weft_op_apply(c->context, &call, whole, &moving, plain_kernel, NULL, NULL, 1,
                         &out->whole);
}

static weft_status move_parts(struct chain *c, const struct pair *a, struct pair *out)
{
    weft_spec *spec = NULL;

    WF_TRY(random_spec(c, &spec));
    WF_TRY(weft_tensor_move(a->parts, spec, NULL, NULL, &out->parts));
    weft_spec_release(&spec);
    out->whole = weft_tensor_retain(a->whole);
    out->bound = a->bound;
    return WEFT_OK;
}

static weft_status transpose_both(const struct pair *a, struct pair *out)
{
    WF_TRY(weft_tensor_transpose(a->parts, 0, 1, &out->parts));
    WF_TRY(weft_tensor_transpose(a->whole, 0, 1, &out->whole));
    out->bound = a->bound;
    return WEFT_OK;
}

static weft_status check(struct chain *c, const struct pair *pair)
{
    weft_tensor_difference_info difference = {.struct_size = sizeof difference};

    WF_TRY(weft_tensor_compare(pair->whole, pair->parts, NULL, NULL, &difference));
    if (difference.equal) return WEFT_OK;
    return weft_fail(WEFT_ERR_INTERNAL, "after%s: %llu elements differ", c->text,
                     (unsigned long long)difference.differing);
}

static weft_status take_step(struct chain *c)
{
    uint32_t from = draw(c, POOL), with = draw(c, POOL), to = draw(c, POOL), kind = draw(c, 6);
    const struct pair *a = &c->pool[from], *b = &c->pool[with];
    struct pair made = {.bound = a->bound};
    weft_status status;

    if (a->bound > LARGEST || b->bound > LARGEST) kind = 0;
    if (b->bound > LARGEST) a = b;
    note(c, (const char *[]){"sign", "mm", "add", "relu", "transpose", "move"}[kind], from, with);
    switch (kind) {
    case 0:
        made.bound = 1;
        status = apply_both(c, "sign", a, NULL, &made);
        break;
    case 1:
        made.bound = a->bound * b->bound * SIDE;
        status = apply_both(c, "mm", a, b, &made);
        break;
    case 2:
        made.bound = a->bound + b->bound;
        status = apply_both(c, "add", a, b, &made);
        break;
    case 3:
        status = apply_both(c, "relu", a, NULL, &made);
        break;
    case 4:
        status = transpose_both(a, &made);
        break;
    default:
        status = move_parts(c, a, &made);
        break;
    }
    if (status == WEFT_OK) status = check(c, &made);
    if (status != WEFT_OK) return weft_fail(status, "after%s: %s", c->text, weft_last_error());
    weft_tensor_release(&c->pool[to].parts);
    weft_tensor_release(&c->pool[to].whole);
    c->pool[to] = made;
    return WEFT_OK;
}

/* ---- chains ---- */

static weft_status run_chain(weft_context *context, uint64_t seed)
{
    static const char *const meshes[] = {"4", "2x2", "3", "2@1,3", "1x4", "2x1x2"};
    struct chain c = {.context = context, .state = seed};
    uint32_t steps;

    WF_TRY(weft_mesh_parse(meshes[draw(&c, sizeof meshes / sizeof *meshes)], &c.mesh));
    for (int i = 0; i < POOL; i++)
        WF_TRY(begin_pair(&c, &c.pool[i], (uint64_t)i));
    steps = 5 + draw(&c, 16);
    for (uint32_t i = 0; i < steps; i++)
        WF_TRY(take_step(&c));
    for (int i = 0; i < POOL; i++) {
        weft_tensor_release(&c.pool[i].parts);
        weft_tensor_release(&c.pool[i].whole);
    }
    weft_mesh_release(&c.mesh);
    return WEFT_OK;
}

weft_status run_chains(weft_context *context, int count)
{
    for (int i = 0; i < count; i++)
        WF_TRY(run_chain(context, test_state((uint64_t)i)));
    return WEFT_OK;
}
