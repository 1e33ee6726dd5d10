/* test_unload.c LIBWEFT PLUGIN - plugins stay loaded and keep the host's services, so libweft stays
 * loaded too after its user closes it. */
#include "weft/backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition) require((condition), #condition, __LINE__)

static void require(int holds, const char *what, int line)
{
    if (holds) return;
    fprintf(stderr, "test_unload.c:%d: %s does not hold\n", line, what);
    exit(EXIT_FAILURE);
}

typedef weft_status find_function(const weft_backend_options *options, weft_backends **out);
typedef void release_function(weft_backends **backends);

/* Let the library at HANDLE look for the plugin in FOLDER. */
static void find_plugins(void *handle, const char *folder)
{
    weft_backend_options options = {sizeof options, "telling", folder};
    weft_backends *backends = NULL;
    find_function *find;
    release_function *release;

    *(void **)(void *)&find = dlsym(handle, "weft_backends_create");
    *(void **)(void *)&release = dlsym(handle, "weft_backends_release");
    REQUIRE(find != NULL && release != NULL);
    REQUIRE(find(&options, &backends) == WEFT_OK);
    release(&backends);
}

int main(int count, char **arguments)
{
    void *library, *again, *plugin, *symbol;
    int (*call_host)(void);
    char *folder;

    REQUIRE(count == 3);
    folder = strdup(arguments[2]);
    REQUIRE(folder != NULL);
    *strrchr(folder, '/') = '\0';

    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != NULL);
    symbol = dlsym(library, "weft_backends_create");
    find_plugins(library, folder);
    plugin = dlopen(arguments[2], RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(plugin != NULL); /* weft has opened it */
    *(void **)(void *)&call_host = dlsym(plugin, "telling_call_host");
    REQUIRE(call_host != NULL && call_host());

    REQUIRE(dlclose(library) == 0);
    REQUIRE(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == library);
    REQUIRE(dlclose(library) == 0);
    REQUIRE(call_host());

    again = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    REQUIRE(again == library);
    REQUIRE(dlsym(again, "weft_backends_create") == symbol);
    find_plugins(again, folder);
    REQUIRE(call_host());
    free(folder);
    return EXIT_SUCCESS;
}
