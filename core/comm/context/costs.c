/* costs.c - the cost table of a job: from WEFT_COSTS, or from the plugin.
 *
 * Ranks that read WEFT_COSTS compare its contents when they start.  A plugin's costs may differ
 * between machines, so all ranks use those of rank 0's plugin. */
#include "comm/comm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20 }; /* of a file; a table has some hundreds */

/* Only regular files are read: a read of a device or a pipe may block or never end. */
static weft_status open_table(const char *name, int *out)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;

    if (fd < 0)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "%s is neither a built-in cost table (" WF_COST_NAMES ") nor a file: %s",
                       name, kit_error_text(errno));
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(fd);
        return wf_fail(WEFT_ERR_INVALID, "%s is not a regular file; a cost table is a regular file",
                       name);
    }
    *out = fd;
    return WEFT_OK;
}

static weft_status read_table(const char *name, int fd, struct wf_text *out)
{
    char block[4096];
    size_t bytes = 0;
    ssize_t got;

    while ((got = read(fd, block, sizeof block)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return wf_fail(WEFT_ERR_SYSTEM, "%s cannot be read: %s", name, kit_error_text(errno));
        bytes += (size_t)got;
        if (bytes > MAX_BYTES)
            return wf_fail(WEFT_ERR_INVALID, "%s has more than %d bytes, so it is not a cost table",
                           name, MAX_BYTES);
        if (memchr(block, '\0', (size_t)got) != NULL)
            return wf_fail(WEFT_ERR_PARSE,
                           "%s has bytes that are not text, so it is not a cost table", name);
        wf_text_append(out, block, (size_t)got);
    }
    return wf_text_status(out);
}

weft_status weft_cost_table_open(const char *name, weft_cost_table **out)
{
    struct wf_text text = {0};
    weft_cost_table *built_in;
    weft_status status;
    int fd = -1;

    WF_TRY(wf_require(out, "weft_cost_table_open: out"));
    if (name == NULL) name = wf_config_knob("WEFT_COSTS");
    if (name == NULL) name = "default";
    built_in = wf_cost_built_in(name);
    if (built_in != NULL) {
        *out = built_in;
        return WEFT_OK;
    }
    WF_TRY(open_table(name, &fd));
    status = read_table(name, fd, &text);
    close(fd);
    if (status == WEFT_OK) {
        status = weft_cost_table_parse(text.data != NULL ? text.data : "", out);
        if (status != WEFT_OK) status = wf_fail_context(status, "%s", name);
    }
    wf_text_free(&text);
    return status;
}

weft_status wf_costs_choose(weft_context *context)
{
    const weft_plugin *plugin = context->plugin;
    const char *name = context->config->costs;
    weft_status status;

    if (name == NULL) {
        bool can_pull = plugin != NULL && plugin->comm != NULL && WF_HAS(plugin->comm, pull);

        context->costs = wf_cost_built_in(can_pull ? "cpu" : "default");
        return WEFT_OK;
    }
    status = weft_cost_table_open(name, &context->costs);
    return status == WEFT_OK ? status : wf_fail_context(status, "WEFT_COSTS");
}

/* If the ranks' devices can read each other's memory, use the table `default` with one-sided
 * access. */
static weft_status suit_device(weft_context *context)
{
    weft_cost_table *table = NULL;

    if (!WF_HAS(context->plugin->comm, pull) || (context->features & WEFT_FEATURE_HOST_MEMORY) != 0)
        return WEFT_OK;
    WF_TRY(wf_cost_copy(wf_cost_default(), context->plugin->name, &table));
    table->one_sided = true;
    weft_cost_table_release(&context->costs);
    context->costs = table;
    return WEFT_OK;
}

static weft_status ask_plugin(void *self, const weft_support_query *query, uint64_t bytes,
                              weft_cost *out)
{
    weft_context *context = self;

    *out = (weft_cost){.struct_size = sizeof *out};
    return context->plugin->comm->cost(context->device, query, bytes, out);
}

static weft_status print_table(const weft_cost_table *table, char **text, size_t *length)
{
    WF_TRY(weft_cost_table_print(table, NULL, 0, length));
    *text = wf_alloc(*length + 1);
    if (*text == NULL) return wf_fail_memory(*length + 1);
    return weft_cost_table_print(table, *text, *length + 1, NULL);
}

/* The table as this rank's plugin has it, as text. */
static weft_status write_table(weft_context *context, char **text, size_t *length)
{
    weft_cost_table *table = NULL;
    weft_status status;

    WF_TRY(wf_cost_copy(context->costs, context->plugin->name, &table));
    wf_cost_derive(table, context->size, ask_plugin, context);
    status = print_table(table, text, length);
    weft_cost_table_release(&table);
    return status;
}

/* All ranks take the TEXT of rank GIVER; STATUS is this rank's.  Frees TEXT. */
static weft_status take_table(weft_context *context, int32_t giver, weft_status status, char *text,
                              size_t length)
{
    struct wf_gathered got;

    status = wf_comm_agree(context->world, "costs", status,
                           (weft_blob){text != NULL ? text : "", length}, &got);
    wf_free(text);
    if (status != WEFT_OK) return status;
    text = wf_calloc(1, (size_t)got.blobs[giver].bytes + 1);
    if (text != NULL) {
        weft_cost_table_release(&context->costs);
        memcpy(text, got.blobs[giver].data, (size_t)got.blobs[giver].bytes);
        status = weft_cost_table_parse(text, &context->costs);
    } else {
        status = wf_fail_memory((size_t)got.blobs[giver].bytes + 1);
    }
    wf_free(text);
    wf_gathered_free(&got);
    return status;
}

weft_status wf_costs_ask(weft_context *context)
{
    weft_status status = WEFT_OK;
    char *text = NULL;
    size_t length = 0;

    if (context->config->costs != NULL) return WEFT_OK;
    WF_TRY(suit_device(context));
    if (!WF_HAS(context->plugin->comm, cost)) return WEFT_OK;
    if (context->rank == 0) status = write_table(context, &text, &length);
    return take_table(context, 0, status, text, length);
}

weft_status wf_costs_share(weft_context *context, int32_t giver)
{
    weft_status status = WEFT_OK;
    char *text = NULL;
    size_t length = 0;

    if (context->config->costs != NULL) return WEFT_OK;
    if (context->rank == giver) status = print_table(context->costs, &text, &length);
    return take_table(context, giver, status, text, length);
}

const weft_cost_table *weft_context_costs(const weft_context *context)
{
    return context != NULL ? context->costs : NULL;
}
