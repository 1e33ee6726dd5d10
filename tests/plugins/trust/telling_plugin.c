/* telling_plugin.c - a plugin that refuses to serve, after it has printed every path variable that
 * the host hands out; and a thread of it that calls the host's services whenever it is asked to. */
#include "weft_plugin.h"

#include <pthread.h>
#include <stdio.h>

const weft_plugin *weft_plugin_entry(const weft_host *host);
int telling_call_host(void);

static const weft_host *kept;

static const char *const paths[] = {
#define TELL_TEXT(variable)
#define TELL_SECRET(variable)
#define TELL_PATH(variable)  #variable,
#define TELL_PATHS(variable) #variable,
#define TELL_BOOL(variable)
#define TELL_LEVEL(variable)
#define TELL_NUMBER(variable)
#define TELL_SECONDS(variable)
#define TELL_PERIOD(variable)
#define TELL_BYTES(variable)
#define KNOB(variable, field, type, fallback, planning, help) TELL_##type(variable)
#include "config/knobs.def"
};

static void *call_host(void *done)
{
    void *memory = kept->allocate(64);

    kept->log(2, "the plugin is still here");
    kept->set_error(WEFT_ERR_DEVICE, "Vendor", 5, "a failure that nobody reads");
    (void)kept->knob("WEFT_LOG");
    kept->release(memory);
    *(int *)done = memory != NULL;
    return NULL;
}

/* Runs on a thread of the plugin. */
__attribute__((visibility("default"))) int telling_call_host(void)
{
    pthread_t thread;
    int done = 0;

    if (pthread_create(&thread, NULL, call_host, &done) != 0) return 0;
    pthread_join(thread, NULL);
    return done;
}

__attribute__((visibility("default"))) const weft_plugin *weft_plugin_entry(const weft_host *host)
{
    kept = host;
    printf("the telling plugin runs\n");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (host->knob(paths[i]) != NULL) printf("obeyed: %s\n", paths[i]);
    fflush(stdout);
    host->set_error(WEFT_ERR_UNSUPPORTED, NULL, 0, "it only tells");
    return NULL;
}
