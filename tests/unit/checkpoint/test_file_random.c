/* Random tensors are written in random boxes and formats, and read back as wholes, boxes and
 * shards. */
#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/random_layout.h"
#include "support/suite.h"

enum { MOST_TENSORS = 4, MOST_BYTES = 1 << 20 };

struct tensor {
    char name[16];
    int dtype;
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS], bytes;
    char placements[200];
    unsigned char *elements;
};

static struct tensor tensors[MOST_TENSORS];
static size_t count;
static unsigned char got[MOST_BYTES];

static uint32_t bits_of(const struct tensor *t)
{
    return wf_file_dtype((size_t)t->dtype)->bits;
}

/* Copy a box between the tensor and BOX; elements have whole bytes. */
static void copy_box(const struct tensor *t, const int64_t *offset, const int64_t *sizes,
                     unsigned char *box)
{
    int64_t unit = bits_of(t) / 8, total = 1;

    for (int32_t d = 0; d < t->dims; d++)
        total *= sizes[d];
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int32_t d = t->dims - 1; d >= 0; d--) {
            at += (offset[d] + rest % sizes[d]) * stride;
            rest /= sizes[d];
            stride *= t->shape[d];
        }
        memcpy(box + i * unit, t->elements + at * unit, (size_t)unit);
    }
}

static void random_tensor(struct random *r, struct tensor *t, size_t number)
{
    snprintf(t->name, sizeof t->name, "%c.%zu", 'z' - random_in(r, 0, 25), number);
    do {
        t->dtype = random_in(r, 0, 21);
        t->dims = random_shape(r, t->shape);
    } while (!wf_file_bytes((size_t)t->dtype, t->dims, t->shape, &t->bytes) ||
             t->bytes > MOST_BYTES);
    t->elements = malloc((size_t)t->bytes + 1);
    for (int64_t i = 0; i < t->bytes; i++)
        t->elements[i] = (unsigned char)random_in(r, 0, 255);
}

/* Write a box, in parts if RANDOM says so.  Elements of less than a byte are written whole. */
static void write_box(struct random *r, weft_checkpoint_writer *writer, size_t index,
                      const int64_t *offset, const int64_t *sizes, int32_t depth)
{
    const struct tensor *t = &tensors[index];
    int64_t first[WEFT_MAX_DIMS], second[WEFT_MAX_DIMS], later[WEFT_MAX_DIMS];
    int32_t dim = t->dims > 0 ? random_in(r, 0, t->dims - 1) : 0;

    if (bits_of(t) < 8) {
        OK(weft_checkpoint_writer_write(writer, index, NULL, NULL, t->elements));
        return;
    }
    if (depth == 0 || t->dims == 0 || sizes[dim] < 2) {
        copy_box(t, offset, sizes, got);
        OK(weft_checkpoint_writer_write(writer, index, offset, sizes, got));
        return;
    }
    memcpy(first, sizes, sizeof first);
    memcpy(second, sizes, sizeof second);
    memcpy(later, offset, sizeof later);
    first[dim] = random_in(r, 1, (int32_t)sizes[dim] - 1);
    second[dim] -= first[dim];
    later[dim] += first[dim];
    write_box(r, writer, index, later, second, depth - 1);
    write_box(r, writer, index, offset, first, depth - 1);
}

