/* base.h - used by every module: errors, memory, text, JSON, hashing, scanning, logging.  It does
 * not know tensors and devices. */
#ifndef WEFT_BASE_BASE_H
#define WEFT_BASE_BASE_H

#include "kit/limits.h"
#include "kit/print.h"

#include "weft/weft_plugin.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_NODISCARD               __attribute__((warn_unused_result))
#define WF_PRINTF(position, first) __attribute__((format(printf, position, first)))
/* For functions that every operation calls.  They are placed together, for calls with cold
 * caches. */
#define WF_HOT          __attribute__((hot))
#define WF_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* True if a size-first TABLE, which may be shorter than the one of this build, contains FIELD. */
#define WF_HAS(table, field)                                                                       \
    ((table)->struct_size >= offsetof(__typeof__(*(table)), field) + sizeof((table)->field) &&     \
     (table)->field != NULL)

/* Return from the function if EXPRESSION fails.  Only where nothing is owned yet. */
#define WF_TRY(expression)                                                                         \
    do {                                                                                           \
        weft_status wf_try_status = (expression);                                                  \
        if (wf_try_status != WEFT_OK) return wf_try_status;                                        \
    } while (0)

/* ---- status.c: errors ---- */

#define WF_ERROR_BYTES 2048 /* of an error text */

/* Set the error of this thread and return STATUS.  Logged at level WF_LOG_DEBUG. */
weft_status wf_fail(weft_status status, const char *format, ...) WF_PRINTF(2, 3);

/* As wf_fail, with the name and the error code of the vendor library. */
void wf_fail_vendor(weft_status status, const char *vendor, int64_t code, const char *text);

/* Replace this thread's last failure text and return STATUS.  The vendor library's name and code
 * stay. */
weft_status wf_fail_reword(weft_status status, const char *format, ...) WF_PRINTF(2, 3);

/* The number of error texts that the calling thread has set. */
uint64_t wf_failure_count(void);

/* ---- fail.c: errors on top of these ---- */

/* Put "CONTEXT: " before this thread's last failure text and return its status. */
weft_status wf_fail_context(weft_status status, const char *format, ...) WF_PRINTF(2, 3);

/* Put "FUNCTION: " before this thread's last failure text, unless the text names FUNCTION or STATUS
 * is WEFT_OK.  Return STATUS. */
weft_status wf_fail_named(weft_status status, const char *function);

/* Put "FUNCTION: ABOUT: " before this thread's last failure text, which may begin with "FUNCTION:
 * ". Return STATUS. */
weft_status wf_fail_about(weft_status status, const char *function, const char *about);

/* A function of the program, called WHAT in the text, returned STATUS, which is not WEFT_OK, when
 * wf_failure_count was BEFORE.  The text is the one that the function has set, or that of STATUS.
 * Returns STATUS, or WEFT_ERR_INVALID for a number that is not an error. */
weft_status wf_fail_callback(weft_status status, uint64_t before, const char *what) WF_NODISCARD;

/* WEFT_ERR_NO_MEMORY with the byte count in the text. */
weft_status wf_fail_memory(size_t bytes);

/* WEFT_ERR_INVALID: "weft_alloc: out is NULL". */
weft_status wf_fail_null(const char *function, const char *argument);

#ifdef __clang_analyzer__ /* the analyzer does not see that they return the given status */
#define wf_fail(status, ...)         (wf_fail(status, __VA_ARGS__), (status))
#define wf_fail_context(status, ...) (wf_fail_context(status, __VA_ARGS__), (status))
#define wf_fail_named(status, name)  (wf_fail_named(status, name), (status))
#define wf_fail_memory(bytes)        (wf_fail_memory(bytes), WEFT_ERR_NO_MEMORY)
#endif

/* For arguments of public functions: WEFT_ERR_INVALID "what is NULL" if pointer is NULL.  WHAT is
 * like "weft_mesh_print: mesh". */
