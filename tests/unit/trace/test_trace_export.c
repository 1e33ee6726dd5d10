#include "support/suite.h"
#include "support/trace.h"
#include "trace/export/export.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 20000

static struct wf_export *begin(struct wf_trace *trace)
{
    wf_export_begin(trace, folder_path(&test_runtime, "t"), &test_identity);
    return trace->export;
}

/* Each operation has texts and a prediction of its own. */
TEST(tables_of_a_long_run_stay_small)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_export *export = begin(trace);
    uint32_t restarts = 0;
    int64_t blocks;

    ck_assert_ptr_nonnull(export);
    wf_trace_finish(trace, test_submit(trace, 1, 0));
    blocks = wf_mem_live();
    for (uint64_t i = 1; i <= STEPS; i++) {
        weft_record record = {.plan = i * 7919, .step = 1, .sent = i, .peer = -1};
        uint32_t before = export->text_count;

        record.step_kind = WEFT_NO_STEP_KIND;
        wf_export_predict(export, record.plan, 1, i);
        wf_trace_finish(trace, wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED, &record));
        ck_assert_uint_gt(export->text_count, 0);
        restarts += export->text_count < before;
        ck_assert_uint_le(export->text_count, WF_TEXTS_MOST);
        ck_assert_uint_le(export->prediction_count, WF_PREDICTIONS_MOST);
    }
    ck_assert_uint_ge(restarts, STEPS / WF_TEXTS_MOST);
    ck_assert_uint_gt(export->prediction_count, 0);
    ck_assert_int_eq(wf_mem_live(), blocks);
    wf_export_end(trace);
    test_trace_end(trace);
}

/* The next numbers are another rank's. */
TEST(a_rank_has_no_more_tracks_than_numbers)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_export *export = begin(trace);

    ck_assert_ptr_nonnull(export);
    ck_assert_uint_eq(export->track_base, UINT64_C(4) << 24);
    export->track_count = WF_TRACKS - 2;
    ck_assert_ptr_nonnull(wf_device_lane(export, 1));
    ck_assert_ptr_nonnull(wf_lane_stream(export, 2));
    ck_assert_ptr_null(wf_device_lane(export, 3));
    ck_assert_ptr_null(wf_lane_stream(export, 4));
    ck_assert_ptr_nonnull(wf_device_lane(export, 1));
    ck_assert_uint_eq(export->track_count, WF_TRACKS);
    wf_export_end(trace);
    test_trace_end(trace);
}

/* Communicators of one split have one number: without their ranks, arrows would join strangers. */
TEST(a_communicator_that_is_not_listed_has_no_arrows)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_export *export = begin(trace);
    weft_record record = {
        .comm = 9, .sequence = 1, .operation = WEFT_RECORD_ALL_REDUCE, .peer = -1};

    ck_assert_ptr_nonnull(export);
    wf_trace_add_comm(trace, 9, 0, (int32_t[]){3, 4}, 2, 0);
    ck_assert_uint_ne(wf_flow_of(export, &record, wf_shape_find(export, &record)), 0);
    record.comm = 10;
    ck_assert_uint_eq(wf_flow_of(export, &record, wf_shape_find(export, &record)), 0);
    wf_export_end(trace);
    test_trace_end(trace);
}

TEST(a_fork_does_not_keep_the_file)
{
    struct wf_trace *trace = test_trace_begin(64);
    int status;
    pid_t child;

    ck_assert_ptr_nonnull(begin(trace));
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(20); /* should the test fail */
        pause();
        _exit(0);
    }
    wf_export_end(trace);
    ck_assert_ptr_nonnull(begin(trace)); /* not "another context writes it" */
    wf_export_end(trace);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    test_trace_end(trace);
}

TEST(a_rank_without_memory_has_no_trace_and_keeps_its_files)
{
    int input = open("/dev/null", O_RDONLY);
    struct wf_trace *trace = test_trace_begin(64);
    bool made = false;

    ck_assert_int_ge(input, 0);
    ck_assert_int_eq(dup2(input, STDIN_FILENO), STDIN_FILENO);
    for (uint64_t i = 1; !made; i++) {
        wf_mem_fail_at(i);
        made = begin(trace) != NULL;
        wf_mem_fail_at(0);
        ck_assert_msg(fcntl(STDIN_FILENO, F_GETFD) >= 0, "allocation %llu closes standard input",
                      (unsigned long long)i);
    }
    wf_export_end(trace);
    test_trace_end(trace);
    close(input);
}