static void random_text(struct random *r, const weft_mesh *mesh, struct tensor *t)
{
    weft_placement placements[WEFT_MAX_AXES];
    struct wf_text text = {0};
    weft_spec *spec = NULL;

    random_placements(r, mesh, t->dims, t->shape, placements);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (placements[a].kind == WEFT_PLACE_PARTIAL || bits_of(t) < 8)
            placements[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    OK(weft_spec_create(mesh, WEFT_DTYPE_U8, t->dims, t->shape, placements, &spec));
    wf_placements_add_text(weft_spec_placements(spec), weft_mesh_axes(mesh), &text);
    weft_spec_release(&spec);
    OK(wf_text_copy_out(&text, t->placements, sizeof t->placements, NULL));
}

static void write_checkpoint(struct random *r, const char *path, const weft_mesh *mesh)
{
    weft_checkpoint_writer_options options = {.struct_size = sizeof options,
                                              .mesh = mesh,
                                              .replace = true,
                                              .file_bytes = (uint64_t)random_in(r, 1, 400)};
    static const int64_t zeros[WEFT_MAX_DIMS];
    weft_checkpoint_entry entries[MOST_TENSORS];
    weft_checkpoint_writer *writer = NULL;

    for (size_t i = 0; i < count; i++)
        entries[i] =
            (weft_checkpoint_entry){tensors[i].name, wf_file_dtype((size_t)tensors[i].dtype)->name,
                                    tensors[i].dims, tensors[i].shape, tensors[i].placements};
    OK(weft_checkpoint_writer_create(path, count, entries, sizeof *entries, &options, &writer));
    for (size_t i = 0; i < count; i++)
        write_box(r, writer, i, zeros, tensors[i].shape, random_in(r, 0, 3));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
}

/* The shard in GOT, read in pieces of a few bytes. */
static void read_pieces(struct random *r, const weft_checkpoint *in, size_t index,
                        const weft_spec *spec, int32_t rank, int64_t unit)
{
    static unsigned char pieces[MOST_BYTES];
    int64_t first[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS], at = 0, bytes;
    struct wf_part whole, part;
    struct wf_cut cut;

    wf_part_of_shard(&whole, spec, rank);
    if (whole.elements == 0) return;
    ck_assert(wf_cut_make(&cut, (uint32_t)(8 * unit), whole.dims, whole.shape,
                          (uint64_t)(unit * random_in(r, 1, 40))));
    for (uint64_t i = 0; i < cut.pieces; i++) {
        part = whole;
        wf_cut_box(&cut, whole.dims, whole.shape, i, first, sizes);
        wf_part_narrow(&part, first, sizes);
        OK(wf_checkpoint_read_tensor(in, &in->tensors[index], &part, pieces + at));
        bytes = unit;
        for (int32_t d = 0; d < whole.dims; d++)
            bytes *= sizes[d];
        at += bytes;
    }
    ck_assert_int_eq(at, whole.elements * unit);
    ck_assert_int_eq(memcmp(pieces, got, (size_t)at), 0);
}

static void read_shard(struct random *r, const weft_checkpoint *in, size_t index,
                       const struct tensor *t)
{
    OWNED(weft_mesh) *mesh = random_mesh(r);
    int32_t rank = weft_mesh_rank_at(mesh, random_in(r, 0, weft_mesh_size(mesh) - 1));
    const struct wf_file_dtype *dtype = wf_file_dtype((size_t)t->dtype);
    int64_t unit = bits_of(t) / 8;
    OWNED(weft_spec) *spec = NULL;
    struct tensor other = *t;
    char text[300];
    weft_segment s;

    random_text(r, mesh, &other);
    snprintf(text, sizeof text, "%s",
             dtype->dtype < WEFT_DTYPE_COUNT ? weft_dtype_name((enum weft_dtype)dtype->dtype)
                                             : "u8");
    snprintf(text + strlen(text), sizeof text - strlen(text), "[");
    for (int32_t d = 0; d < t->dims; d++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", d > 0 ? "," : "",
                 (int)t->shape[d]);
    snprintf(text + strlen(text), sizeof text - strlen(text), "] %s", other.placements);
    OK(weft_spec_parse(mesh, text, &spec));
    OK(weft_checkpoint_read_shard(in, index, spec, rank, got));
    for (int64_t at = 0; unit > 0 && weft_spec_segment(spec, rank, NULL, at, &s); at += s.length)
        ck_assert_msg(memcmp(got + s.local * unit, t->elements + s.global * unit,
                             (size_t)(s.length * unit)) == 0,
                      "%s", text);
    if (unit > 0) read_pieces(r, in, index, spec, rank, unit);
}

static void read_box(struct random *r, const weft_checkpoint *in, size_t index,
                     const struct tensor *t)
{
    static unsigned char want[MOST_BYTES];
    int64_t offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS], bytes = bits_of(t) / 8;

    if (bits_of(t) < 8) return;
    for (int32_t d = 0; d < t->dims; d++) {
        offset[d] = random_in(r, 0, (int32_t)t->shape[d]);
        sizes[d] = random_in(r, 0, (int32_t)(t->shape[d] - offset[d]));
        bytes *= sizes[d];
    }
    copy_box(t, offset, sizes, want);
    OK(weft_checkpoint_read(in, index, offset, sizes, got));
    ck_assert_int_eq(memcmp(got, want, (size_t)bytes), 0);
}

static void check_checkpoint(struct random *r, const char *path)
{
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_checkpoint *in = NULL;

    OK(weft_checkpoint_open(path, &in));
    OK(weft_checkpoint_get(in, &info));
    ck_assert_uint_eq(info.tensors, count);
    for (size_t i = 0; i < count; i++) {
        size_t index = tensor_index(in, tensors[i].name);
        OK(weft_checkpoint_read(in, index, NULL, NULL, got));
        ck_assert_int_eq(memcmp(got, tensors[i].elements, (size_t)tensors[i].bytes), 0);
        for (int k = 0; k < 3; k++) {
            read_box(r, in, index, &tensors[i]);
            read_shard(r, in, index, &tensors[i]);
        }
    }
    weft_checkpoint_close(&in);
}

TEST(what_is_written_is_read)
{
    struct random r = random_begin("test_file_random");
    int cases = test_cases(200);

    for (int i = 0; i < cases; i++) {
        int32_t format = random_in(&r, 0, 3);
        OWNED(weft_mesh) *mesh = format >= 2 ? random_mesh(&r) : NULL;
        const char *path = folder_path(&folder, format == 0   ? "a.safetensors"
                                                : format == 1 ? "hf"
                                                              : "ranks");
        count = (size_t)random_in(&r, 0, MOST_TENSORS);
        for (size_t k = 0; k < count; k++) {
            random_tensor(&r, &tensors[k], k);
            if (mesh != NULL) random_text(&r, mesh, &tensors[k]);
        }
        write_checkpoint(&r, path, mesh);
        check_checkpoint(&r, path);
        for (size_t k = 0; k < count; k++)
            free(tensors[k].elements);
    }
}
