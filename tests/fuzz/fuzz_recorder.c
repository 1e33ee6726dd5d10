/* Recorders of other processes: a small recorder with bytes replaced, and any file.
 *
 * The input is a byte 0 and a whole file, or another byte and changes of a recorder: offset (3
 * bytes), count (1 byte) and so many bytes. */
#include "fuzz.h"

#include "trace/read.h"
#include "weft/status.h"
#include "weft/recorder.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RECORDS = 16, TEXTS = 256 };

static unsigned char image[sizeof(struct wf_segment) + TEXTS + RECORDS * sizeof(weft_record)];

static void make_image(void)
{
    _Alignas(64) static struct wf_segment head;
    weft_record record = {.comm = 7,
                          .operation = WEFT_RECORD_ALL_REDUCE,
                          .state = WEFT_RECORD_FINISHED,
                          .submitted = 1000,
                          .finished = 2000,
                          .peer = -1,
                          .comm_name = 1};

    head = (struct wf_segment){.version = WF_SEGMENT_VERSION,
                               .head_bytes = sizeof head,
                               .text_bytes = TEXTS,
                               .record_bytes = sizeof record,
                               .record_count = RECORDS,
                               .rank = 1,
                               .size = 2,
                               .pid = 1,
                               .job = 5,
                               .begun_ticks = 1,
                               .begun_ns = 1,
                               .host = "host",
                               .program = "program",
                               .next = 20,
                               .text_used = 8};
    memcpy(head.magic, WF_SEGMENT_MAGIC, sizeof head.magic);
    head.comms[0].number = 7;
    head.comms[0].name = 1;
    head.comms[0].ranks = 4;
    memcpy(image, &head, sizeof head);
    memcpy(image + sizeof head,
           "\0tp\0"
           "0-1",
           8);
    for (uint64_t id = 5; id <= 20; id++) {
        record.id = id;
        record.sequence = id;
        memcpy(image + sizeof head + TEXTS + id % RECORDS * sizeof record, &record, sizeof record);
    }
}

/* Apply the changes in DATA. */
static void change(const uint8_t *data, size_t size)
{
    while (size >= 4) {
        size_t offset = ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2]) % sizeof image;
        size_t count = data[3];

        data += 4;
        size -= 4;
        if (count > size) count = size;
        if (count > sizeof image - offset) count = sizeof image - offset;
        memcpy(image + offset, data, count);
        data += count;
        size -= count;
    }
}

static void read_all(const weft_recorder *recorder)
{
    weft_recorder_info info = {.struct_size = sizeof info};
    weft_recorder_comm_info comm = {.struct_size = sizeof comm};
    char text[128];
    size_t needed = 0;
    size_t length = 0;

    FUZZ_ASSERT(weft_recorder_get(recorder, &info) == WEFT_OK);
    length += strlen(info.host) + strlen(info.program) + strlen(info.backend);
    FUZZ_ASSERT(info.oldest <= info.newest && info.newest - info.oldest < WF_RECORDS_MOST);
    for (uint64_t back = 0; back < RECORDS && back < info.newest; back++) {
        const weft_record *record = weft_recorder_record(recorder, info.newest - back);

        if (record == NULL) continue;
        FUZZ_ASSERT(record->id == info.newest - back);
        FUZZ_ASSERT(record->state >= WEFT_RECORD_SUBMITTED && record->state <= WEFT_RECORD_FAILED);
        length += strlen(weft_recorder_text(recorder, record->label));
        if (weft_recorder_print(recorder, record, text, sizeof text, &needed) == WEFT_OK)
            length += needed;
    }
    for (size_t i = 0; i < weft_recorder_comm_count(recorder); i++) {
        FUZZ_ASSERT(weft_recorder_comm_get(recorder, i, &comm) == WEFT_OK);
        FUZZ_ASSERT(comm.number != 0);
        for (const char *at = comm.name; *at != '\0'; at++)
            FUZZ_ASSERT((unsigned char)*at >= 0x20 && *at != 0x7f);
        length += strlen(comm.name) + strlen(comm.ranks) + strlen(comm.carrier);
    }
    FUZZ_ASSERT(length < SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int file = memfd_create("recorder", MFD_CLOEXEC);
    const void *bytes = size > 0 && data[0] == 0 ? data + 1 : image;
    size_t count = size > 0 && data[0] == 0 ? size - 1 : sizeof image;
    weft_recorder *recorder = NULL;
    weft_status status;
    char path[64];

    FUZZ_ASSERT(file >= 0);
    make_image();
    if (bytes == image && size > 0) change(data + 1, size - 1);
    FUZZ_ASSERT(write(file, bytes, count) == (ssize_t)count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    status = weft_recorder_open(path, &recorder);
    if (status == WEFT_OK) {
        read_all(recorder);
        FUZZ_ASSERT(weft_recorder_refresh(recorder) == WEFT_OK);
        weft_recorder_close(&recorder);
    } else {
        FUZZ_ASSERT(status == WEFT_ERR_PARSE || status == WEFT_ERR_VERSION);
        FUZZ_ASSERT(weft_last_error()[0] != '\0');
    }
    close(file);
    return 0;
}
