/* registry.c - the rules of all operators: weft's own, and those that the program registers.
 *
 * A table of operators is immutable once it is published.  Each change makes a new table, so that
 * readers need no lock. */
#include "registry.h"

#include "weft/ops.h"

#include <string.h>

struct table {
    struct wf_retired retired;
    uint64_t digest;
    uint32_t count, room; /* operators, and room for them */
    uint32_t mask;
    uint32_t *slots; /* 1 + index into ops; 0: free */
    struct wf_op_entry ops[];
};

struct wf_published wf_op_guard = WF_PUBLISHED;
static _Atomic(struct table *) current;
static struct table *own; /* weft's own rules; made once, under the lock */

/* ---- tables ---- */

/* The hash by which a name is found (FNV-1a), with one more character.  Names are short, and every
 * call looks for one. */
static inline uint32_t hash_more(uint32_t hash, char c)
{
    return (hash ^ (unsigned char)c) * UINT32_C(16777619);
}

static uint32_t hash_name(const char *name, size_t length)
{
    uint32_t hash = 0;

    for (size_t i = 0; i < length; i++)
        hash = hash_more(hash, name[i]);
    return hash;
}

static void drop_table(struct wf_retired *item)
{
    struct table *table = (struct table *)item;

    for (uint32_t i = 0; i < table->count; i++)
        for (uint32_t j = 0; j < table->ops[i].rule_count; j++)
            wf_rule_drop(table->ops[i].rules[j]);
    wf_free(table);
}

static struct table *make_table(uint32_t room)
{
    size_t slots = 16, bytes;
    struct table *table;

    while (slots < 4 * (size_t)room) /* few names share a slot: every call looks for one */
        slots *= 2;
    bytes = sizeof *table + room * sizeof table->ops[0];
    table = wf_calloc(1, bytes + slots * sizeof *table->slots);
    if (table == NULL) return NULL;
    table->retired.drop = drop_table;
    table->slots = (uint32_t *)(void *)((char *)table + bytes);
    table->mask = (uint32_t)slots - 1;
    table->room = room;
    return table;
}

/* The slot of NAME, which has HASH: that of its operator, or the free one where it belongs. */
static uint32_t *find_slot(const struct table *table, const char *name, size_t length,
                           uint32_t hash)
{
    uint32_t at = (hash ^ hash >> 16) & table->mask;

    for (; table->slots[at] != 0; at = (at + 1) & table->mask) {
        const struct wf_op_entry *op = &table->ops[table->slots[at] - 1];
        if (op->hash == hash && op->length == length && memcmp(op->name, name, length) == 0) break;
    }
    return &table->slots[at];
}

static struct wf_op_entry *find_entry(struct table *table, const char *name, size_t length)
{
    uint32_t slot = table != NULL ? *find_slot(table, name, length, hash_name(name, length)) : 0;

    return slot != 0 ? &table->ops[slot - 1] : NULL;
}

static struct wf_op_entry *add_entry(struct table *table, const char *name, size_t length)
{
    struct wf_op_entry *op = &table->ops[table->count++];
    uint32_t hash = hash_name(name, length);

    *find_slot(table, name, length, hash) = table->count;
    *op = (struct wf_op_entry){.hash = hash, .length = (uint16_t)length};
    return op;
}

static void add_rule(struct wf_op_entry *op, struct wf_rule *rule, struct wf_word name)
{
    if (op->rule_count == 0) op->name = rule->text + name.at;
    op->rules[op->rule_count++] = wf_rule_retain(rule);
}

static void copy_entry(struct table *table, const struct wf_op_entry *op)
{
    struct wf_op_entry *copy = add_entry(table, op->name, op->length);

    *copy = *op;
    for (uint32_t i = 0; i < copy->rule_count; i++)
        (void)wf_rule_retain(copy->rules[i]);
}

static const struct wf_op_entry *find_in(const void *table, const char *name)
{
    return find_entry((struct table *)(uintptr_t)table, name, strlen(name));
}

