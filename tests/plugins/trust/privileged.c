/* privileged.c [FOLDER] - what a set-user-ID program does with weft: look for plugins, also in
 * FOLDER, and start.  test_setuid.c runs it and reads what it prints. */
#include "weft/backend.h"
#include "weft/context.h"

#include <stdio.h>
#include <sys/auxv.h>

static void find_plugins(const weft_backend_options *options)
{
    weft_backends *backends = NULL;
    weft_backend_trace_info line = {.struct_size = sizeof line};

    if (weft_backends_create(options, &backends) != WEFT_OK) {
        printf("find fails: %s\n", weft_last_error());
        return;
    }
    for (size_t i = 0; i < weft_backends_trace_count(backends); i++)
        if (weft_backends_trace_get(backends, i, &line) == WEFT_OK) printf("%s\n", line.text);
    weft_backends_release(&backends);
}

int main(int count, char **arguments)
{
    weft_context *context = NULL;

    setvbuf(stdout, NULL, _IONBF, 0);
    printf("secure: %lu\n", getauxval(AT_SECURE));
    if (count > 1) {
        weft_backend_options options = {sizeof options, "telling", arguments[1]};

        find_plugins(&options);
        return 0;
    }
    find_plugins(NULL);
    if (weft_init(NULL, &context) == WEFT_OK)
        printf("init succeeds\n");
    else
        printf("init fails: %s\n", weft_last_error());
    weft_context_release(&context);
    return 0;
}
