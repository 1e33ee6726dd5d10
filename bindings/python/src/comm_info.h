/* comm_info.h - the methods of comm_info.c, and names of collectives. */
#ifndef WEFT_PYTHON_COMM_INFO_H
#define WEFT_PYTHON_COMM_INFO_H

#include "interrupt.h"

/* The numbers of a collective and a reduction, by their names. */
int read_names(const char *collective, const char *reduction, uint32_t *collective_out,
               uint32_t *reduction_out);

PyObject *comm_world_rank(PyObject *self, PyObject *args);
PyObject *comm_find_rank(PyObject *self, PyObject *args);
PyObject *comm_same_host(PyObject *self, PyObject *args);
PyObject *comm_get_native(PyObject *self, void *closure);
PyObject *comm_check(PyObject *self, PyObject *unused);
PyObject *comm_report(PyObject *self, PyObject *unused);
PyObject *comm_support(PyObject *self, PyObject *args, PyObject *kwargs);

#define COMM_INFO_METHODS                                                                          \
    {"world_rank", comm_world_rank, METH_VARARGS,                                                  \
     "world_rank(rank)\n\nThe rank in the job; -1: there is no such rank."},                       \
        {"find_rank", comm_find_rank, METH_VARARGS,                                                \
         "find_rank(world_rank)\n\nThe rank of a rank of the job; -1: it is not a member."},       \
        {"same_host", comm_same_host, METH_VARARGS,                                                \
         "same_host(a, b)\n\nWhether two ranks run on the same host."},                            \
        {"check", comm_check, METH_NOARGS,                                                         \
         "check()\n\nRaise the cause if the communicator has failed."},                            \
        {"report", comm_report, METH_NOARGS,                                                       \
         "report()\n\nThe recent operations of this rank and the positions of others, as lines."}, \
        {"support", KEYWORDS(comm_support),                                                        \
         "support(collective, dtype, op=\"sum\")\n\n\"native\", \"emulated\" or \"none\"."},

#endif