/* The digest of an operator that is made of others is that of its parts. */
static void digest_steps(const struct table *table, struct wf_op_entry *op)
{
    struct wf_op_step steps[WF_OP_STEPS];
    uint32_t count;

    if (wf_op_list_steps(op, find_in, table, steps, &count) != WEFT_OK) return;
    for (uint32_t i = 0; i < count; i++)
        op->digest = wf_hash_mix(op->digest, find_in(table, steps[i].name)->digest);
}

static void set_digest(struct table *table)
{
    table->digest = 1;
    for (uint32_t i = 0; i < table->count; i++) {
        struct wf_op_entry *op = &table->ops[i];
        op->digest = wf_hash(0x6f70, op->name, op->length);
        op->uses = wf_op_is_chain(op);
        for (uint32_t j = 0; j < op->rule_count; j++)
            op->uses = op->uses || op->rules[j]->use.length > 0;
        for (uint32_t j = 0; j < op->rule_count; j++) /* the names beside do not matter */
            op->digest = wf_hash(op->digest, op->rules[j]->body, strlen(op->rules[j]->body));
        table->digest += op->digest; /* a sum, so that the order does not matter */
    }
    for (uint32_t i = 0; i < table->count; i++)
        if (wf_op_is_chain(&table->ops[i])) digest_steps(table, &table->ops[i]);
}

/* All parts of operators must have rules, and no operator may be made of itself. */
static weft_status check_steps(const struct table *table)
{
    struct wf_op_step steps[WF_OP_STEPS];
    uint32_t count;

    for (uint32_t i = 0; i < table->count; i++)
        for (uint32_t j = 0; j < table->ops[i].rule_count; j++)
            if (table->ops[i].rules[j]->step_count > 0)
                WF_TRY(wf_op_list_steps(&table->ops[i], find_in, table, steps, &count));
    return WEFT_OK;
}

/* ---- reading rules ---- */

struct batch {
    struct wf_rule **rules;
    size_t count, names;
};

static void free_batch(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        wf_rule_drop(batch->rules[i]);
    wf_free(batch->rules);
}

static size_t count_lines(const char *text)
{
    size_t count = 1;

    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static weft_status read_batch(const char *text, struct batch *out)
{
    size_t lines = count_lines(text), at = 0;
    struct batch batch = {wf_calloc(lines, sizeof(struct wf_rule *)), 0, 0};
    weft_status status = WEFT_OK;

    if (batch.rules == NULL) return wf_fail_memory(lines * sizeof(struct wf_rule *));
    while (status == WEFT_OK && text[at] != '\0') {
        struct wf_rule *rule;
        status = wf_rule_read(text, &at, &rule);
        if (status != WEFT_OK || rule == NULL) continue;
        batch.names += rule->name_count;
        batch.rules[batch.count++] = rule;
    }
    if (status == WEFT_OK)
        *out = batch;
    else
        free_batch(&batch);
    return status;
}

/* ---- changes ---- */

/* Add the rules of BATCH to TABLE, under all their names. */
static weft_status add_batch(struct table *table, const struct batch *batch, bool registered)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct wf_rule *rule = batch->rules[i];
        for (int j = 0; j < rule->name_count; j++) {
            const char *name = rule->text + rule->names[j].at;
            struct wf_op_entry *op = find_entry(table, name, rule->names[j].length);
            if (op == NULL) op = add_entry(table, name, rule->names[j].length);
            if (op->rule_count == WF_OP_LINES)
                return wf_fail(WEFT_ERR_INVALID, "operator %.*s has more than %d rules",
                               (int)op->length, name, WF_OP_LINES);
            op->registered = registered;
            add_rule(op, rule, rule->names[j]);
        }
    }
    return WEFT_OK;
}

