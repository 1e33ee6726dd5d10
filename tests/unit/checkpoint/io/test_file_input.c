#include "checkpoint/file.h"
#include "support/checkpoints.h"
#include "support/suite.h"

TEST(names_stay_in_the_folder)
{
    ck_assert(wf_file_name_is_safe("model.safetensors"));
    ck_assert(wf_file_name_is_safe("..model"));
    ck_assert(!wf_file_name_is_safe(""));
    ck_assert(!wf_file_name_is_safe("."));
    ck_assert(!wf_file_name_is_safe(".."));
    ck_assert(!wf_file_name_is_safe("a/b"));
    ck_assert(!wf_file_name_is_safe("/a"));
}

TEST(more_files_than_descriptors_are_read)
{
    struct wf_inputs inputs;
    char name[32], got[8];
    uint32_t index, again;
    uint32_t most = 0;

    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "f%d", i);
        folder_write(&folder, name, name, strlen(name));
    }
    OK(wf_inputs_begin(&inputs, folder.path));
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "f%d", i);
        OK(wf_inputs_add(&inputs, name, &index));
        OK(wf_inputs_add(&inputs, name, &again));
        ck_assert_uint_eq(index, again);
    }
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 500; i++) {
            snprintf(name, sizeof name, "f%u", i);
            OK(wf_inputs_read(&inputs, i, 0, got, strlen(name)));
            ck_assert_int_eq(memcmp(got, name, strlen(name)), 0);
            if (inputs.open > most) most = inputs.open;
        }
    ck_assert_uint_le(most, 200);
    REFUSED(wf_inputs_read(&inputs, 7, 0, got, 8), WEFT_ERR_SYSTEM,
            "f7 ends at byte 2, but had 2 bytes when it was opened");
    wf_inputs_end(&inputs);
}

TEST(a_file_that_is_replaced_is_noticed)
{
    struct wf_inputs inputs;
    uint32_t index;
    char got[4];

    folder_write(&folder, "r", "abcd", 4);
    OK(wf_inputs_begin(&inputs, folder.path));
    OK(wf_inputs_add(&inputs, "r", &index));
    folder_write(&folder, "other", "abcd", 4);
    ck_assert_int_eq(rename(folder_path(&folder, "other"), folder_path(&folder, "r")), 0);
    REFUSED(wf_inputs_read(&inputs, index, 0, got, 4), WEFT_ERR_SYSTEM, "was replaced or modified");
    ck_assert_int_eq(remove(folder_path(&folder, "r")), 0);
    REFUSED(wf_inputs_read(&inputs, index, 0, got, 4), WEFT_ERR_NOT_FOUND, "this file is missing");
    wf_inputs_end(&inputs);
}
