/* tensor.c - a random matrix moves from rows to columns and back.
 *
 *     weft run -n 8 ./tensor */
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

int main(void)
{
    weft_tensor_difference_info difference = {.struct_size = sizeof difference};
    weft_random random = {.seed = 42};
    weft_tensor *weights, *moved, *back;
    weft_spec *rows, *columns;
    weft_context *ctx;
    weft_mesh *mesh;
    char text[4096];

    MUST(weft_init(NULL, &ctx));
    MUST(weft_mesh_parse("dp=2,tp=4", &mesh));
    MUST(weft_spec_parse(mesh, "f32[4096,4096] S(0),R", &rows));
    MUST(weft_spec_with(rows, "R,S(1)", &columns));

    MUST(weft_tensor_create(ctx, rows, NULL, &weights));
    MUST(weft_tensor_normal(weights, &random, 0, 0.02, NULL));
    MUST(weft_tensor_move(weights, columns, NULL, NULL, &moved));
    MUST(weft_tensor_move(moved, rows, NULL, NULL, &back));
    MUST(weft_tensor_compare(weights, back, NULL, NULL, &difference));

    MUST(weft_tensor_full_print(moved, NULL, NULL, text, sizeof text, NULL));
    if (weft_rank(ctx) == 0)
        printf("%s%s\n", text, difference.equal ? "there and back: equal" : "other elements");

    weft_tensor_release(&weights);
    weft_tensor_release(&moved);
    weft_tensor_release(&back);
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    weft_mesh_release(&mesh);
    weft_context_release(&ctx);
    return difference.equal ? EXIT_SUCCESS : EXIT_FAILURE;
}
