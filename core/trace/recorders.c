/* recorders.c - the list of recorders on this host, and the public functions of recorder.h. */
#include "read.h"

#include "folder.h"
#include "weft/status.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDERS_MOST 4096

struct weft_recorders {
    char folders[WF_FOLDERS][WF_FOLDER_PATH];
    size_t folder_count;
    weft_recorder **recorders;
    char **problems;
    size_t count, problem_count;
};

/* ---- the list ---- */

/* Make room for one more pointer in *LIST, which has COUNT.  Its room is a power of two. */
static weft_status grow(void *list, size_t count)
{
    void **pointers;

    if (count != 0 && (count & (count - 1)) != 0) return WEFT_OK;
    memcpy(&pointers, list, sizeof pointers);
    pointers = wf_realloc(pointers, (count > 0 ? 2 * count : 1) * sizeof *pointers);
    if (pointers == NULL) return wf_fail_memory(2 * count * sizeof *pointers);
    memcpy(list, &pointers, sizeof pointers);
    return WEFT_OK;
}

/* Note the last error as the reason why a file is left out. */
static weft_status note(weft_recorders *recorders)
{
    char *text;

    WF_TRY(grow(&recorders->problems, recorders->problem_count));
    text = wf_strdup(weft_last_error());
    if (text == NULL) return wf_fail_memory(strlen(weft_last_error()) + 1);
    recorders->problems[recorders->problem_count++] = text;
    return WEFT_OK;
}

/* Add the recorder NAME of FOLDER.  Only missing memory is an error. */
static weft_status add(weft_recorders *recorders, int folder, const char *folder_path,
                       const char *name)
{
    char path[WF_FOLDER_PATH + 260];
    weft_recorder *recorder = NULL;
    weft_status status;

    WF_TRY(grow(&recorders->recorders, recorders->count));
    snprintf(path, sizeof path, "%s/%s", folder_path, name);
    status = wf_recorder_open(folder, name, path, &recorder);
    if (status == WEFT_OK) {
        recorder->is_listed = true;
        recorders->recorders[recorders->count++] = recorder;
    }
    /* Its owner has just ended, or has just begun. */
    if (status == WEFT_OK || status == WEFT_ERR_NOT_FOUND || status == WEFT_IN_PROGRESS)
        return WEFT_OK;
    return status == WEFT_ERR_NO_MEMORY ? status : note(recorders);
}

/* Add the recorders in the folder PATH; false in *IS_WHOLE: there is no room for one of them. */
static weft_status search(weft_recorders *recorders, const char *path, bool *is_whole)
{
    weft_status status;
    DIR *entries;
    int folder;

    status = wf_folder_enter(path, &folder);
    if (status == WEFT_ERR_NOT_FOUND) return WEFT_OK;
    if (status != WEFT_OK) return note(recorders);
    entries = fdopendir(folder);
    if (entries == NULL) {
        close(folder);
        return wf_fail_memory(0);
    }
    for (struct dirent *entry = readdir(entries); entry != NULL && status == WEFT_OK && *is_whole;
         entry = readdir(entries)) {
        if (!wf_folder_is_recorder(entry->d_name)) continue;
        *is_whole = recorders->count < RECORDERS_MOST;
        if (*is_whole) status = add(recorders, folder, path, entry->d_name);
    }
    closedir(entries);
    return status;
}

static int by_rank(const void *a, const void *b)
{
    const weft_recorder *one = *(weft_recorder *const *)a, *other = *(weft_recorder *const *)b;

    if (one->job != other->job) return one->job < other->job ? -1 : 1;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return strcmp(one->path, other->path);
}

weft_status weft_recorders_create(weft_recorders **out)
{
    weft_recorders *recorders;
    weft_status status = WEFT_OK;
    bool is_whole = true;

    if (out == NULL) return wf_fail_null("weft_recorders_create", "out");
    recorders = wf_calloc(1, sizeof *recorders);
    if (recorders == NULL) return wf_fail_memory(sizeof *recorders);
    recorders->folder_count = wf_folder_list(recorders->folders);
    for (size_t i = 0; i < recorders->folder_count && status == WEFT_OK && is_whole; i++)
        status = search(recorders, recorders->folders[i], &is_whole);
    if (status == WEFT_OK && !is_whole) {
        (void)wf_fail(WEFT_ERR_UNSUPPORTED,
                      "there are more than %d recorders; the others are left out", RECORDERS_MOST);
        status = note(recorders);
    }
    if (status != WEFT_OK) {
        weft_recorders_release(&recorders);
        return status;
    }
    if (recorders->count > 0)
        qsort(recorders->recorders, recorders->count, sizeof *recorders->recorders, by_rank);
    *out = recorders;
    return WEFT_OK;
}

void weft_recorders_release(weft_recorders **held)
{
    weft_recorders *recorders;

    if (held == NULL || *held == NULL) return;
    recorders = *held;
    *held = NULL;
    for (size_t i = 0; i < recorders->count; i++)
        wf_recorder_free(recorders->recorders[i]);
    for (size_t i = 0; i < recorders->problem_count; i++)
        wf_free(recorders->problems[i]);
    wf_free(recorders->recorders);
    wf_free(recorders->problems);
    wf_free(recorders);
}

size_t weft_recorders_count(const weft_recorders *recorders)
{
    return recorders != NULL ? recorders->count : 0;
}

weft_recorder *weft_recorders_at(const weft_recorders *recorders, size_t index)
{
    return recorders != NULL && index < recorders->count ? recorders->recorders[index] : NULL;
}

