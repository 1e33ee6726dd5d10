/* pickle.c - the stack machine of pickle, for the opcodes of pickle.h. */
#include "checkpoint/dcp/pickle.h"

#include <inttypes.h>
#include <string.h>

struct machine {
    struct wf_arena *arena;
    const char *what;
    const unsigned char *bytes;
    size_t at, count;
    struct wf_pickle **stack;
    size_t depth, stack_capacity;
    struct wf_pickle **memo; /* NULL: not set */
    size_t memo_count, memo_capacity;
};

static weft_status refuse(const struct machine *m, const char *reason)
{
    return wf_fail(WEFT_ERR_PARSE, "%s, byte %zu: %s", m->what, m->at, reason);
}

/* ---- input ---- */

static weft_status take_bytes(struct machine *m, size_t count, const unsigned char **out)
{
    if (count > m->count - m->at) return refuse(m, "the pickle is cut short");
    *out = m->bytes + m->at;
    m->at += count;
    return WEFT_OK;
}

/* An unsigned number of COUNT bytes, little endian. */
static weft_status take_number(struct machine *m, size_t count, uint64_t *out)
{
    const unsigned char *bytes = NULL;
    uint64_t value = 0;

    WF_TRY(take_bytes(m, count, &bytes));
    for (size_t i = count; i-- > 0;)
        value = value << 8 | bytes[i];
    *out = value;
    return WEFT_OK;
}

/* ---- stack and memo ---- */

static weft_status grow(struct wf_pickle ***list, size_t *capacity, size_t wanted)
{
    size_t larger = *capacity != 0 ? *capacity : 64;
    struct wf_pickle **grown;

    if (wanted <= *capacity) return WEFT_OK;
    while (larger < wanted)
        larger *= 2;
    grown = wf_realloc(*list, larger * sizeof(struct wf_pickle *));
    if (grown == NULL) return wf_fail_memory(larger * sizeof(struct wf_pickle *));
    memset(grown + *capacity, 0, (larger - *capacity) * sizeof *grown);
    *list = grown;
    *capacity = larger;
    return WEFT_OK;
}

static weft_status push(struct machine *m, struct wf_pickle *node)
{
    WF_TRY(grow(&m->stack, &m->stack_capacity, m->depth + 1));
    m->stack[m->depth++] = node;
    return WEFT_OK;
}

/* Push a new node of KIND. */
static weft_status push_new(struct machine *m, enum wf_pickle_kind kind, struct wf_pickle **out)
{
    struct wf_pickle *node = wf_arena_alloc(m->arena, sizeof *node);

    if (node == NULL) return wf_fail_memory(sizeof *node);
    *node = (struct wf_pickle){.kind = (uint8_t)kind};
    if (out != NULL) *out = node;
    return push(m, node);
}

static weft_status push_int(struct machine *m, enum wf_pickle_kind kind, int64_t value)
{
    struct wf_pickle *node = NULL;

    WF_TRY(push_new(m, kind, &node));
    node->number = value;
    return WEFT_OK;
}

/* Take the top of the stack, which must not be a mark. */
static weft_status pop(struct machine *m, struct wf_pickle **out)
{
    if (m->depth == 0 || m->stack[m->depth - 1]->kind == WF_PICKLE_MARK)
        return refuse(m, "the stack is empty");
    *out = m->stack[--m->depth];
    return WEFT_OK;
}

/* The number of values above the last mark. */
static weft_status count_marked(struct machine *m, size_t *out)
{
    for (size_t i = m->depth; i-- > 0;)
        if (m->stack[i]->kind == WF_PICKLE_MARK) {
            *out = m->depth - i - 1;
            return WEFT_OK;
        }
    return refuse(m, "there is no mark on the stack");
}

static weft_status set_memo(struct machine *m, uint64_t index)
{
    if (m->depth == 0 || m->stack[m->depth - 1]->kind == WF_PICKLE_MARK)
        return refuse(m, "the stack is empty");
    if (index > m->count) return refuse(m, "the number of a memo is too large");
    WF_TRY(grow(&m->memo, &m->memo_capacity, (size_t)index + 1));
    m->memo[index] = m->stack[m->depth - 1];
    if (index >= m->memo_count) m->memo_count = (size_t)index + 1;
    return WEFT_OK;
}

