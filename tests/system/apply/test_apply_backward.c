/* The calls of gradients: in every strategy of an operator, on simulated ranks, they give the
 * slopes of the forward kernel on whole tensors. */
#include "gradient_kernels.h"
#include "support/suite.h"
#include "system/tensor/holds.h"
#include "weft/context.h"

enum { MOST = 8, RANKS = 4, STRATEGIES = 40 };

struct gradient_case {
    const char *name;
    const char *inputs; /* tensors without placements, separated by " ; "; "-": absent */
    const char *attrs;
    double least;  /* the smallest number of the inputs */
    int64_t range; /* integers are below it */
};

static const struct gradient_case known[] = {
    {"exp", "f64[5,3]", "", -1, 0},
    {"log", "f64[5,3]", "", 1, 0},
    {"sqrt", "f64[6]", "", 1, 0},
    {"rsqrt", "f64[5,3]", "", 1, 0},
    {"reciprocal", "f64[5,3]", "", 1, 0},
    {"square", "f64[5,3]", "", -1, 0},
    {"pow_scalar", "f64[5,3]", "exponent=3", 1, 0},
    {"abs", "f64[5,3]", "", -1, 0},
    {"sin", "f64[5,3]", "", -1, 0},
    {"cos", "f64[5,3]", "", -1, 0},
    {"tanh", "f64[5,3]", "", -1, 0},
    {"sigmoid", "f64[5,3]", "", -1, 0},
    {"relu", "f64[5,3]", "", -1, 0},
    {"gelu", "f64[5,3]", "", -1, 0},
    {"silu", "f64[5,3]", "", -1, 0},
    {"elu", "f64[5,3]", "alpha=0.5", -1, 0},
    {"neg", "f64[5,3]", "", -1, 0},
    {"clone", "f64[5,3]", "", -1, 0},
    {"mul_scalar", "f64[5,3]", "s=-3", -1, 0},
    {"div_scalar", "f64[5,3]", "s=4", -1, 0},
    {"add_scalar", "f64[5,3]", "s=2", -1, 0},
    {"rsub_scalar", "f64[5,3]", "s=2", -1, 0},
    {"add", "f64[5,3] ; f64[3]", "alpha=-2", -1, 0},
    {"add", "f64[5,1] ; f64[1,3]", "", -1, 0},
    {"sub", "f64[5,3] ; f64[]", "alpha=0.5", -1, 0},
    {"mul", "f64[5,3] ; f64[3]", "", -1, 0},
    {"mul", "f64[2,5,3] ; f64[5,1]", "", -1, 0},
    {"div", "f64[5,3] ; f64[5,1]", "", 1, 0},
    {"maximum", "f64[5,3] ; f64[3]", "", -1, 0},
    {"minimum", "f64[5,3] ; f64[5,3]", "", -1, 0},
    {"where", "bool[5,3] ; f64[3] ; f64[5,1]", "", -1, 2},
    {"masked_fill", "f64[5,3] ; bool[3]", "v=3", -1, 2},
    {"addcmul", "f64[5,3] ; f64[3] ; f64[5,3]", "value=2", -1, 0},
    {"addcdiv", "f64[5,3] ; f64[5,3] ; f64[3]", "value=2", 1, 0},
    {"lerp", "f64[5,3] ; f64[5,3] ; f64[5,1]", "", -1, 0},
    {"sum", "f64[5,4]", "dims=1,", -1, 0},
    {"sum", "f64[3,4,2]", "dims=0,2 keepdim=1", -1, 0},
    {"sum", "f64[5,4]", "", -1, 0},
    {"mean", "f64[5,4]", "dims=-1,", -1, 0},
    {"logsumexp", "f64[5,4]", "dims=1,", -1, 0},
    {"softmax", "f64[5,4]", "dim=1", -1, 0},
    {"log_softmax", "f64[5,4]", "dim=-1", -1, 0},
    {"cumsum", "f64[5,4]", "dim=0", -1, 0},
    {"flip", "f64[5,4]", "dims=0,", -1, 0},
    {"tril", "f64[5,4]", "", -1, 0},
    {"layer_norm", "f64[5,4] ; f64[4] ; f64[4]", "dims=1,", -1, 0},
    {"layer_norm", "f64[5,4] ; - ; -", "dims=1,", -1, 0},
    {"rms_norm", "f64[5,4] ; f64[4]", "dims=1,", -1, 0},
    {"sdpa", "f64[2,4,3,2] ; f64[2,4,3,2] ; f64[2,4,3,2] ; -", "causal=1", -1, 0},
    {"rope", "f64[2,3,4,6] ; f64[3,3] ; f64[3,3]", "z=2", -1, 0},
    {"mm", "f64[5,7] ; f64[7,3]", "", -1, 0},
    {"bmm", "f64[2,5,4] ; f64[2,4,3]", "", -1, 0},
    {"matmul", "f64[2,5,4] ; f64[4,3]", "", -1, 0},
    {"dot", "f64[5] ; f64[5]", "", -1, 0},
    {"mv", "f64[5,4] ; f64[4]", "", -1, 0},
    {"outer", "f64[5] ; f64[4]", "", -1, 0},
    {"linear", "f64[5,4] ; f64[3,4] ; f64[3]", "", -1, 0},
    {"linear", "f64[2,3,4] ; f64[5,4] ; -", "", -1, 0},
    {"addmm", "f64[3] ; f64[5,4] ; f64[4,3]", "", -1, 0},
    {"einsum", "f64[5,4] ; f64[4,3]", "eq=ij,jk->ik", -1, 0},
    {"einsum", "f64[5,4] ; f64[4,3] ; f64[3,5]", "eq=ij,jk,ki->", -1, 0},
    {"einsum", "f64[2,5,4] ; f64[4,3]", "eq=bij,jk->kb", -1, 0}, /* one input alone has i */
    {"einsum", "f64[5,4]", "eq=ij->i", -1, 0},
    {"einsum", "f64[5,4]", "eq=ba->ab", -1, 0},
    {"einsum", "f64[2,5,4] ; f64[4,3]", "eq=...ij,jk->...ik", -1, 0},
    {"einsum", "f64[2,3,4] ; f64[4,3]", "eq=...i,i...->...i", -1, 0}, /* aligned from the right */
    {"einsum", "f64[2,1,4] ; f64[3,4]", "eq=...i,...i->i...", -1, 0}, /* and they broadcast */
    {"einsum", "f64[4,3,1] ; f64[4,2]", "eq=i...,i...->", -1, 0},     /* or are summed */
    {"einsum", "f64[2,3,4]", "eq=...i->i", -1, 0},
    {"amax", "f64[5,4]", "dims=1,", -1, 0},
    {"amin", "f64[3,4,2]", "dims=0,2 keepdim=1", -1, 0},
    {"amax", "f64[5,4]", "", -1, 0},
    {"dropout", "f64[5,4]", "p=0.25", -1, 0},
    {"cross_entropy", "f64[5,4] ; i64[5]", "reduction=none", -1, 4},
    {"cross_entropy", "f64[5,4] ; i64[5]", "reduction=sum ignore_index=1", -1, 4},
    {"cross_entropy", "f64[5,4] ; i64[5]", "reduction=mean ignore_index=1", -1, 4},
    {"conv", "f64[4,3,8] ; f64[6,3,3] ; f64[6]", "", -1, 0},
    {"conv", "f64[4,3,8] ; f64[6,3,2] ; -", "stride=2,", -1, 0},
    {"max_pool", "f64[4,3,6]", "kernel=2, indices=1", -1, 0},
    {"avg_pool", "f64[4,3,6]", "kernel=2,", -1, 0},
    {"avg_pool", "f64[4,3,7]", "kernel=3, stride=2,", -1, 0},
    {"adaptive_avg_pool", "f64[4,3,7]", "size=3,", -1, 0},
    {"adaptive_max_pool", "f64[4,3,7]", "size=3,", -1, 0},
    {"interpolate", "f64[4,3,5]", "size=8, mode=nearest", -1, 0},
    {"interpolate", "f64[4,3,5]", "size=8, mode=linear", -1, 0},
    {"embedding", "f64[7,3] ; i64[5]", "", -1, 7},
    {"embedding", "f64[7,3] ; i64[2,3]", "", -1, 7},
    {"gather", "f64[5,6] ; i64[5,3]", "dim=1", -1, 6},
    {"scatter_add", "f64[5,6] ; i64[5,3] ; f64[5,3]", "dim=1", -1, 6},
    {"index_select", "f64[5,6] ; i64[3]", "dim=1", -1, 6},
    {"index_add", "f64[5,6] ; i64[3] ; f64[5,3]", "dim=1", -1, 6},
    {"reshape", "f64[4,6]", "shape=2,2,6", -1, 0},
    {"unsqueeze", "f64[4,6]", "dim=1", -1, 0},
    {"squeeze", "f64[4,1,6]", "dims=1,", -1, 0},
    {"permute", "f64[4,3,2]", "order=2,0,1", -1, 0},
    {"transpose", "f64[4,3,2]", "dims=0,2", -1, 0},
    {"expand", "f64[1,4]", "shape=3,4", -1, 0},
    {"select", "f64[3,4]", "dim=0 index=0", -1, 0},
    {"slice", "f64[5,8]", "dim=1 start=3 end=7", -1, 0},
    {"cat", "f64[5,3] ; f64[5,4]", "dim=1", -1, 0},
    {"split", "f64[5,7]", "dim=1 sizes=3,4", -1, 0},
    {"stack", "f64[5,3] ; f64[5,3]", "dim=0", -1, 0},
    {"unbind", "f64[3,4]", "dim=0 count=3", -1, 0},
};

