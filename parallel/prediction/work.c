/* work.c - the operations and the time of a line on one rank. */
#include "prediction/prediction.h"

#include <string.h>

static int32_t first_rank(const weft_graph *g)
{
    return weft_mesh_rank_at(g->mesh, 0);
}

static weft_shard shard_of(const weft_graph *g, const weft_spec *spec)
{
    weft_shard shard;

    weft_spec_shard(spec, first_rank(g), &shard);
    return shard;
}

static double elements(const weft_graph *g, const weft_spec *spec)
{
    return spec != NULL ? (double)shard_of(g, spec).elements : 0;
}

/* The product of the sizes of all letters of an equation such as "bsn,bsk->nk". */
static double einsum_work(const weft_graph *g, const struct wf_graph_line *line)
{
    double size[256] = {0}, product = 1;
    const char *equation = NULL;
    uint32_t input = 0;
    int32_t dim = 0;

    for (uint32_t i = 0; i < line->attr_count; i++)
        if (strcmp(line->attrs[i].name, "eq") == 0) equation = line->attrs[i].text;
    for (; equation != NULL && *equation != '\0' && *equation != '-'; equation++) {
        const weft_spec *spec = weft_op_choice_input(line->choice, input);
        if (*equation == ',') {
            input++;
            dim = 0;
        } else if (spec != NULL && dim < weft_spec_dims(spec)) {
            size[(unsigned char)*equation] = (double)shard_of(g, spec).shape[dim++];
        }
    }
    for (int i = 0; i < 256; i++)
        if (size[i] > 0) product *= size[i];
    return product;
}

/* a[.. m k] b -> c[.. m n], where A is the input that has a: each element of c is a sum of k
 * products. */
static double product_work(const weft_graph *g, const struct wf_graph_line *line, uint32_t a)
{
    const weft_spec *in = weft_op_choice_input(line->choice, a);
    const weft_spec *out = weft_op_choice_output(line->choice, 0);

    if (in == NULL || out == NULL || weft_spec_dims(in) < 1) return 0;
    return elements(g, out) * (double)shard_of(g, in).shape[weft_spec_dims(in) - 1];
}

static bool is_causal(const struct wf_graph_line *line)
{
    for (uint32_t i = 0; i < line->attr_count; i++)
        if (strcmp(line->attrs[i].name, "causal") == 0)
            return line->attrs[i].kind == WEFT_ATTR_INT && line->attrs[i].integer != 0;
    return false;
}

/* Queries times keys, and the result times values: 2 products.  With a causal mask, kernels skip
 * the half of the square that does not count. */
static double attention_work(const weft_graph *g, const struct wf_graph_line *line, uint32_t query)
{
    const weft_spec *q = weft_op_choice_input(line->choice, query);
    const weft_spec *k = weft_op_choice_input(line->choice, query + 1);

    if (q == NULL || k == NULL || weft_spec_dims(k) < 3) return 0;
    return (is_causal(line) ? 1 : 2) * elements(g, q) *
           (double)shard_of(g, k).shape[weft_spec_dims(k) - 2];
}

/* LINE gives its input another shape or order, and copies nothing. */
static bool is_view(const struct wf_graph_line *line)
{
    static const char *const views[] = {"reshape",   "view",      "unsafe_view", "flatten",
                                        "unflatten", "permute",   "transpose",   "t",
                                        "squeeze",   "unsqueeze", "select",      "narrow"};

    for (size_t i = 0; i < WF_COUNT(views); i++)
        if (strcmp(line->op, views[i]) == 0) return true;
    return false;
}

static bool is_attention(const struct wf_graph_line *line)
{
    return line->kind == WF_GRAPH_CALL && strncmp(line->op, "sdpa", 4) == 0;
}

/* LINE multiplies matrices: *A is the input that is multiplied; one that is added may come before
 * it. */
static bool is_product(const struct wf_graph_line *line, uint32_t *a)
{
    static const struct {
        const char *op;
        uint32_t a;
    } products[] = {{"linear", 0}, {"mm", 0},    {"matmul", 0},  {"grouped_mm_3d", 0},
                    {"bmm", 0},    {"addmm", 1}, {"baddbmm", 1}, {"einsum", 0}};

    for (size_t i = 0; i < WF_COUNT(products); i++)
        if (strcmp(line->op, products[i].op) == 0) {
            *a = products[i].a;
            return true;
        }
    return false;
}

double wf_step_flops(const weft_graph *g, const struct wf_graph_line *line)
{
    uint32_t a;

    if (line->flops >= 0) return line->flops / weft_mesh_size(g->mesh);
    if (line->kind != WF_GRAPH_CALL || is_view(line)) return 0;
    if (strcmp(line->op, "einsum") == 0) return 2 * einsum_work(g, line);
    if (strcmp(line->op, "sdpa") == 0 || strcmp(line->op, "sdpa_gqa") == 0)
        return 2 * attention_work(g, line, 0);
    if (strcmp(line->op, "sdpa_bwd") == 0 || strcmp(line->op, "sdpa_gqa_bwd") == 0)
        return 5 * attention_work(g, line, 1);
    if (is_product(line, &a)) return 2 * product_work(g, line, a);
    return elements(g, weft_op_choice_output(line->choice, 0));
}