static weft_status get_memo(struct machine *m, uint64_t index)
{
    if (index >= m->memo_count || m->memo[index] == NULL)
        return refuse(m, "a memo is used that was not set");
    return push(m, m->memo[index]);
}

/* ---- containers ---- */

static weft_status append_items(struct machine *m, struct wf_pickle *node, struct wf_pickle **items,
                                size_t count)
{
    size_t wanted = node->count + count;

    if (wanted > node->capacity) {
        size_t capacity = node->capacity != 0 ? 2 * (size_t)node->capacity : count;
        struct wf_pickle **grown;
        if (capacity < wanted) capacity = wanted;
        if (capacity > UINT32_MAX) return refuse(m, "a container is too long");
        grown = wf_arena_alloc(m->arena, capacity * sizeof *grown);
        if (grown == NULL) return wf_fail_memory(capacity * sizeof *grown);
        if (node->count > 0) memcpy(grown, node->items, node->count * sizeof *grown);
        node->items = grown;
        node->capacity = (uint32_t)capacity;
    }
    if (count > 0) memcpy(node->items + node->count, items, count * sizeof *items);
    node->count = (uint32_t)wanted;
    return WEFT_OK;
}

/* Replace the top COUNT values by a tuple of them. */
static weft_status make_tuple(struct machine *m, size_t count)
{
    struct wf_pickle *node = NULL;

    for (size_t i = 0; i < count; i++)
        if (i >= m->depth || m->stack[m->depth - 1 - i]->kind == WF_PICKLE_MARK)
            return refuse(m, "the stack is empty");
    WF_TRY(push_new(m, WF_PICKLE_TUPLE, &node));
    WF_TRY(append_items(m, node, &m->stack[m->depth - 1 - count], count));
    m->depth -= count;
    m->stack[m->depth - 1] = node;
    return WEFT_OK;
}

/* Replace the values above the last mark, and the mark, by a tuple. */
static weft_status make_marked_tuple(struct machine *m)
{
    struct wf_pickle *node = NULL;
    size_t count = 0;

    WF_TRY(count_marked(m, &count));
    WF_TRY(make_tuple(m, count));
    WF_TRY(pop(m, &node));
    m->stack[m->depth - 1] = node;
    return WEFT_OK;
}

/* Append the top COUNT values to the container under them (with MARKED, under the mark). */
static weft_status add_items(struct machine *m, size_t count, bool marked, enum wf_pickle_kind kind)
{
    size_t under = count + (marked ? 1 : 0);
    struct wf_pickle *node;

    if (under >= m->depth) return refuse(m, "the stack is empty");
    node = m->stack[m->depth - 1 - under];
    if (node->kind == WF_PICKLE_OBJECT) { /* an OrderedDict */
        if (kind != WF_PICKLE_DICT || !wf_pickle_is(node, WF_NAME_ORDERED_DICT))
            return refuse(m, "items are added to an object");
        m->depth -= under;
        return WEFT_OK;
    }
    if (node->kind != (uint8_t)kind || (kind == WF_PICKLE_DICT && count % 2 != 0))
        return refuse(m, "items are added to another kind of container");
    WF_TRY(append_items(m, node, &m->stack[m->depth - count], count));
    m->depth -= under;
    return WEFT_OK;
}

static weft_status add_marked_items(struct machine *m, enum wf_pickle_kind kind)
{
    size_t count = 0;

    WF_TRY(count_marked(m, &count));
    return add_items(m, count, true, kind);
}

/* ---- names, texts and objects ---- */

static weft_status push_name(struct machine *m, const char *module, const char *name)
{
    struct wf_pickle *node = NULL;

    WF_TRY(push_new(m, WF_PICKLE_GLOBAL, &node));
    if (wf_pickle_find_name(module, name, node)) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_UNSUPPORTED,
        "%s, byte %zu: it names %.100s.%.100s, which is not one of the classes that weft "
        "knows; weft runs no code of a checkpoint",
        m->what, m->at, module, name);
}

