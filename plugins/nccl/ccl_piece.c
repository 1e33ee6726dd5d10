/* ccl_piece.c - sharable physical memory of the device, and its mappings. */
#include "ccl_window.h"

#include <unistd.h>

weft_status ccl_pieces_work(const struct gpu_device *device)
{
    int has = 0, as_files = 0;

    if (gpu_api.piece_create == NULL || gpu_api.piece_granularity == NULL ||
        gpu_api.piece_release == NULL || gpu_api.piece_export == NULL ||
        gpu_api.piece_import == NULL || gpu_api.addresses_take == NULL ||
        gpu_api.addresses_give == NULL || gpu_api.addresses_map == NULL ||
        gpu_api.addresses_unmap == NULL || gpu_api.addresses_open == NULL)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s cannot share memory between processes",
                         gpu_library.path);
    if (gpu_api.device_attribute(&has, GPU_HAS_PIECES, device->handle) != GPU_SUCCESS || has == 0 ||
        gpu_api.device_attribute(&as_files, GPU_HAS_PIECES_AS_FILES, device->handle) !=
            GPU_SUCCESS ||
        as_files == 0)
        return plug_fail(WEFT_ERR_UNSUPPORTED,
                         "%s does not support shared memory handles (file descriptors)",
                         device->name);
    return WEFT_OK;
}

/* Map PIECE for reads and writes of this rank's device. */
static weft_status map(const struct gpu_device *device, struct ccl_piece *piece)
{
    vendor_piece_access access = {.location_type = GPU_PIECE_ON_DEVICE,
                                  .location_id = device->ordinal,
                                  .flags = GPU_READ_AND_WRITE};
    vendor_address address = 0;

    PLUG_TRY(gpu_check(gpu_api.addresses_take(&address, piece->bytes, 0, 0, 0),
                       "reserving addresses for symmetric memory"));
    if (gpu_check(gpu_api.addresses_map(address, piece->bytes, 0, piece->handle, 0),
                  "mapping symmetric memory") != WEFT_OK) {
        gpu_api.addresses_give(address, piece->bytes);
        return WEFT_ERR_DEVICE;
    }
    piece->address = address;
    return gpu_check(gpu_api.addresses_open(address, piece->bytes, &access, 1),
                     "giving the device access to symmetric memory");
}

void ccl_piece_drop(struct ccl_piece *piece)
{
    if (piece->address != 0) {
        gpu_api.addresses_unmap(piece->address, piece->bytes);
        gpu_api.addresses_give(piece->address, piece->bytes);
    }
    if (piece->handle != 0) gpu_api.piece_release(piece->handle);
    *piece = (struct ccl_piece){0};
}

weft_status ccl_piece_make(const struct gpu_device *device, size_t bytes, struct ccl_piece *out,
                           int *file)
{
    vendor_piece_options options = {.type = GPU_PIECE_PINNED,
                                    .handle_types = GPU_PIECE_AS_FILE,
                                    .location_type = GPU_PIECE_ON_DEVICE,
                                    .location_id = device->ordinal};
    struct ccl_piece piece = {0};
    size_t grain = 0;
    int exported = -1;
    weft_status status;

    PLUG_TRY(gpu_check(gpu_api.piece_granularity(&grain, &options, GPU_MIN_GRANULARITY),
                       "reading the allocation granularity"));
    if (bytes > SIZE_MAX / 2 || grain == 0)
        return plug_fail(WEFT_ERR_NO_MEMORY, "%zu bytes of symmetric memory are too many", bytes);
    piece.bytes = (bytes + grain - 1) / grain * grain;
    PLUG_TRY(gpu_check(gpu_api.piece_create(&piece.handle, piece.bytes, &options, 0),
                       "allocating symmetric memory"));
    status = map(device, &piece);
    if (status == WEFT_OK)
        status = gpu_check(gpu_api.piece_export(&exported, piece.handle, GPU_PIECE_AS_FILE, 0),
                           "exporting symmetric memory");
    if (status != WEFT_OK) {
        ccl_piece_drop(&piece);
        return status;
    }
    *out = piece;
    *file = exported;
    return WEFT_OK;
}

weft_status ccl_piece_take(const struct gpu_device *device, size_t bytes, int file,
                           struct ccl_piece *out)
{
    struct ccl_piece piece = {.bytes = bytes};
    weft_status status;

    PLUG_TRY(
        gpu_check(gpu_api.piece_import(&piece.handle, (void *)(intptr_t)file, GPU_PIECE_AS_FILE),
                  "importing a peer's symmetric memory"));
    status = map(device, &piece);
    if (status != WEFT_OK) {
        ccl_piece_drop(&piece);
        return status;
    }
    *out = piece;
    return WEFT_OK;
}
