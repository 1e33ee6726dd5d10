#include "plugin/plugin.h"
#include "support/suite.h"

TEST(the_host_tells_its_size_and_version)
{
    ck_assert_uint_eq(wf_host.struct_size, sizeof(weft_host));
    ck_assert_uint_eq(wf_host.abi_major, WEFT_ABI_MAJOR);
    ck_assert_uint_eq(wf_host.abi_minor, WEFT_ABI_MINOR);
}

TEST(errors_carry_the_vendor_s_words_and_code)
{
    int64_t code = 0;

    wf_host.set_error(WEFT_ERR_DEVICE, "NCCL", 5, "unhandled cuda error");
    ck_assert_str_eq(weft_last_error(), "unhandled cuda error");
    ck_assert_str_eq(weft_last_error_vendor(&code), "NCCL");
    ck_assert_int_eq(code, 5);
    wf_host.set_error(WEFT_ERR_TIMEOUT, NULL, 0, NULL);
    ck_assert_str_eq(weft_last_error(), weft_status_text(WEFT_ERR_TIMEOUT));
    ck_assert_ptr_null(weft_last_error_vendor(NULL));
}

TEST(memory_is_counted_and_may_run_out)
{
    int64_t live = wf_mem_live();
    void *block = wf_host.allocate(100);

    ck_assert_ptr_nonnull(block);
    ck_assert_int_eq(wf_mem_live(), live + 1);
    wf_host.release(block);
    wf_host.release(NULL);
    ck_assert_int_eq(wf_mem_live(), live);
    wf_mem_fail_at(1);
    ck_assert_ptr_null(wf_host.allocate(100));
    wf_mem_fail_at(0);
}

TEST(knobs_are_given_and_nothing_else_of_the_environment)
{
    setenv("WEFT_NCCL_LIB", "/opt/libnccl.so.2", 1);
    ck_assert_str_eq(wf_host.knob("WEFT_NCCL_LIB"), "/opt/libnccl.so.2");
    unsetenv("WEFT_NCCL_LIB");
    ck_assert_ptr_null(wf_host.knob("WEFT_NCCL_LIB"));
    ck_assert_ptr_null(wf_host.knob("PATH"));
    ck_assert_ptr_null(wf_host.knob(NULL));
}

TEST(logging_survives_odd_arguments)
{
    int level = wf_log_level();

    wf_log_set_level(WF_LOG_ERROR);
    wf_host.log(99, "%s%n is not a format");
    wf_host.log(WF_LOG_DEBUG, NULL);
    wf_log_set_level(level);
}
