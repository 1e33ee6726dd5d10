/* bare.c - another plugin without some of its entries.
 *
 * BARE_PLUGIN is the file of that plugin.  BARE_LACKS lists what is hidden: "kernel" the kernel
 * table, "reduce" its regions_reduce and regions_average, "memory" WEFT_FEATURE_HOST_MEMORY.
 * "casts": all entries that cast refuse, as those of a GPU plugin without kernels for its device.
 * "copies": regions_copy does nothing, a defect, for what a failing test prints.
 * BARE_RANK is the only rank that lacks these things, if it is set.
 * BARE_DENIES lists operations, with commas: collectives, dtypes of collectives, "messages",
 * "pull", "exchange", or "all" for all of these and all collectives.  `support` denies them, and
 * calls refuse them.  BARE_KEEPS lists operations of "all" that are not denied. */
#include "weft_plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct {
    weft_plugin plugin;
    weft_device_table device;
    weft_comm_table comm;
    weft_symm_table symm;
    weft_kernel_table kernel;
} bare;

static weft_status (*describe_all)(void *device, weft_device_info *out);

static weft_status describe(void *device, weft_device_info *out)
{
    weft_status status = describe_all(device, out);

    if (status == WEFT_OK) out->features &= ~(uint64_t)WEFT_FEATURE_HOST_MEMORY;
    return status;
}

static weft_status copy_nothing(void *list, const void *const *sources, void *const *targets,
                                void *stream)
{
    (void)list, (void)sources, (void)targets, (void)stream;
    return WEFT_OK;
}

/* ---- casts ---- */

static weft_status refuse_cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                               const void *source, void *target, void *stream)
{
    (void)device, (void)from, (void)to, (void)count, (void)source, (void)target, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status refuse_regions_cast(void *list, uint32_t from, uint32_t to,
                                       const void *const *sources, void *const *targets,
                                       void *stream)
{
    (void)list, (void)from, (void)to, (void)sources, (void)targets, (void)stream;
    return WEFT_ERR_UNSUPPORTED;
}

static weft_status refuse_pull_cast(void *comm, const weft_pull_args *args, uint32_t to)
{
    (void)comm, (void)args, (void)to;
    return WEFT_ERR_UNSUPPORTED;
}

/* ---- operations ---- */

static struct {
    const weft_host *host;
    weft_comm_table comm; /* the other plugin's */
    int collectives[WEFT_COLL_COUNT], dtypes[WEFT_DTYPE_COUNT], messages, pull, exchange;
} denied;

/* True if the variable NAME has WORD in its list. */
static int lists(const char *name, const char *word)
{
    const char *at = getenv(name);
    size_t length = strlen(word);

    while (at != NULL && (strncmp(at, word, length) != 0 || strchr(",", at[length]) == NULL)) {
        at = strchr(at, ',');
        if (at != NULL) at++;
    }
    return at != NULL;
}

static int denies(const char *word)
{
    return lists("BARE_DENIES", word) ||
           (lists("BARE_DENIES", "all") && !lists("BARE_KEEPS", word));
}

#define DENY_COLLECTIVE(name, value, text)   denied.collectives[value] = denies(text);
#define DENY_DTYPE(name, value, text, bytes) denied.dtypes[value] = lists("BARE_DENIES", text);

static void read_denied(void)
{
    WEFT_COLLECTIVE_LIST(DENY_COLLECTIVE)
    WEFT_DTYPE_LIST(DENY_DTYPE)
    denied.messages = denies("messages");
    denied.pull = denies("pull");
    denied.exchange = denies("exchange");
}

static weft_status refuse(const char *text)
{
    denied.host->set_error(WEFT_ERR_UNSUPPORTED, NULL, 0, text);
    return WEFT_ERR_UNSUPPORTED;
}

static int is_denied(uint32_t collective, uint32_t dtype)
{
    return collective < WEFT_COLL_COUNT && dtype < WEFT_DTYPE_COUNT &&
           (denied.collectives[collective] ||
            (collective != WEFT_COLL_BARRIER && denied.dtypes[dtype]));
}

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    weft_status status = denied.comm.support(device, query, level);

    if (status == WEFT_OK && is_denied(query->collective, query->dtype)) *level = WEFT_SUPPORT_NO;
    return status;
}

static weft_status collective(void *comm, const weft_collective_args *args)
{
    if (is_denied(args->collective, args->dtype)) return refuse("bare: the collective is denied");
    return denied.comm.collective(comm, args);
}

static weft_status refuse_message(void *comm, const weft_message *message)
{
    (void)comm, (void)message;
    return refuse("bare: there are no messages");
}

/* ---- the plugin ---- */

static int lacks(const char *what)
{
    const char *list = getenv("BARE_LACKS"), *only = getenv("BARE_RANK");
    const char *rank = getenv("WEFT_RANK");

    if (only != NULL && (rank == NULL || strcmp(only, rank) != 0)) return 0;
    return list != NULL && strstr(list, what) != NULL;
}

static const weft_plugin *open_plugin(const weft_host *host)
{
    const char *file = getenv("BARE_PLUGIN");
    void *opened = file != NULL ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    const weft_plugin *(*entry)(const weft_host *) = NULL;
    void *symbol = opened != NULL ? dlsym(opened, "weft_plugin_entry") : NULL;

    if (symbol == NULL) {
        host->set_error(WEFT_ERR_NO_LIBRARY, NULL, 0, "BARE_PLUGIN is not the file of a plugin");
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof entry);
    return entry(host);
}

const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    const weft_plugin *whole = open_plugin(host);

    if (whole == NULL) return NULL;
    bare.plugin = *whole;
    bare.plugin.name = "bare"; /* texts are in this plugin's memory */
    bare.plugin.version = "1";
    bare.plugin.build = "bare";
    bare.plugin.description = "another plugin without some of its entries";
    bare.device = *whole->device;
    bare.comm = *whole->comm;
    bare.plugin.device = &bare.device;
    bare.plugin.comm = &bare.comm;
    if (whole->symm != NULL) {
        bare.symm = *whole->symm;
        bare.plugin.symm = &bare.symm;
    }
    if (whole->kernel != NULL) {
        bare.kernel = *whole->kernel;
        bare.plugin.kernel = &bare.kernel;
    }
    describe_all = bare.device.describe;
    if (lacks("memory")) bare.device.describe = describe;
    if (lacks("copies")) bare.kernel.regions_copy = copy_nothing;
    if (lacks("kernel")) bare.plugin.kernel = NULL;
    if (lacks("reduce")) {
        bare.kernel.regions_reduce = NULL;
        bare.kernel.regions_average = NULL;
    }
    denied.host = host;
    denied.comm = bare.comm;
    read_denied();
    bare.comm.support = support;
    bare.comm.collective = collective;
    if (denied.messages) bare.comm.send = bare.comm.receive = refuse_message;
    if (denied.pull) {
        bare.comm.pull = NULL;
        bare.comm.pull_cast = NULL;
    }
    if (denied.exchange) bare.comm.exchange = NULL;
    if (lacks("casts")) {
        bare.kernel.cast = refuse_cast;
        bare.kernel.regions_cast = refuse_regions_cast;
        if (!denied.pull) bare.comm.pull_cast = refuse_pull_cast;
    }
    return &bare.plugin;
}
