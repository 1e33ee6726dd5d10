/* file.c - the records of one recorder, which may be a copy from another host. */
#include "status/status.h"

#include <inttypes.h>
#include <string.h>

enum { LINE_MOST = 512 }; /* bytes of a record in words */

struct recording {
    const weft_recorder *recorder;
    weft_recorder_info info;
};

static void add_rank(struct wf_text *out, const struct recording *recording)
{
    const weft_recorder_info *info = &recording->info;

    wf_text_add(out, "rank %d of %d, job %016" PRIx64 ": %s, process %d on %s, backend %s, %s\n",
                info->rank, info->size, info->job, info->program, info->pid, info->host,
                info->backend, info->alive ? "alive" : "ended");
    for (size_t i = 0; i < weft_recorder_comm_count(recording->recorder); i++) {
        weft_recorder_comm_info comm = {.struct_size = sizeof comm};

        if (weft_recorder_comm_get(recording->recorder, i, &comm) != WEFT_OK) continue;
        wf_text_add(out, "communicator %s of ranks %s%s%s\n", comm.name, comm.ranks,
                    comm.failed != WEFT_OK ? ", failed: WEFT_" : "",
                    comm.failed != WEFT_OK ? weft_status_name(comm.failed) : "");
    }
}

static weft_status add_record(struct wf_text *out, const struct recording *recording,
                              const weft_record *record)
{
    const char *label = weft_recorder_text(recording->recorder, record->label);
    char line[LINE_MOST];
    size_t needed;

    WF_TRY(weft_recorder_print(recording->recorder, record, line, sizeof line, &needed));
    wf_text_add(out, "%6" PRIu64 "  %s", record->id, line);
    if (record->sequence > 0) wf_text_add(out, " #%" PRIu64, record->sequence);
    if (label[0] != '\0') wf_text_add(out, " (%s)", label);
    wf_text_add(out, ", %s ", record->state == WEFT_RECORD_FINISHED ? "finished" : "submitted");
    wf_text_time(out, status_since(recording->info.read_ns, record->state == WEFT_RECORD_FINISHED
                                                                ? record->finished
                                                                : record->submitted));
    wf_text_add(out, " ago%s%s\n", record->state == WEFT_RECORD_FAILED ? ", failed: WEFT_" : "",
                record->state == WEFT_RECORD_FAILED ? weft_status_name(record->status) : "");
    return WEFT_OK;
}

static weft_status add_text(struct wf_text *out, const struct recording *recording)
{
    add_rank(out, recording);
    for (uint64_t id = recording->info.oldest; id != 0 && id <= recording->info.newest; id++) {
        const weft_record *record = weft_recorder_record(recording->recorder, id);

        if (record != NULL) WF_TRY(add_record(out, recording, record));
    }
    if (recording->info.newest == 0) wf_text_add(out, "no operations\n");
    return WEFT_OK;
}

static void add_json(struct wf_text *out, const struct recording *recording)
{
    const weft_recorder_info *info = &recording->info;
    struct wf_json json = {.out = out};
    char job[24];

    snprintf(job, sizeof job, "%016" PRIx64, info->job);
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "file", info->path);
    wf_json_string(&json, "job", job);
    wf_json_string(&json, "program", info->program);
    wf_json_string(&json, "backend", info->backend);
    wf_json_string(&json, "host", info->host);
    wf_json_int(&json, "rank", info->rank);
    wf_json_int(&json, "size", info->size);
    wf_json_int(&json, "pid", info->pid);
    wf_json_bool(&json, "alive", info->alive);
    wf_json_begin(&json, "records", '[');
    for (uint64_t id = info->oldest; id != 0 && id <= info->newest; id++) {
        const weft_record *record = weft_recorder_record(recording->recorder, id);

        if (record != NULL)
            status_add_record(&json, NULL, recording->recorder, info->read_ns, record);
    }
    wf_json_end(&json, ']');
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
}

int status_print_file(const struct cli_command *command, const char *path, bool as_json)
{
    struct recording recording = {.info.struct_size = sizeof recording.info};
    struct wf_text text = {0};
    weft_recorder *recorder;
    weft_status status = weft_recorder_open(path, &recorder);
    int code;

    if (status != WEFT_OK) return cli_fail(command, status);
    recording.recorder = recorder;
    status = weft_recorder_get(recorder, &recording.info);
    if (status == WEFT_OK && as_json)
        add_json(&text, &recording);
    else if (status == WEFT_OK)
        status = add_text(&text, &recording);
    code = status == WEFT_OK ? cli_print(command, stdout, &text) : cli_fail(command, status);
    if (status != WEFT_OK) wf_text_free(&text);
    weft_recorder_close(&recorder);
    return code;
}
