/* deny.c - run a program from which the kernel withholds something: `deny THING PROGRAM
 * [arguments]`.
 *
 * attach: reading other processes' memory.  memfd: files without a name.  ipv6: sockets of that
 * family.  Exit code 77 where filters are not permitted. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ANY UINT32_MAX

static const struct thing {
    const char *name;
    uint32_t call, first_argument; /* ANY: any value */
    uint32_t error;
} things[] = {
    {"attach", SYS_process_vm_readv, ANY, EPERM},
    {"memfd", SYS_memfd_create, ANY, ENOSYS},
    {"ipv6", SYS_socket, AF_INET6, EAFNOSUPPORT},
};

static int install(const struct thing *thing)
{
    uint8_t skip_argument = thing->first_argument == ANY ? 1 : 0;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, thing->call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, thing->first_argument, 0, (uint8_t)(1 - skip_argument)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | thing->error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof things / sizeof things[0]; i++) {
        if (strcmp(argv[1], things[i].name) != 0) continue;
        if (install(&things[i]) != 0) {
            fprintf(stderr, "deny: filters are not permitted here: %s\n", strerror(errno));
            return 77;
        }
        execvp(argv[2], argv + 2);
        fprintf(stderr, "deny: %s: %s\n", argv[2], strerror(errno));
        return 126;
    }
    fprintf(stderr, "usage: deny attach|memfd|ipv6 PROGRAM [arguments]\n");
    return 2;
}
