/* dump.h - the recorder of a rank as files for people and tools: a pickle that PyTorch's
 * flight-recorder analyser reads, and JSON.
 *
 *     writer.c   bytes into a file that appears when it is complete
 *     pickle.c   values as a pickle
 *     json.c     values as JSON
 *     encode.c   values for either encoding
 *     names.c    a record in the words of the analyser
 *     content.c  what a dump contains: communicators and how far they have come
 *     entries.c  and records
 *     files.c    the files of one rank
 *     signal.c   SIGUSR1 and SIGTERM
 *     dump.c     calls and failures
 *
 * A signal handler uses all of it.  So nothing here allocates, takes a lock or uses stdio, apart
 * from the functions of dump.c. */
#ifndef WEFT_TRACE_DUMP_DUMP_H
#define WEFT_TRACE_DUMP_DUMP_H

#include "trace/trace.h"

/* ---- writer.c ---- */

#define WF_DUMP_PATH 4096

struct wf_writer {
    int file;         /* -1: none */
    int error;        /* errno of the first failure; 0: none */
    uint64_t written; /* bytes, without those in BYTES */
    size_t used;      /* of BYTES */
    char bytes[4096];
    char made[WF_DUMP_PATH]; /* name of the file while it is made */
};

/* Create the file that will be PATH, under another name in the same folder, which does not begin
 * like PATH's: tools that read the folder meanwhile do not take it for a dump. */
void wf_writer_open(struct wf_writer *writer, const char *path);
void wf_write_bytes(struct wf_writer *writer, const void *bytes, size_t count);
void wf_write_text(struct wf_writer *writer, const char *text);
void wf_write_decimal(struct wf_writer *writer, int64_t number);
/* Write what is left and close the file. */
void wf_writer_close(struct wf_writer *writer);
/* Give the closed file the name PATH. */
void wf_writer_publish(struct wf_writer *writer, const char *path);
/* Remove the file, if it was not published. */
void wf_writer_discard(struct wf_writer *writer);

#define WF_DECIMAL 24 /* bytes that wf_print_decimal needs */

/* "-12".  Returns the length. */
size_t wf_print_decimal(int64_t number, char out[WF_DECIMAL]);
/* Sixteen digits, with NUL. */
void wf_print_hex(uint64_t number, char out[17]);

/* A text that is built in pieces and cut at the end of OUT. */
struct wf_phrase {
    char *out;
    size_t bytes, used;
};

void wf_phrase_add(struct wf_phrase *phrase, const char *text);
void wf_phrase_add_decimal(struct wf_phrase *phrase, int64_t number);

/* ---- encode.c, pickle.c, json.c ---- */

/* Values in order.  A map's values follow their keys, which are texts. */
struct wf_encoding {
    void (*begin)(struct wf_writer *writer); /* the file */
    void (*end)(struct wf_writer *writer);
    void (*open_map)(struct wf_writer *writer);
    void (*close_map)(struct wf_writer *writer);
    void (*open_list)(struct wf_writer *writer);
    void (*close_list)(struct wf_writer *writer);
    void (*open_tuple)(struct wf_writer *writer);
    void (*close_tuple)(struct wf_writer *writer);
    /* A text of LENGTH bytes follows, by put_text. */
    void (*open_text)(struct wf_writer *writer, size_t length);
    void (*put_text)(struct wf_writer *writer, const char *bytes, size_t count);
    void (*close_text)(struct wf_writer *writer);
    void (*number)(struct wf_writer *writer, int64_t number);
    void (*milliseconds)(struct wf_writer *writer, uint64_t ns);
    void (*truth)(struct wf_writer *writer, bool value);
    void (*none)(struct wf_writer *writer);
    void (*separate)(struct wf_writer *writer, bool first, bool value_of_key);
};

extern const struct wf_encoding wf_pickle, wf_json;

/* An encoding on a file. */
struct wf_encoder {
    const struct wf_encoding *encoding;
    struct wf_writer *writer;
    bool is_first;  /* in its map, list or tuple */
    bool after_key; /* the value of a key is next */
};

enum wf_bracket { WF_MAP, WF_LIST, WF_TUPLE };

void wf_emit_open(struct wf_encoder *encoder, enum wf_bracket bracket);
void wf_emit_close(struct wf_encoder *encoder, enum wf_bracket bracket);
void wf_emit_key(struct wf_encoder *encoder, const char *key);
/* Bytes that are not UTF-8 become '?'. */
void wf_emit_text(struct wf_encoder *encoder, const char *text);
void wf_emit_number(struct wf_encoder *encoder, int64_t number);
void wf_emit_milliseconds(struct wf_encoder *encoder, uint64_t ns);
void wf_emit_truth(struct wf_encoder *encoder, bool value);
void wf_emit_none(struct wf_encoder *encoder);
/* A key and its value. */
void wf_emit_number_at(struct wf_encoder *encoder, const char *key, int64_t number);
void wf_emit_text_at(struct wf_encoder *encoder, const char *key, const char *text);
void wf_emit_truth_at(struct wf_encoder *encoder, const char *key, bool value);
/* The list of ranks RANKS, "0-2,8", as the text "[0, 1, 2, 8]". */
void wf_emit_ranks(struct wf_encoder *encoder, const char *ranks);

/* ---- names.c ---- */