size_t weft_recorders_problem_count(const weft_recorders *recorders)
{
    return recorders != NULL ? recorders->problem_count : 0;
}

const char *weft_recorders_problem(const weft_recorders *recorders, size_t index)
{
    return recorders != NULL && index < recorders->problem_count ? recorders->problems[index]
                                                                 : NULL;
}

size_t weft_recorders_folder_count(const weft_recorders *recorders)
{
    return recorders != NULL ? recorders->folder_count : 0;
}

const char *weft_recorders_folder(const weft_recorders *recorders, size_t index)
{
    return recorders != NULL && index < recorders->folder_count ? recorders->folders[index] : NULL;
}

/* ---- one recorder ---- */

weft_status weft_recorder_open(const char *path, weft_recorder **out)
{
    weft_status status;

    if (path == NULL || out == NULL)
        return wf_fail_null("weft_recorder_open", path == NULL ? "path" : "out");
    if (path[0] == '\0')
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "weft_recorder_open: path is empty; it must name a file");
    status = wf_recorder_open(AT_FDCWD, path, path, out);
    if (status != WEFT_IN_PROGRESS) return status;
    return wf_fail(WEFT_ERR_PARSE, "%s is not a recorder of weft: it is empty", path);
}

void weft_recorder_close(weft_recorder **recorder)
{
    if (recorder == NULL || *recorder == NULL) return;
    if ((*recorder)->is_listed)
        wf_log(WF_LOG_WARNING,
               "weft_recorder_close: weft_recorders_release closes the recorders of its list");
    else
        wf_recorder_free(*recorder);
    *recorder = NULL;
}

weft_status weft_recorder_refresh(weft_recorder *recorder)
{
    weft_status status;

    if (recorder == NULL) return wf_fail_null("weft_recorder_refresh", "recorder");
    status = wf_recorder_load(recorder);
    if (status != WEFT_IN_PROGRESS) return status;
    return wf_fail(WEFT_ERR_PARSE, "%s is damaged: another process has emptied it", recorder->path);
}

weft_status weft_recorder_get(const weft_recorder *recorder, weft_recorder_info *out)
{
    weft_recorder_info info;
    weft_status status;

    if (recorder == NULL || out == NULL)
        return wf_fail_null("weft_recorder_get", recorder == NULL ? "recorder" : "out");
    info = (weft_recorder_info){
        .path = recorder->path,
        .job = recorder->job,
        .rank = recorder->rank,
        .size = recorder->size,
        .pid = recorder->pid,
        .alive = recorder->alive,
        .stopped = recorder->stopped,
        .removed = recorder->removed,
        .host = recorder->host,
        .program = recorder->program,
        .backend = recorder->backend,
        .oldest = recorder->newest > recorder->record_count
                      ? recorder->newest - recorder->record_count + 1
                      : recorder->newest > 0,
        .newest = recorder->newest,
        .begun_ns = recorder->begun_ns,
        .read_ns = recorder->read_ns,
    };
    status = wf_info_write("weft_recorder_info", &info, sizeof info, out);
    return wf_fail_named(status, "weft_recorder_get");
}

const weft_record *weft_recorder_record(const weft_recorder *recorder, uint64_t id)
{
    const weft_record *record;

    if (recorder == NULL || id == 0) return NULL;
    record = &recorder->records[id & (recorder->record_count - 1)];
    return record->id == id ? record : NULL;
}

const char *weft_recorder_text(const weft_recorder *recorder, uint32_t text)
{
    if (recorder == NULL) return NULL;
    return text < recorder->text_bytes ? recorder->texts + text : "";
}

weft_status weft_recorder_print(const weft_recorder *recorder, const weft_record *record,
                                char *text, size_t size, size_t *needed)
{
    uint32_t along;

    if (recorder == NULL || record == NULL)
        return wf_fail_null("weft_recorder_print", recorder == NULL ? "recorder" : "record");
    along = record->axes != 0 ? record->axes : record->comm_name;
    return wf_record_print("weft_recorder_print", record, weft_recorder_text(recorder, along), text,
                           size, needed);
}

size_t weft_recorder_comm_count(const weft_recorder *recorder)
{
    return recorder != NULL ? recorder->comm_count : 0;
}

weft_status weft_recorder_comm_get(const weft_recorder *recorder, size_t index,
                                   weft_recorder_comm_info *out)
{
    const struct wf_segment_comm *comm;
    weft_recorder_comm_info info;
    weft_status status;

    if (recorder == NULL || out == NULL)
        return wf_fail_null("weft_recorder_comm_get", recorder == NULL ? "recorder" : "out");
    if (index >= recorder->comm_count)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_recorder_comm_get: index is %zu, but rank %d has %zu communicator%s",
                       index, recorder->rank, recorder->comm_count,
                       WF_PLURAL(recorder->comm_count));
    comm = &recorder->comms[index];
    info = (weft_recorder_comm_info){
        .number = comm->number,
        .name = weft_recorder_text(recorder, comm->name),
        .ranks = weft_recorder_text(recorder, comm->ranks),
        .rank = comm->rank,
        .size = comm->size,
        .failed = comm->failed,
        .carrier = weft_recorder_text(recorder, comm->carrier),
    };
    status = wf_info_write("weft_recorder_comm_info", &info, sizeof info, out);
    return wf_fail_named(status, "weft_recorder_comm_get");
}
