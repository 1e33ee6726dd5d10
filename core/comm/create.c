/* create.c - making communicators in two phases, so that one rank's failure is the same error on
 * all ranks, and ending them.
 *
 * Prepare is local.  The ranks exchange its outcome and the addresses.  Commit is collective, and
 * the ranks exchange its outcome too.  A rank that skips a step still takes part in the next
 * exchange, so no rank waits for it. */
#include "comm/carry/carry.h"
#include "check.h"
#include "recording.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* ---- the exchange that commit may use ---- */

struct exchange {
    weft_comm *comm;
    const struct wf_comm_request *request;
    weft_status shared; /* an error that all ranks of the communicator know */
    char text[1024];    /* its text, which the plugin may replace */
};

/* A step of the ranks of COMM, which is being made. */
static weft_status agree_inside(weft_comm *comm, const struct wf_comm_request *request,
                                const char *label, weft_status status, weft_blob blob,
                                struct wf_gathered *out)
{
    struct wf_agreement agreement = {.comm = request->origin,
                                     .number = request->number,
                                     .ranks = comm->world_ranks,
                                     .count = comm->size,
                                     .label = label,
                                     .timeout_ns = wf_time_left(request->deadline_ns),
                                     .despite_peer = request->parent == NULL};

    return wf_agree(comm->context, &agreement, status, blob, out);
}

static weft_status gather_equal(struct exchange *self, const void *mine, void *all, uint64_t bytes)
{
    weft_comm *comm = self->comm;
    struct wf_gathered got;
    char label[192];

    snprintf(label, sizeof label, "the exchange of %s", comm->name);
    self->shared =
        agree_inside(comm, self->request, label, WEFT_OK, (weft_blob){mine, bytes}, &got);
    if (self->shared != WEFT_OK) {
        snprintf(self->text, sizeof self->text, "%s", weft_last_error());
        return self->shared;
    }
    for (int32_t i = 0; i < got.count; i++) {
        if (got.blobs[i].bytes != bytes) {
            wf_gathered_free(&got);
            return wf_fail(WEFT_ERR_MISMATCH,
                           "in the exchange of %s, rank %d contributed a different number of bytes "
                           "(expected %llu)",
                           comm->name, comm->world_ranks[i], (unsigned long long)bytes);
        }
        if (bytes > 0) memcpy((char *)all + (size_t)i * bytes, got.blobs[i].data, (size_t)bytes);
    }
    wf_gathered_free(&got);
    return WEFT_OK;
}

static weft_status exchange_all_gather(void *self, const void *mine, void *all, uint64_t bytes)
{
    return gather_equal(self, mine, all, bytes);
}

/* ---- the object ---- */

static void clear(weft_comm *comm)
{
    if (comm->handle != NULL) comm->table->destroy(comm->handle);
    wf_free(comm->world_ranks);
    wf_free(comm->host_ids);
    wf_free(comm->message_counts);
    comm->message_counts = NULL;
    while (comm->known_axes != NULL) {
        struct wf_known_axes *known = comm->known_axes;

        comm->known_axes = known->next;
        wf_free(known);
    }
    while (comm->creations != NULL) {
        struct wf_creations *creations = comm->creations;

        comm->creations = creations->next;
        wf_free(creations);
    }
    comm->handle = NULL;
    comm->world_ranks = NULL;
    comm->host_ids = NULL;
}

void wf_comm_free(weft_comm *comm)
{
    if (comm == NULL) return;
    clear(comm);
    wf_free(comm);
}

static weft_status allocate(weft_context *context, const struct wf_comm_request *request,
                            weft_comm **out)
{
    weft_comm *comm = wf_calloc(1, sizeof *comm);
    size_t count = (size_t)request->count;

    if (comm == NULL) return wf_fail_memory(sizeof *comm);
    comm->context = context;
    comm->made = wf_made_now(WF_KIND_COMM);
    comm->plugin = request->plugin != NULL ? request->plugin : context->plugin;
    comm->table = comm->plugin->comm;
    comm->device = request->plugin != NULL ? request->device : context->device;
    comm->checked = context->config->check;
    comm->size = request->count;
    comm->number = request->number;
    comm->timeout_ns = request->timeout_ns;
    comm->may_post = UINT64_MAX;
    comm->group_record = WF_NO_RECORD;
    wf_posts_begin(&comm->posts);
    wf_posts_begin(&comm->onesided_posts);
    comm->averages = wf_average_by_backend(comm);
    wf_check_begin(comm);
    comm->done_on_return = (context->features & WEFT_FEATURE_INLINE) != 0;
    snprintf(comm->name, sizeof comm->name, "%s", request->name);
    comm->world_ranks = wf_alloc(3 * count * sizeof *comm->world_ranks);
    comm->host_ids = wf_alloc(count * sizeof *comm->host_ids);
    if (comm->world_ranks == NULL || comm->host_ids == NULL) {
        wf_comm_free(comm);
        return wf_fail_memory(count * sizeof *comm->host_ids);
    }
    comm->room = comm->world_ranks + count;
    for (size_t i = 0; i < count; i++) {
        comm->world_ranks[i] = request->ranks[i];
        comm->host_ids[i] = context->host_ids[request->ranks[i]];
        if (request->ranks[i] == context->rank) comm->rank = (int32_t)i;
    }
    *out = comm;
    return WEFT_OK;
}

