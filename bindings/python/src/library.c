/* library.c - the libweft that the extension uses, and others in this process.
 *
 * Each copy of the library has its own registry of rules, its own list of contexts and its own
 * handlers of fork, so objects of one are not known to the other. */
#include "binding.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct search {
    struct stat own;
    char other[1024]; /* "": none */
};

static int look(struct dl_phdr_info *object, size_t size, void *argument)
{
    struct search *search = argument;
    const char *slash = strrchr(object->dlpi_name, '/');
    struct stat found;

    (void)size;
    if (strncmp(slash != NULL ? slash + 1 : object->dlpi_name, "libweft.so", 10) != 0) return 0;
    if (stat(object->dlpi_name, &found) != 0) return 0;
    if (found.st_dev == search->own.st_dev && found.st_ino == search->own.st_ino) return 0;
    snprintf(search->other, sizeof search->other, "%s", object->dlpi_name);
    return 1;
}

int refuse_second_library(void)
{
    struct search search = {.other = ""};
    Dl_info own;

    if (dladdr((const void *)weft_version, &own) == 0 || stat(own.dli_fname, &search.own) != 0)
        return 0;
    dl_iterate_phdr(look, &search);
    if (search.other[0] == 0) return 0;
    PyErr_Format(PyExc_ImportError,
                 "this process has two copies of libweft, %s and %s; a program must load one",
                 own.dli_fname, search.other);
    return -1;
}