static inline weft_status wf_require(const void *pointer, const char *what)
{
    return pointer != NULL ? WEFT_OK : wf_fail(WEFT_ERR_INVALID, "%s is NULL", what);
}

/* ---- options.c: structs that begin with their size ---- */

/* The caller has COUNT structs NAME of SIZE bytes each at ITEMS; this library knows BYTES of them.
 * Set *COPY to NULL if ITEMS can be used as they are, else to a copy with structs of BYTES, which
 * the caller frees with wf_free.  Errors: as wf_options_read. */
weft_status wf_items_read(const char *name, size_t count, const void *items, size_t size,
                          size_t bytes, void **copy) WF_NODISCARD;
/* Structs NAME that go to the caller have BYTES each: WEFT_ERR_INVALID if the caller expects SIZE.
 */
weft_status wf_items_check(const char *name, size_t size, size_t bytes) WF_NODISCARD;
/* Copy the fields of GIVEN, which may be NULL, to OUT, which has BYTES and holds the defaults.
 * WEFT_ERR_INVALID: its struct_size, a size_t, is below that of the struct's first version.
 * WEFT_ERR_VERSION: it sets a field that lies past BYTES.  NAME is the struct's. */
weft_status wf_options_read(const char *name, const void *given, void *out,
                            size_t bytes) WF_NODISCARD;
/* The same for a struct of the plugin ABI, whose struct_size is a uint32_t of any size that was
 * set. GIVEN is not NULL. */
weft_status wf_abi_options_read(const char *name, const void *given, void *out,
                                size_t bytes) WF_NODISCARD;

/* Copy INFO, a struct of BYTES that begins with its size, to OUT, of which the caller has set the
 * struct_size: no more than that is written, and it keeps its value.  WEFT_ERR_INVALID: it was not
 * set.  NAME is the struct's. */
weft_status wf_info_write(const char *name, const void *info, size_t bytes, void *out) WF_NODISCARD;
/* Fails if wf_info_write to OUT would. */
weft_status wf_info_check(const char *name, const void *out) WF_NODISCARD;
/* The same for a struct of the plugin ABI, whose struct_size is a uint32_t. */
weft_status wf_abi_info_write(const char *name, const void *info, size_t bytes,
                              void *out) WF_NODISCARD;

/* ---- log.c ---- */

enum wf_log_level { WF_LOG_ERROR, WF_LOG_WARNING, WF_LOG_NOTICE, WF_LOG_INFO, WF_LOG_DEBUG };

/* One line to the sink, if LEVEL is at or below the limit (default WF_LOG_NOTICE). */
void wf_log(int level, const char *format, ...) WF_PRINTF(2, 3);
/* Unless the program has set the limit with weft_log_set_level. */
void wf_log_set_level(int level);
int wf_log_level(void);

/* False if BYTES on standard error would exceed the size that the process's files may have: then
 * SIGXFSZ would end the process.  A signal handler may call it. */
bool wf_stderr_fits(size_t bytes);

/* Prefix for the lines of the calling thread, such as "rank 3"; NULL for none.  Copied. */
void wf_log_set_prefix(const char *prefix);

/* ---- mem.c: checked memory with failure injection ---- */

/* As malloc and its relatives, but counted; tests can make them fail.  Zero bytes give a valid
 * pointer.  The caller frees with wf_free. */
void *wf_alloc(size_t bytes) WF_NODISCARD;
void *wf_calloc(size_t count, size_t bytes) WF_NODISCARD;
void *wf_realloc(void *pointer, size_t bytes) WF_NODISCARD;
/* Make room for one more item in LIST, a pointer to an array of items of BYTES each, of which COUNT
 * are used.  *ROOM is how many fit; it doubles. */
weft_status wf_grow(void *list, size_t bytes, size_t count, size_t *room) WF_NODISCARD;
void wf_free(void *pointer);
char *wf_strdup(const char *text) WF_NODISCARD;
char *wf_strndup(const char *text, size_t length) WF_NODISCARD; /* at most LENGTH bytes */