/* ---- the slopes of the forward kernel ---- */

struct trial {
    const struct gradient_case *one;
    weft_context *context;
    weft_mesh *mesh;
    op_text text; /* its inputs are replicated */
    uint32_t inputs, outputs;
    struct part in[NUMBER_TENSORS], out[NUMBER_TENSORS];
    double *gradients[NUMBER_TENSORS]; /* of the outputs, as given */
    double *slopes[NUMBER_TENSORS];    /* with regard to the inputs */
    uint64_t applied, moved;
};

static double number(const struct trial *t, uint32_t dtype, uint64_t tensor, uint64_t element)
{
    double unit = noise(17 + tensor, element, 3);

    if (dtype == WEFT_DTYPE_F64) return t->one->least + 2 * unit;
    return floor(unit * (double)t->one->range);
}

static double loss_of(struct trial *t)
{
    double loss = 0;

    for (uint32_t i = 0; i < t->outputs; i++)
        memset(t->out[i].data, 0, (size_t)t->out[i].count * sizeof *t->out[i].data);
    gradient_kernel_find(t->one->name)(&t->text.call, t->in, t->out);
    for (uint32_t i = 0; i < t->outputs; i++)
        for (int64_t k = 0; k < t->out[i].count; k++)
            loss += t->gradients[i][k] * t->out[i].data[k];
    return loss;
}

