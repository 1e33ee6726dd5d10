/* files.c - counts the open files of this process. */
#include "process.h"

#include <dirent.h>

int kit_open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL) return -1;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}
