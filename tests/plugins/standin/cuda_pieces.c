/* cuda_pieces.c - physical memory of the simulated device: anonymous files, mapped at reserved
 * addresses.  A piece is sent to other processes as its file. */
#include "gpu.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long long address, piece;

enum { GRAIN = 65536 };

struct options {
    int type, handle_types, location_type, location_id;
};

static void *pointer(address a)
{
    return (void *)(uintptr_t)a;
}

/* Files that were imported, and the piece that each thread mapped last. */
enum { MAX_FILES = 4096 };
static bool imported[MAX_FILES];
static _Thread_local struct {
    void *at;
    int file;
} last_map;

static bool is_imported(const void *at)
{
    return last_map.at == at && last_map.file < MAX_FILES && imported[last_map.file];
}

/* A handle is the file's number plus one. */
static int file_of(piece handle)
{
    return (int)handle - 1;
}

API(cuMemGetAllocationGranularity, size_t *bytes, const struct options *options, int which)
{
    (void)which;
    *bytes = GRAIN;
    return options->type == 1 ? SG_OK : SG_INVALID_VALUE;
}

API(cuMemCreate, piece *out, size_t bytes, const struct options *options, unsigned long long flags)
{
    int file;

    if (flags != 0 || options->type != 1 || bytes == 0 || bytes % GRAIN != 0)
        return SG_INVALID_VALUE;
    if (sg_broken() != SG_OK) return sg_broken();
    if (bytes > (size_t)sg_setting("STANDIN_MEMORY", 1L << 34)) return SG_OUT_OF_MEMORY;
    file = memfd_create("weft-standin", MFD_CLOEXEC);
    if (file < 0) return SG_OUT_OF_MEMORY;
    if (ftruncate(file, (off_t)bytes) != 0) {
        close(file);
        return SG_OUT_OF_MEMORY;
    }
    if (file < MAX_FILES) imported[file] = false;
    *out = (piece)file + 1;
    return SG_OK;
}

API(cuMemRelease, piece handle)
{
    return handle != 0 && close(file_of(handle)) == 0 ? SG_OK : SG_INVALID_VALUE;
}

API(cuMemExportToShareableHandle, int *out, piece handle, int kind, unsigned long long flags)
{
    int file = fcntl(file_of(handle), F_DUPFD_CLOEXEC, 0);

    if (kind != 1 || flags != 0 || file < 0) return SG_INVALID_VALUE;
    *out = file;
    return SG_OK;
}

API(cuMemImportFromShareableHandle, piece *out, void *given, int kind)
{
    int file = fcntl((int)(intptr_t)given, F_DUPFD_CLOEXEC, 0);

    if (kind != 1 || file < 0) return SG_INVALID_VALUE;
    if (file < MAX_FILES) imported[file] = true;
    *out = (piece)file + 1;
    return SG_OK;
}

API(cuMemAddressReserve, address *out, size_t bytes, size_t alignment, address wanted,
    unsigned long long flags)
{
    void *taken;

    if (alignment != 0 || wanted != 0 || flags != 0 || bytes % GRAIN != 0) return SG_INVALID_VALUE;
    taken = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (taken == MAP_FAILED) return SG_OUT_OF_MEMORY;
    *out = (uintptr_t)taken;
    return SG_OK;
}

API(cuMemAddressFree, address a, size_t bytes)
{
    return munmap(pointer(a), bytes) == 0 ? SG_OK : SG_INVALID_VALUE;
}

/* Memory cannot be accessed before access is granted. */
API(cuMemMap, address a, size_t bytes, size_t offset, piece handle, unsigned long long flags)
{
    struct stat facts;

    if (flags != 0 || offset != 0 || fstat(file_of(handle), &facts) != 0 ||
        (size_t)facts.st_size < bytes)
        return SG_INVALID_VALUE;
    if (mmap(pointer(a), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file_of(handle), 0) ==
        MAP_FAILED)
        return SG_OUT_OF_MEMORY;
    last_map.at = pointer(a);
    last_map.file = file_of(handle);
    return sg_adopt(pointer(a), bytes);
}

API(cuMemUnmap, address a, size_t bytes)
{
    sg_disown(pointer(a));
    return mmap(pointer(a), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
                   MAP_FAILED
               ? SG_OK
               : SG_INVALID_VALUE;
}

struct access {
    int location_type, location_id, flags;
};

API(cuMemSetAccess, address a, size_t bytes, const struct access *access, size_t count)
{
    if (count != 1 || access->flags != 3 || access->location_id >= sg_device_count())
        return SG_INVALID_VALUE;
    if (sg_setting("STANDIN_NO_PEERS", 0) != 0 && is_imported(pointer(a))) return SG_INVALID_DEVICE;
    return mprotect(pointer(a), bytes, PROT_READ | PROT_WRITE) == 0 ? SG_OK : SG_INVALID_VALUE;
}