static void find_slopes(struct trial *t)
{
    const double step = 1e-5;

    for (uint32_t i = 0; i < t->inputs; i++) {
        struct part *p = &t->in[i];
        if (p->absent) continue;
        t->slopes[i] = calloc((size_t)p->count + 1, sizeof *t->slopes[i]);
        if (t->text.call.inputs[i]->layout.dtype != WEFT_DTYPE_F64) continue;
        for (int64_t k = 0; k < p->count; k++) {
            double value = p->data[k], above;
            p->data[k] = value + step;
            above = loss_of(t);
            p->data[k] = value - step;
            t->slopes[i][k] = (above - loss_of(t)) / (2 * step);
            p->data[k] = value;
        }
    }
    (void)loss_of(t);
}

/* ---- one operator ---- */

static void begin(struct trial *t, const struct gradient_case *one, const char *mesh)
{
    char text[256] = "", copy[256];
    weft_op_choice *choice;
    weft_op_choice_info info = {.struct_size = sizeof info};

    t->one = one;
    snprintf(copy, sizeof copy, "%s", one->inputs);
    for (char *save = NULL, *at = strtok_r(copy, ";", &save); at != NULL;
         at = strtok_r(NULL, ";", &save)) {
        size_t used = strlen(text);
        while (*at == ' ')
            at++;
        at[strcspn(at, " ")] = '\0';
        snprintf(text + used, sizeof text - used, "%s%s%s", used > 0 ? " ; " : "", at,
                 strcmp(at, "-") == 0        ? ""
                 : strchr(mesh, 'x') != NULL ? " R,R"
                                             : " R");
        t->inputs++;
    }
    op_begin(&t->text, one->name, mesh, text, one->attrs, NULL);
    ck_assert_msg(weft_op_check(&t->text.call, NULL, &choice) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_op_choice_get(choice, &info), WEFT_OK);
    t->outputs = (uint32_t)info.outputs;
    for (uint32_t i = 0; i < NUMBER_TENSORS; i++)
        t->in[i].absent = true;
    for (uint32_t i = 0; i < t->inputs; i++) {
        const weft_spec *spec = t->text.call.inputs[i];
        part_begin(&t->in[i], spec, NULL);
        for (int64_t k = 0; k < t->in[i].count; k++)
            t->in[i].data[k] = number(t, spec->layout.dtype, i, (uint64_t)k);
    }
    for (uint32_t i = 0; i < t->outputs; i++) {
        const weft_spec *spec = weft_op_choice_output(choice, i);
        part_begin(&t->out[i], spec, NULL);
        t->gradients[i] = calloc((size_t)t->out[i].count + 1, sizeof *t->gradients[i]);
        /* formulas read the gradient of the first output, or those of a list */
        for (int64_t k = 0; k < t->out[i].count; k++)
            if (i == 0 || strcmp(one->name, "split") == 0 || strcmp(one->name, "unbind") == 0)
                t->gradients[i][k] = 2 * noise(71 + i, (uint64_t)k, 5) - 1;
    }
    weft_op_choice_release(&choice);
    find_slopes(t);
}