static weft_status make_own(void)
{
    struct wf_text lines = {0};
    struct batch batch = {NULL, 0, 0};
    struct table *table = NULL;
    weft_status status;

    for (size_t i = 0; i < wf_op_builtin_count; i++)
        wf_text_add(&lines, "%s\n", wf_op_builtin[i]);
    status = wf_text_status(&lines);
    if (status == WEFT_OK) status = read_batch(lines.data, &batch);
    wf_text_free(&lines);
    WF_TRY(status);
    table = make_table((uint32_t)batch.names);
    status = table != NULL ? add_batch(table, &batch, false)
                           : wf_fail_memory(batch.names * sizeof table->ops[0]);
    free_batch(&batch);
    if (status != WEFT_OK) {
        if (table != NULL) drop_table(&table->retired);
        return status;
    }
    set_digest(table);
    own = table;
    atomic_store(&current, table);
    return WEFT_OK;
}

static weft_status begin_change(void)
{
    weft_status status = WEFT_OK;

    wf_published_lock(&wf_op_guard);
    if (own == NULL) status = make_own();
    if (status != WEFT_OK) wf_published_unlock(&wf_op_guard);
    return status;
}

static void publish(struct table *table)
{
    struct table *before = atomic_load(&current);

    set_digest(table);
    atomic_store(&current, table);
    if (before != own) wf_published_retire(&wf_op_guard, &before->retired);
}

/* True if A and B have the same rules but for the other names in their lines. */
static bool same_rules(const struct wf_op_entry *a, const struct wf_op_entry *b)
{
    bool same = a->rule_count == b->rule_count;

    for (uint32_t i = 0; same && i < a->rule_count; i++)
        same = strcmp(a->rules[i]->body, b->rules[i]->body) == 0;
    return same;
}

/* No operator of TABLE that was registered before may change. */
static weft_status check_conflicts(struct table *before, struct table *table)
{
    for (uint32_t i = 0; i < before->count; i++) {
        const struct wf_op_entry *op = &before->ops[i], *now;
        if (!op->registered) continue;
        now = find_entry(table, op->name, op->length);
        if (now != NULL && !same_rules(op, now))
            return wf_fail(
                WEFT_ERR_INVALID,
                "weft_op_register: operator %.*s is registered with the rule \"%.300s\"; "
                "weft_op_replace exchanges it for \"%.300s\"",
                (int)op->length, op->name, op->rules[0]->text, now->rules[0]->text);
    }
    return WEFT_OK;
}

/* A table with the rules of BATCH, and those of BEFORE under other names. */
static weft_status make_changed(struct table *before, const struct batch *batch, bool replace,
                                struct table **out)
{
    struct table *table = make_table(before->count + (uint32_t)batch->names);
    weft_status status;

    if (table == NULL) return wf_fail_memory(before->count * sizeof before->ops[0]);
    status = add_batch(table, batch, true);
    for (uint32_t i = 0; status == WEFT_OK && i < before->count; i++)
        if (find_entry(table, before->ops[i].name, before->ops[i].length) == NULL)
            copy_entry(table, &before->ops[i]);
    if (status == WEFT_OK && !replace) status = check_conflicts(before, table);
    if (status == WEFT_OK) status = check_steps(table);
    if (status == WEFT_OK)
        *out = table;
    else
        drop_table(&table->retired);
    return status;
}

static weft_status change_rules(const struct batch *batch, bool replace)
{
    struct table *table;
    weft_status status;

    WF_TRY(begin_change());
    status = make_changed(atomic_load(&current), batch, replace, &table);
    if (status == WEFT_OK) publish(table);
    wf_published_unlock(&wf_op_guard);
    return status;
}

/* What weft_op_replace would refuse. */
static weft_status check_batch(const struct batch *batch)
{
    struct table *table = NULL;
    weft_status status;

    WF_TRY(begin_change());
    status = make_changed(atomic_load(&current), batch, true, &table);
    wf_published_unlock(&wf_op_guard);
    if (status == WEFT_OK) drop_table(&table->retired);
    return status;
}

