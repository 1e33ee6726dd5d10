/* hosts_address.c - the choice of the network address of a host.
 *
 * Every rank publishes all addresses of its host.  The ranks use the first network on which every
 * host has a unique address: Ethernet before loopback, IPv4 before IPv6.  An address that several
 * hosts have, such as the bridge of a container engine, is not used. */
#include "hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static uint8_t count_bits(const uint8_t *bytes, size_t length)
{
    uint8_t bits = 0;

    for (size_t i = 0; i < length; i++)
        for (unsigned byte = bytes[i]; byte != 0; byte &= byte - 1)
            bits++;
    return bits;
}

static bool convert(const struct ifaddrs *from, struct cpu_hosts_address *out)
{
    memset(out, 0, sizeof *out);
    if (from->ifa_addr == NULL || from->ifa_netmask == NULL || (from->ifa_flags & IFF_UP) == 0)
        return false;
    out->family = (uint8_t)from->ifa_addr->sa_family;
    out->loopback = (from->ifa_flags & IFF_LOOPBACK) != 0;
    if (out->family == AF_INET) {
        const struct sockaddr_in *address = (const void *)from->ifa_addr;
        const struct sockaddr_in *mask = (const void *)from->ifa_netmask;

        memcpy(out->bytes, &address->sin_addr, 4);
        out->prefix = count_bits((const uint8_t *)&mask->sin_addr, 4);
        return true;
    }
    if (out->family == AF_INET6) {
        const struct sockaddr_in6 *address = (const void *)from->ifa_addr;
        const struct sockaddr_in6 *mask = (const void *)from->ifa_netmask;

        memcpy(out->bytes, &address->sin6_addr, 16);
        out->prefix = count_bits((const uint8_t *)&mask->sin6_addr, 16);
        return !IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
    }
    return false;
}

/* Preference of an address; smaller is better. */
static int rank_of(const struct cpu_hosts_address *address)
{
    return (address->loopback ? 2 : 0) + (address->family == AF_INET6 ? 1 : 0);
}

static void insert(struct cpu_hosts_addresses *all, const struct cpu_hosts_address *address)
{
    uint32_t at = all->count;

    if (all->count == HOSTS_ADDRESSES) {
        if (rank_of(&all->list[--at]) <= rank_of(address)) return;
    } else {
        all->count++;
    }
    for (; at > 0 && rank_of(&all->list[at - 1]) > rank_of(address); at--)
        all->list[at] = all->list[at - 1];
    all->list[at] = *address;
}

/* The boot id identifies the machine, and the namespace identifies the process's view of its
 * network. */
static uint64_t network_of_this_process(void)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    uint64_t hash = 1;
    struct stat info;

    for (int c = file != NULL ? getc(file) : EOF; c != EOF; c = getc(file))
        hash = (hash ^ (uint64_t)c) * UINT64_C(0x100000001b3);
    if (file != NULL) fclose(file);
    if (stat("/proc/self/ns/net", &info) == 0)
        hash = (hash ^ (uint64_t)info.st_ino) * UINT64_C(0x100000001b3);
    return hash;
}

weft_status cpu_hosts_addresses_find(struct cpu_hosts_addresses *out)
{
    const char *wanted = plug_knob("WEFT_GLOO_INTERFACE");
    struct ifaddrs *list;

    memset(out, 0, sizeof *out);
    out->network = network_of_this_process();
    if (getifaddrs(&list) != 0)
        return plug_fail(WEFT_ERR_SYSTEM, "the network interfaces cannot be listed");
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        struct cpu_hosts_address address;
        char text[INET6_ADDRSTRLEN];

        if (!convert(at, &address)) continue;
        cpu_hosts_address_print(&address, text, sizeof text);
        if (wanted == NULL || strcmp(wanted, at->ifa_name) == 0 || strcmp(wanted, text) == 0)
            insert(out, &address);
    }
    freeifaddrs(list);
    if (out->count > 0) return WEFT_OK;
    if (wanted != NULL)
        return plug_fail(WEFT_ERR_SYSTEM,
                         "WEFT_GLOO_INTERFACE is \"%s\": no interface that is up has that name "
                         "or address",
                         wanted);
    return plug_fail(WEFT_ERR_SYSTEM, "no network interface is up");
}

