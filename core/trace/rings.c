/* rings.c - the list of rings on this host, and the public functions of ring.h. */
#include "read.h"

#include "folder.h"
#include "weft/status.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RINGS_MOST 4096

struct weft_rings {
    char folders[WF_FOLDERS][WF_FOLDER_PATH];
    size_t folder_count;
    weft_ring **rings;
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
static weft_status note(weft_rings *rings)
{
    char *text;

    WF_TRY(grow(&rings->problems, rings->problem_count));
    text = wf_strdup(weft_last_error());
    if (text == NULL) return wf_fail_memory(strlen(weft_last_error()) + 1);
    rings->problems[rings->problem_count++] = text;
    return WEFT_OK;
}

/* Add the ring NAME of FOLDER.  Only missing memory is an error. */
static weft_status add(weft_rings *rings, int folder, const char *folder_path, const char *name)
{
    char path[WF_FOLDER_PATH + 260];
    weft_ring *ring = NULL;
    weft_status status;

    WF_TRY(grow(&rings->rings, rings->count));
    snprintf(path, sizeof path, "%s/%s", folder_path, name);
    status = wf_ring_open(folder, name, path, &ring);
    if (status == WEFT_OK) {
        ring->is_listed = true;
        rings->rings[rings->count++] = ring;
    }
    /* Its owner has just ended, or has just begun. */
    if (status == WEFT_OK || status == WEFT_ERR_NOT_FOUND || status == WEFT_IN_PROGRESS)
        return WEFT_OK;
    return status == WEFT_ERR_NO_MEMORY ? status : note(rings);
}

/* Add the rings in the folder PATH; false in *IS_WHOLE: there is no room for one of them. */
static weft_status search(weft_rings *rings, const char *path, bool *is_whole)
{
    weft_status status;
    DIR *entries;
    int folder;

    status = wf_folder_enter(path, &folder);
    if (status == WEFT_ERR_NOT_FOUND) return WEFT_OK;
    if (status != WEFT_OK) return note(rings);
    entries = fdopendir(folder);
    if (entries == NULL) {
        close(folder);
        return wf_fail_memory(0);
    }
    for (struct dirent *entry = readdir(entries); entry != NULL && status == WEFT_OK && *is_whole;
         entry = readdir(entries)) {
        if (!wf_folder_is_ring(entry->d_name)) continue;
        *is_whole = rings->count < RINGS_MOST;
        if (*is_whole) status = add(rings, folder, path, entry->d_name);
    }
    closedir(entries);
    return status;
}

static int by_rank(const void *a, const void *b)
{
    const weft_ring *one = *(weft_ring *const *)a, *other = *(weft_ring *const *)b;

    if (one->job != other->job) return one->job < other->job ? -1 : 1;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return strcmp(one->path, other->path);
}

weft_status weft_rings_create(weft_rings **out)
{
    weft_rings *rings;
    weft_status status = WEFT_OK;
    bool is_whole = true;

    if (out == NULL) return wf_fail_null("weft_rings_create", "out");
    rings = wf_calloc(1, sizeof *rings);
    if (rings == NULL) return wf_fail_memory(sizeof *rings);
    rings->folder_count = wf_folder_list(rings->folders);
    for (size_t i = 0; i < rings->folder_count && status == WEFT_OK && is_whole; i++)
        status = search(rings, rings->folders[i], &is_whole);
    if (status == WEFT_OK && !is_whole) {
        (void)wf_fail(WEFT_ERR_UNSUPPORTED, "there are more than %d rings; the others are left out",
                      RINGS_MOST);
        status = note(rings);
    }
    if (status != WEFT_OK) {
        weft_rings_release(&rings);
        return status;
    }
    if (rings->count > 0) qsort(rings->rings, rings->count, sizeof *rings->rings, by_rank);
    *out = rings;
    return WEFT_OK;
}

void weft_rings_release(weft_rings **held)
{
    weft_rings *rings;

    if (held == NULL || *held == NULL) return;
    rings = *held;
    *held = NULL;
    for (size_t i = 0; i < rings->count; i++)
        wf_ring_free(rings->rings[i]);
    for (size_t i = 0; i < rings->problem_count; i++)
        wf_free(rings->problems[i]);
    wf_free(rings->rings);
    wf_free(rings->problems);
    wf_free(rings);
}

size_t weft_rings_count(const weft_rings *rings)
{
    return rings != NULL ? rings->count : 0;
}

weft_ring *weft_rings_at(const weft_rings *rings, size_t index)
{
    return rings != NULL && index < rings->count ? rings->rings[index] : NULL;
}

const char *weft_rings_problem(const weft_rings *rings, size_t index)
{
    return rings != NULL && index < rings->problem_count ? rings->problems[index] : NULL;
}

const char *weft_rings_folder(const weft_rings *rings, size_t index)
{
    return rings != NULL && index < rings->folder_count ? rings->folders[index] : NULL;
}

/* ---- one ring ---- */

weft_status weft_ring_open(const char *path, weft_ring **out)
{
    weft_status status;

    if (path == NULL || out == NULL)
        return wf_fail_null("weft_ring_open", path == NULL ? "path" : "out");
    if (path[0] == '\0')
        return wf_fail(WEFT_ERR_NOT_FOUND, "weft_ring_open: path is empty; it must name a file");
    status = wf_ring_open(AT_FDCWD, path, path, out);
    if (status != WEFT_IN_PROGRESS) return status;
    return wf_fail(WEFT_ERR_PARSE, "%s is not a ring of weft: it is empty", path);
}

void weft_ring_close(weft_ring **ring)
{
    if (ring == NULL || *ring == NULL) return;
    if ((*ring)->is_listed)
        wf_log(WF_LOG_WARNING, "weft_ring_close: weft_rings_release closes the rings of its list");
    else
        wf_ring_free(*ring);
    *ring = NULL;
}

weft_status weft_ring_refresh(weft_ring *ring)
{
    weft_status status;

    if (ring == NULL) return wf_fail_null("weft_ring_refresh", "ring");
    status = wf_ring_load(ring);
    if (status != WEFT_IN_PROGRESS) return status;
    return wf_fail(WEFT_ERR_PARSE, "%s is damaged: another process has emptied it", ring->path);
}

weft_status weft_ring_get(const weft_ring *ring, weft_ring_info *out)
{
    weft_ring_info info;
    weft_status status;

    if (ring == NULL || out == NULL)
        return wf_fail_null("weft_ring_get", ring == NULL ? "ring" : "out");
    info = (weft_ring_info){
        .path = ring->path,
        .job = ring->job,
        .rank = ring->rank,
        .size = ring->size,
        .pid = ring->pid,
        .alive = ring->alive,
        .stopped = ring->stopped,
        .removed = ring->removed,
        .host = ring->host,
        .program = ring->program,
        .backend = ring->backend,
        .oldest = ring->newest > ring->record_count ? ring->newest - ring->record_count + 1
                                                    : ring->newest > 0,
        .newest = ring->newest,
        .begun_ns = ring->begun_ns,
        .read_ns = ring->read_ns,
    };
    status = wf_info_write("weft_ring_info", &info, sizeof info, out);
    return wf_fail_named(status, "weft_ring_get");
}

const weft_record *weft_ring_record(const weft_ring *ring, uint64_t id)
{
    const weft_record *record;

    if (ring == NULL || id == 0) return NULL;
    record = &ring->records[id & (ring->record_count - 1)];
    return record->id == id ? record : NULL;
}

const char *weft_ring_text(const weft_ring *ring, uint32_t text)
{
    if (ring == NULL) return NULL;
    return text < ring->text_bytes ? ring->texts + text : "";
}

size_t weft_ring_print(const weft_ring *ring, const weft_record *record, char *buffer,
                       size_t capacity)
{
    if (capacity > 0 && buffer != NULL) buffer[0] = '\0';
    if (ring == NULL || record == NULL || (buffer == NULL && capacity > 0)) return 0;
    return wf_record_describe(
        record, weft_ring_text(ring, record->axes != 0 ? record->axes : record->comm_name), buffer,
        capacity);
}

size_t weft_ring_comm_count(const weft_ring *ring)
{
    return ring != NULL ? ring->comm_count : 0;
}

weft_status weft_ring_comm_get(const weft_ring *ring, size_t index, weft_ring_comm_info *out)
{
    const struct wf_segment_comm *comm;
    weft_ring_comm_info info;
    weft_status status;

    if (ring == NULL || out == NULL)
        return wf_fail_null("weft_ring_comm_get", ring == NULL ? "ring" : "out");
    if (index >= ring->comm_count)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_ring_comm_get: index is %zu, but rank %d has %zu communicator%s",
                       index, ring->rank, ring->comm_count, WF_PLURAL(ring->comm_count));
    comm = &ring->comms[index];
    info = (weft_ring_comm_info){
        .number = comm->number,
        .name = weft_ring_text(ring, comm->name),
        .ranks = weft_ring_text(ring, comm->ranks),
        .rank = comm->rank,
        .size = comm->size,
        .failed = comm->failed,
    };
    status = wf_info_write("weft_ring_comm_info", &info, sizeof info, out);
    return wf_fail_named(status, "weft_ring_comm_get");
}