static weft_status register_text(const char *text, bool replace)
{
    struct batch batch;
    weft_status status;

    WF_TRY(read_batch(text, &batch));
    status = batch.count > 0 ? change_rules(&batch, replace)
                             : wf_fail(WEFT_ERR_PARSE, "the text has no rule");
    free_batch(&batch);
    return status;
}

weft_status weft_op_register(const char *text)
{
    WF_TRY(wf_require(text, "weft_op_register: text"));
    return wf_fail_named(register_text(text, false), "weft_op_register");
}

weft_status weft_op_replace(const char *text)
{
    WF_TRY(wf_require(text, "weft_op_replace: text"));
    return wf_fail_named(register_text(text, true), "weft_op_replace");
}

static weft_status remove_name(struct table *before, const char *name)
{
    const struct wf_op_entry *op = find_entry(before, name, strlen(name)), *mine;
    struct table *table;
    weft_status status;

    if (op == NULL || !op->registered)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "weft_op_remove: the program has registered no rule for \"%.100s\"", name);
    table = make_table(before->count);
    if (table == NULL) return wf_fail_memory(before->count * sizeof before->ops[0]);
    mine = find_entry(own, name, strlen(name));
    for (uint32_t i = 0; i < before->count; i++)
        if (&before->ops[i] != op)
            copy_entry(table, &before->ops[i]);
        else if (mine != NULL)
            copy_entry(table, mine);
    status = check_steps(table); /* another operator may be made of it */
    if (status == WEFT_OK)
        publish(table);
    else
        drop_table(&table->retired);
    return wf_fail_named(status, "weft_op_remove");
}

weft_status weft_op_remove(const char *name)
{
    weft_status status;

    WF_TRY(wf_require(name, "weft_op_remove: name"));
    WF_TRY(begin_change());
    status = remove_name(atomic_load(&current), name);
    wf_published_unlock(&wf_op_guard);
    return status;
}

/* ---- reading ---- */

weft_status wf_op_enter(uint32_t *ticket)
{
    if (atomic_load_explicit(&current, memory_order_acquire) == NULL) {
        WF_TRY(begin_change());
        wf_published_unlock(&wf_op_guard);
    }
    *ticket = wf_published_enter(&wf_op_guard);
    return WEFT_OK;
}

void wf_op_leave(uint32_t ticket)
{
    wf_published_leave(&wf_op_guard, ticket);
}

const struct wf_op_entry *wf_op_find(const char *name)
{
    const struct table *table = atomic_load(&current);
    const char *end = name;
    uint32_t hash = 0, slot;

    for (; *end != '\0'; end++)
        hash = hash_more(hash, *end);
    slot = *find_slot(table, name, (size_t)(end - name), hash);
    return slot != 0 ? &table->ops[slot - 1] : NULL;
}

const struct wf_op_entry *wf_op_all(uint32_t *count)
{
    const struct table *table = atomic_load(&current);

    *count = table->count;
    return table->ops;
}

uint64_t weft_op_digest(void)
{
    uint64_t digest;
    uint32_t ticket;

    if (wf_op_enter(&ticket) != WEFT_OK) return 0;
    digest = atomic_load(&current)->digest;
    wf_op_leave(ticket);
    return digest;
}

weft_status weft_op_rules_print(const char *rules, char *text, size_t size, size_t *needed)
{
    struct wf_text out = {0};
    struct batch batch;
    weft_status status;

    WF_TRY(wf_require(rules, "weft_op_rules_print: rules"));
    if (size > 0) WF_TRY(wf_require(text, "weft_op_rules_print: text"));
    WF_TRY(wf_fail_named(read_batch(rules, &batch), "weft_op_rules_print"));
    status = wf_fail_named(check_batch(&batch), "weft_op_rules_print");
    for (size_t i = 0; status == WEFT_OK && i < batch.count; i++)
        wf_text_add(&out, "%s%s", i > 0 ? "\n" : "", batch.rules[i]->text);
    free_batch(&batch);
    return status == WEFT_OK ? wf_text_copy_out(&out, text, size, needed) : status;
}