/* Bytes that LINE reads and writes. */
static uint64_t traffic_of(const weft_graph *g, const struct wf_graph_line *line)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < line->input_count; i++) {
        const weft_spec *spec = weft_op_choice_input(line->choice, i);
        if (spec != NULL) sum += weft_spec_shard_bytes(spec, first_rank(g));
    }
    for (uint32_t i = 0; i < line->output_count; i++) {
        const weft_spec *spec = weft_op_choice_output(line->choice, i);
        if (spec != NULL) sum += weft_spec_shard_bytes(spec, first_rank(g));
    }
    return sum;
}

/* The elements of the weight of LINE, which is a product: of its matrix with two dimensions, since
 * activations and gradients have one for the batch too, or of an expert's matrix; 0: it has none,
 * or LINE is no product. */
static uint64_t weight_of(const weft_graph *g, const struct wf_graph_line *line)
{
    const weft_spec *operands[] = {
        weft_op_choice_input(line->choice, 0), weft_op_choice_input(line->choice, 1),
        weft_op_choice_input(line->choice, 2), weft_op_choice_output(line->choice, 0)};
    uint64_t least = 0;
    uint32_t a;

    if (strcmp(line->op, "grouped_mm_3d") == 0 && operands[1] != NULL) {
        weft_shard experts = shard_of(g, operands[1]);
        return experts.shape[0] > 0 ? (uint64_t)(experts.elements / experts.shape[0]) : 0;
    }
    for (size_t i = 0; is_product(line, &a) && i < WF_COUNT(operands); i++) {
        uint64_t size;
        if (operands[i] == NULL || weft_spec_dims(operands[i]) != 2) continue;
        size = (uint64_t)shard_of(g, operands[i]).elements;
        if (least == 0 || size < least) least = size;
    }
    return least;
}

/* FLOPS, at the table's rate for LINE, are as long as *OUT at its rate `flops`. */
static weft_status scale(const weft_graph *g, const struct wf_graph_line *line, double flops,
                         double *out)
{
    weft_cost_table_info costs = {.struct_size = sizeof costs};
    uint32_t a;

    *out = flops;
    WF_TRY(weft_cost_table_get(g->costs, &costs));
    if (is_attention(line) && costs.flops > 0)
        *out = flops * ((double)costs.flops / (double)costs.attention_flops);
    if (!line->f8) return WEFT_OK;
    if (!is_product(line, &a))
        return wf_fail(WEFT_ERR_INVALID, "graph line %u has the clause `f8`, and %s is no product",
                       line->number, line->op);
    if (costs.f8_flops == 0)
        return wf_fail(
            WEFT_ERR_INVALID,
            "graph line %u computes in fp8, and the cost table %s has no line `flops-f8`",
            line->number, weft_cost_table_name(g->costs));
    *out = flops * ((double)costs.flops / (double)costs.f8_flops);
    return WEFT_OK;
}

/* Bytes that LINE reads and writes to bring its operands to fp8: 2 of each element, and 1. */
static uint64_t conversion_of(const weft_graph *g, const struct wf_graph_line *line)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; line->f8 && i < line->input_count; i++) {
        const weft_spec *spec = weft_op_choice_input(line->choice, i);
        if (spec != NULL) sum += 3 * (weft_spec_shard_bytes(spec, first_rank(g)) / 2);
    }
    return sum;
}

weft_status wf_step_compute_ns(const weft_graph *g, const struct wf_graph_line *line, uint64_t *out)
{
    double flops = wf_step_flops(g, line);
    uint64_t work, traffic, weight, conversion;

    *out = line->time_ns;
    if (*out != WF_GRAPH_UNKNOWN) return WEFT_OK;
    *out = 0;
    if (line->flops < 0 && (line->kind != WF_GRAPH_CALL || is_view(line))) return WEFT_OK;
    WF_TRY(scale(g, line, flops, &flops));
    work = flops < 1e18 ? (uint64_t)flops : UINT64_MAX;
    traffic = traffic_of(g, line);
    weight = line->kind == WF_GRAPH_CALL ? weight_of(g, line) : 0;
    *out = weight > 0 ? weft_cost_table_product_ns(g->costs, work, traffic, weight)
                      : weft_cost_table_compute_ns(g->costs, work, traffic);
    conversion = conversion_of(g, line);
    if (*out != UINT64_MAX && conversion > 0)
        *out = wf_add_capped(*out, weft_cost_table_compute_ns(g->costs, 0, conversion));
    if (*out != UINT64_MAX) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "graph line %u has no clause `time`, and the cost table has no line `flops`",
                   line->number);
}
