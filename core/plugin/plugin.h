/* plugin.h - finding, checking and choosing plugins.
 *
 *     choice.c     parses WEFT_BACKEND
 *     search.c     lists candidate files
 *     file.c       checks who can change a file; elf.c checks its headers; neither runs its code
 *     loader.c     opens a file
 *     abi.c        checks the descriptor and the tables of a plugin
 *     image.c      knows the memory of a loaded object
 *     host.c       the functions that plugins may call
 *     registry.c   finds and checks all candidates
 *     backends.c   chooses among them, and answers questions about them */
#ifndef WEFT_PLUGIN_PLUGIN_H
#define WEFT_PLUGIN_PLUGIN_H

#include "base/base.h"
#include "weft/backend.h"

#include <sys/types.h>

/* ---- verdicts ---- */

/* The result of the checks of a candidate, with a text that names both sides of a mismatch. */
struct wf_verdict {
    uint32_t reason; /* enum weft_backend_reason */
    char text[2048];
};

/* Set *VERDICT; returns false, so that a check can end with it. */
bool wf_refuse(struct wf_verdict *verdict, enum weft_backend_reason reason, const char *format, ...)
    WF_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* the analyzer does not see the result */
#define wf_refuse(...) (wf_refuse(__VA_ARGS__), false)
#endif

/* ---- choice.c: the grammar of WEFT_BACKEND ---- */

enum wf_choice_kind { WF_CHOOSE_NAME, WF_CHOOSE_PATH, WF_CHOOSE_AUTO, WF_CHOOSE_EXCLUDE };

struct wf_choice_item {
    enum wf_choice_kind kind;
    char *text; /* the name or path; "auto" for auto */
};

struct wf_choice {
    struct wf_choice_item *items; /* in the user's order */
    size_t count;
};

/* WEFT_ERR_PARSE, with the position, if TEXT is invalid.  If TEXT has only exclusions, auto is
 * added. */
weft_status wf_choice_parse(const char *text, struct wf_choice *out) WF_NODISCARD;
void wf_choice_free(struct wf_choice *choice);
/* The item with KIND and TEXT (NULL: any text), or NULL. */
const struct wf_choice_item *wf_choice_find(const struct wf_choice *choice,
                                            enum wf_choice_kind kind, const char *text);
/* True if NAME consists of [a-z0-9-], is not empty, not too long and not "auto". */
bool wf_plugin_name_valid(const char *name, size_t length);

/* ---- search.c: directories and files of plugins ---- */

struct wf_directory {
    char *path;
    const char *origin;  /* "WEFT_PLUGIN_PATH", "beside libweft" */
    const char *refused; /* why it is not searched; NULL if it is */
};

struct wf_directories {
    struct wf_directory *items;
    size_t count;
};

/* The directories of OPTION and VARIABLE (colon-separated, either may be NULL), then those beside
 * OWN_FILE (NULL: none), in order of precedence. */
weft_status wf_search_directories(const char *option, const char *variable, const char *own_file,
                                  struct wf_directories *out) WF_NODISCARD;
void wf_directories_free(struct wf_directories *directories);

/* Names of the plugin files in DIRECTORY, sorted.  WEFT_ERR_NOT_FOUND and _SYSTEM: it cannot be
 * listed. */
weft_status wf_search_files(const char *directory, char ***names, size_t *count) WF_NODISCARD;
void wf_search_files_free(char **names, size_t count);

/* Get NAME of "libweft_plugin_NAME.so".  Returns false if FILE, a name without directory, has
 * another form. */
bool wf_plugin_file_name(const char *file, const char **name, size_t *length);

/* Absolute path of the file that contains this code: libweft, or the program it is linked into.
 * *OUT is NULL if the system does not report it. */
weft_status wf_search_own_file(char **out) WF_NODISCARD;

/* ---- file.c and elf.c: checks of a file before its code runs ---- */

struct wf_trusted; /* core/kit/trust.h */

/* Open FILE for reading if only root, the effective user and the owner of OWN_FILE can change it
 * (trust.h).  The caller closes OUT->fd and loads OUT->path. */
bool wf_file_open(const char *file, const char *own_file, bool secure, struct wf_trusted *out,
                  struct wf_verdict *verdict) WF_NODISCARD;

/* True if FD is a complete ELF shared object for the architecture of this process. */
bool wf_elf_check(int fd, const char *file, struct wf_verdict *verdict) WF_NODISCARD;

