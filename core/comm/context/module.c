/* module.c - the callbacks of the modules above comm. */
#include "comm/comm.h"

/* The module at SLOT; NULL: CONTEXT does not have it. */
static const struct wf_module *module_at(const weft_context *context, size_t slot)
{
    return context->kept[slot] != NULL ? wf_modules[slot] : NULL;
}

weft_status wf_modules_create(weft_context *context)
{
    for (size_t i = 0; i < WF_MODULE_COUNT; i++)
        if (wf_modules[i]->create != NULL) WF_TRY(wf_modules[i]->create(context));
    return WEFT_OK;
}

void wf_modules_add_choices(const weft_context *context, struct wf_choices *choices)
{
    for (size_t i = 0; i < WF_MODULE_COUNT; i++) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->add_choices != NULL) module->add_choices(context, choices);
    }
}

weft_status wf_modules_start(weft_context *context)
{
    for (size_t i = 0; i < WF_MODULE_COUNT; i++) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->start != NULL) WF_TRY(module->start(context));
    }
    return WEFT_OK;
}

weft_status wf_modules_bind_thread(weft_context *context)
{
    for (size_t i = 0; i < WF_MODULE_COUNT; i++) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->bind_thread != NULL) WF_TRY(module->bind_thread(context));
    }
    return WEFT_OK;
}

weft_status wf_modules_check_free(weft_context *context, const void *pointer)
{
    for (size_t i = 0; i < WF_MODULE_COUNT; i++) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->check_free != NULL)
            WF_TRY(module->check_free(context, pointer));
    }
    return WEFT_OK;
}

weft_status wf_modules_check_wait(weft_context *context, const void *stream, bool any,
                                  weft_status status)
{
    for (size_t i = 0; i < WF_MODULE_COUNT; i++) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->check_wait != NULL)
            status = module->check_wait(context, stream, any, status);
    }
    return status;
}

void wf_modules_stream_ends(weft_context *context, void *stream)
{
    for (size_t i = WF_MODULE_COUNT; i-- > 0;) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->stream_ends != NULL) module->stream_ends(context, stream);
    }
}

void wf_modules_comm_ends(weft_comm *comm, const char *cause)
{
    for (size_t i = WF_MODULE_COUNT; i-- > 0;) {
        const struct wf_module *module = module_at(comm->context, i);

        if (module != NULL && module->comm_ends != NULL) module->comm_ends(comm, cause);
    }
}

void wf_modules_leave(weft_context *context)
{
    for (size_t i = WF_MODULE_COUNT; i-- > 0;) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->leave != NULL) module->leave(context);
    }
}

void wf_modules_stop(weft_context *context)
{
    for (size_t i = WF_MODULE_COUNT; i-- > 0;) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->stop != NULL) module->stop(context);
    }
}

void wf_modules_destroy(weft_context *context)
{
    for (size_t i = WF_MODULE_COUNT; i-- > 0;) {
        const struct wf_module *module = module_at(context, i);

        if (module != NULL && module->destroy != NULL) module->destroy(context);
    }
}