static void end(struct trial *t)
{
    for (uint32_t i = 0; i < t->inputs; i++) {
        part_end(&t->in[i]);
        free(t->slopes[i]);
    }
    for (uint32_t i = 0; i < t->outputs; i++) {
        part_end(&t->out[i]);
        free(t->gradients[i]);
    }
    op_text_release(&t->text);
}

/* A tensor in layout SPEC with the numbers of a whole tensor. */
static weft_status make(const struct trial *t, const weft_spec *spec, const double *numbers,
                        weft_tensor **out)
{
    weft_spec *whole_spec;
    weft_tensor *whole;

    WF_TRY(weft_spec_with(spec, spec->layout.mesh->axes == 2 ? "R,R" : "R", &whole_spec));
    WF_TRY(weft_tensor_create(t->context, whole_spec, NULL, &whole));
    weft_spec_release(&whole_spec);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        weft_tensor_local_info local = {.struct_size = sizeof local};
        WF_TRY(weft_tensor_local_of(whole, rank, &local));
        for (int64_t k = 0; k < local.shard.elements; k++)
            set_number(local.memory, spec->layout.dtype, k, numbers[k]);
    }
    WF_TRY(weft_tensor_move(whole, spec, NULL, NULL, out));
    weft_tensor_release(&whole);
    return WEFT_OK;
}

static weft_status compare(const struct trial *t, weft_tensor *gradient, uint32_t input)
{
    weft_tensor_local_info local = {.struct_size = sizeof local};
    weft_tensor *whole;
    char text[128] = "";

    WF_TRY(weft_tensor_full(gradient, WEFT_EVERY_RANK, NULL, NULL, &whole));
    WF_TRY(weft_tensor_local_of(whole, 0, &local));
    for (int64_t k = 0; k < local.shard.elements; k++) {
        double have = ((const double *)local.memory)[k], want = t->slopes[input][k];
        if (fabs(have - want) < 1e-6 * (1 + fabs(want))) continue;
        WF_TRY(weft_spec_print(weft_tensor_spec(gradient), text, sizeof text, NULL));
        return weft_fail(WEFT_ERR_INTERNAL,
                         "the gradient of input %u, %s, is %.9g at element %lld, not %.9g", input,
                         text, have, (long long)k, want);
    }
    weft_tensor_release(&whole);
    return WEFT_OK;
}

static weft_status run_backward(struct trial *t, const weft_op_backward *backward,
                                const weft_op_apply_options *options, weft_tensor *const *forward)
{
    weft_tensor *gradients[MOST] = {NULL}, *found[MOST] = {NULL};

    for (uint32_t i = 0; i < t->outputs; i++) {
        weft_op_operand operand = {WEFT_OP_FROM_GRADIENT, i};
        const weft_spec *spec = weft_op_backward_spec(backward, &operand);
        if (spec != NULL) WF_TRY(make(t, spec, t->gradients[i], &gradients[i]));
    }
    WF_TRY(weft_op_backward_apply(t->context, backward, forward, gradients, options,
                                  gradient_kernel, NULL, NULL, found));
    for (uint32_t i = 0; i < t->inputs; i++) {
        const weft_op_operand *operand = weft_op_backward_gradient(backward, i);
        HOLDS((operand != NULL) == (found[i] != NULL));
        if (operand == NULL) continue;
        HOLDS(weft_op_backward_spec(backward, operand) == weft_tensor_spec(found[i]));
        WF_TRY(compare(t, found[i], i));
        weft_tensor_release(&found[i]);
    }
    for (uint32_t i = 0; i < t->outputs; i++)
        weft_tensor_release(&gradients[i]);
    return WEFT_OK;
}

