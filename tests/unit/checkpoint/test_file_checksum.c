#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/random.h"
#include "support/suite.h"

/* The hash of docs/checkpoints.md, written once more. */
static uint64_t hash(uint64_t index, uint64_t bits)
{
    uint64_t x = bits ^ (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

    for (int i = 0; i < 2; i++)
        x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

TEST(parts_add_up)
{
    struct random r = random_begin("test_file_checksum");
    int cases = test_cases(300);
    unsigned char elements[8 * 7 * 6 * 16], box[sizeof elements];

    for (size_t i = 0; i < sizeof elements; i++)
        elements[i] = (unsigned char)random_in(&r, 0, 255);
    for (int c = 0; c < cases; c++) {
        int64_t shape[] = {random_in(&r, 1, 8), random_in(&r, 1, 7), random_in(&r, 1, 6)};
        int64_t zeros[3] = {0}, offset[3] = {0}, sizes[3];
        int dtype = random_in(&r, 4, 22), dim = random_in(&r, 0, 2);
        struct wf_tensor t = {.shape = shape, .dims = 3, .dtype = (uint8_t)dtype};
        int64_t unit = wf_file_dtype((size_t)dtype)->bits / 8,
                cut = random_in(&r, 0, (int32_t)shape[dim]);
        uint64_t whole = wf_checksum_box(&t, zeros, shape, elements), sum = 0;
        for (int side = 0; side < 2; side++) {
            unsigned char *out = box;
            memcpy(sizes, shape, sizeof sizes);
            offset[dim] = side == 0 ? 0 : cut;
            sizes[dim] = side == 0 ? cut : shape[dim] - cut;
            for (int64_t i = 0; i < sizes[0]; i++)
                for (int64_t j = 0; j < sizes[1]; j++)
                    for (int64_t k = 0; k < sizes[2]; k++, out += unit)
                        memcpy(out,
                               elements +
                                   unit * (((i + offset[0]) * shape[1] + j + offset[1]) * shape[2] +
                                           k + offset[2]),
                               (size_t)unit);
            sum += wf_checksum_box(&t, offset, sizes, box);
        }
        ck_assert_uint_eq(sum, whole);
    }
}

TEST(the_hash_is_the_documented_one)
{
    int64_t shape[] = {2, 2}, zeros[] = {0, 0};
    struct wf_tensor t = {.shape = shape, .dims = 2};
    uint32_t words[] = {1, 0, UINT32_MAX, 7};
    uint64_t pairs[] = {1, 2, 3, 4, 5, 6, 7, 8};

    t.dtype = (uint8_t)wf_file_dtype_find("F32");
    ck_assert_uint_eq(wf_checksum_box(&t, zeros, shape, words),
                      hash(0, 1) + hash(1, 0) + hash(2, UINT32_MAX) + hash(3, 7));
    t.dtype = (uint8_t)wf_file_dtype_find("C128");
    ck_assert_uint_eq(wf_checksum_box(&t, zeros, shape, pairs),
                      hash(0, 1) + hash(1, 2) + hash(2, 3) + hash(3, 4) + hash(4, 5) + hash(5, 6) +
                          hash(6, 7) + hash(7, 8));
    t.dtype = (uint8_t)wf_file_dtype_find("F4");
    ck_assert_uint_eq(wf_checksum_box(&t, zeros, shape, "\x12\x34"), hash(0, 0x12) + hash(1, 0x34));
    t.dims = 0;
    t.dtype = (uint8_t)wf_file_dtype_find("I16");
    ck_assert_uint_eq(wf_checksum_box(&t, NULL, NULL, "\x34\x12"), hash(0, 0x1234));
}

TEST(formats_do_not_matter)
{
    static const char *const paths[] = {"plain.safetensors", "dcp", "dcp-safetensors"};
    uint64_t first = 0, sum;

    for (int i = 0; i < 3; i++) {
        weft_checkpoint *in = NULL;
        char path[512];
        snprintf(path, sizeof path, "%s/theirs/%s", WEFT_TEST_DATA, paths[i]);
        OK(weft_checkpoint_open(path, &in));
        OK(weft_checkpoint_checksum(in, tensor_index(in, "layers.0.w"), &sum));
        if (i == 0) first = sum;
        ck_assert_uint_eq(sum, first);
        REFUSED(weft_checkpoint_checksum(in, 99, &sum), WEFT_ERR_NOT_FOUND, "index is 99");
        weft_checkpoint_close(&in);
    }
}
