/* product.c - choose how the ranks share a product of matrices, by its moves and its compute.
 *
 *     ./product tp=8/8 h100 8192 4096 14336 'S(1)' R
 *
 * y = x w^T, with x of 8192 rows and 4096 columns and w of 14336 rows, in bf16 on 8 GPUs.  x is
 * there with its columns split, and all ranks need y.  The product has four forms.  The program
 * predicts each by a cost table: the move of x to what the form reads, the product with an
 * activation, and the move of y.  Where all ranks read the same w and different rows of x, the sum
 * of their gradients of w is added.  The program plans no moves of a form whose least time is above
 * the best so far.  It communicates with nobody and needs no device. */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

enum { BYTES = 2 /* of an element of bf16 */ };

/* What a form reads and makes. */
struct form {
    const char *name, *x, *y;
    bool splits_w;
};

static const struct form forms[] = {{"whole", "R", "R", false},
                                    {"rows of x", "S(0)", "S(0)", false},
                                    {"rows of w", "R", "S(1)", true},
                                    {"columns of both", "S(1)", "P", true}};

/* A form with its moves.  FORM is NULL for none. */
struct choice {
    const struct form *form;
    weft_plan *of_x, *of_y;
    uint64_t ns;
};

/* What an engine keeps to choose the form of a product.  It has its own references. */
struct chooser {
    weft_cost_table *costs;
    weft_spec *x, *y; /* as they are there, and as they are needed */
    struct choice kept;
};

static struct chooser begin(const weft_mesh *mesh, const weft_cost_table *costs, const char *x,
                            const char *y, const int64_t *sizes)
{
    struct chooser chooser = {.costs = weft_cost_table_retain(costs)};
    const int64_t x_shape[] = {sizes[0], sizes[1]}, y_shape[] = {sizes[0], sizes[2]};

    MUST(weft_spec_parse_placements(mesh, WEFT_DTYPE_BF16, 2, x_shape, x, &chooser.x));
    MUST(weft_spec_parse_placements(mesh, WEFT_DTYPE_BF16, 2, y_shape, y, &chooser.y));
    return chooser;
}

static void release(struct choice *choice)
{
    weft_plan_release(&choice->of_x);
    weft_plan_release(&choice->of_y);
}

static void end(struct chooser *chooser)
{
    release(&chooser->kept);
    weft_spec_release(&chooser->x);
    weft_spec_release(&chooser->y);
    weft_cost_table_release(&chooser->costs);
}

/* ---- compute ---- */

/* All ranks sum BYTES bytes. */
static uint64_t sum_ns(const struct chooser *chooser, uint64_t bytes)
{
    const weft_mesh *mesh = weft_spec_mesh(chooser->x);
    uint64_t ranks = (uint64_t)weft_mesh_size(mesh), ns;
    weft_cost_step step = {.struct_size = sizeof step,
                           .kind = WEFT_STEP_ALL_REDUCE,
                           .ranks = (int32_t)ranks,
                           .between_hosts = weft_mesh_hosts(mesh) > 1,
                           .received = 2 * bytes / ranks * (ranks - 1),
                           .reduced = 2 * bytes};

    MUST(weft_cost_table_step_ns(chooser->costs, &step, &ns));
    return ns;
}

/* The compute of FORM on one rank: the product, then an activation that reads and writes y. */
static uint64_t compute_ns(const struct chooser *chooser, const struct form *form)
{
    int32_t ranks = weft_mesh_size(weft_spec_mesh(chooser->x));
    uint64_t rows = (uint64_t)weft_spec_shape(chooser->x)[0];
    uint64_t columns = (uint64_t)weft_spec_shape(chooser->x)[1];
    uint64_t outputs = (uint64_t)weft_spec_shape(chooser->y)[1];
    uint64_t parts = form->x[0] == 'R' && !form->splits_w ? 1 : (uint64_t)ranks;
    uint64_t w = columns * outputs / (form->splits_w ? parts : 1);
    uint64_t y = rows * outputs / (form->y[0] == 'P' ? 1 : parts), ns;

    ns = weft_cost_table_product_ns(chooser->costs, 2 * rows * columns * outputs / parts,
                                    (rows * columns / parts + w + y) * BYTES, w);
    ns += weft_cost_table_compute_ns(chooser->costs, y, 2 * y * BYTES);
    if (parts > 1 && !form->splits_w) ns += sum_ns(chooser, w * BYTES);
    return ns;
}

