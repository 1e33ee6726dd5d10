/* tape.c - an engine's tape: it records calls of operators, then computes the gradients.
 *
 *     weft run -n 4 tape      (or 1, or 2: each rank has whole blocks of 4 of 16 columns)
 *
 * y = softmax(round_blocks(x) w), with the columns of x and the classes split among all ranks.
 * round_blocks is an operator of this engine: its rule, its gradient and the rows that depend on
 * the size of a block are registered.  The softmax runs in phases, so that the classes stay split.
 * The same program with replicas must train the same weights.  It runs first, by rules that do not
 * split the columns.  Better ones replace them, as in an engine that reads its rules again when
 * their file changes.  The kernels compute on the host, so a CPU backend is needed. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static void expect(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

enum { STEPS = 3, RECORDS = 8, INPUTS = 2, TENSORS = 4 };

static weft_context *ctx;
static weft_mesh *mesh;

/* ---- the operator of this engine ---- */

/* The first rules want all columns on every rank; the better ones whole blocks. */
static const char first_rules[] = "round_blocks(block): x[m k] -> y[m k]; whole k\n"
                                  "round_blocks_bwd(block): g[m k] -> dx[m k]; whole k; lin g\n";
static const char rules[] = "round_blocks(block): x[m k] -> y[m k]; whole k; use blocks\n"
                            "round_blocks_bwd(block): g[m k] -> dx[m k]; lin g\n";

/* k may be split if every rank has whole blocks. */
static weft_status block_rows(void *user, const weft_op_query *query, char *text, size_t size)
{
    const weft_op_call *call = query->call;
    int64_t block = (int64_t)attr_of(call->attr_count, call->attrs, "block");

    (void)user;
    snprintf(text, size, "%s",
             block > 0 && query->tensors[0].shape[1] % (block * query->parts) == 0
                 ? "S(1) -> S(1)\n"
                 : "");
    return WEFT_OK;
}

static void register_rules(void)
{
    MUST(weft_op_use_register("blocks", block_rows, NULL));
    MUST(weft_op_register(first_rules));
}

static void improve_rules(void)
{
    uint64_t before = weft_op_digest();
    size_t needed;

    MUST(weft_op_rules_print(rules, NULL, 0, &needed)); /* names what is wrong, if anything is */
    MUST(weft_op_replace(rules));
    expect(weft_op_digest() != before, "the rules of this engine were not replaced");
}

/* Leave weft as it was. */
static void remove_rules(uint64_t before)
{
    expect(weft_op_digest() != before, "the rules of this engine were not registered");
    MUST(weft_op_remove("round_blocks"));
    MUST(weft_op_remove("round_blocks_bwd"));
    MUST(weft_op_use_remove("blocks"));
    expect(weft_op_digest() == before, "not all rules were removed");
    expect(weft_op_fallback_count() == 0, "an operator had no rule");
    weft_op_cache_clear(); /* kept choices hold references to the mesh */
}

/* ---- the tape ---- */

/* Replace *T by the same tensor in another layout. */
static void move(weft_tensor **t, const weft_spec *spec)
{
    weft_tensor *moved;

    MUST(weft_tensor_move(*t, spec, NULL, NULL, &moved));
    weft_tensor_release(t);
    *t = moved;
}

struct record {
    weft_op_backward *backward;
    weft_tensor *tensors[TENSORS]; /* inputs, then outputs; NULL: no gradient needs it */
    weft_tensor *output;           /* the tape gets its gradient */
    weft_spec *layout;             /* in which the operator left it, and reads its gradient */
    bool in_phases;
    weft_tensor *inputs[INPUTS]; /* borrowed, to know them again */
};

struct tape {
    struct record records[RECORDS];
    size_t count;
};

/* True if a call of BACKWARD reads tensor INDEX of the forward call, inputs, then outputs. */
static bool is_read(const weft_op_backward *backward, size_t index)
{
    weft_op_backward_info info = {.struct_size = sizeof info};
    size_t inputs = weft_op_backward_inputs(backward);
    weft_op_operand wanted = {WEFT_OP_FROM_INPUT, index};

    if (index >= inputs) wanted = (weft_op_operand){WEFT_OP_FROM_OUTPUT, index - inputs};
    MUST(weft_op_backward_get(backward, &info));
    for (size_t i = 0; i < info.calls; i++) {
        const weft_op_gradient_call *call = weft_op_backward_call(backward, i);

        for (size_t j = 0; j < call->operand_count; j++)
            if (call->operands[j].source == wanted.source &&
                call->operands[j].index == wanted.index)
                return true;
    }
    return false;
}