/* ---- image.c: the memory of a loaded object ---- */

struct wf_image {
    struct {
        uintptr_t start, end;
        uint32_t flags; /* PF_R, PF_X */
    } segments[64];
    size_t count;
};

/* The segments of the object that dlopen gave HANDLE for. */
bool wf_image_of_handle(void *handle, struct wf_image *out) WF_NODISCARD;
/* True if the BYTES at POINTER are in one readable segment. */
bool wf_image_holds(const struct wf_image *image, const void *pointer, size_t bytes);
/* True if TEXT is a string of at most LONGEST bytes that ends within its segment. */
bool wf_image_holds_string(const struct wf_image *image, const char *text, size_t longest);
/* True if POINTER is in an executable segment. */
bool wf_image_executes(const struct wf_image *image, const void *pointer);

/* ---- host.c ---- */

/* The functions that plugins may call.  Valid until the process ends. */
extern const weft_host wf_host;

/* ---- abi.c: the descriptor and tables of a plugin ---- */

/* Copies of a descriptor and its tables, as long as this build's structs.  Entries that an older
 * plugin lacks are NULL.  The plugin owns the strings. */
struct wf_tables {
    weft_plugin plugin; /* its table pointers point at the members below, or are NULL */
    weft_device_table device;
    weft_comm_table comm;
    weft_symm_table symm;
    weft_kernel_table kernel;
};

/* Check GIVEN, which FILE's entry returned, against this build's ABI.  All memory that GIVEN points
 * to must be in IMAGE, the plugin's memory.  The caller does not move *OUT afterwards. */
bool wf_abi_check(const weft_plugin *given, const struct wf_image *image, const char *file,
                  struct wf_tables *out, struct wf_verdict *verdict) WF_NODISCARD;

/* ---- loader.c ---- */

/* A plugin file that was opened and checked.  Never unloaded. */
struct wf_loaded {
    struct wf_loaded *next;
    dev_t device;
    ino_t inode;
    struct wf_verdict verdict; /* USABLE: tables are good */
    struct wf_tables tables;
};

/* Open FILE, or find it in the list of open files: a plugin's entry runs once per process.  *LOADED
 * is NULL unless VERDICT is USABLE.  Fails only if memory is missing.  [any thread] */
weft_status wf_load(const char *file, const char *own_file, bool secure,
                    const struct wf_loaded **loaded, struct wf_verdict *verdict) WF_NODISCARD;

/* ---- registry.c and backends.c ---- */

struct wf_candidate {
    char *name, *file; /* file: NULL if not found */
    char *reason_text;
    const struct wf_loaded *loaded; /* NULL if it was not opened or was refused */
    uint32_t reason;
    int32_t score;
    uint32_t device_count;
    const struct wf_choice_item *path_item; /* the path that named it, or NULL */
    char library[256];
};

struct wf_trace_line {
    char *text;
    size_t candidate; /* the line is about this candidate; WF_NO_CANDIDATE: about none */
};

#define WF_NO_CANDIDATE SIZE_MAX

struct weft_backends {
    char *wanted;       /* the choice as text */
    const char *origin; /* "WEFT_BACKEND", "the backend option" */
    struct wf_choice choice;
    struct wf_directories directories;
    struct wf_candidate *candidates;
    size_t candidate_count;
    struct wf_trace_line *lines;
    size_t line_count;
};

/* All inputs of the search for plugins. */
struct wf_find_input {
    const char *backend, *backend_origin;
    bool backend_from_environment;
    const char *plugin_path_option, *plugin_path_variable;
    const char *own_file;
    bool secure;
};

weft_status wf_backends_find_in(const struct wf_find_input *input,
                                weft_backends **out) WF_NODISCARD;

/* Add a line to the trace, about CANDIDATE or WF_NO_CANDIDATE. */
weft_status wf_backends_note(weft_backends *backends, size_t candidate, const char *format,
                             ...) WF_NODISCARD WF_PRINTF(3, 4);

/* weft_backends_choose without the log line about candidates that were passed over.
 * WF_NO_CANDIDATE if no candidate can serve. */
size_t wf_backends_pick(const weft_backends *backends, enum weft_backend_role role);

/* The tables of candidate INDEX, as checked copies that are as long as this build's own structs
 * (entries that an older plugin lacks are NULL).  Valid until the process ends.  NULL unless
 * usable. */
const weft_plugin *wf_backends_plugin(const weft_backends *backends, size_t index);

#endif
