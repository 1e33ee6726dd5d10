/* nvtx.h - the client's side of NVTX 3: how a tool attaches to a program, and the calls of a
 * domain. Declared here so that the build does not need files of NVIDIA; nvtx_declarations.h checks
 * the declarations against NVIDIA's headers.
 *
 * NVTX_INJECTION64_PATH names the tool's library.  The client opens it and calls
 * InitializeInjectionNvtx2 with a function that returns tables.  The tool stores its functions in
 * those tables. */
#ifndef WEFT_GPU_NVTX_H
#define WEFT_GPU_NVTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVTX_CLIENT_VERSION 3

typedef void (*nvtx_function)(void);

/* Ids of the tables that the tool asks for. */
enum { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };

struct nvtx_callbacks {
    size_t struct_size;
    /* 0: there is no such module.  (*TABLE)[i] is the place for function I of MODULE, for I from 1
     * to *SIZE - 1. */
    int (*get_module)(int module, nvtx_function ***table, unsigned *size);
};

struct nvtx_version {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};

typedef const void *(*nvtx_get_table)(uint32_t table);
typedef int (*nvtx_initialize)(nvtx_get_table get_table);

/* Modules, and the number of functions of each, plus one. */
enum {
    NVTX_MODULE_CORE = 1,
    NVTX_MODULE_CUDA = 2,
    NVTX_MODULE_OPENCL = 3,
    NVTX_MODULE_CUDART = 4,
    NVTX_MODULE_CORE2 = 5, /* domains */
    NVTX_MODULE_SYNC = 6,
    NVTX_MODULES
};
enum {
    NVTX_CORE_SIZE = 16,
    NVTX_CUDA_SIZE = 9,
    NVTX_OPENCL_SIZE = 15,
    NVTX_CUDART_SIZE = 7,
    NVTX_CORE2_SIZE = 16,
    NVTX_SYNC_SIZE = 7,
    NVTX_MAX_SIZE = 16
};

/* Functions of NVTX_MODULE_CORE2. */
enum {
    NVTX_DOMAIN_RANGE_PUSH = 4,
    NVTX_DOMAIN_RANGE_POP = 5,
    NVTX_DOMAIN_NAME_CATEGORY = 8,
    NVTX_DOMAIN_REGISTER_STRING = 10,
    NVTX_DOMAIN_CREATE = 12
};

enum { NVTX_PAYLOAD_U64 = 1, NVTX_MESSAGE_TEXT = 1, NVTX_MESSAGE_REGISTERED = 3 };

struct nvtx_event {
    uint16_t version, size;
    uint32_t category;
    int32_t colour_kind;
    uint32_t colour;
    int32_t payload_kind, reserved;
    uint64_t payload;
    int32_t message_kind;
    const void *message; /* a text, or the handle of a registered one */
};

/* ---- cuda_nvtx.c ---- */

/* Open the tool's library, if there is one, and let it attach.  False without a tool; a library
 * that cannot be used is logged.  Called once. */
bool nvtx_attach(void);

/* The functions of the tool, which may store and withdraw them at any time.  A function that it
 * does not have does nothing and returns NULL. */
void *nvtx_domain_create(const char *name);
void *nvtx_register_string(void *domain, const char *text);
void nvtx_name_category(void *domain, uint32_t category, const char *name);
void nvtx_range_push(void *domain, const struct nvtx_event *event);
void nvtx_range_pop(void *domain);

#endif