/* Keep what the gradients of RECORD read. */
static void keep_tensors(struct record *record, weft_tensor *const *inputs, weft_tensor *output)
{
    size_t count = weft_op_backward_inputs(record->backward);

    expect(weft_op_backward_outputs(record->backward) == 1, "the tape has operators of one output");
    for (size_t i = 0; i <= count; i++)
        if (is_read(record->backward, i))
            record->tensors[i] = weft_tensor_retain(i < count ? inputs[i] : output);
}

/* Apply an operator, and record it.  The caller releases the output. */
static weft_tensor *apply(struct tape *tape, const char *name, const weft_op_attr *attr,
                          weft_tensor *a, weft_tensor *b)
{
    struct record *record = &tape->records[tape->count++];
    weft_tensor *inputs[INPUTS] = {a, b}, *output = NULL;
    const weft_spec *specs[INPUTS] = {weft_tensor_spec(a), b != NULL ? weft_tensor_spec(b) : NULL};
    weft_op_call call = {.struct_size = sizeof call,
                         .name = name,
                         .input_count = b != NULL ? 2 : 1,
                         .inputs = specs,
                         .attr_count = attr != NULL,
                         .attr_size = sizeof *attr,
                         .attrs = attr};
    weft_op_backward_options costs = {.struct_size = sizeof costs,
                                      .costs = weft_context_costs(ctx)};
    weft_op_choice *choice = NULL;

    *record = (struct record){.in_phases = strcmp(name, "softmax") == 0};
    memcpy(record->inputs, inputs, sizeof inputs);
    expect(weft_op_output_count(&call, inputs) == 1, "the tape has operators of one output");
    if (record->in_phases)
        MUST(weft_op_apply_phases(ctx, &call, inputs, NULL, tape_kernel, NULL, NULL, 1, &output));
    else
        MUST(weft_op_apply(ctx, &call, inputs, NULL, tape_kernel, &choice, NULL, 1, &output));
    if (choice != NULL)
        expect(weft_op_choice_memory(choice, 0) == SIZE_MAX, "the tape takes no form in place");
    weft_op_choice_release(&choice);
    MUST(weft_op_backward_create(&call, &costs, &record->backward));
    keep_tensors(record, inputs, output);
    record->output = output;
    record->layout = weft_spec_retain(weft_tensor_spec(output));
    return output;
}

/* Replace *OUTPUT, the last one of the tape, by the same tensor in another layout.  Its gradient is
 * moved back. */
static void move_output(struct tape *tape, weft_tensor **output, const char *placements)
{
    weft_spec *spec;

    MUST(weft_spec_with(weft_tensor_spec(*output), placements, &spec));
    move(output, spec);
    weft_spec_release(&spec);
    tape->records[tape->count - 1].output = *output;
}

/* The place of the gradient of TENSOR among those of FOUND. */
static weft_tensor **find(weft_tensor *const *tensors, weft_tensor **found, size_t count,
                          const weft_tensor *tensor)
{
    for (size_t i = 0; i < count; i++)
        if (tensors[i] == tensor) return &found[i];
    expect(false, "a tensor has no gradient");
    return NULL;
}

/* Run the tape back from GRADIENT, that of its last output.  *OUT becomes the gradient of OF. */
static void run_back(struct tape *tape, weft_tensor *gradient, const weft_tensor *of,
                     weft_tensor **out)
{
    weft_tensor *tensors[2 * RECORDS], *found[2 * RECORDS];
    size_t count = 0;

    tensors[count] = tape->records[tape->count - 1].output;
    found[count++] = weft_tensor_retain(gradient);
    for (size_t i = tape->count; i-- > 0;) {
        struct record *record = &tape->records[i];
        weft_tensor **mine = find(tensors, found, count, record->output), *made[INPUTS];
        size_t inputs = weft_op_backward_inputs(record->backward);

        move(mine, record->layout);
        MUST(weft_op_backward_apply(ctx, record->backward, record->tensors, mine, NULL, tape_kernel,
                                    NULL, NULL, made));
        for (size_t j = 0; j < inputs; j++) {
            const weft_op_operand *operand = weft_op_backward_gradient(record->backward, j);

            expect(record->in_phases || weft_tensor_spec(made[j]) ==
                                            weft_op_backward_spec(record->backward, operand),
                   "the layout of a gradient was not foreseen");
            tensors[count] = record->inputs[j];
            found[count++] = made[j];
        }
    }
    *out = weft_tensor_retain(*find(tensors, found, count, of));
    while (count > 0)
        weft_tensor_release(&found[--count]);
}

