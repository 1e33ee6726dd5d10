/* named_engine.c - a program for `weft run --threads`: rank 0 prints the name that its ring has. */
#include <weft/weft.h>

#include <stdio.h>
#include <unistd.h>

__attribute__((visibility("default"))) int weft_main(int argc, char **argv);

int weft_main(int argc, char **argv)
{
    weft_ring_info info = {.struct_size = sizeof info};
    weft_context *context;
    weft_rings *rings;
    int code = 1;

    (void)argc;
    (void)argv;
    if (weft_init(NULL, &context) != WEFT_OK || weft_rings_create(&rings) != WEFT_OK) return 1;
    for (size_t i = 0; i < weft_rings_count(rings); i++) {
        if (weft_ring_get(weft_rings_at(rings, i), &info) != WEFT_OK || info.pid != getpid())
            continue;
        code = 0;
        if (info.rank == weft_rank(context) && info.rank == 0)
            printf("the program is %s\n", info.program);
    }
    weft_rings_release(&rings);
    weft_context_release(&context);
    return code;
}