/* The transport that the analyser knows, for backend BACKEND. */
const char *wf_dump_transport(const char *backend);
/* PyTorch's name of DTYPE. */
const char *wf_dump_dtype(uint32_t dtype);
/* The analyser's name of the operation of RECORD; NULL if it has none. */
const char *wf_dump_operation(const weft_record *record);
/* True if LIST, "0-2,8", has all ranks. */
bool wf_ranks_are_complete(const char *list);
/* The next rank of the list at *AT; false at its end.  *LEFT is 0 at the list's begin. */
bool wf_ranks_next(const char **at, int64_t *rank, int64_t *left);

/* Sizes of tensors, in elements.  WF_UNSTATED: the ranks' sizes differ, and the analyser would
 * expect them to be equal. */
#define WF_UNSTATED UINT64_MAX

struct wf_dump_sizes {
    uint64_t in, out;
};

/* The sizes that RECORD states, of an operation of SIZE ranks. */
struct wf_dump_sizes wf_dump_sizes_of(const weft_record *record, int32_t size);

/* ---- content.c ---- */

#define WF_DUMP_COMMS (WF_SEGMENT_COMMS + WF_RELEASED_COMMS)

struct wf_dump_comm {
    uint64_t number;
    const char *name, *ranks;
    int32_t rank, size;
    weft_status failed;
    int32_t waits_for;
    int64_t enqueued, started, completed; /* sequences of the last; -1: not known */
};

/* One dump: its records, its communicators and its files. */
struct wf_dump {
    const struct wf_trace *trace;
    uint64_t first, last; /* ids of records */
    struct wf_instant begun, now;
    int64_t epoch_ns; /* of CLOCK_MONOTONIC's 0 */
    uint32_t comm_count;
    struct wf_dump_comm comms[WF_DUMP_COMMS];
    struct wf_writer pickle, json;
    char pickle_path[WF_DUMP_PATH], json_path[WF_DUMP_PATH];
    int error;              /* errno; 0: the files are written */
    const char *error_path; /* the file that cannot be written */
};

/* Note which records and communicators TRACE has now. */
void wf_dump_look(struct wf_dump *dump, const struct wf_trace *trace);
/* Write them as values of the keys pg_config and pg_status.  A pickle has what the analyser knows,
 * JSON has everything. */
void wf_dump_groups(const struct wf_dump *dump, struct wf_encoder *to, bool is_pickle);
void wf_dump_progress(const struct wf_dump *dump, struct wf_encoder *to, bool is_pickle);

const struct wf_dump_comm *wf_dump_find_comm(const struct wf_dump *dump, uint64_t number);
bool wf_dump_is_message(const weft_record *record);
bool wf_dump_has_started(const weft_record *record);
/* True if the analyser can match RECORD, of COMM, with the records of other ranks. */
bool wf_dump_is_known(const struct wf_dump *dump, const weft_record *record,
                      const struct wf_dump_comm *comm);

/* A group of ranks for the analyser: a communicator or, for messages, its two ranks in one
 * direction, because the analyser expects every operation on all ranks of its group. */
struct wf_dump_group {
    char name[80], desc[360], pair[40];
    const char *ranks; /* "0-2,8" */
};

/* Set *OUT, which is returned. */
struct wf_dump_group *wf_dump_describe_comm(const struct wf_dump *dump,
                                            const struct wf_dump_comm *comm,
                                            struct wf_dump_group *out);
struct wf_dump_group *wf_dump_describe_pair(const struct wf_dump *dump,
                                            const struct wf_dump_comm *comm,
                                            const weft_record *message, struct wf_dump_group *out);

/* ---- entries.c ---- */

/* Write the records, the oldest first: to JSON all, to PICKLE those that the analyser knows, with
 * the fields that it knows. */
void wf_dump_entries(const struct wf_dump *dump, struct wf_encoder *pickle,
                     struct wf_encoder *json);

/* ---- files.c ---- */

/* Write the files of TRACE, whose names begin with PREFIX.  Sets dump->error. */
void wf_dump_write(struct wf_dump *dump, const struct wf_trace *trace, const char *prefix);

/* ---- signal.c ---- */

/* Write TRACE on SIGUSR1 and SIGTERM from now on. */
void wf_signal_watch(struct wf_trace *trace);
/* Do not any longer.  A handler that runs in another thread has finished with TRACE. */
void wf_signal_forget(struct wf_trace *trace);

/* ---- dump.c, not for signal handlers ---- */

/* TRACE is written to PREFIX when a communicator fails, and on SIGUSR1 and SIGTERM. */
weft_status wf_dump_begin(struct wf_trace *trace, const char *prefix) WF_NODISCARD;
void wf_dump_end(struct wf_trace *trace);
/* Write TRACE now. */
weft_status wf_dump_call(struct wf_trace *trace, const char *prefix) WF_NODISCARD;
/* True if TRACE, which may be NULL, is written when a communicator fails. */
bool wf_dump_is_wanted(const struct wf_trace *trace);
/* A communicator has failed somewhere in the job: the next wf_dump_if_due writes TRACE. */
void wf_dump_ask(struct wf_trace *trace);
/* Write TRACE if a communicator has failed (dump_due), at most every few seconds.  Returns when the
 * files are written, also if another thread writes them.  Keeps the thread's last error. */
void wf_dump_if_due(struct wf_trace *trace);

#endif
