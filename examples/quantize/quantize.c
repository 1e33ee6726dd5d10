/* quantize.c - store the weights of a checkpoint in 8 bits, with a scale for each row.
 *
 *     ./quantize /tmp/model
 *
 * /tmp/model/model.safetensors is what another program wrote.  The program writes
 * /tmp/model/quantized.safetensors: each matrix NAME as NAME in i8 and its scales as NAME.scale in
 * f32; other tensors as they are.  It reads and writes boxes of some rows, so that its memory does
 * not grow with the model.  In the end it compares the two checkpoints. */
#include <weft/file.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 16, TENSORS_MAX = 64 }; /* rows of a box */

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static void *room(uint64_t bytes)
{
    void *memory = malloc((size_t)bytes + 1);

    if (memory == NULL) abort();
    return memory;
}

/* What another program wrote. */
static void write_model(const char *path)
{
    static const int64_t shapes[][2] = {{100, 48}, {48}, {37, 100}};
    const weft_checkpoint_entry entries[] = {
        {.name = "up.weight", .dtype = "f32", .dims = 2, .shape = shapes[0]},
        {.name = "norm.weight", .dtype = "f32", .dims = 1, .shape = shapes[1]},
        {.name = "down.weight", .dtype = "f32", .dims = 2, .shape = shapes[2]}};
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    weft_checkpoint_writer *writer;

    MUST(weft_checkpoint_writer_create(path, 3, entries, sizeof *entries, &options, &writer));
    for (size_t i = 0; i < 3; i++) {
        uint64_t bytes = weft_checkpoint_writer_box_bytes(writer, i, NULL, NULL);
        float *elements = room(bytes);

        for (size_t at = 0; at < bytes / sizeof *elements; at++)
            elements[at] =
                weft_checkpoint_writer_dims(writer, i) == 1 ? 1 : sinf((float)(at * (i + 1)));
        MUST(weft_checkpoint_writer_write(writer, i, NULL, NULL, elements));
        free(elements);
    }
    MUST(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
}

/* Write tensor FROM of IN in 8 bits as tensor TO of OUT, and its scales as the one behind it. */
static void quantize(const weft_checkpoint *in, size_t from, const int64_t *shape,
                     weft_checkpoint_writer *out, size_t to)
{
    for (int64_t first = 0; first < shape[0]; first += ROWS) {
        int64_t offset[] = {first, 0}, rows = shape[0] - first < ROWS ? shape[0] - first : ROWS;
        int64_t sizes[] = {rows, shape[1]};
        float *elements = room(weft_checkpoint_box_bytes(in, from, offset, sizes));
        int8_t *small = room(weft_checkpoint_writer_box_bytes(out, to, offset, sizes));
        float scales[ROWS];

        MUST(weft_checkpoint_read(in, from, offset, sizes, elements));
        for (int64_t r = 0; r < rows; r++) {
            const float *row = elements + r * shape[1];
            float most = 0;

            for (int64_t c = 0; c < shape[1]; c++)
                most = fmaxf(most, fabsf(row[c]));
            scales[r] = most > 0 ? most / 127 : 1;
            for (int64_t c = 0; c < shape[1]; c++)
                small[r * shape[1] + c] = (int8_t)lrintf(row[c] / scales[r]);
        }
        MUST(weft_checkpoint_writer_write(out, to, offset, sizes, small));
        MUST(weft_checkpoint_writer_write(out, to + 1, &first, &rows, scales));
        free(elements);
        free(small);
    }
}

/* Copy tensor FROM of IN to tensor TO of OUT. */
static void copy(const weft_checkpoint *in, size_t from, weft_checkpoint_writer *out, size_t to)
{
    void *elements = room(weft_checkpoint_box_bytes(in, from, NULL, NULL));

    MUST(weft_checkpoint_read(in, from, NULL, NULL, elements));
    MUST(weft_checkpoint_writer_write(out, to, NULL, NULL, elements));
    free(elements);
}

static bool is_matrix(const weft_checkpoint *in, size_t index)
{
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};

    MUST(weft_checkpoint_tensor_get(in, index, &info));
    return weft_checkpoint_dims(in, index) == 2 && info.dtype == WEFT_DTYPE_F32;
}