/* GLOBAL: two lines. */
static weft_status read_global(struct machine *m)
{
    char lines[2][256];

    for (int i = 0; i < 2; i++) {
        const unsigned char *start = m->bytes + m->at, *end;
        size_t length;
        end = memchr(start, '\n', m->count - m->at);
        length = end != NULL ? (size_t)(end - start) : SIZE_MAX;
        if (length >= sizeof lines[0]) return refuse(m, "a name has no end or is too long");
        memcpy(lines[i], start, length);
        lines[i][length] = '\0';
        m->at += length + 1;
    }
    return push_name(m, lines[0], lines[1]);
}

static weft_status read_stack_global(struct machine *m)
{
    struct wf_pickle *name = NULL, *module = NULL;

    WF_TRY(pop(m, &name));
    WF_TRY(pop(m, &module));
    if (name->kind != WF_PICKLE_TEXT || module->kind != WF_PICKLE_TEXT)
        return refuse(m, "a name is not text");
    return push_name(m, module->text, name->text);
}

static weft_status read_text(struct machine *m, size_t length_bytes, enum wf_pickle_kind kind)
{
    const unsigned char *bytes = NULL;
    struct wf_pickle *node = NULL;
    uint64_t length = 0;

    WF_TRY(take_number(m, length_bytes, &length));
    if (length > UINT32_MAX) return refuse(m, "a text is too long");
    WF_TRY(take_bytes(m, (size_t)length, &bytes));
    WF_TRY(push_new(m, kind, &node));
    if (kind == WF_PICKLE_OPAQUE) return WEFT_OK;
    if (memchr(bytes, 0, (size_t)length) != NULL)
        return refuse(m, "a text contains a NUL character");
    node->text = wf_arena_text(m->arena, (const char *)bytes, (size_t)length);
    node->count = (uint32_t)length;
    return node->text != NULL ? WEFT_OK : wf_fail_memory((size_t)length + 1);
}

static weft_status read_long(struct machine *m)
{
    const unsigned char *bytes = NULL;
    uint64_t length = 0, value;

    WF_TRY(take_number(m, 1, &length));
    if (length > 8) return refuse(m, "a number has more than 64 bits");
    WF_TRY(take_bytes(m, (size_t)length, &bytes));
    value = length > 0 && bytes[length - 1] >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = (size_t)length; i-- > 0;)
        value = value << 8 | bytes[i];
    return push_int(m, WF_PICKLE_INT, (int64_t)value);
}

/* NEWOBJ and REDUCE: an object of the class, or the call of the function, that is under the
 * arguments.  It is only noted down. */
static weft_status make_object(struct machine *m)
{
    struct wf_pickle *arguments = NULL, *first = NULL, *node = NULL;

    WF_TRY(pop(m, &arguments));
    WF_TRY(pop(m, &first));
    if (first->kind != WF_PICKLE_GLOBAL || arguments->kind != WF_PICKLE_TUPLE)
        return refuse(m, "an object has no class, or no tuple of arguments");
    WF_TRY(push_new(m, WF_PICKLE_OBJECT, &node));
    node->first = first;
    node->arguments = arguments;
    return WEFT_OK;
}

static weft_status set_state(struct machine *m)
{
    struct wf_pickle *state = NULL;

    WF_TRY(pop(m, &state));
    if (m->depth == 0 || m->stack[m->depth - 1]->kind != WF_PICKLE_OBJECT)
        return refuse(m, "a state has no object");
    m->stack[m->depth - 1]->state = state;
    return WEFT_OK;
}

static weft_status make_storage(struct machine *m)
{
    struct wf_pickle *id = NULL, *node = NULL;

    WF_TRY(pop(m, &id));
    WF_TRY(push_new(m, WF_PICKLE_STORAGE, &node));
    node->first = id;
    return WEFT_OK;
}

/* ---- opcodes ---- */

