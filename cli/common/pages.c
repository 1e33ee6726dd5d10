/* pages.c - where the pages of the manual are. */
#include "common/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set OUT to the installed PAGE.  False: it is not where this program's installation has it. */
static bool find_installed(const char *page, char out[PATH_MAX])
{
    char program[PATH_MAX], path[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    const char *documents = CLI_DOCUMENTS; /* from the folder of the program, or absolute */
    char *slash;

    if (length <= 0) return false;
    program[length] = '\0';
    slash = strrchr(program, '/');
    if (slash == NULL) return false;
    slash[1] = '\0';
    snprintf(path, sizeof path, "%s%s/docs/%s", documents[0] == '/' ? "" : program, documents,
             page);
    return realpath(path, out) != NULL;
}

void cli_print_pages(FILE *file, const char *const *pages, size_t count)
{
    fprintf(file, "manual: ");
    for (size_t i = 0; i < count; i++) {
        char path[PATH_MAX];

        fprintf(file, "%s", i > 0 ? ", " : "");
        if (find_installed(pages[i], path))
            fprintf(file, "%s", path);
        else
            fprintf(file, "docs/%s", pages[i]);
    }
    fprintf(file, "\n");
}
