/* open_files.h - how many files this process has open, for tests that look for leaks. */
#ifndef WEFT_TESTS_OPEN_FILES_H
#define WEFT_TESTS_OPEN_FILES_H

#include <dirent.h>
#include <stddef.h>

/* Counts its own too, each time. */
static inline int open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL) return -1;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

#endif
