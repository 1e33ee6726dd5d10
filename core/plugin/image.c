/* image.c - the memory of a loaded object.  A plugin's pointer is followed only if it points into
 * that memory, so an invalid pointer is refused and does not crash. */
#include "plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct query {
    const struct link_map *map; /* the object's load address and name */
    struct wf_image *out;
};

static void read_segments(const struct dl_phdr_info *info, struct wf_image *out)
{
    out->count = 0;
    for (unsigned i = 0; i < info->dlpi_phnum && out->count < WF_COUNT(out->segments); i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
        out->segments[out->count].start = start;
        out->segments[out->count].end = start + info->dlpi_phdr[i].p_memsz;
        out->segments[out->count].flags = info->dlpi_phdr[i].p_flags;
        out->count++;
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *argument)
{
    const struct query *query = argument;

    (void)size;
    if (info->dlpi_addr != query->map->l_addr || strcmp(info->dlpi_name, query->map->l_name) != 0)
        return 0;
    read_segments(info, query->out);
    return 1;
}

bool wf_image_of_handle(void *handle, struct wf_image *out)
{
    struct link_map *map = NULL;

    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL) return false;
    return dl_iterate_phdr(visit, &(struct query){map, out}) != 0;
}

/* Bytes from POINTER to the end of its readable segment; 0 outside. */
static size_t readable(const struct wf_image *image, const void *pointer)
{
    uintptr_t start = (uintptr_t)pointer;

    for (size_t i = 0; i < image->count; i++)
        if (start >= image->segments[i].start && start < image->segments[i].end &&
            (image->segments[i].flags & PF_R) != 0)
            return image->segments[i].end - start;
    return 0;
}

bool wf_image_holds(const struct wf_image *image, const void *pointer, size_t bytes)
{
    return bytes > 0 && readable(image, pointer) >= bytes;
}

bool wf_image_holds_string(const struct wf_image *image, const char *text, size_t longest)
{
    size_t room = readable(image, text);

    if (room > longest + 1) room = longest + 1;
    return room > 0 && memchr(text, '\0', room) != NULL;
}

bool wf_image_executes(const struct wf_image *image, const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;

    for (size_t i = 0; i < image->count; i++)
        if (address >= image->segments[i].start && address < image->segments[i].end)
            return (image->segments[i].flags & PF_X) != 0;
    return false;
}
