/* cuda_ranges.c - ranges as NVTX ranges of the domain "weft". */
#include "device/gpu.h"
#include "nvtx.h"

#include <string.h>

static void *domain;
static bool is_attached;

static void attach(void)
{
    is_attached = nvtx_attach();
    if (is_attached) domain = nvtx_domain_create("weft");
}

uint32_t gpu_ranges_wanted(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, attach);
    return is_attached ? 1 : 0;
}

/* ---- texts that the tool knows ---- */

enum { NAMES = 1024, CATEGORIES = 128 };

/* Kept until the process ends. */
struct known {
    void *handle;    /* of a name; NULL: the tool takes the text itself */
    uint32_t number; /* of a category, from 1 */
    char text[];
};

/* Open addressing.  Entries are only added, so readers need no lock. */
struct dictionary {
    pthread_mutex_t lock;
    uint32_t used, size;
    _Atomic(struct known *) *entries;
};

static _Atomic(struct known *) name_entries[NAMES], category_entries[CATEGORIES];
static struct dictionary names = {PTHREAD_MUTEX_INITIALIZER, 0, NAMES, name_entries};
static struct dictionary categories = {PTHREAD_MUTEX_INITIALIZER, 0, CATEGORIES, category_entries};

/* The entry of TEXT, or NULL.  *PLACE is where it is, or where it belongs. */
static struct known *look(struct dictionary *in, const char *text, uint32_t *place)
{
    uint32_t hash = 2166136261u;

    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (*place = hash % in->size;; *place = (*place + 1) % in->size) {
        struct known *found = atomic_load_explicit(&in->entries[*place], memory_order_acquire);

        if (found == NULL || strcmp(found->text, text) == 0) return found;
    }
}

/* Make TEXT known to the tool, with the lock held.  NULL: there is no room. */
static struct known *add(struct dictionary *to, const char *text, uint32_t place)
{
    size_t bytes = strlen(text) + 1;
    struct known *made;

    if (to->used >= to->size / 4 * 3) return NULL; /* free places end every search */
    made = plug_alloc(sizeof *made + bytes);
    if (made == NULL) return NULL;
    memcpy(made->text, text, bytes);
    made->number = ++to->used;
    if (to == &categories)
        nvtx_name_category(domain, made->number, made->text);
    else
        made->handle = nvtx_register_string(domain, made->text);
    atomic_store_explicit(&to->entries[place], made, memory_order_release);
    return made;
}

static const struct known *find(struct dictionary *in, const char *text)
{
    uint32_t place;
    struct known *found = look(in, text, &place);

    if (found != NULL) return found;
    pthread_mutex_lock(&in->lock);
    found = look(in, text, &place);
    if (found == NULL) found = add(in, text, place);
    pthread_mutex_unlock(&in->lock);
    return found;
}

/* ---- ranges ---- */

void gpu_range_begin(const weft_range *given)
{
    const struct known *name, *category;
    struct nvtx_event event = {.version = NVTX_CLIENT_VERSION, .size = sizeof event};
    weft_range range;

    plug_take_struct(&range, given, sizeof range);
    category = find(&categories, range.category);
    name = find(&names, range.name);
    event.category = category != NULL ? category->number : 0;
    event.payload_kind = NVTX_PAYLOAD_U64;
    event.payload = range.bytes;
    if (name != NULL && name->handle != NULL) {
        event.message_kind = NVTX_MESSAGE_REGISTERED;
        event.message = name->handle;
    } else {
        event.message_kind = NVTX_MESSAGE_TEXT;
        event.message = range.name;
    }
    nvtx_range_push(domain, &event);
}

void gpu_range_end(void)
{
    nvtx_range_pop(domain);
}
