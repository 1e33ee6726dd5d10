/* split.c - communicators out of communicators: by colour, or by a list of ranks. */
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 96

/* The settings that one rank requests, besides its place. */
struct settings {
    char name[WF_SUBCOMM_NAME];
    int64_t timeout_ns;
    uint64_t deadline_ns; /* of the call, on this rank */
    void *native;         /* to wrap; each rank's own */
    bool is_tied;         /* it fails with the parent */
};

static weft_status read_settings(const weft_comm *parent, const weft_subcomm_options *options,
                                 struct settings *out)
{
    weft_subcomm_options given = {0};

    WF_TRY(wf_options_read("weft_subcomm_options", options, &given, sizeof given));
    if (given.timeout_ns < WEFT_FOREVER)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_subcomm_options.timeout_ns is %lld; it must be 0, positive or WEFT_FOREVER",
            (long long)given.timeout_ns);
    if (given.name != NULL && strlen(given.name) >= sizeof out->name)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_subcomm_options.name is \"%.80s\", which has %zu characters; the maximum is %zu",
            given.name, strlen(given.name), sizeof out->name - 1);
    *out = (struct settings){.timeout_ns =
                                 given.timeout_ns != 0 ? given.timeout_ns : parent->timeout_ns,
                             .native = given.native,
                             .is_tied = given.fails_with_parent};
    out->deadline_ns = wf_deadline(out->timeout_ns);
    snprintf(out->name, sizeof out->name, "%s", given.name != NULL ? given.name : "comm");
    wf_text_clean(out->name, strlen(out->name)); /* as the other ranks receive it */
    return WEFT_OK;
}

/* "dp#7"; a communicator that one rank makes alone has a number of its own, "dp#3.1". */
static void number_name(const char *name, uint64_t serial, char out[NAME_BYTES])
{
    uint64_t alone = serial >> WF_SOLO_SHIFT,
             counter = serial & ((UINT64_C(1) << WF_SOLO_SHIFT) - 1);

    if (alone != 0)
        snprintf(out, NAME_BYTES, "%s#%d.%llu", name, (int)alone - 1, (unsigned long long)counter);
    else
        snprintf(out, NAME_BYTES, "%s#%llu", name, (unsigned long long)counter);
}

/* (colour, key, wrapping, tied, time limit, name) */
static void put_place(struct wf_text *out, int32_t colour, int32_t key,
                      const struct settings *settings)
{
    wf_put_u32(out, (uint32_t)colour);
    wf_put_u32(out, (uint32_t)key);
    wf_put_u32(out, settings->native != NULL);
    wf_put_u32(out, settings->is_tied);
    wf_put_u64(out, (uint64_t)settings->timeout_ns);
    wf_put_string(out, settings->name);
}

struct place {
    int32_t colour, key, rank; /* rank in the parent */
};

/* RANK is the rank in PARENT.  If it is -1, the key of BLOB is the world rank. */
static weft_status read_place(const weft_comm *parent, weft_blob blob, int32_t rank,
                              const struct settings *mine, struct place *out)
{
    struct wf_reader reader = {blob.data, (size_t)blob.bytes, false};
    struct settings theirs;
    int32_t world_rank;
    bool wraps;

    out->colour = (int32_t)wf_take_u32(&reader);
    out->key = (int32_t)wf_take_u32(&reader);
    out->rank = rank;
    world_rank = rank >= 0 ? parent->world_ranks[rank] : out->key;
    wraps = wf_take_u32(&reader) != 0;
    theirs.is_tied = wf_take_u32(&reader) != 0;
    theirs.timeout_ns = (int64_t)wf_take_u64(&reader);
    wf_take_string(&reader, theirs.name, sizeof theirs.name);
    if (wraps != (mine->native != NULL))
        return wf_fail(WEFT_ERR_MISMATCH,
                       "weft_comm_create on %s: rank %d %s a vendor communicator, rank %d %s",
                       parent->name, parent->world_ranks[parent->rank],
                       mine->native != NULL ? "wraps" : "does not wrap", world_rank,
                       wraps ? "does" : "does not");
    if (theirs.is_tied != mine->is_tied)
        return wf_fail(
            WEFT_ERR_MISMATCH,
            "weft_subcomm_options of ranks of %s differ: fails_with_parent is %s on rank "
            "%d, and %s on rank %d",
            parent->name, mine->is_tied ? "true" : "false", parent->world_ranks[parent->rank],
            theirs.is_tied ? "true" : "false", world_rank);
    if (theirs.timeout_ns == mine->timeout_ns && strcmp(theirs.name, mine->name) == 0)
        return WEFT_OK;
    return wf_fail(
        WEFT_ERR_MISMATCH,
        "weft_subcomm_options of ranks of %s differ: rank %d has name \"%s\" and timeout_ns "
        "%lld, rank %d has \"%s\" and %lld",
        parent->name, parent->world_ranks[parent->rank], mine->name, (long long)mine->timeout_ns,
        world_rank, theirs.name, (long long)theirs.timeout_ns);
}