/* For tests: make the N-th allocation of this thread from now on fail (0: none); the number of
 * allocations of this thread since the last call; the number of live blocks of the process. */
void wf_mem_fail_at(uint64_t n);
uint64_t wf_mem_made(void);
int64_t wf_mem_live(void);

/* ---- arithmetic that cannot wrap ---- */

/* False, and *OUT unchanged, if the result does not fit. */
static inline WF_NODISCARD bool wf_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;

    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}
static inline WF_NODISCARD bool wf_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;

    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}
static inline int64_t wf_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t wf_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
/* The greatest common divisor of numbers that are not negative. */
static inline int64_t wf_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* UINT64_MAX instead of a result that would wrap; UINT64_MAX means infinity. */
static inline uint64_t wf_mul_capped(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
static inline uint64_t wf_add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
/* a - b for b <= a; UINT64_MAX means infinity and stays so. */
static inline uint64_t wf_sub_capped(uint64_t a, uint64_t b)
{
    return a == UINT64_MAX ? a : a - b;
}

/* ---- hash.c ---- */

/* The result is the same on every machine, because ranks compare digests. */
uint64_t wf_hash(uint64_t seed, const void *data, size_t bytes);
static inline uint64_t wf_hash_mix(uint64_t seed, uint64_t value)
{
    uint64_t h = (seed ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

/* ---- checksum.c ---- */

/* What COUNT elements of BYTES (1, 2, 4 or 8) each, whose indices in the whole tensor are INDEX and
 * the following ones, add to the checksum of a tensor. */
uint64_t wf_checksum_run(uint32_t bytes, uint64_t index, const void *run, uint64_t count);

/* ---- text/text.c: letters ---- */

/* The small letter for a letter of ASCII; all others are unchanged. */
static inline char wf_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* True if the first COUNT characters of A and B, or all of them, are equal, apart from the case of
 * letters of ASCII. */
bool wf_same_letters(const char *a, const char *b, size_t count);

/* The ending of a noun: "%u tensor%s", count, WF_PLURAL(count). */
#define WF_PLURAL(count) ((count) == 1 ? "" : "s")

/* ---- text/text.c: a growing string ---- */

/* Zero-initialise.  Running out of memory sets `failed` and drops later text, so that printers
 * need no checks; wf_text_take and wf_text_status report it once, at the end. */
struct wf_text {
    char *data; /* ends with a NUL at LENGTH; NULL as long as nothing was allocated */
    size_t length, capacity;
    bool failed;
};

/* All texts have numbers as in the locale "C", whatever locale the program sets. */
void wf_text_add(struct wf_text *text, const char *format, ...) WF_PRINTF(2, 3);
void wf_text_addv(struct wf_text *text, const char *format, va_list args);
void wf_text_append(struct wf_text *text, const char *bytes, size_t length);
/* Make room for MORE bytes.  False: there is no memory, and TEXT is unchanged. */
bool wf_text_reserve(struct wf_text *text, size_t more);
void wf_text_char(struct wf_text *text, char c);
void wf_text_bytes(struct wf_text *text, uint64_t bytes);      /* "6.0 MiB" */
void wf_text_time(struct wf_text *text, uint64_t nanoseconds); /* "12.3 us" */
void wf_text_free(struct wf_text *text);
weft_status wf_text_status(const struct wf_text *text) WF_NODISCARD;
/* As wf_fail, with characters of TEXT among the arguments.  TEXT is freed; WEFT_ERR_NO_MEMORY if it
 * had no memory. */
weft_status wf_fail_text(weft_status status, struct wf_text *text, const char *format, ...)
    WF_PRINTF(3, 4);
/* The string, never NULL on success; the caller frees it.  TEXT is empty afterwards. */
weft_status wf_text_take(struct wf_text *text, char **out) WF_NODISCARD;
/* As snprintf: at most SIZE bytes with the terminating zero into OUT, the whole length into
 * *NEEDED (may be NULL).  TEXT is freed. */
weft_status wf_text_copy_out(struct wf_text *text, char *out, size_t size,
                             size_t *needed) WF_NODISCARD;

/* ---- text/utf8.c: texts of others ---- */

/* Bytes of the character of UTF-8 at TEXT; 0 at other bytes and at the end. */
size_t wf_utf8_length(const char *text);
/* The code of the character of LENGTH bytes at TEXT if it is not shown but acted on: a control
 * character, a mark of the direction of writing, a line separator.  0: it is another one. */
uint32_t wf_utf8_control(const char *text, size_t length);
/* Make TEXT, of BYTES and a NUL behind them, fit to be shown on a terminal: bytes of such
 * characters, and bytes that are not UTF-8, become '?'.  NULs in it stay. */
void wf_text_clean(char *text, size_t bytes);
/* The same for lines: newlines stay, too. */
void wf_text_clean_lines(char *text, size_t bytes);

/* ---- text/text_file.c ---- */

/* Append the file at PATH, which has no NUL and at most 16 MiB; KIND is for errors. */
weft_status wf_text_file(const char *path, const char *kind, struct wf_text *out) WF_NODISCARD;

/* ---- text/shipped.c ---- */

/* A text that comes with weft, such as "llama". */
struct wf_shipped {
    const char *name, *text;
};

struct wf_shipped_list {
    const char *kind, *suffix; /* "a layout file", ".layout" */
    size_t count;
    const struct wf_shipped *all; /* in the order of their names */
};

/* Append the file at PATH, as wf_text_file does.  If there is no such file, or it is a folder, and
 * PATH has no slash, append the text of LIST with this name, with or without the suffix. */
weft_status wf_shipped_read(const struct wf_shipped_list *list, const char *path,
                            struct wf_text *out) WF_NODISCARD;

/* ---- text/fill.c ---- */

/* Sets *OUT to the number with NAME, of LENGTH bytes. */
typedef weft_status wf_number_find(void *state, const char *name, size_t length, int64_t *out);

/* Append TEXT to OUT.  In it, $name, and products such as $name*$other*2, become numbers. */
weft_status wf_text_fill(const char *text, wf_number_find *find, void *state,
                         struct wf_text *out) WF_NODISCARD;

/* ---- text/shape.c: sizes of dimensions ---- */

/* "[4,6]" */
void wf_shape_add_text(int32_t dims, const int64_t *shape, struct wf_text *text);
/* Row-major strides without gaps, in elements. */
void wf_row_major(int32_t dims, const int64_t *shape, int64_t *strides);

/* ---- text/pattern.c ---- */

/* `*` in PATTERN matches any text. */
bool wf_pattern_matches(const char *pattern, const char *name);
/* EARLIER matches all names that LATER matches: where the first match decides, LATER has no effect.
 */
bool wf_pattern_covers(const char *earlier, const char *later);

/* ---- text/ranks.c ---- */

/* "rank 3", "ranks 1, 4-6 and 9"; about 20 are listed at most. */
void wf_ranks_print(struct wf_text *out, const int32_t *ranks, int32_t count);

/* ---- json/json.c: writing JSON into a text ---- */

/* Zero-initialise with `out` set.  Keys are given as NULL inside arrays and for the top value. */
struct wf_json {
    struct wf_text *out;
    uint32_t depth;
    uint64_t has_member; /* bit per depth: a comma is due */
};

void wf_json_begin(struct wf_json *json, const char *key, char bracket);       /* '{' or '[' */
void wf_json_end(struct wf_json *json, char bracket);                          /* '}' or ']' */
void wf_json_string(struct wf_json *json, const char *key, const char *value); /* NULL: null */
void wf_json_int(struct wf_json *json, const char *key, int64_t value);
void wf_json_uint(struct wf_json *json, const char *key, uint64_t value);
void wf_json_real(struct wf_json *json, const char *key, double value); /* not finite: null */
void wf_json_bool(struct wf_json *json, const char *key, bool value);
void wf_json_null(struct wf_json *json, const char *key);

/* ---- json/json_tree.c: reading JSON into a tree; json/json_reader.h reads a stream ---- */

enum wf_json_kind {
    WF_JSON_NULL,
    WF_JSON_BOOL,
    WF_JSON_INT,  /* a number without fraction and exponent, of 64 bits */
    WF_JSON_REAL, /* any other number */
    WF_JSON_STRING,
    WF_JSON_ARRAY,
    WF_JSON_OBJECT
};

struct wf_json_value {
    uint32_t kind;
    uint32_t count;                     /* ARRAY and OBJECT: members */
    int64_t integer;                    /* BOOL: 0 or 1; INT */
    double real;                        /* INT and REAL */
    char *key, *text;                   /* key: in objects; text: STRING */
    struct wf_json_value *first, *next; /* the first member; the next one beside this */
};

struct wf_json_block;

struct wf_json_tree {
    struct wf_json_block *blocks;
    const struct wf_json_value *root;
};

/* Read TEXT, the document WHAT, with the limits of json_reader.h.  WEFT_ERR_PARSE gives the
 * position.  The caller frees *OUT. */
weft_status wf_json_read(const char *what, const char *text, struct wf_json_tree *out) WF_NODISCARD;
void wf_json_free(struct wf_json_tree *tree);
/* The member KEY of OBJECT; NULL: OBJECT lacks it, or is another kind. */
const struct wf_json_value *wf_json_find(const struct wf_json_value *object, const char *key);

/* ---- text/scan.c: reading small grammars, with positions for error messages ---- */

struct wf_scan {
    const char *text;
    size_t at; /* offset of the next byte; error messages count from 1 */
};

/* A part of a text. */
struct wf_passage {
    const char *start;
    size_t length;
};

/* A blank, or the end of a line or of the text. */
static inline bool wf_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0';
}

char wf_scan_peek(const struct wf_scan *scan);             /* '\0' at the end */
void wf_scan_space(struct wf_scan *scan);                  /* skip blanks */
bool wf_scan_char(struct wf_scan *scan, char c);           /* take C if it is next */
bool wf_scan_word(struct wf_scan *scan, const char *word); /* take WORD if it is next */
bool wf_scan_end(const struct wf_scan *scan);
uint32_t wf_scan_line(const struct wf_scan *scan); /* from 1 */
/* Skip blanks, comments (# up to the end of the line) and ends of lines; false at the end of the
 * text. */
bool wf_scan_next_line(struct wf_scan *scan);
/* Take the next field of a line: skip blanks, then take the text up to a blank.  It is empty at a
 * comment and at the end of the line. */
struct wf_passage wf_scan_field(struct wf_scan *scan);
/* Take the text up to a comment or the end of the line, without blanks at its ends. */
struct wf_passage wf_scan_rest(struct wf_scan *scan);
/* Take [A-Za-z_][A-Za-z0-9_]*; false if none is next. */
bool wf_scan_name(struct wf_scan *scan, const char **start, size_t *length);
/* Take decimal digits.  Errors: the next byte is not a digit, or the number exceeds 2^63 - 1; WHAT
 * names the expected number. */
weft_status wf_scan_int(struct wf_scan *scan, const char *what, int64_t *out) WF_NODISCARD;
/* WEFT_ERR_PARSE: `mesh "2xx4", position 3: expected ...`.  KIND names the grammar.  If the text
 * has several lines, only the failing one is quoted, with its number. */
weft_status wf_scan_fail(const struct wf_scan *scan, const char *kind, const char *format, ...)
    WF_PRINTF(3, 4);
/* As wf_scan_fail without ", found 'x'": for text that is well-formed but has no valid meaning. */
weft_status wf_scan_refuse(const struct wf_scan *scan, const char *kind, const char *format, ...)
    WF_PRINTF(3, 4);
#ifdef __clang_analyzer__
#define wf_scan_fail(scan, ...)   (wf_scan_fail(scan, __VA_ARGS__), WEFT_ERR_PARSE)
#define wf_scan_refuse(scan, ...) (wf_scan_refuse(scan, __VA_ARGS__), WEFT_ERR_PARSE)
#endif

/* ---- text/nearest.c ---- */

/* Index of the NAMES entry fewest edits away from NAME, or -1 if none is near enough to suggest. */
int wf_nearest(const char *name, const char *const *names, size_t count);

/* ---- dtype.c: names and sizes of the ABI's vocabulary ---- */

const char *wf_dtype_name(uint32_t dtype);           /* "f32"; NULL if unknown */
size_t wf_dtype_bytes(uint32_t dtype);               /* 0 if unknown */
size_t wf_dtype_alignment(uint32_t dtype);           /* of its elements in memory, bytes */
const char *wf_reduction_name(uint32_t reduction);   /* "sum"; NULL if unknown */
const char *wf_collective_name(uint32_t collective); /* "all_reduce"; NULL if unknown */
bool wf_dtype_find(const char *name, size_t length, uint32_t *out);
/* Append the reason why NAME is not a dtype: `"float32" is not a dtype; the dtypes are ...; did you
 * mean f32?` */
void wf_dtype_explain(const char *name, size_t length, struct wf_text *out);
/* wf_scan_refuse with that reason, for the LENGTH bytes at AT. */
weft_status wf_dtype_refuse(const struct wf_scan *at, const char *kind, size_t length) WF_NODISCARD;
bool wf_reduction_find(const char *name, size_t length, uint32_t *out);
bool wf_collective_reduces(uint32_t collective);
/* True if REDUCTION is defined on DTYPE (weft_plugin.h says where not). */
bool wf_reduction_defined(uint32_t reduction, uint32_t dtype);

/* ---- intern.c: one object per value, process-wide ---- */

/* The first member of an interned object. */
struct wf_interned {
    uint64_t made; /* WF_OF_KIND of fork.h; `make` of the table sets it */
    uint64_t hash;
    struct wf_interned *next;
    _Atomic(int64_t) references;
};

/* Declare one statically per kind of object, with the three functions set.  Any thread may use it.
 * The table holds no references: the last release of an object removes and frees it. */
struct wf_intern_table {
    bool (*same)(const struct wf_interned *object, const void *key);
    /* A new object equal to KEY, without its wf_interned.  Must not use an intern table, except to
     * retain. */
    weft_status (*make)(const void *key, struct wf_interned **out);
    void (*drop)(struct wf_interned *object); /* frees it */
    struct wf_interned **buckets;             /* NULL: the inline buckets below */
    struct wf_interned *few[16];
    size_t bucket_count, count;
};

/* The object equal to KEY, whose hash is HASH, with one more reference.  Made if it does not
 * exist. */
weft_status wf_intern(struct wf_intern_table *table, uint64_t hash, const void *key,
                      struct wf_interned **out) WF_NODISCARD;
void wf_intern_retain(struct wf_interned *object);
void wf_intern_release(struct wf_intern_table *table, struct wf_interned *object);

/* ---- clock.c ---- */

uint64_t wf_now_ns(void); /* monotonic */

#define WF_SECOND_NS INT64_C(1000000000)

/* The deadline of a call that begins now with the time limit TIMEOUT_NS; UINT64_MAX: none. */
static inline uint64_t wf_deadline(int64_t timeout_ns)
{
    return timeout_ns < 0 ? UINT64_MAX : wf_now_ns() + (uint64_t)timeout_ns;
}

/* The time until DEADLINE_NS, as a time limit. */
static inline int64_t wf_time_left(uint64_t deadline_ns)
{
    uint64_t now_ns = wf_now_ns();

    if (deadline_ns == UINT64_MAX) return WEFT_FOREVER;
    return deadline_ns > now_ns ? (int64_t)(deadline_ns - now_ns) : 0;
}

#endif
