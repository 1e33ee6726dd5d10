/* dlpack.c - arrays of another library become a tensor, and a tensor becomes arrays of it.
 *
 *     weft run -n 3 ./dlpack
 *
 * On each rank the library of array.h has some rows of a matrix, in its array.  The ranks
 * have different numbers of rows.  weft takes these arrays as the shards of one tensor, moves the
 * tensor to columns, and lends the library the columns.  Both ways the memory is shared, and the
 * last user frees it.  The library has host memory, so a CPU backend is needed. */
#include "array.h"

#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 8 };

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

static weft_context *ctx;
static weft_mesh *mesh;

/* The arrays of all ranks: two sizes for each rank.  The caller frees them. */
static int64_t *shapes_of_all(const struct array *array)
{
    int64_t *shapes = calloc(2 * (size_t)weft_size(ctx), sizeof *shapes);

    if (shapes == NULL) abort();
    MUST(weft_all_gather(weft_world(ctx), array->shape, shapes, 2, WEFT_DTYPE_I64, NULL));
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));
    return shapes;
}

/* ---- from the library to weft ---- */

/* The tensor whose rows are those of ARRAY on every rank, one rank behind the other. */
static weft_tensor *take_rows(struct array *array)
{
    const weft_placement rows = {.kind = WEFT_PLACE_SHARD, .dim = 0};
    weft_dl_versioned *lent = array_lend(array);
    int64_t *shapes = shapes_of_all(array);
    enum weft_dtype dtype;
    weft_tensor *tensor;
    weft_spec *spec;
    char text[128];

    MUST(weft_dtype_from_dlpack(lent->tensor.dtype, &dtype));
    MUST(weft_spec_from_shards(mesh, dtype, 2, &rows, shapes, &spec));
    MUST(weft_tensor_from_dlpack(ctx, spec, lent, NULL, &tensor)); /* weft calls the deleter */
    expect(weft_tensor_memory(tensor) == array->data, "the array was copied");
    MUST(weft_spec_print(spec, text, sizeof text, NULL));
    if (weft_rank(ctx) == 0) printf("the arrays are %s\n", text);
    weft_spec_release(&spec);
    free(shapes);
    return tensor;
}

/* ---- from weft to the library ---- */

/* The same matrix with its columns split among the ranks, in a dtype that the library has. */
static weft_tensor *move_to_columns(weft_tensor *rows)
{
    weft_spec *columns, *known;
    weft_dl_dtype dtype;
    weft_tensor *tensor;

    MUST(weft_spec_with(weft_tensor_spec(rows), "S(1)", &columns));
    MUST(weft_dtype_to_dlpack(weft_spec_dtype(columns), &dtype));
    if (array_knows(dtype))
        known = weft_spec_retain(columns);
    else
        MUST(weft_spec_with_dtype(columns, WEFT_DTYPE_F32, &known));
    MUST(weft_tensor_move(rows, known, NULL, NULL, &tensor));
    weft_spec_release(&columns);
    weft_spec_release(&known);
    return tensor;
}

/* An array of this rank's columns. */
static struct array *lend_columns(weft_tensor *columns)
{
    struct array *array;
    void *lent;

    MUST(weft_tensor_to_dlpack(columns, NULL, &lent));
    array = array_borrow(lent);
    expect(array != NULL, "the library does not take the columns");
    expect(array->data == weft_tensor_memory(columns), "the columns were copied");
    return array;
}

/* The arrays of all ranks, side by side, are a matrix of so many ROWS. */
static void check_whole(const struct array *array, int64_t rows)
{
    const weft_placement columns = {.kind = WEFT_PLACE_SHARD, .dim = 1};
    int64_t *shapes = shapes_of_all(array), whole[2];

    MUST(weft_shape_from_shards(mesh, 2, &columns, shapes, whole));
    expect(whole[0] == rows && whole[1] == COLUMNS, "the arrays are not the matrix");
    free(shapes);
}

/* ---- the program ---- */

/* Rank R has 3 + 2 R rows.  The ranks before it have FIRST rows. */
static struct array *make_rows(int rank, int64_t *first)
{
    struct array *array = array_create(3 + 2 * rank, COLUMNS);

    *first = (int64_t)rank * (rank + 2);
    for (int64_t i = 0; i < array->shape[0] * COLUMNS; i++)
        array->data[i] = (float)(*first * COLUMNS + i);
    return array;
}

/* ARRAY has TIMES the elements of the columns from FIRST on. */
static bool is_right(const struct array *array, int64_t first, float times)
{
    for (int64_t i = 0; i < array->shape[0]; i++)
        for (int64_t j = 0; j < array->shape[1]; j++)
            if (array->data[i * array->shape[1] + j] != times * (float)(i * COLUMNS + first + j))
                return false;
    return true;
}

static uint64_t pieces_of_memory(void)
{
    weft_memory_info info = {.struct_size = sizeof info};

    MUST(weft_memory_get(ctx, &info));
    return info.pieces;
}

int main(void)
{
    int64_t first, all_rows;
    weft_tensor *rows, *columns;
    struct array *array;
    uint64_t pieces;
    float changed;
    bool right;

    MUST(weft_init(NULL, &ctx));
    expect(weft_size(ctx) <= COLUMNS, "a rank would have no column");
    MUST(weft_mesh_parse_for("all=*", weft_size(ctx), &mesh));
    array = make_rows(weft_rank(ctx), &first);
    all_rows = (int64_t)weft_size(ctx) * (weft_size(ctx) + 2);

    rows = take_rows(array);
    array_release(array); /* the tensor uses it still */
    expect(array_count() == 1, "the array was freed while weft uses it");
    columns = move_to_columns(rows);
    weft_tensor_release(&rows);
    expect(array_count() == 0, "weft has not given the array back");

    pieces = pieces_of_memory();
    array = lend_columns(columns);
    first = weft_tensor_shard(columns)->offset[1];
    check_whole(array, all_rows);
    right = is_right(array, first, 1);
    for (int64_t i = 0; i < array->shape[0] * array->shape[1]; i++)
        array->data[i] *= 2;
    memcpy(&changed, weft_tensor_memory(columns), sizeof changed);
    expect(changed == array->data[0], "weft does not see what the library has written");
    weft_tensor_release(&columns); /* the array uses its memory still */
    expect(pieces_of_memory() == pieces, "the memory was freed while the library uses it");
    right = right && is_right(array, first, 2);
    array_release(array);
    expect(pieces_of_memory() < pieces, "the library has not given the memory back");

    printf("rank %d: the columns from %lld on are %s\n", weft_rank(ctx), (long long)first,
           right ? "right" : "wrong");
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