/* The first step: RANKS of PARENT show each other their places. */
static weft_status agree_on_place(weft_comm *parent, const char *label, int64_t timeout_ns,
                                  weft_status status, const struct wf_text *place,
                                  struct wf_gathered *out)
{
    struct wf_agreement agreement = {.comm = parent,
                                     .number = parent->number,
                                     .ranks = parent->world_ranks,
                                     .count = parent->size,
                                     .label = label,
                                     .timeout_ns = timeout_ns};

    return wf_agree(parent->context, &agreement, status, (weft_blob){place->data, place->length},
                    out);
}

static bool comes_before(const struct place *a, const struct place *b)
{
    return a->key != b->key ? a->key < b->key : a->rank < b->rank;
}

/* The world ranks of colour COLOUR, in order, and the colour's place among the colours. */
static int32_t members_of(const weft_comm *parent, struct place *places, int32_t colour,
                          int32_t *members)
{
    int32_t count = 0;

    for (int32_t i = 0; i < parent->size; i++) {
        struct place place = places[i];
        int32_t at = count;

        if (place.colour != colour) continue;
        /* Insertion sort; places[0 .. count) has been read already, and holds the members. */
        for (; at > 0 && comes_before(&place, &places[at - 1]); at--)
            places[at] = places[at - 1];
        places[at] = place;
        count++;
    }
    for (int32_t i = 0; i < count; i++)
        members[i] = parent->world_ranks[places[i].rank];
    return count;
}

static weft_status read_places(const weft_comm *parent, const struct wf_gathered *got,
                               const struct settings *settings, struct place *places)
{
    for (int32_t i = 0; i < parent->size; i++)
        WF_TRY(read_place(parent, got->blobs[i], i, settings, &places[i]));
    return WEFT_OK;
}

static weft_status make_part(weft_comm *parent, int32_t colour, const struct settings *settings,
                             struct wf_gathered *got, weft_comm **out)
{
    size_t size = (size_t)parent->size;
    struct place *places = wf_alloc(size * sizeof *places);
    int32_t *members = wf_alloc(size * sizeof *members);
    char name[NAME_BYTES], what[NAME_BYTES];
    struct wf_comm_request request = {.parent = parent,
                                      .origin = parent,
                                      .agree = parent->world_ranks,
                                      .agree_count = parent->size,
                                      .number = got->serial,
                                      .name = name,
                                      .what = what,
                                      .timeout_ns = settings->timeout_ns,
                                      .deadline_ns = settings->deadline_ns};
    weft_status status;

    number_name(settings->name, got->serial, name);
    number_name(settings->name, got->serial, what);
    if (places == NULL || members == NULL)
        request.status = wf_fail_memory(size * sizeof *places);
    else
        request.status = read_places(parent, got, settings, places);
    if (request.status == WEFT_OK && colour != WEFT_NO_COLOR) {
        size_t used = strlen(name);

        request.count = members_of(parent, places, colour, members);
        request.ranks = members;
        if (request.count < parent->size) snprintf(name + used, sizeof name - used, "/%d", colour);
    }
    wf_gathered_free(got);
    status = wf_comm_make(parent->context, &request, out);
    wf_free(members);
    wf_free(places);
    return status;
}

/* An error of one rank goes to all ranks when they agree, and is not returned before. */
static weft_status check_split(weft_comm *parent, int32_t colour,
                               const weft_subcomm_options *options, weft_comm **out,
                               struct settings *settings)
{
    if (out == NULL) return wf_fail_null("weft_comm_split", "out");
    if (colour < WEFT_NO_COLOR)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_comm_split: colour is %d; it must be 0, positive or WEFT_NO_COLOR",
                       colour);
    WF_TRY(read_settings(parent, options, settings));
    if (settings->native != NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_comm_split: weft_subcomm_options.native is set; "
                                         "only weft_comm_create can wrap a vendor communicator");
    if (settings->is_tied)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_comm_split: weft_subcomm_options.fails_with_parent is set; only "
                       "weft_comm_create takes it");
    return WEFT_OK;
}

