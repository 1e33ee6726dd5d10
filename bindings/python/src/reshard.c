/* reshard.c - a checkpoint from any layout to any layout. */
#include "checkpoint.h"

/* A function of Python that gets the bytes done and in all, and may return False to stop. */
static bool call_progress(void *state, uint64_t done, uint64_t total)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result = NULL;
    bool goes_on = PyErr_CheckSignals() == 0;

    if (goes_on && state != NULL) {
        result = PyObject_CallFunction(state, "KK", done, total);
        goes_on = result != NULL && result != Py_False;
    }
    Py_XDECREF(result);
    PyGILState_Release(gil);
    return goes_on;
}

/* A dictionary for each file. */
static PyObject *files_to_python(weft_reshard *plan)
{
    PyObject *list = PyList_New(0);
    weft_status status = WEFT_OK;

    for (size_t i = 0; list != NULL && status == WEFT_OK; i++) {
        weft_reshard_file_info file = {.struct_size = sizeof file};
        PyObject *item;

        status = weft_reshard_file_get(plan, i, &file);
        if (status != WEFT_OK) break;
        item = Py_BuildValue("{s:N,s:K,s:K}", "path", PyUnicode_DecodeFSDefault(file.path), "read",
                             (unsigned long long)file.read, "written",
                             (unsigned long long)file.written);
        if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (list == NULL || status == WEFT_ERR_NOT_FOUND) return list;
    Py_DECREF(list);
    return raise_status(status);
}

/* PREDICTED: nanoseconds, or -1. */
static PyObject *info_to_python(weft_reshard *plan, int64_t predicted)
{
    weft_reshard_info info = {.struct_size = sizeof info};
    PyObject *files, *time;

    if (check(weft_reshard_get(plan, &info)) < 0) return NULL;
    files = files_to_python(plan);
    if (files == NULL) return NULL;
    time = predicted >= 0 ? PyLong_FromLongLong(predicted) : Py_NewRef(Py_None);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:i,s:K,s:N,s:N}", "tensors", info.tensors, "read",
                         info.read, "written", info.written, "memory", info.memory, "steps",
                         info.steps, "jobs", (int)info.jobs, "resumed", info.resumed, "files",
                         files, "predicted_ns", time);
}

/* Run the plan, unless only its figures are wanted. */
static PyObject *run(const weft_checkpoint *from, const char *path,
                     const weft_reshard_options *options, bool dry, bool predict)
{
    uint64_t nanoseconds = 0;
    weft_reshard *plan = NULL;
    PyThreadState *thread;
    weft_status status;
    PyObject *info;

    thread = PyEval_SaveThread();
    status = weft_reshard_create(from, path, options, &plan);
    if (status == WEFT_OK && predict) status = weft_reshard_predict(plan, &nanoseconds);
    if (status == WEFT_OK && !dry) status = weft_reshard_run(plan);
    PyEval_RestoreThread(thread);
    if (status != WEFT_OK && !PyErr_Occurred()) raise_status(status);
    info = PyErr_Occurred() ? NULL : info_to_python(plan, predict ? (int64_t)nanoseconds : -1);
    weft_reshard_close(&plan);
    return info;
}

static PyObject *reshard(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"checkpoint", "path",      "layout", "format",  "replace",
                            "file_bytes", "checksums", "keep",   "resume",  "memory",
                            "jobs",       "progress",  "dry",    "predict", NULL};
    weft_reshard_options options = {.struct_size = sizeof options, .progress = call_progress};
    PyObject *checkpoint, *path, *layout = Py_None, *progress = Py_None, *result = NULL;
    int replace = 0, checksums = 0, keep = 0, resume = 0, jobs = 0, dry = 0, predict = 0;
    unsigned long long file_bytes = 0, memory = 0;
    const char *format = NULL;
    weft_checkpoint *from;
    weft_layout *in;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO&|OzpO&pppO&iOpp:reshard", names, &checkpoint,
                                     PyUnicode_FSConverter, &path, &layout, &format, &replace,
                                     to_u64, &file_bytes, &checksums, &keep, &resume, to_u64,
                                     &memory, &jobs, &progress, &dry, &predict))
        return NULL;
    from = checkpoint_of(checkpoint);
    if (from != NULL && layout_of(layout, &in) == 0 && format_of(format, &options.format) == 0) {
        options.layout = in;
        options.replace = replace;
        options.file_bytes = file_bytes;
        options.checksums = checksums;
        options.keep = keep;
        options.resume = resume;
        options.memory = memory;
        options.jobs = jobs;
        options.state = progress != Py_None ? progress : NULL;
        result = run(from, PyBytes_AsString(path), &options, dry, predict);
    }
    Py_DECREF(path);
    return result;
}

int reshard_functions_add(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"reshard", KEYWORDS(reshard),
         "reshard(checkpoint, path, layout=None, format=None, replace=False, file_bytes=0, "
         "checksums=False, keep=False, resume=False, memory=0, jobs=0, progress=None, dry=False, "
         "predict=False)"},
        {0}};

    return PyModule_AddFunctions(module, functions);
}
