/* hosts.c - which ranks share a host: blocks of devices_per_host consecutive ranks. */
#include "mesh.h"

#include <string.h>

int32_t weft_mesh_devices_per_host(const weft_mesh *mesh)
{
    return wf_is_kind(mesh, WF_KIND_MESH) ? mesh->devices_per_host : 0;
}

int32_t weft_mesh_host_of(const weft_mesh *mesh, int32_t rank)
{
    int32_t devices = weft_mesh_devices_per_host(mesh);

    return devices > 0 && rank >= 0 ? rank / devices : 0;
}

weft_status wf_mesh_count_hosts(weft_mesh *draft)
{
    size_t slots = (size_t)draft->position_mask + 1; /* at least twice as many as ranks */
    int32_t *seen = wf_alloc(slots * sizeof *seen);

    if (seen == NULL) return wf_fail_memory(slots * sizeof *seen);
    memset(seen, 0xff, slots * sizeof *seen);
    for (int32_t i = 0; i < draft->size; i++) {
        int32_t host = weft_mesh_host_of(draft, draft->ranks[i]);
        uint32_t at = (uint32_t)wf_hash_mix(0, (uint32_t)host) & draft->position_mask;
        while (seen[at] >= 0 && seen[at] != host)
            at = (at + 1) & draft->position_mask;
        if (seen[at] < 0) draft->hosts++;
        seen[at] = host;
    }
    wf_free(seen);
    return WEFT_OK;
}

/* The N-th smallest rank of a regular mesh: its digits are those of N, by ascending stride. */
static int32_t nth_rank(const weft_mesh *mesh, int32_t n)
{
    int32_t rank = mesh->origin;

    for (int32_t i = mesh->mode_count - 1; i >= 0; i--) {
        const struct wf_mode *m = &mesh->modes[mesh->by_stride[i]];
        rank += n % m->size * m->stride;
        n /= m->size;
    }
    return rank;
}

int32_t weft_mesh_hosts(const weft_mesh *mesh)
{
    int32_t first, last, hosts = 1;

    if (!wf_is_kind(mesh, WF_KIND_MESH)) return 0;
    if (mesh->ranks != NULL) return mesh->hosts;
    first = weft_mesh_host_of(mesh, mesh->origin);
    last = weft_mesh_host_of(mesh, nth_rank(mesh, mesh->size - 1));
    if (mesh->mode_count == 0 || last - first < 2) return last - first + 1;
    /* The smallest strides reach from one host to the next without gaps. */
    if (nth_rank(mesh, mesh->size - 1) - mesh->origin == mesh->size - 1) return last - first + 1;
    for (int32_t i = 1, before = first; i < mesh->size; i++) {
        int32_t host = weft_mesh_host_of(mesh, nth_rank(mesh, i));
        hosts += host != before;
        before = host;
    }
    return hosts;
}