/* The calls leave the gradients in the layouts that the choice of the forward call states. */
static weft_status check_layouts(const struct trial *t, const weft_op_call *call,
                                 const weft_op_backward *backward)
{
    weft_op_choice *choice;

    WF_TRY(weft_op_check(call, NULL, &choice));
    for (uint32_t i = 0; i < t->inputs; i++) {
        const weft_spec *stated = weft_op_choice_gradient(choice, i);
        const weft_op_operand *found = weft_op_backward_gradient(backward, i);
        if (stated != NULL && found != NULL)
            HOLDS(weft_op_backward_spec(backward, found) == stated);
    }
    weft_op_choice_release(&choice);
    return WEFT_OK;
}

static weft_status try_strategy(struct trial *t, const weft_op_choice *strategy)
{
    /* prices decide between moves, and those of the context are its own */
    weft_op_backward_options costs = {.struct_size = sizeof costs,
                                      .costs = weft_context_costs(t->context)};
    weft_op_apply_options options = {.struct_size = sizeof options};
    weft_op_backward_info info = {.struct_size = sizeof info};
    weft_tensor *forward[2 * MOST] = {NULL};
    const weft_spec *specs[MOST] = {NULL};
    weft_op_call call = t->text.call;
    weft_op_backward *backward;

    for (uint32_t i = 0; i < t->inputs; i++) {
        specs[i] = weft_op_choice_input(strategy, i);
        if (specs[i] != NULL) WF_TRY(make(t, specs[i], t->in[i].data, &forward[i]));
    }
    call.inputs = specs;
    WF_TRY(weft_op_backward_create(&call, &costs, &backward));
    WF_TRY(weft_op_backward_get(backward, &info));
    HOLDS(weft_op_backward_inputs(backward) == info.inputs);
    HOLDS(weft_op_backward_outputs(backward) == info.outputs);
    HOLDS(weft_op_backward_inputs(NULL) == 0 && weft_op_backward_outputs(NULL) == 0);
    if (info.local) WF_TRY(check_layouts(t, &call, backward));
    WF_TRY(weft_op_apply(t->context, &call, forward, NULL, gradient_kernel, NULL, NULL, t->outputs,
                         forward + t->inputs));
    if (!info.local) options.moves = WEFT_OP_MOVES_MADE;
    WF_TRY(run_backward(t, backward, &options, forward));
    t->applied++;
    t->moved += !info.local;
    weft_op_backward_release(&backward);
    for (uint32_t i = 0; i < 2 * MOST; i++)
        weft_tensor_release(&forward[i]);
    return WEFT_OK;
}

static void try_operator(weft_context *context, const struct gradient_case *one, const char *mesh)
{
    struct trial t = {.context = context};
    weft_op_list *list;
    size_t count, step;

    begin(&t, one, mesh);
    ck_assert_int_eq(weft_op_list_create(&t.text.call, NULL, &list), WEFT_OK);
    count = weft_op_list_count(list);
    step = count / STRATEGIES + 1;
    for (size_t i = 0; i < count; i += step) {
        char text[128] = "";
        const weft_op_choice *strategy = weft_op_list_choice(list, i);
        if (try_strategy(&t, strategy) == WEFT_OK) continue;
        (void)!weft_spec_print(weft_op_choice_input(strategy, 0), text, sizeof text, NULL);
        ck_abort_msg("weft op %s --mesh %s --input '%s' ... (%s, %s): %s", one->name, mesh, text,
                     one->inputs, one->attrs, weft_last_error());
    }
    printf("%s %s on %s: %llu strategies, %llu with moves\n", one->name, one->inputs, mesh,
           (unsigned long long)t.applied, (unsigned long long)t.moved);
    weft_op_list_release(&list);
    end(&t);
}

static weft_context *simulate(void)
{
    weft_init_options options = {.struct_size = sizeof options, .simulated_ranks = RANKS};
    weft_context *context;

    ck_assert_msg(weft_init(&options, &context) == WEFT_OK, "%s", weft_last_error());
    return context;
}

TEST(gradients_are_the_slopes_of_the_forward_kernel)
{
    OWNED(weft_context) *context = simulate();

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        try_operator(context, &known[i], "4");
        try_operator(context, &known[i], "2x2");
    }
}
