/* pickle_names.c - the classes and functions that checkpoints name, and access to their objects. */
#include "checkpoint/dcp/pickle.h"

#include <string.h>

#define METADATA "torch.distributed.checkpoint.metadata"
#define SHARDED  "torch.distributed._shard.sharded_tensor.metadata"

static const struct {
    const char *module, *name;
    enum wf_pickle_name is;
    const char *dtype;
} names[] = {
    {METADATA, "Metadata", WF_NAME_METADATA, NULL},
    {METADATA, "TensorStorageMetadata", WF_NAME_TENSOR_METADATA, NULL},
    {METADATA, "TensorProperties", WF_NAME_PROPERTIES, NULL},
    {SHARDED, "TensorProperties", WF_NAME_PROPERTIES, NULL},
    {METADATA, "ChunkStorageMetadata", WF_NAME_CHUNK, NULL},
    {METADATA, "MetadataIndex", WF_NAME_INDEX, NULL},
    {METADATA, "BytesStorageMetadata", WF_NAME_BYTES_METADATA, NULL},
    {METADATA, "StorageMeta", WF_NAME_STORAGE_META, NULL},
    {METADATA, "_MEM_FORMAT_ENCODING", WF_NAME_MEMORY_FORMAT, NULL},
    {SHARDED, "MEM_FORMAT_ENCODING", WF_NAME_MEMORY_FORMAT, NULL},
    {"torch.distributed.checkpoint.filesystem", "_StorageInfo", WF_NAME_STORAGE_INFO, NULL},
    {"torch", "Size", WF_NAME_SIZE, NULL},
    {"torch.serialization", "_get_layout", WF_NAME_LAYOUT, NULL},
    {"pathlib", "PosixPath", WF_NAME_PATH, NULL},
    {"pathlib", "PurePosixPath", WF_NAME_PATH, NULL},
    {"pathlib._local", "PosixPath", WF_NAME_PATH, NULL},
    {"collections", "OrderedDict", WF_NAME_ORDERED_DICT, NULL},
    {"torch._utils", "_rebuild_tensor_v2", WF_NAME_REBUILD_TENSOR, NULL},
    {"torch._utils", "_rebuild_tensor_v3", WF_NAME_REBUILD_TYPED_TENSOR, NULL},
    {"torch._utils", "_rebuild_parameter", WF_NAME_REBUILD_PARAMETER, NULL},
    {"torch.storage", "UntypedStorage", WF_NAME_UNTYPED_STORAGE, NULL},
    {"torch", "FloatStorage", WF_NAME_STORAGE, "float32"},
    {"torch", "DoubleStorage", WF_NAME_STORAGE, "float64"},
    {"torch", "HalfStorage", WF_NAME_STORAGE, "float16"},
    {"torch", "BFloat16Storage", WF_NAME_STORAGE, "bfloat16"},
    {"torch", "LongStorage", WF_NAME_STORAGE, "int64"},
    {"torch", "IntStorage", WF_NAME_STORAGE, "int32"},
    {"torch", "ShortStorage", WF_NAME_STORAGE, "int16"},
    {"torch", "CharStorage", WF_NAME_STORAGE, "int8"},
    {"torch", "ByteStorage", WF_NAME_STORAGE, "uint8"},
    {"torch", "BoolStorage", WF_NAME_STORAGE, "bool"},
    {"torch", "ComplexFloatStorage", WF_NAME_STORAGE, "complex64"},
    {"torch", "ComplexDoubleStorage", WF_NAME_STORAGE, "complex128"},
    {"torch", "float4_e2m1fn_x2", WF_NAME_DTYPE, "float4_e2m1fn_x2"},
};

bool wf_pickle_find_name(const char *module, const char *name, struct wf_pickle *out)
{
    int dtype = strcmp(module, "torch") == 0 ? wf_file_dtype_of_torch(name) : -1;

    out->kind = WF_PICKLE_GLOBAL;
    if (dtype >= 0) {
        out->name = WF_NAME_DTYPE;
        out->text = wf_file_dtype((size_t)dtype)->torch;
        return true;
    }
    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(names[i].name, name) == 0 && strcmp(names[i].module, module) == 0) {
            out->name = (uint8_t)names[i].is;
            out->text = names[i].dtype;
            return true;
        }
    return false;
}

bool wf_pickle_is(const struct wf_pickle *node, enum wf_pickle_name name)
{
    return node != NULL && node->kind == WF_PICKLE_OBJECT &&
           node->first->kind == WF_PICKLE_GLOBAL && node->first->name == (uint8_t)name;
}

const struct wf_pickle *wf_pickle_member(const struct wf_pickle *node, const char *key)
{
    size_t length = strlen(key);

    if (node != NULL && node->kind == WF_PICKLE_OBJECT) node = node->state;
    if (node == NULL || node->kind != WF_PICKLE_DICT) return NULL;
    for (uint32_t i = 0; i + 1 < node->count; i += 2)
        if (node->items[i]->kind == WF_PICKLE_TEXT && node->items[i]->count == length &&
            memcmp(node->items[i]->text, key, length) == 0)
            return node->items[i + 1];
    return NULL;
}

bool wf_pickle_sizes(const struct wf_pickle *node, int32_t *dims, int64_t *sizes)
{
    if (wf_pickle_is(node, WF_NAME_SIZE)) { /* torch.Size((2, 3)) */
        const struct wf_pickle *arguments = node->arguments;
        node = arguments->kind == WF_PICKLE_TUPLE && arguments->count == 1 ? arguments->items[0]
                                                                           : NULL;
    }
    if (node == NULL || (node->kind != WF_PICKLE_TUPLE && node->kind != WF_PICKLE_LIST) ||
        node->count > WEFT_MAX_DIMS)
        return false;
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->items[i]->kind != WF_PICKLE_INT || node->items[i]->number < 0) return false;
        sizes[i] = node->items[i]->number;
    }
    *dims = (int32_t)node->count;
    return true;
}