static weft_comm_options plugin_options(const weft_comm *comm)
{
    return (weft_comm_options){
        .struct_size = sizeof(weft_comm_options),
        .flags = comm->context->config->check ? WEFT_COMM_CHECK : 0,
        .rank = comm->rank,
        .size = comm->size,
        .world_ranks = comm->world_ranks,
        .host_ids = comm->host_ids,
        .name = comm->name,
        .job = comm->context->job,
        .timeout_ns = comm->timeout_ns,
    };
}

/* ---- the phases ---- */

/* True if other ranks may be threads of this process, with COMM's plugin. */
static bool may_have_threads(const weft_comm *comm)
{
    weft_device_info info = {.struct_size = sizeof info};

    return comm->plugin->device->describe(comm->device, &info) != WEFT_OK ||
           (info.features & WEFT_FEATURE_THREADS) != 0;
}

/* A plugin that is alone in its process may set variables for its vendor's library.  Others may
 * wait here for a thread of theirs that reads the environment. */
static weft_status prepare(weft_comm *comm, weft_blob *address)
{
    weft_comm_options options = plugin_options(comm);
    bool holds = !may_have_threads(comm);
    weft_status status;

    if (holds) wf_environment_lock();
    status = comm->table->prepare(comm->device, &options, &comm->handle, address);
    if (holds) wf_environment_unlock();
    return status;
}

/* ADDRESSES is in the order of AGREE; the plugin gets them in the order of the communicator. */
static weft_status commit(weft_comm *comm, const struct wf_comm_request *request,
                          const weft_blob *addresses, struct exchange *self)
{
    weft_exchange exchange = {self, exchange_all_gather};
    weft_blob *own = wf_alloc((size_t)comm->size * sizeof *own);
    weft_status status;

    if (own == NULL) return wf_fail_memory((size_t)comm->size * sizeof *own);
    for (int32_t i = 0; i < comm->size; i++)
        for (int32_t j = 0; j < request->agree_count; j++)
            if (request->agree[j] == comm->world_ranks[i]) own[i] = addresses[j];
    status = comm->table->commit(comm->handle, own, &exchange);
    wf_free(own);
    return status;
}

/* Agree on the outcome of commit among the members.  All members know a failure of the exchange. If
 * the plugin failed on this rank for another reason, return that reason: the other members wait for
 * this rank. */
static weft_status agree_on_commit(weft_comm *comm, weft_status status,
                                   const struct exchange *exchange)
{
    struct wf_gathered got;
    char label[192];

    if (exchange->shared != WEFT_OK && status != WEFT_OK && status != exchange->shared)
        return status;
    if (exchange->shared != WEFT_OK) return wf_fail(exchange->shared, "%s", exchange->text);
    snprintf(label, sizeof label, "the last step of the creation of %s", comm->name);
    WF_TRY(agree_inside(comm, exchange->request, label, status, (weft_blob){"", 0}, &got));
    wf_gathered_free(&got);
    return WEFT_OK;
}

static weft_status agree(weft_context *context, const struct wf_comm_request *request,
                         const char *step, weft_status status, weft_blob blob,
                         struct wf_gathered *out)
{
    char label[192];
    struct wf_agreement agreement = {.comm = request->origin,
                                     .number = request->number,
                                     .ranks = request->agree,
                                     .count = request->agree_count,
                                     .label = label,
                                     .timeout_ns = wf_time_left(request->deadline_ns),
                                     .despite_peer = request->parent == NULL};

    snprintf(label, sizeof label, "%s of %s", step, request->what);
    return wf_agree(context, &agreement, status, blob, out);
}

static bool same_ranks(const struct wf_comm_request *request)
{
    return request->agree_count == request->count;
}

/* Create the communicator by prepare and commit. */
static weft_status make_by_phases(weft_context *context, const struct wf_comm_request *request,
                                  weft_comm *comm, weft_status status)
{
    weft_blob address = {"", 0};
    struct wf_gathered got;

    if (status == WEFT_OK && comm != NULL) status = prepare(comm, &address);
    WF_TRY(agree(context, request, "the preparation", status, address, &got));
    if (comm != NULL) {
        struct exchange exchange = {.comm = comm, .request = request};

        status = commit(comm, request, got.blobs, &exchange);
        status = agree_on_commit(comm, status, &exchange);
    }
    wf_gathered_free(&got);
    if (same_ranks(request)) return status;
    WF_TRY(agree(context, request, "the making", status, (weft_blob){"", 0}, &got));
    wf_gathered_free(&got);
    return WEFT_OK;
}

