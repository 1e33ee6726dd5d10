/* identity.c - which host this is.
 *
 * Two ranks can share memory only under one kernel, so the identity contains the kernel's boot id.
 * Containers on one kernel differ in their namespaces.  A backend still tests whether it can share
 * memory. */
#include "launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t hash_file(uint64_t seed, const char *path)
{
    char bytes[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0) return seed;
    got = read(fd, bytes, sizeof bytes);
    close(fd);
    return got > 0 ? wf_hash(seed, bytes, (size_t)got) : seed;
}

static uint64_t hash_namespace(uint64_t seed, const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? wf_hash_mix(seed, (uint64_t)info.st_ino) : seed;
}

struct wf_identity wf_identity(const char *pretended)
{
    struct wf_identity identity = {.pid = (uint64_t)getpid()};
    uint64_t host = 1;

    if (gethostname(identity.host_name, sizeof identity.host_name - 1) != 0)
        snprintf(identity.host_name, sizeof identity.host_name, "unknown");
    if (pretended != NULL) {
        identity.host = wf_hash(2, pretended, strlen(pretended));
        return identity;
    }
    host = hash_file(host, "/proc/sys/kernel/random/boot_id");
    host = hash_file(host, "/etc/machine-id");
    host = wf_hash(host, identity.host_name, strlen(identity.host_name));
    host = hash_namespace(host, "/proc/self/ns/ipc");
    host = hash_namespace(host, "/proc/self/ns/net");
    host = hash_namespace(host, "/proc/self/ns/pid");
    identity.host = host;
    return identity;
}

uint64_t wf_process_began(uint64_t pid)
{
    char text[1024] = "";
    const char *at = NULL;
    FILE *file;

    snprintf(text, sizeof text, "/proc/%llu/stat", (unsigned long long)pid);
    file = fopen(text, "re");
    if (file == NULL) return 0;
    if (fgets(text, sizeof text, file) != NULL) at = strrchr(text, ')');
    fclose(file);
    for (int field = 2; at != NULL && field < 22; field++) /* the 2nd is a name in parentheses */
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

uint64_t wf_clock_identity(void)
{
    return hash_namespace(hash_file(3, "/proc/sys/kernel/random/boot_id"), "/proc/self/ns/time");
}