/* ---- moves ---- */

/* The move of x to what FORM reads takes at least so long. */
static uint64_t least_ns(const struct chooser *chooser, const struct form *form,
                         const weft_plan_options *options)
{
    weft_placement placement;
    uint64_t ns;

    MUST(weft_placements_parse(form->x, 1, &placement));
    MUST(weft_plan_lower_bound_ns(chooser->x, &placement, options, &ns));
    weft_placements_free(1, &placement);
    return ns;
}

static struct choice plan(const struct chooser *chooser, const struct form *form,
                          const weft_plan_options *options)
{
    struct choice choice = {.form = form};
    weft_spec *x, *y;

    MUST(weft_spec_with(chooser->x, form->x, &x));
    MUST(weft_spec_with(chooser->y, form->y, &y));
    MUST(weft_plan_create(chooser->x, x, options, &choice.of_x));
    MUST(weft_plan_create(y, chooser->y, options, &choice.of_y));
    choice.ns =
        compute_ns(chooser, form) + weft_plan_cost_ns(choice.of_x) + weft_plan_cost_ns(choice.of_y);
    weft_spec_release(&x);
    weft_spec_release(&y);
    return choice;
}

static void print_move(const char *what, const weft_plan *plan)
{
    if (weft_plan_communicates(plan))
        printf(", %s moves in %.1f us", what, (double)weft_plan_cost_ns(plan) / 1e3);
    else
        printf(", %s stays", what);
}

/* The fastest form. */
static struct choice choose(const struct chooser *chooser)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = chooser->costs};
    struct choice best = {.ns = UINT64_MAX};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint64_t computes = compute_ns(chooser, &forms[i]);
        struct choice now;

        printf("%-16s computes in %.1f us", forms[i].name, (double)computes / 1e3);
        if (computes + least_ns(chooser, &forms[i], &options) >= best.ns) {
            printf(", is slower than the best\n");
            continue;
        }
        now = plan(chooser, &forms[i], &options);
        print_move("x", now.of_x);
        print_move("y", now.of_y);
        printf(": %.1f us\n", (double)now.ns / 1e3);
        if (now.ns < best.ns) {
            release(&best);
            best = now;
        } else {
            release(&now);
        }
    }
    return best;
}

/* The form of one layer's product.  The caller releases its plans; all layers share them. */
static struct choice ask(struct chooser *chooser)
{
    struct choice choice;

    if (chooser->kept.form == NULL) chooser->kept = choose(chooser);
    choice = chooser->kept;
    choice.of_x = weft_plan_retain(chooser->kept.of_x);
    choice.of_y = weft_plan_retain(chooser->kept.of_y);
    return choice;
}

int main(int argc, char **argv)
{
    struct chooser chooser;
    struct choice layers[2];
    weft_cost_table *costs;
    weft_mesh *mesh;
    int64_t sizes[3];

    if (argc != 8) {
        fprintf(stderr, "usage: product MESH COSTS ROWS COLUMNS OUTPUTS LAYOUT-X LAYOUT-Y\n");
        return EXIT_FAILURE;
    }
    MUST(weft_mesh_parse(argv[1], &mesh));
    MUST(weft_cost_table_open(argv[2], &costs));
    for (int i = 0; i < 3; i++)
        sizes[i] = atoll(argv[3 + i]);
    chooser = begin(mesh, costs, argv[6], argv[7], sizes);
    weft_cost_table_release(&costs);
    weft_mesh_release(&mesh);

    for (int i = 0; i < 2; i++)
        layers[i] = ask(&chooser);
    end(&chooser);
    printf("the choice is %s, in %.1f us\n", layers[0].form->name, (double)layers[0].ns / 1e3);
    for (int i = 0; i < 2; i++)
        release(&layers[i]);
    return EXIT_SUCCESS;
}