bool cpu_hosts_addresses_valid(const struct cpu_hosts_addresses *addresses)
{
    if (addresses->count < 1 || addresses->count > HOSTS_ADDRESSES) return false;
    for (uint32_t i = 0; i < addresses->count; i++) {
        const struct cpu_hosts_address *address = &addresses->list[i];

        if (address->family != AF_INET && address->family != AF_INET6) return false;
        if (address->prefix > (address->family == AF_INET ? 32 : 128)) return false;
    }
    return true;
}

static const struct cpu_hosts_addresses *entry(const struct cpu_hosts_addresses *all, size_t stride,
                                               int32_t index)
{
    return (const void *)((const uint8_t *)all + stride * (size_t)index);
}

static bool same_network(const struct cpu_hosts_address *a, const struct cpu_hosts_address *b)
{
    uint32_t whole = a->prefix / 8u, rest = a->prefix % 8u;

    if (a->family != b->family || a->prefix != b->prefix) return false;
    if (memcmp(a->bytes, b->bytes, whole) != 0) return false;
    return rest == 0 || ((a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest)) == 0;
}

/* The index in MINE of the address on the network of WANTED, or -1. */
static int find_on(const struct cpu_hosts_addresses *mine, const struct cpu_hosts_address *wanted)
{
    for (uint32_t i = 0; i < mine->count; i++)
        if (same_network(&mine->list[i], wanted)) return (int)i;
    return -1;
}

/* True if every rank has an address on the network of WANTED that is unique to its host. */
static bool suits_all(const struct cpu_hosts_addresses *all, size_t stride, int32_t count,
                      const struct cpu_hosts_address *wanted)
{
    for (int32_t r = 0; r < count; r++) {
        const struct cpu_hosts_addresses *mine = entry(all, stride, r);
        int at = find_on(mine, wanted);

        if (at < 0) return false;
        for (int32_t p = 0; p < r; p++) {
            const struct cpu_hosts_addresses *other = entry(all, stride, p);
            int there = find_on(other, wanted);

            if (other->network != mine->network &&
                memcmp(mine->list[at].bytes, other->list[there].bytes, 16) == 0)
                return false;
        }
    }
    return true;
}

static bool one_network(const struct cpu_hosts_addresses *all, size_t stride, int32_t count)
{
    for (int32_t r = 1; r < count; r++)
        if (entry(all, stride, r)->network != all->network) return false;
    return true;
}

uint32_t cpu_hosts_address_choose(const struct cpu_hosts_addresses *all, size_t stride,
                                  int32_t count, int32_t own)
{
    const struct cpu_hosts_addresses *mine = entry(all, stride, own);
    bool alone = one_network(all, stride, count);

    /* Ranks that share all interfaces can use loopback. */
    for (uint32_t i = 0; alone && i < all->count; i++)
        if (all->list[i].loopback && suits_all(all, stride, count, &all->list[i]))
            return (uint32_t)find_on(mine, &all->list[i]);
    for (uint32_t i = 0; i < all->count; i++)
        if (suits_all(all, stride, count, &all->list[i]))
            return (uint32_t)find_on(mine, &all->list[i]);
    return 0; /* the hosts may reach each other through routers */
}

void cpu_hosts_address_print(const struct cpu_hosts_address *address, char *text, size_t bytes)
{
    if (inet_ntop(address->family, address->bytes, text, (socklen_t)bytes) == NULL) text[0] = '\0';
}

void cpu_hosts_interface_find(const char *wanted, char *name, size_t bytes)
{
    struct ifaddrs *list;

    snprintf(name, bytes, "%s", "");
    if (getifaddrs(&list) != 0) return;
    for (const struct ifaddrs *at = list; at != NULL && name[0] == '\0'; at = at->ifa_next) {
        struct cpu_hosts_address address;
        char text[INET6_ADDRSTRLEN];

        if (!convert(at, &address)) continue;
        cpu_hosts_address_print(&address, text, sizeof text);
        if (strcmp(wanted, text) == 0) snprintf(name, bytes, "%s", at->ifa_name);
    }
    freeifaddrs(list);
}
