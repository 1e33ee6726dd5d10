/* wrong.h - plugins that are wrong in one way each, made from the example plugin.
 *
 * wrong.c copies the example's tables; each wrong_NAME.c replaces a function or two in them.  The
 * lines "Runs:" and "Fails:" at its top say what the conformance kit is asked to run on it, and
 * which case it must name. */
#ifndef WEFT_TESTS_WRONG_H
#define WEFT_TESTS_WRONG_H

#include "example.h"

struct wrong {
    weft_plugin plugin;
    weft_device_table device;
    weft_comm_table comm;
    weft_symm_table symm;
    weft_kernel_table kernel;
};

extern struct wrong wrong; /* modified by wrong_install */
extern struct wrong right; /* unmodified */

/* Called once, by the entry: installs the wrong functions. */
void wrong_install(void);
/* Installs them by assignments: INSTALL(wrong.comm.send = send, wrong.comm.receive = receive) */
#define INSTALL(...)                                                                               \
    void wrong_install(void)                                                                       \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

/* Run ARGS with the example's own function. */
static inline weft_status run_right(void *comm, const weft_collective_args *args)
{
    return right.comm.collective(comm, args);
}

#endif
