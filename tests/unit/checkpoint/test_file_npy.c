#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/suite.h"

static weft_checkpoint *checkpoint;

/* A .npy file of version 1 with HEADER and ELEMENTS bytes 0, 1, 2, ... */
static weft_status open_npy(const char *header, size_t elements)
{
    char bytes[600] = "\x93NUMPY\x01";
    size_t length = strlen(header);

    bytes[8] = (char)length;
    memcpy(bytes + 10, header, length);
    for (size_t i = 0; i < elements; i++)
        bytes[10 + length + i] = (char)i;
    weft_checkpoint_close(&checkpoint);
    return weft_checkpoint_open(folder_write(&folder, "x.npy", bytes, 10 + length + elements),
                                &checkpoint);
}

#define REFUSE(header, elements, status, part) REFUSED(open_npy(header, elements), status, part)

TEST(arrays_are_read_in_both_orders)
{
    weft_checkpoint_tensor_info info = {.struct_size = sizeof info};
    int64_t offset[] = {1, 0}, sizes[] = {1, 2};
    uint16_t got[6];

    OK(open_npy("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }\n", 12));
    OK(weft_checkpoint_tensor_get(checkpoint, 0, &info));
    ck_assert_str_eq(info.name, "x");
    ck_assert_str_eq(info.dtype_name, "U16");
    OK(weft_checkpoint_read(checkpoint, 0, NULL, NULL, got));
    ck_assert_uint_eq(got[1], 0x0302);
    OK(open_npy("{\"shape\": (2,3,), 'fortran_order': True, 'descr': '<u2'}", 12));
    OK(weft_checkpoint_read(checkpoint, 0, NULL, NULL, got));
    ck_assert_uint_eq(got[0], 0x0100);
    ck_assert_uint_eq(got[1], 0x0504);
    ck_assert_uint_eq(got[3], 0x0302);
    ck_assert_uint_eq(got[5], 0x0b0a);
    OK(weft_checkpoint_read(checkpoint, 0, offset, sizes, got));
    ck_assert_uint_eq(got[0], 0x0302);
    ck_assert_uint_eq(got[1], 0x0706);
    OK(open_npy("{'descr': '<c16', 'fortran_order': False, 'shape': (), }", 16));
    OK(weft_checkpoint_tensor_get(checkpoint, 0, &info));
    ck_assert_str_eq(info.dtype_name, "C128");
    ck_assert_int_eq(info.dims, 0);
}

TEST(wrong_arrays_are_refused)
{
    REFUSE("{'descr': '>u2', 'fortran_order': False, 'shape': (1,), }", 2, WEFT_ERR_UNSUPPORTED,
           "big endian");
    REFUSE("{'descr': [('a','<u2')], 'fortran_order': False, 'shape': (1,), }", 2,
           WEFT_ERR_UNSUPPORTED, "records");
    REFUSE("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 2, WEFT_ERR_PARSE,
           "does not read the dtype |O");
    REFUSE("{'descr': '<u2', 'fortran_order': 1, 'shape': (1,), }", 2, WEFT_ERR_PARSE,
           "expected True or False");
    REFUSE("{'descr': '<u2', 'fortran_order': False, 'shape': (-1,), }", 2, WEFT_ERR_PARSE,
           "expected a size");
    REFUSE("{'descr': '<u2', 'fortran_order': False, 'shape': (1 2), }", 2, WEFT_ERR_PARSE,
           "expected ',' or ')'");
    REFUSE("{'descr': '<u2', 'fortran_order': False}", 2, WEFT_ERR_PARSE, "is missing");
    REFUSE("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), 'x': 1}", 4, WEFT_ERR_PARSE,
           "key x is not known");
    REFUSE("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", 5, WEFT_ERR_PARSE,
           "does not give the 5 bytes");
    REFUSE("{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775807,4), }", 5,
           WEFT_ERR_PARSE, "does not give");
    REFUSE("{'descr': '<u2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 2,
           WEFT_ERR_UNSUPPORTED, "more than 8 dimensions");
    REFUSE("{'descr", 0, WEFT_ERR_PARSE, "expected the end of a key");
    REFUSED(weft_checkpoint_open(folder_write(&folder, "y.npy", "\x93NUMPY\x01\0\xff\xffxxxx", 14),
                                 &checkpoint),
            WEFT_ERR_PARSE, "the header has 65535 bytes");
    REFUSED(weft_checkpoint_open(folder_write(&folder, "y.npy", "\x93NUMPY\x09\0\0\0xxxx", 14),
                                 &checkpoint),
            WEFT_ERR_PARSE, "version 1, 2 or 3");
}

TEST(an_array_is_written_as_numpy_does)
{
    static const char want[] = "\x93NUMPY\x01\0v\0"
                               "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    const int64_t shape[] = {2, 3};
    weft_checkpoint_entry entries[] = {{"t", "F32", 2, shape, NULL}, {"u", "F32", 2, shape, NULL}};
    weft_checkpoint_writer *writer = NULL;
    float values[] = {1, 2, 3, 4, 5, 6}, got[6];
    size_t size;
    char *bytes;

    REFUSED(weft_checkpoint_writer_create(folder_path(&folder, "w.npy"), 2, entries,
                                          sizeof *entries, NULL, &writer),
            WEFT_ERR_INVALID, "a .npy file has one tensor");
    OK(weft_checkpoint_writer_create(folder_path(&folder, "w.npy"), 1, entries, sizeof *entries,
                                     NULL, &writer));
    OK(weft_checkpoint_writer_write(writer, 0, NULL, NULL, values));
    OK(weft_checkpoint_writer_commit(writer));
    REFUSED(weft_checkpoint_writer_commit(writer), WEFT_ERR_INVALID, "was committed before");
    weft_checkpoint_writer_release(&writer);
    bytes = read_whole(folder_path(&folder, "w.npy"), &size);
    ck_assert_uint_eq(size, 128 + 24);
    ck_assert_int_eq(memcmp(bytes, want, sizeof want - 1), 0);
    ck_assert_int_eq(bytes[127], '\n');
    free(bytes);
    weft_checkpoint_close(&checkpoint);
    OK(weft_checkpoint_open(folder_path(&folder, "w.npy"), &checkpoint));
    OK(weft_checkpoint_read(checkpoint, 0, NULL, NULL, got));
    ck_assert_int_eq(memcmp(got, values, sizeof got), 0);
    weft_checkpoint_close(&checkpoint);
}
