/* share.c - steps of loading and saving that all ranks take together. */
#include "store.h"

#include <string.h>

/* What differs; NULL if nothing does. */
static const char *difference(const struct wf_store_digest *a, const struct wf_store_digest *b)
{
    return a->path != b->path         ? "paths"
           : a->tensors != b->tensors ? "tensors, or with the same in another order"
           : a->layouts != b->layouts ? "layouts or dtypes"
           : a->options != b->options ? "options"
                                      : NULL;
}

void wf_store_begin(struct wf_store_call *call, weft_context *context,
                    enum weft_record_operation operation, const char *function)
{
    *call = (struct wf_store_call){.context = context, .function = function};
    weft_record_begin(weft_world(context), operation, function, &call->record);
}

void wf_store_set_bytes(const struct wf_store_call *call, uint64_t bytes)
{
    weft_record_set_bytes(&call->record, bytes);
}

weft_status wf_store_end(const struct wf_store_call *call, weft_status status)
{
    return weft_record_end(&call->record, status);
}

void wf_store_free(struct wf_store_call *call)
{
    weft_answers_release(&call->compared);
}

/* ---- ranks that differ ---- */

enum { WORDS_MOST = 1 << 18 }; /* bytes that a rank tells the others */

/* The path, or the names, each followed by a zero byte.  *OUT is NULL if there is no memory. */
static size_t list_words(const struct wf_store_words *words, bool paths, char **out)
{
    size_t bytes = 0, count = paths ? 1 : words->count;

    *out = wf_alloc(WORDS_MOST);
    for (size_t i = 0; *out != NULL && i < count; i++) {
        const char *word = paths ? words->path : words->name(words->state, i);
        size_t length = strlen(word) + 1;

        if (length > WORDS_MOST - bytes) break;
        memcpy(*out + bytes, word, length);
        bytes += length;
    }
    return bytes;
}

/* The next word of ANSWERS[RANK] at *AT; NULL: none. */
static const char *next_word(const weft_answers *answers, int32_t rank, size_t *at)
{
    const char *word = (const char *)weft_answers_data(answers, rank) + *at;

    if (*at >= weft_answers_bytes(answers, rank)) return NULL;
    *at += strlen(word) + 1;
    return word;
}

/* Add what RANK has instead of rank 0 to ABOUT. */
static void describe(const weft_answers *answers, int32_t rank, bool paths, struct wf_text *about)
{
    size_t at = 0, at_other = 0;

    for (size_t i = 0;; i++) {
        const char *word = next_word(answers, 0, &at), *other = next_word(answers, rank, &at_other);

        if (word == NULL && other == NULL) return;
        if (word != NULL && other != NULL && strcmp(word, other) == 0) continue;
        if (paths)
            wf_text_add(about, ": \"%.300s\" and \"%.300s\"", word != NULL ? word : "",
                        other != NULL ? other : "");
        else if (word != NULL && other != NULL)
            wf_text_add(about, "; tensor %zu is \"%.200s\" and \"%.200s\"", i, word, other);
        else
            wf_text_add(about, "; only rank %d has tensor %zu, \"%.200s\"", word != NULL ? 0 : rank,
                        i, word != NULL ? word : other);
        return;
    }
}

/* All ranks know that RANK differs from rank 0 in DIFFERS.  These two tell the others how. */
static weft_status refuse(struct wf_store_call *call, const char *what, int32_t rank,
                          const char *differs, bool paths, const struct wf_store_words *words)
{
    weft_agree_options options = {.struct_size = sizeof options, .after = call->compared};
    weft_comm *world = weft_world(call->context);
    bool tells = weft_comm_rank(world) == 0 || weft_comm_rank(world) == rank;
    struct wf_text about = {0};
    weft_answers *answers = NULL;
    char *list = NULL;
    size_t bytes = tells ? list_words(words, paths, &list) : 0;
    weft_status status =
        weft_agree(world, call->function, WEFT_OK, list, bytes, &options, &answers);

    wf_free(list);
    if (status != WEFT_OK) return status;
    describe(answers, rank, paths, &about);
    weft_answers_release(&answers);
    status =
        wf_fail(WEFT_ERR_MISMATCH, "%s: rank 0 and rank %d %s with different %s%s", call->function,
                rank, what, differs, about.data != NULL && !about.failed ? about.data : "");
    wf_text_free(&about);
    return status;
}

weft_status wf_store_compare(struct wf_store_call *call, const char *what, weft_status status,
                             const struct wf_store_digest *digest,
                             const struct wf_store_words *words)
{
    struct wf_store_digest first = *digest, other = *digest;
    weft_comm *world = weft_world(call->context);

    WF_TRY(
        weft_agree(world, call->function, status, digest, sizeof *digest, NULL, &call->compared));
    for (int32_t rank = 0; rank < weft_comm_size(world); rank++) {
        const char *differs = "versions of weft";
        if (weft_answers_bytes(call->compared, rank) == sizeof other) {
            memcpy(&other, weft_answers_data(call->compared, rank), sizeof other);
            if (rank == 0) first = other;
            differs = difference(&first, &other);
        }
        if (differs != NULL && (first.path != other.path || first.tensors != other.tensors))
            return refuse(call, what, rank, differs, first.path != other.path, words);
        if (differs != NULL)
            return wf_fail(WEFT_ERR_MISMATCH, "%s: rank 0 and rank %d %s with different %s",
                           call->function, rank, what, differs);
    }
    return WEFT_OK;
}

/* ---- steps of any length ---- */

weft_status wf_store_meet(const struct wf_store_call *call, weft_status status, uint64_t value,
                          uint64_t *sum)
{
    weft_agree_options options = {.struct_size = sizeof options, .after = call->compared};
    weft_comm *world = weft_world(call->context);
    weft_answers *answers;

    WF_TRY(weft_agree(world, call->function, status, &value, sizeof value, &options, &answers));
    *sum = 0;
    for (int32_t rank = 0; rank < weft_comm_size(world); rank++) {
        uint64_t theirs = 0;
        if (weft_answers_bytes(answers, rank) == sizeof theirs)
            memcpy(&theirs, weft_answers_data(answers, rank), sizeof theirs);
        *sum += theirs;
    }
    weft_answers_release(&answers);
    return WEFT_OK;
}

void wf_store_goes_on(const struct wf_store_call *call)
{
    weft_agree_progress(call->compared, call->function);
}

weft_status wf_store_check(weft_context *context, const char *function)
{
    WF_TRY(weft_object_check(context, "weft_context", function, "context"));
    if (!weft_is_simulated(context)) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: the ranks of this context are simulated; only real ranks load and save",
                   function);
}

weft_status wf_store_check_stream(const struct wf_store_call *call, weft_stream *stream)
{
    weft_status status = weft_context_wait(call->context, stream, 0);

    return status == WEFT_ERR_TIMEOUT ? WEFT_OK : wf_fail_named(status, call->function);
}