static void convert(const weft_checkpoint *in, const char *path)
{
    weft_checkpoint_writer_options options = {.struct_size = sizeof options, .replace = true};
    weft_checkpoint_entry entries[2 * TENSORS_MAX];
    weft_checkpoint_info all = {.struct_size = sizeof all};
    char names[TENSORS_MAX][256];
    weft_checkpoint_writer *out;
    size_t count = 0;

    MUST(weft_checkpoint_get(in, &all));
    if (all.tensors > TENSORS_MAX) abort();
    for (size_t i = 0; i < all.tensors; i++) {
        weft_checkpoint_tensor_info info = {.struct_size = sizeof info};

        MUST(weft_checkpoint_tensor_get(in, i, &info));
        entries[count++] =
            (weft_checkpoint_entry){.name = info.name,
                                    .dtype = is_matrix(in, i) ? "i8" : info.dtype_name,
                                    .dims = info.dims,
                                    .shape = info.shape};
        if (!is_matrix(in, i)) continue;
        snprintf(names[i], sizeof names[i], "%s.scale", info.name);
        entries[count++] = (weft_checkpoint_entry){
            .name = names[i], .dtype = "f32", .dims = 1, .shape = info.shape};
    }
    MUST(weft_checkpoint_writer_create(path, count, entries, sizeof *entries, &options, &out));
    count = 0;
    for (size_t i = 0; i < all.tensors; i++)
        if (is_matrix(in, i)) {
            quantize(in, i, entries[count].shape, out, count);
            count += 2;
        } else {
            copy(in, i, out, count++);
        }
    MUST(weft_checkpoint_writer_commit(out));
    weft_checkpoint_writer_release(&out);
}

/* The elements of the tensor NAME of IN. */
static void *whole(const weft_checkpoint *in, const char *name, weft_checkpoint_tensor_info *info)
{
    void *elements;
    size_t index;

    info->struct_size = sizeof *info;
    MUST(weft_checkpoint_find(in, name, &index));
    MUST(weft_checkpoint_tensor_get(in, index, info));
    elements = room(info->bytes);
    MUST(weft_checkpoint_read(in, index, NULL, NULL, elements));
    return elements;
}

/* Print how far the matrix NAME of SMALL is from that of IN; true if no element is further than
 * half a step of its row. */
static bool compare(const weft_checkpoint *in, const weft_checkpoint *small, const char *name)
{
    weft_checkpoint_tensor_info was, is, of_scales;
    float *before = whole(in, name, &was), *scales, furthest = 0;
    char scale_name[256];
    bool good = true;
    int8_t *now = whole(small, name, &is);

    snprintf(scale_name, sizeof scale_name, "%s.scale", name);
    scales = whole(small, scale_name, &of_scales);
    for (int64_t i = 0; i < was.shape[0] * was.shape[1]; i++) {
        float scale = scales[i / was.shape[1]], error = fabsf(before[i] - scale * now[i]);

        furthest = fmaxf(furthest, error);
        good = good && error <= 0.501F * scale;
    }
    printf("%s: %" PRIu64 " bytes in place of %" PRIu64 ", within %g\n", name,
           is.bytes + of_scales.bytes, was.bytes, (double)furthest);
    free(before);
    free(scales);
    free(now);
    return good;
}

int main(int argc, char **argv)
{
    char path[4096], small_path[4096];
    weft_checkpoint *in, *small;
    bool good;

    if (argc != 2) {
        fprintf(stderr, "usage: quantize FOLDER\n");
        return EXIT_FAILURE;
    }
    snprintf(path, sizeof path, "%s/model.safetensors", argv[1]);
    snprintf(small_path, sizeof small_path, "%s/quantized.safetensors", argv[1]);
    write_model(path);
    MUST(weft_checkpoint_open(path, &in));
    convert(in, small_path);
    MUST(weft_checkpoint_open(small_path, &small));
    good = compare(in, small, "up.weight") && compare(in, small, "down.weight");
    weft_checkpoint_close(&small);
    weft_checkpoint_close(&in);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
