/* store_rank.c - a rank that saves a tensor, in the background with `begin`, and loads it again:
 *
 *     store_rank save|begin|load PATH
 *     store_rank busy PATH    begins to save, and the rank with a fault is busy for a second
 *     store_rank many PATH    saves six small tensors with one thread, one write each
 *
 * STORE_FAULT is a fault of the preloaded library for weft_load.
 *
 * Prints one line: the result, and the error. */
#include "weft/file.h"
#include "weft/weft.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        weft_status status_ = (call);                                                              \
        if (status_ != WEFT_OK) return status_;                                                    \
    } while (0)

enum { ROWS = 64, COLUMNS = 1024, MANY = 6 };

static weft_status begin_and_wait(weft_context *context, const char *path, weft_tensor *tensor,
                                  bool is_busy)
{
    weft_saving *saving = NULL;
    weft_status status;

    TRY(weft_save_begin(context, path, 1, &tensor, NULL, &saving));
    status = weft_tensor_fill(tensor, 3, NULL); /* what was copied is saved */
    if (is_busy) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    if (status == WEFT_OK) status = weft_saving_wait(saving, WEFT_FOREVER);
    weft_saving_release(&saving);
    return status;
}

static weft_status save(weft_context *context, const char *path, const char *how)
{
    weft_tensor_options options = {.struct_size = sizeof options, .name = "w"};
    weft_tensor *tensor = NULL;
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;
    bool is_busy = strcmp(how, "busy") == 0 && getenv("WEFT_TEST_FAULT") != NULL;
    weft_status status;

    TRY(weft_mesh_parse("4", &mesh));
    TRY(weft_spec_parse(mesh, "f32[64,1024] S(0)", &spec));
    TRY(weft_tensor_create(context, spec, &options, &tensor));
    status = weft_tensor_fill(tensor, 2, NULL);
    if (status == WEFT_OK)
        status = strcmp(how, "save") == 0 ? weft_save(context, path, 1, &tensor, NULL)
                                          : begin_and_wait(context, path, tensor, is_busy);
    weft_tensor_release(&tensor);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return status;
}

static weft_status save_many(weft_context *context, const char *path)
{
    weft_save_options options = {.struct_size = sizeof options, .jobs = 1};
    weft_tensor *tensors[MANY] = {NULL};
    weft_status status = WEFT_OK;
    weft_mesh *mesh = NULL;
    weft_spec *spec = NULL;

    TRY(weft_mesh_parse("4", &mesh));
    TRY(weft_spec_parse(mesh, "f32[64] S(0)", &spec));
    for (int i = 0; i < MANY && status == WEFT_OK; i++) {
        char name[16];
        weft_tensor_options named = {.struct_size = sizeof named, .name = name};
        snprintf(name, sizeof name, "w%d", i);
        status = weft_tensor_create(context, spec, &named, &tensors[i]);
        if (status == WEFT_OK) status = weft_tensor_fill(tensors[i], i, NULL);
    }
    if (status == WEFT_OK) status = weft_save(context, path, MANY, tensors, &options);
    for (int i = 0; i < MANY; i++)
        weft_tensor_release(&tensors[i]);
    weft_spec_release(&spec);
    weft_mesh_release(&mesh);
    return status;
}

/* From now on, calls go wrong as STORE_FAULT says. */
static void begin_fault(void)
{
    void *found = dlsym(RTLD_DEFAULT, "weft_test_fault");
    void (*function)(const char *text);

    if (found == NULL || getenv("STORE_FAULT") == NULL) return;
    memcpy(&function, &found, sizeof function); /* dlsym returns an object pointer */
    function(getenv("STORE_FAULT"));
}

/* A rank that cannot open the checkpoint tells the others by NULL. */
static weft_status load(weft_context *context, const char *path)
{
    static float values[ROWS * COLUMNS];
    weft_checkpoint *from = NULL;
    weft_layout_file *layout = NULL;
    weft_tensor *tensor = NULL;
    weft_status status;

    TRY(weft_layout_file_parse("mesh 2x2\n* S(1),R", NULL, &layout));
    if (weft_checkpoint_open(path, &from) != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
    begin_fault();
    status = weft_load(context, from, layout, NULL, &tensor);
    if (status == WEFT_OK) status = weft_tensor_to_host(tensor, values, sizeof values, NULL);
    for (int i = 0; i < ROWS * COLUMNS / 2 && status == WEFT_OK; i++)
        if (values[i] != 2) status = weft_fail(WEFT_ERR_INTERNAL, "an element is %g", values[i]);
    weft_tensor_release(&tensor);
    weft_checkpoint_close(&from);
    weft_layout_file_release(&layout);
    return status;
}

static weft_status work(weft_context *context, const char *how, const char *path)
{
    if (strcmp(how, "load") == 0) return load(context, path);
    if (strcmp(how, "many") == 0) return save_many(context, path);
    return save(context, path, how);
}

int main(int argc, char **argv)
{
    weft_context *context;
    weft_status status;

    if (argc != 3) return 2;
    if (weft_init(NULL, &context) != WEFT_OK) return 3;
    status = work(context, argv[1], argv[2]);
    printf("rank %d: %s %s\n", weft_rank(context), weft_status_name(status),
           status != WEFT_OK ? weft_last_error() : "");
    fflush(stdout);
    weft_context_release(&context);
    return 0;
}