weft_status weft_comm_split(weft_comm *parent, int32_t colour, int32_t key,
                            const weft_subcomm_options *options, weft_comm **out)
{
    struct wf_text place = {0};
    struct wf_gathered got;
    struct settings settings = {0};
    struct wf_submitted record;
    char label[160];
    weft_status status;

    if (parent == NULL) return wf_fail_null("weft_comm_split", "parent");
    WF_TRY(wf_comm_check(parent, "weft_comm_split"));
    record = wf_record_creation(parent, WEFT_RECORD_CREATE, "weft_comm_split", NULL, 0);
    status = check_split(parent, colour, options, out, &settings);
    snprintf(label, sizeof label, "weft_comm_split on %s", parent->name);
    if (status == WEFT_OK) {
        put_place(&place, colour, key, &settings);
        status = wf_text_status(&place);
    }
    status =
        agree_on_place(parent, label, status == WEFT_OK ? settings.timeout_ns : parent->timeout_ns,
                       status, &place, &got);
    wf_text_free(&place);
    if (status == WEFT_OK) status = make_part(parent, colour, &settings, &got, out);
    return wf_record_created(parent, record, status);
}

/* ---- by a list ---- */

static weft_status check_list(const weft_comm *parent, int32_t count, const int32_t *ranks,
                              int32_t *world_ranks, bool *member)
{
    *member = false;
    for (int32_t i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->size)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_comm_create: ranks[%d] is %d; the ranks of %s are 0 to %d", i,
                           ranks[i], parent->name, parent->size - 1);
        for (int32_t j = 0; j < i; j++)
            if (ranks[j] == ranks[i])
                return wf_fail(WEFT_ERR_INVALID,
                               "weft_comm_create: rank %d is listed twice, at indices %d and %d",
                               ranks[i], j, i);
        world_ranks[i] = parent->world_ranks[ranks[i]];
        if (ranks[i] == parent->rank) *member = true;
    }
    return WEFT_OK;
}