static void end_tape(struct tape *tape)
{
    while (tape->count > 0) {
        struct record *record = &tape->records[--tape->count];

        for (int i = 0; i < TENSORS; i++)
            weft_tensor_release(&record->tensors[i]);
        weft_spec_release(&record->layout);
        weft_op_backward_release(&record->backward);
    }
}

/* ---- training ---- */

static weft_tensor *normal(const weft_spec *spec, uint64_t seed)
{
    weft_random random = {.seed = seed};
    weft_tensor *t;

    MUST(weft_tensor_create(ctx, spec, NULL, &t));
    MUST(weft_tensor_normal(t, &random, 0, 0.5, NULL)); /* the same numbers in every layout */
    return t;
}

/* An operator that the tape does not record. */
static weft_tensor *apply_alone(const char *name, const weft_op_attr *attr, weft_tensor *a,
                                weft_tensor *b)
{
    weft_op_call call = {.struct_size = sizeof call,
                         .name = name,
                         .input_count = 2,
                         .attr_count = attr != NULL,
                         .attr_size = sizeof *attr,
                         .attrs = attr};
    weft_tensor *inputs[] = {a, b}, *out;

    MUST(weft_op_apply(ctx, &call, inputs, NULL, tape_kernel, NULL, NULL, 1, &out));
    return out;
}

/* SPLIT: the columns of x, and the classes as the style of a column module says. */
static weft_tensor *train(bool split)
{
    static const weft_op_attr block = {.name = "block", .kind = WEFT_ATTR_INT, .integer = 4};
    static const weft_op_attr classes = {.name = "dim", .kind = WEFT_ATTR_INT, .integer = 1};
    static const weft_op_attr rate = {.name = "alpha", .kind = WEFT_ATTR_REAL, .real = -0.5};
    weft_style column = {.struct_size = sizeof column, .kind = WEFT_STYLE_COLUMN};
    weft_spec *x_spec, *whole, *of_gradient, *layouts[WEFT_STYLE_LAYOUTS];
    weft_tensor *x, *w;

    MUST(weft_spec_parse(mesh, split ? "f32[8,16] S(1)" : "f32[8,16] R", &x_spec));
    MUST(weft_spec_parse(mesh, "f32[10,16] R", &whole));
    MUST(weft_style_layouts(&column, WEFT_STYLE_WEIGHT, whole, 0, layouts));
    x = normal(x_spec, 1);
    w = normal(split ? layouts[WEFT_STYLE_TO] : whole, 2);
    MUST(weft_spec_gradient(weft_tensor_spec(w), &of_gradient)); /* as the optimizer wants it */
    for (int step = 0; step < STEPS; step++) {
        struct tape tape = {.count = 0};
        weft_tensor *z = apply(&tape, "round_blocks", &block, x, NULL);
        weft_tensor *a, *y, *target, *g, *dw, *same;

        move_output(&tape, &z, "R");
        a = apply(&tape, "linear", NULL, z, w);
        y = apply(&tape, "softmax", &classes, a, NULL);
        target = normal(weft_tensor_spec(y), 3);
        g = apply_alone("sub", NULL, y, target);
        run_back(&tape, g, w, &dw);
        move(&dw, of_gradient);
        same = apply_alone("add_", &rate, w, dw);
        end_tape(&tape);
        for (weft_tensor **t = (weft_tensor *[]){z, a, y, target, g, dw, same, NULL}; *t != NULL;
             t++)
            weft_tensor_release(t);
    }
    weft_tensor_release(&x);
    weft_spec_release(&x_spec);
    weft_spec_release(&whole);
    weft_spec_release(&of_gradient);
    for (int i = 0; i < WEFT_STYLE_LAYOUTS; i++)
        weft_spec_release(&layouts[i]);
    return w;
}

int main(void)
{
    weft_tensor_difference_info difference = {.struct_size = sizeof difference};
    uint64_t digest = weft_op_digest();
    weft_tensor *weights, *expected;
    char text[32];

    MUST(weft_init(NULL, &ctx));
    snprintf(text, sizeof text, "tp=%d", weft_size(ctx));
    MUST(weft_mesh_parse(text, &mesh));
    register_rules();
    expected = train(false);
    improve_rules();
    weights = train(true);
    MUST(weft_tensor_compare(expected, weights, NULL, NULL, &difference));
    printf("rank %d: weights differ by at most %g from those of one rank\n", weft_rank(ctx),
           difference.largest);
    weft_tensor_release(&weights);
    weft_tensor_release(&expected);
    remove_rules(digest);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return difference.largest < 1e-5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
