/* open_files.h - the number of files and threads of this process, for tests of leaks. */
#ifndef WEFT_TESTS_OPEN_FILES_H
#define WEFT_TESTS_OPEN_FILES_H

#include <dirent.h>
#include <stddef.h>

/* The number of entries of the folder PATH; -1 if it cannot be read. */
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

/* The count includes the descriptor of the search itself. */
static inline int open_files(void)
{
    return entries_of("/proc/self/fd");
}

#endif
