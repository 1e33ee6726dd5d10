/* open_files.h - how many files and threads this process has, for tests that look for leaks. */
#ifndef WEFT_TESTS_OPEN_FILES_H
#define WEFT_TESTS_OPEN_FILES_H

#include <dirent.h>
#include <stddef.h>

/* How many entries the folder PATH has; -1: it cannot be read. */
static inline int entries_of(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    if (folder == NULL) return -1;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Counts its own too, each time. */
static inline int open_files(void)
{
    return entries_of("/proc/self/fd");
}

#endif
