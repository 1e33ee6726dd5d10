/* ccl_piece.c - physical memory of the device, made to be shared, and the addresses it is seen at.
 */
#include "ccl_window.h"

#include <unistd.h>

weft_status wf_pieces_work(const struct wf_gpu_device *device)
{
    int has = 0, as_files = 0;

    if (wf_gpu.piece_create == NULL || wf_gpu.piece_granularity == NULL ||
        wf_gpu.piece_release == NULL || wf_gpu.piece_export == NULL ||
        wf_gpu.piece_import == NULL || wf_gpu.addresses_take == NULL ||
        wf_gpu.addresses_give == NULL || wf_gpu.addresses_map == NULL ||
        wf_gpu.addresses_unmap == NULL || wf_gpu.addresses_open == NULL)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s cannot share memory between processes",
                       wf_gpu_library.path);
    if (wf_gpu.device_attribute(&has, GPU_HAS_PIECES, device->handle) != GPU_SUCCESS || has == 0 ||
        wf_gpu.device_attribute(&as_files, GPU_HAS_PIECES_AS_FILES, device->handle) !=
            GPU_SUCCESS ||
        as_files == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s does not share memory as files", device->name);
    return WEFT_OK;
}

/* Addresses for PIECE, for this rank's device to read and write. */
static weft_status map(const struct wf_gpu_device *device, struct wf_piece *piece)
{
    gpu_piece_access access = {.location_type = GPU_PIECE_ON_DEVICE,
                               .location_id = device->ordinal,
                               .flags = GPU_READ_AND_WRITE};
    gpu_address address = 0;

    WF_TRY(wf_gpu_check(wf_gpu.addresses_take(&address, piece->bytes, 0, 0, 0),
                        "taking addresses for symmetric memory"));
    if (wf_gpu_check(wf_gpu.addresses_map(address, piece->bytes, 0, piece->handle, 0),
                     "mapping symmetric memory") != WEFT_OK) {
        wf_gpu.addresses_give(address, piece->bytes);
        return WEFT_ERR_DEVICE;
    }
    piece->address = address;
    return wf_gpu_check(wf_gpu.addresses_open(address, piece->bytes, &access, 1),
                        "opening symmetric memory to the device");
}

void wf_piece_drop(struct wf_piece *piece)
{
    if (piece->address != 0) {
        wf_gpu.addresses_unmap(piece->address, piece->bytes);
        wf_gpu.addresses_give(piece->address, piece->bytes);
    }
    if (piece->handle != 0) wf_gpu.piece_release(piece->handle);
    *piece = (struct wf_piece){0};
}

weft_status wf_piece_make(const struct wf_gpu_device *device, size_t bytes, struct wf_piece *out,
                          int *file)
{
    gpu_piece_options options = {.type = GPU_PIECE_PINNED,
                                 .handle_types = GPU_PIECE_AS_FILE,
                                 .location_type = GPU_PIECE_ON_DEVICE,
                                 .location_id = device->ordinal};
    struct wf_piece piece = {0};
    size_t grain = 0;
    int exported = -1;
    weft_status status;

    WF_TRY(wf_gpu_check(wf_gpu.piece_granularity(&grain, &options, GPU_LEAST_GRANULARITY),
                        "asking how memory is dealt in"));
    if (bytes > SIZE_MAX / 2 || grain == 0)
        return wf_fail(WEFT_ERR_NO_MEMORY, "%zu bytes of symmetric memory are too many", bytes);
    piece.bytes = (bytes + grain - 1) / grain * grain;
    WF_TRY(wf_gpu_check(wf_gpu.piece_create(&piece.handle, piece.bytes, &options, 0),
                        "making symmetric memory"));
    status = map(device, &piece);
    if (status == WEFT_OK)
        status = wf_gpu_check(wf_gpu.piece_export(&exported, piece.handle, GPU_PIECE_AS_FILE, 0),
                              "making a file of symmetric memory");
    if (status != WEFT_OK) {
        wf_piece_drop(&piece);
        return status;
    }
    *out = piece;
    *file = exported;
    return WEFT_OK;
}

weft_status wf_piece_take(const struct wf_gpu_device *device, size_t bytes, int file,
                          struct wf_piece *out)
{
    struct wf_piece piece = {.bytes = bytes};
    weft_status status;

    WF_TRY(
        wf_gpu_check(wf_gpu.piece_import(&piece.handle, (void *)(intptr_t)file, GPU_PIECE_AS_FILE),
                     "taking a peer's symmetric memory"));
    status = map(device, &piece);
    if (status != WEFT_OK) {
        wf_piece_drop(&piece);
        return status;
    }
    *out = piece;
    return WEFT_OK;
}
