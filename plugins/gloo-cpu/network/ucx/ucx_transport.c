/* ucx_transport.c - which of UCX's transports a group uses.
 *
 * UCX 1.13 has no function that tells this, but prints the lanes of an endpoint, a line each:
 * "# lane[0]: 1:tcp/eth0.0 md[1] -> md[1]/tcp/sysdev[255] rma_bw#0 am am_bw#0". */
#include "ucx.h"

#include <stdlib.h>
#include <string.h>

/* Append NAME of LENGTH to the list OUT, unless it is there or does not fit. */
static void add_name(const char *name, size_t length, char *out, size_t bytes)
{
    size_t used = strlen(out);

    for (const char *at = out; *at != '\0';) {
        size_t known = strcspn(at, ",");

        if (known == length && memcmp(at, name, length) == 0) return;
        at += known + (at[known] == ',') + (at[known] == ',' && at[known + 1] == ' ');
    }
    if (used + length + 3 > bytes) return;
    snprintf(out + used, bytes - used, "%s%.*s", used > 0 ? ", " : "", (int)length, name);
}

/* Append the transports and devices of the lanes in TEXT to the list OUT. */
static void add_lanes(const char *text, char *out, size_t bytes)
{
    for (const char *at = text; (at = strstr(at, "lane[")) != NULL;) {
        const char *name = strchr(at, ':');
        size_t length;

        at += strlen("lane[");
        if (name == NULL) return;
        name = strchr(name + 1, ':'); /* behind the number of the resource */
        if (name == NULL) return;
        name++;
        length = strcspn(name, " \n");
        while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9')
            length--;
        if (length > 0 && name[length - 1] == '.') add_name(name, length - 1, out, bytes);
    }
}

void ucx_transport(struct net_group *group, char *out, size_t bytes)
{
    out[0] = '\0';
    pthread_mutex_lock(&group->lock);
    for (int32_t rank = 0; rank < group->size; rank++) {
        char *text = NULL;
        size_t length = 0;
        FILE *stream;

        if (group->peers[rank].endpoint == NULL) continue;
        stream = open_memstream(&text, &length);
        if (stream == NULL) continue;
        ucx.ucp_ep_print_info(group->peers[rank].endpoint, stream);
        if (fclose(stream) == 0) add_lanes(text, out, bytes);
        free(text);
    }
    pthread_mutex_unlock(&group->lock);
}
