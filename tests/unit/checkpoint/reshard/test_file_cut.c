/* Steps cover every element once, and a tensor that is transposed is read about once. */
#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/random.h"
#include "support/suite.h"

enum { MOST_ELEMENTS = 4096 };

static void count_box(int32_t dims, const int64_t *shape, const int64_t *offset,
                      const int64_t *sizes, int *counts)
{
    int64_t elements = 1;

    for (int32_t d = 0; d < dims; d++)
        elements *= sizes[d];
    for (int64_t i = 0; i < elements; i++) {
        int64_t left = i, at = 0, stride = 1;
        for (int32_t d = dims - 1; d >= 0; d--) {
            at += (offset[d] + left % sizes[d]) * stride;
            left /= sizes[d];
            stride *= shape[d];
        }
        counts[at]++;
    }
}

TEST(every_element_is_in_one_piece)
{
    struct random r = random_begin("test_file_cut");
    int tiles = 0;

    for (int round = 0; round < 3000; round++) {
        int32_t dims = random_in(&r, 0, 4), fast = random_in(&r, -1, dims - 1);
        uint32_t bits = 8u << random_in(&r, 0, 3);
        uint64_t most = (uint64_t)random_in(&r, 8, 120);
        int64_t shape[WEFT_MAX_DIMS], offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS], elements = 1;
        int counts[MOST_ELEMENTS] = {0};
        struct wf_cut cut;
        for (int32_t d = 0; d < dims; d++) {
            shape[d] = random_in(&r, 0, 12) == 0 ? 0 : random_in(&r, 1, 8);
            elements *= shape[d];
        }
        ck_assert(wf_cut_make_from(&cut, bits, dims, shape, most, fast));
        tiles += cut.width > 0;
        for (uint64_t i = 0; i < cut.pieces; i++) {
            uint64_t bytes = bits / 8;
            wf_cut_box(&cut, dims, shape, i, offset, sizes);
            for (int32_t d = 0; d < dims; d++)
                bytes *= (uint64_t)sizes[d];
            ck_assert_uint_le(bytes, most);
            ck_assert_uint_gt(bytes, 0);
            count_box(dims, shape, offset, sizes, counts);
        }
        for (int64_t i = 0; i < elements; i++)
            ck_assert_msg(counts[i] == 1, "round %d: element %lld is in %d pieces", round,
                          (long long)i, counts[i]);
    }
    ck_assert_int_gt(tiles, 100);
}

enum { ROWS = 6000, COLUMNS = 1000 };

static void write_matrix(void)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    weft_checkpoint_entry entry = {"a", "I32", 2, shape, NULL};
    int32_t *elements = calloc((size_t)ROWS * COLUMNS, sizeof *elements);
    weft_checkpoint_writer *writer = NULL;

    ck_assert_ptr_nonnull(elements);
    for (int32_t i = 0; i < ROWS * COLUMNS; i++)
        elements[i] = i * 7;
    OK(weft_checkpoint_writer_create(folder_path(&folder, "matrix"), 1, &entry, sizeof(entry), NULL,
                                     &writer));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, elements));
    OK(weft_checkpoint_writer_commit(writer));
    weft_checkpoint_writer_release(&writer);
    free(elements);
}

static void check_transposed(const char *path)
{
    int32_t *elements = calloc((size_t)ROWS * COLUMNS, sizeof *elements);
    weft_checkpoint *in = NULL;

    ck_assert_ptr_nonnull(elements);
    OK(weft_checkpoint_open(path, &in));
    OK(weft_checkpoint_read(in, 0, NULL, NULL, elements));
    for (int32_t i = 0; i < COLUMNS; i++)
        for (int32_t j = 0; j < ROWS; j++)
            if (elements[i * ROWS + j] != (j * COLUMNS + i) * 7)
                ck_abort_msg("element [%d,%d] is %d", i, j, elements[i * ROWS + j]);
    weft_checkpoint_close(&in);
    free(elements);
}

/* With whole rows of the target as steps, each step would read nearly all of the source. */
TEST(a_transposed_tensor_is_read_about_once)
{
    weft_reshard_options options = {.struct_size = sizeof options, .memory = 8 << 20, .jobs = 1};
    weft_checkpoint_info info = {.struct_size = sizeof info};
    weft_checkpoint *in = NULL, *mapped = NULL;
    weft_reshard *plan = NULL;
    weft_checkpoint_rules *rules = NULL;
    uint64_t bytes = (uint64_t)ROWS * COLUMNS * 4, before;

    write_matrix();
    OK(weft_checkpoint_open(folder_path(&folder, "matrix"), &in));
    OK(weft_checkpoint_rules_parse("a = transpose(a)", NULL, &rules));
    OK(weft_checkpoint_map(in, rules, &mapped));
    OK(weft_checkpoint_get(in, &info));
    before = info.bytes_read;
    OK(weft_reshard_create(mapped, folder_path(&folder, "transposed"), &options, &plan));
    OK(weft_reshard_run(plan));
    OK(weft_checkpoint_get(in, &info));
    ck_assert_uint_ge(info.bytes_read - before, bytes);
    ck_assert_uint_le(info.bytes_read - before, bytes * 3 / 2);
    check_transposed(folder_path(&folder, "transposed"));
    weft_reshard_release(&plan);
    weft_checkpoint_close(&mapped);
    weft_checkpoint_rules_release(&rules);
    weft_checkpoint_close(&in);
}
