/* named_engine.c - a program for `weft run --threads`: rank 0 prints the name that its recorder
 * has. */
#include <weft/weft.h>
#include <weft/recorder.h>

#include <stdio.h>
#include <unistd.h>

__attribute__((visibility("default"))) int weft_main(int argc, char **argv);

int weft_main(int argc, char **argv)
{
    weft_recorder_info info = {.struct_size = sizeof info};
    weft_context *context;
    weft_recorders *recorders;
    int code = 1;

    (void)argc;
    (void)argv;
    if (weft_init(NULL, &context) != WEFT_OK || weft_recorders_create(&recorders) != WEFT_OK)
        return 1;
    for (size_t i = 0; i < weft_recorders_count(recorders); i++) {
        if (weft_recorder_get(weft_recorders_at(recorders, i), &info) != WEFT_OK ||
            info.pid != getpid())
            continue;
        code = 0;
        if (info.rank == weft_rank(context) && info.rank == 0)
            printf("the program is %s\n", info.program);
    }
    weft_recorders_release(&recorders);
    weft_context_release(&context);
    return code;
}