static weft_status run_number(struct machine *m, unsigned char op)
{
    uint64_t value = 0;

    if (op == 0x8a) return read_long(m);
    WF_TRY(take_number(m, op == 'J' ? 4 : op == 'M' ? 2 : 1, &value));
    return push_int(m, WF_PICKLE_INT, op == 'J' ? (int32_t)(uint32_t)value : (int64_t)value);
}

static weft_status run_memo(struct machine *m, unsigned char op)
{
    bool is_long = op == 'j' || op == 'r', get = op == 'h' || op == 'j';
    uint64_t index = m->memo_count;

    if (op != 0x94) WF_TRY(take_number(m, is_long ? 4 : 1, &index));
    return get ? get_memo(m, index) : set_memo(m, index);
}

static weft_status run_container(struct machine *m, unsigned char op)
{
    switch (op) {
    case ')':
        return push_new(m, WF_PICKLE_TUPLE, NULL);
    case 't':
        return make_marked_tuple(m);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(m, (size_t)op - 0x84);
    case '}':
        return push_new(m, WF_PICKLE_DICT, NULL);
    case 's':
        return add_items(m, 2, false, WF_PICKLE_DICT);
    case 'u':
        return add_marked_items(m, WF_PICKLE_DICT);
    case ']':
        return push_new(m, WF_PICKLE_LIST, NULL);
    case 'a':
        return add_items(m, 1, false, WF_PICKLE_LIST);
    default:
        return add_marked_items(m, WF_PICKLE_LIST); /* 'e' */
    }
}

static weft_status run_opcode(struct machine *m, unsigned char op)
{
    const unsigned char *ignored;

    switch (op) {
    case 0x80:
        return take_bytes(m, 1, &ignored); /* PROTO */
    case 0x95:
        return take_bytes(m, 8, &ignored); /* FRAME */
    case '(':
        return push_new(m, WF_PICKLE_MARK, NULL);
    case 'c':
        return read_global(m);
    case 0x93:
        return read_stack_global(m);
    case 0x8c:
        return read_text(m, 1, WF_PICKLE_TEXT);
    case 'X':
        return read_text(m, 4, WF_PICKLE_TEXT);
    case 0x8d:
        return read_text(m, 8, WF_PICKLE_TEXT);
    case 'C':
        return read_text(m, 1, WF_PICKLE_OPAQUE);
    case 'B':
        return read_text(m, 4, WF_PICKLE_OPAQUE);
    case 'G':
        WF_TRY(take_bytes(m, 8, &ignored));
        return push_new(m, WF_PICKLE_OPAQUE, NULL);
    case 'N':
        return push_new(m, WF_PICKLE_NONE, NULL);
    case 0x88:
        return push_int(m, WF_PICKLE_BOOL, 1);
    case 0x89:
        return push_int(m, WF_PICKLE_BOOL, 0);
    case 'J':
    case 'K':
    case 'M':
    case 0x8a:
        return run_number(m, op);
    case 0x94:
    case 'h':
    case 'j':
    case 'q':
    case 'r':
        return run_memo(m, op);
    case 0x81:
    case 'R':
        return make_object(m);
    case 'b':
        return set_state(m);
    case 'Q':
        return make_storage(m);
    default:
        if (op == 0 || strchr(")t}su]ae\x85\x86\x87", op) == NULL)
            return wf_fail(
                WEFT_ERR_UNSUPPORTED,
                "%s, byte %zu: opcode 0x%02x of pickle, which a checkpoint does not need", m->what,
                m->at, op);
        return run_container(m, op);
    }
}

static weft_status run(struct machine *m, struct wf_pickle **out)
{
    const unsigned char *op = NULL;

    for (;;) {
        WF_TRY(take_bytes(m, 1, &op));
        if (*op == '.') break;
        WF_TRY(run_opcode(m, *op));
    }
    if (m->depth != 1) return refuse(m, "the stack does not have one value at the end");
    return pop(m, out);
}

weft_status wf_pickle_read(struct wf_arena *arena, const char *what, const void *bytes,
                           size_t count, struct wf_pickle **out)
{
    struct machine m = {.arena = arena, .what = what, .bytes = bytes, .count = count};
    weft_status status = run(&m, out);

    wf_free(m.stack);
    wf_free(m.memo);
    return status;
}
