/* report.c - see report.h. */
#include "reshard/report.h"

#include "common/progress.h"

#include <inttypes.h>
#include <string.h>

#define EVENT_NS UINT64_C(1000000000)
#define ENOUGH   (UINT64_C(64) << 20) /* bytes */

/* ---- events ---- */

static void begin_event(struct wf_json *json, const struct reshard_report *report,
                        const char *event)
{
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "event", event);
    wf_json_string(json, "path", report->path);
}

static void add_info(struct wf_json *json, const weft_reshard_info *info)
{
    wf_json_uint(json, "tensors", info->tensors);
    wf_json_uint(json, "read", info->read);
    wf_json_uint(json, "written", info->written);
    wf_json_uint(json, "memory", info->memory);
    wf_json_uint(json, "steps", info->steps);
    wf_json_int(json, "jobs", info->jobs);
}

static int end_event(const struct reshard_report *report, struct wf_json *json)
{
    int exit_code;

    wf_json_end(json, '}');
    wf_text_char(json->out, '\n');
    exit_code = cli_print(report->command, stdout, json->out);
    fflush(stdout);
    return exit_code;
}

/* ---- the plan ---- */

static weft_status add_files(struct wf_json *json, struct wf_text *text, weft_reshard *plan)
{
    weft_reshard_file_info file = {.struct_size = sizeof file};
    weft_status status = WEFT_OK;

    for (size_t i = 0; status == WEFT_OK; i++) {
        status = weft_reshard_file_get(plan, i, &file);
        if (status != WEFT_OK) break;
        if (json != NULL) {
            wf_json_begin(json, NULL, '{');
            wf_json_string(json, "path", file.path);
            wf_json_uint(json, "read", file.read);
            wf_json_uint(json, "written", file.written);
            wf_json_end(json, '}');
        } else {
            wf_text_add(text, "  %-6s", file.written > 0 ? "write" : "read");
            wf_text_bytes(text, file.written > 0 ? file.written : file.read);
            wf_text_add(text, "  %s\n", file.path);
        }
    }
    return status == WEFT_ERR_NOT_FOUND ? WEFT_OK : status;
}

int reshard_report_plan(const struct reshard_report *report, weft_reshard *plan,
                        const weft_reshard_info *info, uint64_t predicted_ns)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};
    weft_status status;

    if (report->as_json) {
        begin_event(&json, report, "plan");
        add_info(&json, info);
        wf_json_uint(&json, "predicted_ns", predicted_ns);
        wf_json_begin(&json, "files", '[');
        status = add_files(&json, NULL, plan);
        wf_json_end(&json, ']');
        if (status == WEFT_OK) return end_event(report, &json);
        wf_text_free(&text);
        return cli_fail(report->command, status);
    }
    wf_text_add(&text, "%s: %zu tensor%s, ", report->path, info->tensors, WF_PLURAL(info->tensors));
    wf_text_bytes(&text, info->read);
    wf_text_add(&text, " to read, ");
    wf_text_bytes(&text, info->written);
    wf_text_add(&text, " to write, %d job%s, at most ", info->jobs, WF_PLURAL(info->jobs));
    wf_text_bytes(&text, info->memory);
    wf_text_add(&text, " of buffers, about ");
    wf_text_time(&text, predicted_ns);
    wf_text_char(&text, '\n');
    status = add_files(NULL, &text, plan);
    if (status == WEFT_OK) return cli_print(report->command, stdout, &text);
    wf_text_free(&text);
    return cli_fail(report->command, status);
}

/* ---- a run ---- */

void reshard_report_begin(struct reshard_report *report, const weft_reshard_info *info)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};

    report->begun_ns = report->told_ns = wf_now_ns();
    if (!report->as_json || report->is_silent) return;
    begin_event(&json, report, "begin");
    add_info(&json, info);
    end_event(report, &json);
}

/* True if a second has passed since the last time, or since the begin. */
static bool is_due(struct reshard_report *report)
{
    uint64_t now = wf_now_ns();

    if (now - report->told_ns < EVENT_NS) return false;
    report->told_ns = now;
    return true;
}

/* DONE bytes are enough to tell how long the rest will take. */
static bool tells_rest(uint64_t done, uint64_t total)
{
    return done >= (total / 100 < ENOUGH ? total / 100 : ENOUGH);
}

void reshard_report_progress(struct reshard_report *report, uint64_t done, uint64_t resumed,
                             uint64_t total)
{
    double seconds = (double)(wf_now_ns() - report->begun_ns) / 1e9;
    double rate = seconds > 0 && done > resumed ? (double)(done - resumed) / seconds : 0;
    double left = rate > 0 ? (double)(total - done) / rate : 0;
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};
    char line[160], time_left[32] = "";

    if (report->is_silent) return;
    if (rate > 0 && tells_rest(done, total))
        snprintf(time_left, sizeof time_left, "  %.0f s left", left);
    snprintf(line, sizeof line, "%3.0f %%  %.2f of %.2f GB  %.2f GB/s%s",
             total > 0 ? 100.0 * (double)done / (double)total : 100.0, (double)done / 1e9,
             (double)total / 1e9, rate / 1e9, time_left);
    cli_progress("%s", line);
    if (report->as_json && is_due(report)) {
        begin_event(&json, report, "progress");
        wf_json_uint(&json, "done", done);
        wf_json_uint(&json, "total", total);
        wf_json_uint(&json, "bytes_per_s", (uint64_t)rate);
        wf_json_uint(&json, "left_ns", (uint64_t)(left * 1e9));
        end_event(report, &json);
    }
}

int reshard_report_done(const struct reshard_report *report, const weft_reshard_info *info,
                        uint64_t nanoseconds)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};

    if (report->is_silent) return CLI_OK;
    if (report->as_json) {
        begin_event(&json, report, "done");
        add_info(&json, info);
        wf_json_uint(&json, "resumed", info->resumed);
        wf_json_uint(&json, "time_ns", nanoseconds);
        return end_event(report, &json);
    }
    wf_text_add(&text, "%s: %zu tensor%s, ", report->path, info->tensors, WF_PLURAL(info->tensors));
    wf_text_bytes(&text, info->read);
    wf_text_add(&text, " read, ");
    wf_text_bytes(&text, info->written);
    wf_text_add(&text, " written in ");
    wf_text_time(&text, nanoseconds);
    if (info->resumed > 0) {
        wf_text_add(&text, "; of these, an earlier run had written ");
        wf_text_bytes(&text, info->resumed);
    }
    wf_text_char(&text, '\n');
    return cli_print(report->command, stdout, &text);
}

void reshard_report_failed(const struct reshard_report *report, const weft_reshard_info *info,
                           weft_status status, bool interrupted)
{
    struct wf_text text = {0};
    struct wf_json json = {.out = &text};

    if (report->as_json && !report->is_silent) {
        begin_event(&json, report, "failed");
        wf_json_string(&json, "status", weft_status_name(status));
        wf_json_string(&json, "error", interrupted ? "interrupted" : weft_last_error());
        wf_json_uint(&json, "kept", info->kept);
        wf_json_uint(&json, "steps", info->steps);
        end_event(report, &json);
    }
}