static int compare_ranks(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

weft_status wf_agree_on_list(weft_comm *parent, const char *function, const int32_t *world_ranks,
                             int32_t count, int64_t timeout_ns, weft_status status, weft_blob blob,
                             struct wf_gathered *out)
{
    int32_t *sorted = parent->room + parent->size;
    char label[160];
    struct wf_agreement agreement = {.comm = parent,
                                     .number = parent->number,
                                     .ranks = sorted,
                                     .count = count,
                                     .label = label,
                                     .timeout_ns = timeout_ns,
                                     .despite_peer = true};

    memcpy(sorted, world_ranks, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ranks);
    snprintf(label, sizeof label, "%s on %s", function, parent->name);
    return wf_agree(parent->context, &agreement, status, blob, out);
}

static void print_ranks(struct wf_text *out, const int32_t *ranks, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        wf_text_add(out, "%s%d", i == 0 ? "" : ",", ranks[i]);
}

/* BLOB has a rank as its key and ends with that rank's list, which must be MINE. */
static weft_status compare_lists(const weft_comm *parent, const char *function, const int32_t *mine,
                                 int32_t count, weft_blob blob)
{
    struct wf_reader reader = {blob.data, (size_t)blob.bytes, false};
    size_t bytes = (size_t)count * sizeof *mine;
    struct wf_text text = {0};
    int32_t *theirs, rank;
    weft_status status;

    (void)wf_take_u32(&reader);
    rank = (int32_t)wf_take_u32(&reader);
    if (blob.bytes < bytes || reader.failed)
        return wf_fail(WEFT_ERR_MISMATCH,
                       "%s on %s: another rank of the list calls another function that creates "
                       "communicators",
                       function, parent->name);
    if (memcmp((const char *)blob.data + blob.bytes - bytes, mine, bytes) == 0) return WEFT_OK;
    theirs = wf_alloc(bytes);
    if (theirs == NULL) return wf_fail_memory(bytes);
    memcpy(theirs, (const char *)blob.data + blob.bytes - bytes, bytes);
    print_ranks(&text, mine, count);
    wf_text_add(&text, " on rank %d, ", parent->context->rank);
    print_ranks(&text, theirs, count);
    status = wf_fail(WEFT_ERR_MISMATCH,
                     "%s on %s: ranks list the members in different orders: %s on rank %d; all "
                     "ranks must pass the same %s",
                     function, parent->name, text.failed ? "" : text.data, rank,
                     strcmp(function, "weft_comm_create") == 0 ? "list" : "mesh");
    wf_free(theirs);
    wf_text_free(&text);
    return status;
}

/* STATUS is this rank's result so far, which all listed ranks get.  SETTINGS are read if it is OK.
 */
static weft_status make_of_list(weft_comm *parent, const char *function, int32_t count,
                                const int32_t *world_ranks, weft_status status,
                                const struct settings *settings, weft_comm **out)
{
    struct wf_text place = {0};
    struct wf_gathered got;
    struct place ignored;
    char name[NAME_BYTES];
    struct wf_comm_request request = {.origin = parent,
                                      .agree = world_ranks,
                                      .ranks = world_ranks,
                                      .agree_count = count,
                                      .count = count,
                                      .name = name,
                                      .what = name,
                                      .timeout_ns = settings->timeout_ns,
                                      .deadline_ns = settings->deadline_ns,
                                      .native = settings->native};

    put_place(&place, 0, parent->context->rank, settings);
    wf_text_append(&place, (const char *)world_ranks, (size_t)count * sizeof *world_ranks);
    if (status == WEFT_OK) status = wf_text_status(&place);
    status = wf_agree_on_list(parent, function, world_ranks, count, settings->timeout_ns, status,
                              (weft_blob){place.data, place.length}, &got);
    wf_text_free(&place);
    if (status != WEFT_OK) return status;
    for (int32_t i = 0; i < count && status == WEFT_OK; i++)
        status = compare_lists(parent, function, world_ranks, count, got.blobs[i]);
    if (status != WEFT_OK) {
        wf_gathered_free(&got);
        return status;
    }
    for (int32_t i = 0; i < count && request.status == WEFT_OK; i++)
        request.status = read_place(parent, got.blobs[i], -1, settings, &ignored);
    request.number = got.serial;
    number_name(settings->name, got.serial, name);
    wf_gathered_free(&got);
    return wf_comm_make(parent->context, &request, out);
}

/* Once the list is known to be valid, an error of one rank goes to all ranks of the list. */
static weft_status check_create(const weft_comm *parent, const weft_subcomm_options *options,
                                weft_comm **out, struct settings *settings)
{
    weft_status status = out != NULL ? read_settings(parent, options, settings)
                                     : wf_fail_null("weft_comm_create", "out");

    if (status != WEFT_OK) *settings = (struct settings){.timeout_ns = parent->timeout_ns};
    return status;
}

/* This rank is not listed. */
static weft_status stay_out(weft_comm *parent, weft_comm **out)
{
    weft_status cause = atomic_load_explicit(&parent->cause, memory_order_acquire);

    if (cause != WEFT_OK && cause != WEFT_ERR_PEER) return wf_comm_cause(parent);
    *out = NULL;
    return WEFT_OK;
}

/* With RECORDED, the program has called weft_comm_create, and the call gets a record. */
static weft_status create(weft_comm *parent, const char *function, int32_t count,
                          const int32_t *ranks, const weft_subcomm_options *options, bool recorded,
                          weft_comm **out)
{
    struct wf_submitted record = {NULL, 0};
    struct settings settings = {0};
    int32_t *world_ranks;
    weft_status status;
    bool member;

    if (parent == NULL) return wf_fail_null("weft_comm_create", "parent");
    WF_TRY(wf_comm_check(parent, "weft_comm_create"));
    if (ranks == NULL) return wf_fail_null("weft_comm_create", "ranks");
    if (count < 1 || count > parent->size)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_comm_create: count is %d; it must be from 1 to %d, the number of ranks of %s",
            count, parent->size, parent->name);
    world_ranks = parent->room;
    status = check_list(parent, count, ranks, world_ranks, &member);
    if (status == WEFT_OK) {
        if (member && recorded)
            record = wf_record_creation(parent, WEFT_RECORD_CREATE, function, world_ranks, count);
        status = check_create(parent, options, out, &settings);
        if (member)
            status = make_of_list(parent, function, count, world_ranks, status, &settings, out);
        else if (status == WEFT_OK)
            status = stay_out(parent, out);
        if (member && status == WEFT_OK && settings.is_tied) wf_comm_tie(parent, *out);
    }
    return wf_record_created(parent, record, status);
}

weft_status wf_comm_create(weft_comm *parent, const char *function, int32_t count,
                           const int32_t *ranks, const weft_subcomm_options *options,
                           weft_comm **out)
{
    return create(parent, function, count, ranks, options, false, out);
}

weft_status weft_comm_create(weft_comm *parent, size_t count, const int32_t *ranks,
                             const weft_subcomm_options *options, weft_comm **out)
{
    int32_t listed = count > INT32_MAX ? INT32_MAX : (int32_t)count; /* refused as too many */

    return create(parent, "weft_comm_create", listed, ranks, options, true, out);
}
