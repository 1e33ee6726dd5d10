/* strategy.h - from a bound rule to layouts: a row per mesh axis, and the placements that the rows
 * of all axes give together.
 *
 * rows.c lists the rows of an axis, place.c combines rows into placements, and product.c decides by
 * index runs whether a dimension that is a product of factors can be placed.  sizes.c keeps the
 * sizes that placements list. */
#ifndef WEFT_OPS_STRATEGY_H
#define WEFT_OPS_STRATEGY_H

#include "ops/bind/op.h"

enum { WF_ROWS = 160 };

enum wf_row_kind {
    WF_ROW_WHOLE,   /* every rank does everything */
    WF_ROW_SPLIT,   /* a factor is split */
    WF_ROW_PARTIAL, /* inputs are contributions */
    WF_ROW_OWNER,   /* one rank does everything */
    WF_ROW_GIVEN    /* as the program computes it */
};

/* The work of the ranks along one axis. */
struct wf_row {
    uint8_t kind;
    uint8_t factor;   /* SPLIT */
    uint8_t from, to; /* PARTIAL: enum weft_reduction of the inputs and of the outputs */
    uint32_t inputs;  /* PARTIAL: bit per slot */
    /* SPLIT: how the factor is split; its dim and turn are not used.  OWNER: the owner.  Sizes are
     * borrowed. */
    weft_placement style;
    const weft_placement *given; /* GIVEN: of each tensor */
};

enum wf_entry_kind {
    WF_ENTRY_WHOLE,
    WF_ENTRY_SPLIT,
    WF_ENTRY_PARTIAL,
    WF_ENTRY_ANY,
    WF_ENTRY_OWNER,
    WF_ENTRY_DIM /* a dimension is split that no other axis splits */
};

/* What a row says about one tensor. */
struct wf_entry {
    uint8_t kind, value; /* value: the factor, the reduction, or the dimension */
};

struct wf_rows {
    uint32_t count;
    struct wf_row row[WF_ROWS];
};

/* ---- sizes.c ---- */

/* Lists of sizes that placements borrow. */
struct wf_sizes {
    struct wf_sizes_list *first;
    bool failed; /* a list had no memory */
};

/* A list with the COUNT sizes at SIZES, each times TIMES, and the whole REPEATS times; NULL: memory
 * is exhausted. */
const int64_t *wf_sizes_keep(struct wf_sizes *lists, const int64_t *sizes, int32_t count,
                             int64_t times, int64_t repeats);
void wf_sizes_end(struct wf_sizes *lists);
/* Let LAYOUT, which is settled, know where long lists of sizes begin on each rank. */
void wf_sizes_set_starts(struct wf_sizes *lists, struct wf_layout *layout);
/* How placement P of a dimension of TENSOR splits FACTOR of the dimension.  False: P lists sizes
 * that do not follow the factor. */
bool wf_factor_style(const struct wf_op *op, const struct wf_op_tensor *tensor,
                     const weft_placement *p, uint32_t factor, struct wf_sizes *lists,
                     weft_placement *out);
/* True if no axis but AXIS splits the dimension that AXIS splits. */
bool wf_splits_alone(const struct wf_op *op, const weft_placement *placements, int32_t axis);
/* True if A and B give every coordinate of AXIS the same of SIZE indices, in the same order. */
bool wf_style_places_same(const struct wf_op *op, int32_t axis, int64_t size,
                          const weft_placement *a, const weft_placement *b);

/* ---- rows.c ---- */

/* The rows of AXIS in their order: whole, then the factors, then owners.  Splits and owners that
 * the inputs have on this axis are rows of their own; LISTS is NULL if they have none but S. */
void wf_rows_list(const struct wf_op *op, int32_t axis, struct wf_sizes *lists,
                  struct wf_rows *out);
/* Append the rows with partial inputs. */
void wf_rows_add_partials(const struct wf_op *op, struct wf_rows *out);
struct wf_entry wf_row_entry(const struct wf_op *op, const struct wf_row *row, uint32_t tensor);
/* The same, as if TENSOR were not marked `shape`. */
struct wf_entry wf_row_natural(const struct wf_op *op, const struct wf_row *row, uint32_t tensor);
/* How ROW splits TENSOR, or who owns it. */
static inline const weft_placement *wf_row_style(const struct wf_row *row, uint32_t tensor)
{
    return row->kind == WF_ROW_GIVEN ? &row->given[tensor] : &row->style;
}
/* The dimension of TENSOR that has FACTOR; -1: none. */
int wf_op_dim_with(const struct wf_op_tensor *tensor, uint32_t factor);
/* True if the two split alike, whatever their dimension and turn. */
bool wf_style_same(const weft_placement *a, const weft_placement *b);

/* ---- use.c ---- */

/* Check that tensor T of OP can have PLACEMENT, which owns its sizes, on AXIS, and bring the
 * placement to its one form. */
weft_status wf_given_settle(const struct wf_op *op, const struct wf_op_tensor *t, int32_t axis,
                            weft_placement *placement) WF_NODISCARD;

/* ---- parts.c ---- */

/* Append the rows of the clause `parts` to the rows of all axes. */
weft_status wf_parts_add_rows(struct wf_op *op, struct wf_rows *rows) WF_NODISCARD;

/* ---- place.c ---- */

/* A row for each axis, and the order in which axes split a factor that several of them split. */
struct wf_strategy {
    const struct wf_op *op;
    struct wf_sizes *sizes; /* of placements that are written */
    const struct wf_row *rows[WEFT_MAX_AXES];
    uint8_t order[WEFT_MAX_AXES]; /* axes, the first to split first */
};

/* Write the placements of TENSOR.  If its given placements fit, they are taken.  False: there are
 * none, or the rows of the axes contradict each other. */
bool wf_strategy_place(const struct wf_strategy *s, uint32_t tensor, weft_placement *out);
/* True if the parts of all factors keep to `even` and `step`. */
bool wf_strategy_is_aligned(const struct wf_strategy *s);
/* The default order, from the first axis to the last. */
void wf_strategy_default_order(struct wf_strategy *s);

/* ---- product.c ---- */

/* The splits of a dimension that is a product of factors. */
struct wf_product {
    const struct wf_strategy *strategy;
    const struct wf_op_tensor *tensor;
    int32_t dim;
    int32_t axis_count;
    int32_t axes[WEFT_MAX_AXES]; /* that split a factor of the dimension, in their order */
};

/* Write the placements of the axes of PRODUCT, at their indices.  False: no placements give the
 * indices that the factors' splits give. */
bool wf_product_place(const struct wf_product *product, weft_placement *out);
/* The layout of FACTOR as a tensor of one dimension. */
bool wf_factor_layout(const struct wf_strategy *s, uint32_t factor, struct wf_layout *out);

#endif