/* Create the communicator by the plugin's split of its parent. */
static weft_status make_by_split(weft_context *context, const struct wf_comm_request *request,
                                 weft_comm *comm, weft_status status)
{
    const weft_comm_table *table = context->plugin->comm;
    weft_comm_options options;
    struct wf_gathered got;
    void *handle = NULL;

    if (comm != NULL) options = plugin_options(comm);
    WF_TRY(agree(context, request, "the preparation", status, (weft_blob){"", 0}, &got));
    wf_gathered_free(&got);
    status = table->split(request->parent->handle, comm != NULL ? &options : NULL, &handle);
    if (status == WEFT_OK && comm != NULL) comm->handle = handle;
    WF_TRY(agree(context, request, "the making", status, (weft_blob){"", 0}, &got));
    wf_gathered_free(&got);
    return WEFT_OK;
}

/* Wrap the caller's vendor communicator. */
static weft_status make_by_wrap(weft_context *context, const struct wf_comm_request *request,
                                weft_comm *comm, weft_status status)
{
    struct wf_gathered got;

    if (status == WEFT_OK && !WF_HAS(comm->table, wrap))
        status = wf_fail(WEFT_ERR_UNSUPPORTED,
                         "weft_comm_create: backend %s does not support vendor communicators",
                         context->plugin->name);
    if (status == WEFT_OK) {
        weft_comm_options options = plugin_options(comm);
        status = comm->table->wrap(comm->device, request->native, &options, &comm->handle);
    }
    WF_TRY(agree(context, request, "the wrapping", status, (weft_blob){"", 0}, &got));
    wf_gathered_free(&got);
    return WEFT_OK;
}

/* The recorder and the trace tell what carries the data of COMM, if its plugin does. */
static void tell_carrier(const weft_comm *comm)
{
    struct wf_trace *trace = comm->context->trace;
    uint32_t carrier, ranks = wf_trace_comm_ranks(trace, comm->number);

    if (comm->handle == NULL || !WF_HAS(comm->table, carrier)) return;
    carrier = wf_trace_intern(trace, comm->table->carrier(comm->handle));
    if (carrier == 0) return;
    wf_trace_set_carrier(trace, comm->number, carrier);
    if (trace->export != NULL) wf_export_comm(trace->export, comm->name_text, ranks, carrier);
}

/* List COMM in its context.  From now on failures of other ranks fail it. */
static void enlist(weft_comm *comm)
{
    weft_context *context = comm->context;

    comm->name_text = wf_trace_intern(context->trace, comm->name);
    wf_trace_add_comm(context->trace, comm->number, comm->name_text, comm->world_ranks, comm->size,
                      comm->rank);
    wf_trace_set_limit(context->trace, comm->number, comm->timeout_ns);
    tell_carrier(comm);
    pthread_mutex_lock(&context->lock);
    comm->next = context->comms;
    context->comms = comm;
    atomic_store(&comm->tracing, atomic_load(&context->tracing));
    wf_fault_apply_early(comm);
    pthread_mutex_unlock(&context->lock);
    for (int32_t i = 0; context->client != NULL && i < comm->size; i++) {
        const struct wf_departure *departure =
            wf_client_gone(context->client, comm->world_ranks[i]);

        if (departure != NULL) wf_fault_gone(context, departure);
    }
}

weft_status wf_comm_make(weft_context *context, const struct wf_comm_request *request,
                         weft_comm **out)
{
    bool splits =
        request->parent != NULL && !same_ranks(request) && WF_HAS(context->plugin->comm, split);
    weft_comm *comm = NULL;
    weft_status status = request->status;

    if (status == WEFT_OK && request->ranks != NULL) status = allocate(context, request, &comm);
    if (request->native != NULL)
        status = make_by_wrap(context, request, comm, status);
    else
        status = splits ? make_by_split(context, request, comm, status)
                        : make_by_phases(context, request, comm, status);
    if (status != WEFT_OK) {
        wf_comm_free(comm);
        return status;
    }
    if (comm != NULL) enlist(comm);
    *out = comm;
    return WEFT_OK;
}

weft_status wf_comm_make_simulated(weft_context *context, const struct wf_comm_request *request,
                                   weft_comm **out)
{
    weft_comm *comm = NULL;

    WF_TRY(request->status);
    WF_TRY(allocate(context, request, &comm));
    comm->made = wf_made_now(WF_KIND_SIMULATED_COMM);
    enlist(comm);
    *out = comm;
    return WEFT_OK;
}

