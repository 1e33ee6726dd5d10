/* namespaces.c - preloaded into a program whose forked children are ranks: child I joins the
 * network namespace I % N of the N in WEFT_TEST_NAMESPACES, as `ip netns exec` does. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static unsigned children;

static void count_child(void)
{
    children++;
}

static _Noreturn void fail(const char *what)
{
    perror(what);
    _exit(1);
}

/* UCX looks for interfaces in /sys, which shows the namespace of whoever mounted it. */
static void show_interfaces(void)
{
    if (unshare(CLONE_NEWNS) != 0) fail("unshare");
    if (mount("", "/", "none", MS_SLAVE | MS_REC, NULL) != 0) fail("mount /");
    (void)umount2("/sys", MNT_DETACH);
    if (mount("sysfs", "/sys", "sysfs", 0, NULL) != 0) fail("mount /sys");
}

static void join(const char *name)
{
    char path[256];
    int file;

    snprintf(path, sizeof path, "/var/run/netns/%s", name);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || setns(file, CLONE_NEWNET) != 0) fail(path);
    close(file);
    show_interfaces();
}

static void place_child(void)
{
    char names[1024], *all[16], *rest = names;
    unsigned count = 0;

    snprintf(names, sizeof names, "%s", getenv("WEFT_TEST_NAMESPACES"));
    for (char *name; count < 16 && (name = strtok_r(rest, " ", &rest)) != NULL;)
        all[count++] = name;
    if (count > 0) join(all[(children - 1) % count]);
}

__attribute__((constructor)) static void begin(void)
{
    if (getenv("WEFT_TEST_NAMESPACES") != NULL) pthread_atfork(count_child, NULL, place_child);
}