static void retire(weft_comm *comm, const char *cause);

/* Take one of the communicators that COMM owns from it; NULL: none is left.  Under the lock,
 * because another thread may be failing them. */
static weft_comm *take_owned(weft_comm *comm)
{
    weft_comm *owned, **list;

    pthread_mutex_lock(&comm->context->lock);
    owned = comm->attached;
    comm->attached = NULL;
    list = comm->groups != NULL ? &comm->groups : &comm->axis_groups;
    if (owned == NULL && *list != NULL) {
        owned = *list;
        *list = owned->next_group;
    }
    pthread_mutex_unlock(&comm->context->lock);
    return owned;
}

static void end_owned(weft_comm *comm, const char *cause)
{
    for (weft_comm *owned = take_owned(comm); owned != NULL; owned = take_owned(comm)) {
        if (owned->is_tied) { /* the program releases it */
            owned->owner = owned->next_group = NULL;
            owned->is_tied = false;
        } else if (owned->fails_alone) {
            retire(owned, cause);
        } else {
            wf_comm_unmake(owned, cause);
        }
    }
}

/* The operations of an open call group are never started. */
static void give_up_group(weft_comm *comm)
{
    uint64_t posted = atomic_load_explicit(&comm->recent.posted, memory_order_relaxed);

    if (comm->group_depth == 0) return;
    if (comm->group_record != WF_NO_RECORD) wf_record_group_end(comm, WEFT_ERR_ABORTED);
    wf_log(WF_LOG_WARNING,
           "communicator %s ends inside a call group, and %llu operations of the group are not "
           "started; call weft_group_end before the release",
           comm->name, (unsigned long long)(posted - comm->group_first));
}

/* Take COMM out of the context. */
static void detach(weft_comm *comm, const char *cause)
{
    weft_context *context = comm->context;
    weft_comm **at = &context->comms;

    give_up_group(comm);
    wf_dependents_end(comm, cause);
    wf_modules_comm_ends(comm, cause);
    end_owned(comm, cause);
    pthread_mutex_lock(&context->describe_lock);
    pthread_mutex_lock(&context->lock);
    while (*at != NULL && *at != comm)
        at = &(*at)->next;
    if (*at != NULL) *at = comm->next;
    wf_posts_end(comm);
    wf_trace_remove_comm(context->trace, comm->number);
    context->released[context->released_count++ % WF_RELEASED] =
        (struct wf_released){comm->number, atomic_load(&comm->collectives)};
    pthread_mutex_unlock(&context->lock);
    pthread_mutex_unlock(&context->describe_lock);
}

void wf_comm_unmake(weft_comm *comm, const char *cause)
{
    detach(comm, cause);
    wf_comm_free(comm);
}

void wf_comm_end(weft_comm *comm, const char *cause)
{
    detach(comm, cause);
    if (comm->handle != NULL) comm->table->destroy(comm->handle);
    comm->handle = NULL;
    comm->context = NULL;
    comm->made = wf_ended(WF_KIND_COMM);
}

/* End COMM, of which the user may have a copy of the pointer. */
static void retire(weft_comm *comm, const char *cause)
{
    weft_context *context = comm->context;

    detach(comm, cause);
    clear(comm);
    comm->context = NULL;
    comm->rank = -1;
    comm->size = 0;
    comm->made = wf_released(WF_KIND_COMM);
    wf_remnant_keep(context, comm);
}

void wf_comm_forget(weft_context *context, weft_comm *comm)
{
    clear(comm);
    comm->rank = -1;
    comm->size = 0;
    wf_remnant_keep(context, comm);
}

static void release(weft_comm *comm)
{
    char cause[WF_CAUSE];

    snprintf(cause, sizeof cause, "communicator %s was released", comm->name);
    retire(comm, cause);
}

void weft_comm_release(weft_comm **comm)
{
    weft_comm *mine;

    if (comm == NULL || *comm == NULL) return;
    mine = *comm;
    *comm = NULL;
    if (mine->made == wf_ended(WF_KIND_COMM)) {
        wf_comm_free(mine);
    } else if (!wf_is_usable(mine->made, WF_KIND_COMM) &&
               !wf_is_usable(mine->made, WF_KIND_SIMULATED_COMM)) {
        wf_warn_unusable("weft_comm_release", mine->made, WF_KIND_COMM);
    } else if (mine == mine->context->world) {
        wf_log(WF_LOG_WARNING,
               "weft_comm_release: weft_context_release releases the world communicator");
    } else if (mine->owner != NULL && !mine->is_tied) {
        wf_log(WF_LOG_WARNING, "weft_comm_release: the release of %s releases %s",
               mine->owner->name, mine->name);
    } else {
        wf_comm_untie(mine);
        release(mine);
    }
}
