/* cache.c - choices by call.
 *
 * A key has the digest of the operator's rules, the pointers of specs, which are unique, and the
 * attributes that a rule of the operator lists.  A kept entry holds references to what its key
 * points to, so that a pointer means the same object as long as the entry exists.  Rules that
 * change have another digest: their old entries are never found again, and are displaced in time.
 * Readers take no lock (base/published.h). */
#include "cache.h"

#include <string.h>

enum { FIXED_WORDS = 6 /* of every key, before those of the inputs */ };

struct kept {
    struct wf_retired retired;
    weft_spec **inputs; /* behind the key */
    weft_mesh *mesh;
    weft_cost_table *costs;
    uint64_t hash; /* from here on what a search reads */
    uint32_t count, input_count;
    weft_op_choice *choice;
    uint64_t words[];
};

static _Atomic(struct kept *) table[WF_CACHE_SETS][WF_CACHE_WAYS];
static uint8_t displaced[WF_CACHE_SETS]; /* the way that is displaced next; under the lock */

/* ---- keys ---- */

static bool add_word(struct wf_key *key, uint64_t word)
{
    if (key->count == WF_KEY_WORDS) return false;
    key->words[key->count++] = word;
    return true;
}

static bool add_bytes(struct wf_key *key, const void *bytes, size_t length)
{
    uint64_t word;

    if (!add_word(key, length)) return false;
    for (size_t at = 0; at < length; at += sizeof word) {
        word = 0;
        memcpy(&word, (const char *)bytes + at,
               length - at < sizeof word ? length - at : sizeof word);
        if (!add_word(key, word)) return false;
    }
    return true;
}

static bool add_attr(struct wf_key *key, const weft_op_attr *attr)
{
    uint64_t bits;

    if (!add_word(key, attr != NULL ? attr->kind + 1 : 0)) return false;
    if (attr == NULL) return true;
    switch (attr->kind) {
    case WEFT_ATTR_INT:
        return add_word(key, (uint64_t)attr->integer);
    case WEFT_ATTR_REAL:
        memcpy(&bits, &attr->real, sizeof bits);
        return add_word(key, bits);
    case WEFT_ATTR_LIST:
        return add_bytes(key, attr->list, attr->count * sizeof *attr->list);
    default:
        return add_bytes(key, attr->text, strlen(attr->text));
    }
}

/* The attributes that the rules list, and those that every operator may have. */
static bool add_attrs(struct wf_key *key, const struct wf_op_entry *entry, const weft_op_call *call)
{
    if (call->attr_count == 0) return true;           /* the digest tells which were looked for */
    for (uint32_t i = 0; i < call->attr_count; i++) { /* such a call is refused */
        if (!wf_attr_is_known(entry, call->attrs[i].name)) return false;
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(call->attrs[j].name, call->attrs[i].name) == 0) return false;
    }
    if (!add_attr(key, wf_attr_find(call, "keepdim", 7)) ||
        !add_attr(key, wf_attr_find(call, "count", 5)) ||
        !add_attr(key, wf_attr_find(call, "p", 1)))
        return false;
    for (uint32_t i = 0; i < entry->rule_count; i++) {
        const struct wf_rule *rule = entry->rules[i];
        /* a made rule may look for attributes that its line does not list */
        for (uint32_t j = 0; rule->make.length > 0 && j < call->attr_count; j++)
            if (!add_bytes(key, call->attrs[j].name, strlen(call->attrs[j].name)) ||
                !add_attr(key, &call->attrs[j]))
                return false;
        for (int j = 0; j < rule->attr_count; j++) {
            struct wf_word name = rule->attrs[j].name;
            if (!add_attr(key, wf_attr_find(call, rule->text + name.at, name.length))) return false;
        }
    }
    return true;
}

/* The hash of KEY, whose inputs have the hash INPUTS.  The first words are multiplied at the same
 * time, the others one after another. */
static uint64_t hash_key(const struct wf_key *key, uint64_t inputs, size_t input_count)
{
    const uint64_t *w = key->words;
    uint64_t hash = w[0] + w[1] * UINT64_C(0x9e3779b97f4a7c15) +
                    w[2] * UINT64_C(0xbf58476d1ce4e5b9) + w[3] * UINT64_C(0x94d049bb133111eb) +
                    w[4] * UINT64_C(0xd6e8feb86659fd93) + w[5] * UINT64_C(0xff51afd7ed558ccd) +
                    inputs;

    for (size_t i = FIXED_WORDS + input_count; i < key->count; i++)
        hash = wf_hash_mix(hash, w[i]);
    return hash ^ hash >> 32;
}

bool wf_key_set(struct wf_key *key, const struct wf_op_entry *entry, uint32_t mode,
                const weft_op_call *call, const weft_op_options *options)
{
    /* the caller's name is the entry's, with "_" behind it, "foreach_" before it, or both */
    uint64_t longer = call->name[entry->length] != '\0' ? strlen(call->name) - entry->length : 0;
    uint64_t *words = key->words, inputs = 0;
    bool fits = true;

    key->count = 0;
    if (options->allow != NULL || options->fixed_inputs != NULL || options->fixed_outputs != NULL ||
        options->wanted_outputs != NULL || call->input_count > WF_KEY_WORDS / 2)
        return false;
    words[0] = entry->digest;
    words[1] = longer << 40 | (uint64_t)call->flags << 36 | (uint64_t)mode << 32 | options->flags;
    words[2] = options->memory_limit;
    words[3] = (uintptr_t)options->costs;
    words[4] = (uintptr_t)call->mesh;
    words[5] = call->input_count << 32 | (call->outputs != NULL ? call->output_count : 0);
    /* Specs are hashed by what they are and not by their addresses: a new spec often takes the
     * memory of one that was displaced, and would displace the others of its set again. */
    for (uint32_t i = 0; i < call->input_count; i++) {
        words[FIXED_WORDS + i] = (uintptr_t)call->inputs[i];
        inputs = (inputs ^ weft_spec_hash(call->inputs[i])) * UINT64_C(0x9e3779b97f4a7c15);
    }
    key->count = FIXED_WORDS + (uint32_t)call->input_count;
    for (uint32_t i = 0; fits && i < call->output_count; i++) {
        const weft_op_tensor *t = &call->outputs[i];
        fits = add_word(key, t->dtype) &&
               add_bytes(key, t->shape, (size_t)t->dims * sizeof t->shape[0]);
    }
    if (entry->uses) fits = fits && add_word(key, wf_use_generation());
    fits = fits && add_attrs(key, entry, call);
    if (fits)
        key->hash = hash_key(key, inputs, call->input_count);
    else
        key->count = 0;
    return fits;
}

/* ---- entries ---- */

static inline bool same_key(const struct kept *k, const struct wf_key *key)
{
    uint64_t differs = 0;

    if (k->hash != key->hash || k->count != key->count) return false;
    for (uint32_t i = 0; i < key->count; i++)
        differs |= k->words[i] ^ key->words[i];
    return differs == 0;
}

weft_op_choice *wf_cache_find(const struct wf_key *key)
{
    _Atomic(struct kept *) *ways = table[key->hash & (WF_CACHE_SETS - 1)];

    for (int i = 0; i < WF_CACHE_WAYS; i++) {
        const struct kept *k = atomic_load_explicit(&ways[i], memory_order_acquire);
        if (k != NULL && same_key(k, key)) return wf_choice_retain(k->choice);
    }
    return NULL;
}

static void drop_kept(struct wf_retired *item)
{
    struct kept *k = (struct kept *)item;

    for (uint32_t i = 0; i < k->input_count; i++)
        weft_spec_release(&k->inputs[i]);
    weft_op_choice_release(&k->choice);
    weft_mesh_release(&k->mesh);
    weft_cost_table_release(&k->costs);
    wf_free(k);
}

static struct kept *make_kept(const struct wf_key *key, const weft_op_call *call,
                              const weft_op_options *options, weft_op_choice *choice)
{
    size_t words = key->count * sizeof *key->words;
    struct kept *k = wf_calloc(1, sizeof *k + words + call->input_count * sizeof *k->inputs);

    if (k == NULL) return NULL;
    k->retired.drop = drop_kept;
    k->choice = weft_op_choice_retain(choice);
    k->mesh = call->mesh != NULL ? weft_mesh_retain(call->mesh) : NULL;
    k->costs = weft_cost_table_retain(options->costs);
    k->hash = key->hash;
    k->count = key->count;
    memcpy(k->words, key->words, words);
    k->inputs = (weft_spec **)(void *)((char *)k->words + words);
    k->input_count = (uint32_t)call->input_count;
    for (uint32_t i = 0; i < call->input_count; i++)
        k->inputs[i] = weft_spec_retain(call->inputs[i]);
    return k;
}

void wf_cache_keep(const struct wf_key *key, const weft_op_call *call,
                   const weft_op_options *options, weft_op_choice *choice)
{
    uint32_t set = key->hash & (WF_CACHE_SETS - 1), way = 0;
    struct kept *k, *before;

    if (key->count == 0 || (k = make_kept(key, call, options, choice)) == NULL) return;
    wf_published_lock(&wf_op_guard);
    while (way < WF_CACHE_WAYS) { /* the same call of another thread, or a free way */
        before = atomic_load(&table[set][way]);
        if (before == NULL || same_key(before, key)) break;
        way++;
    }
    if (way == WF_CACHE_WAYS) way = displaced[set]++ % WF_CACHE_WAYS;
    before = atomic_load(&table[set][way]);
    atomic_store(&table[set][way], k);
    if (before != NULL) wf_published_retire(&wf_op_guard, &before->retired);
    wf_published_unlock(&wf_op_guard);
}

void weft_op_cache_clear(void)
{
    wf_published_lock(&wf_op_guard);
    for (uint32_t i = 0; i < WF_CACHE_SETS; i++)
        for (uint32_t j = 0; j < WF_CACHE_WAYS; j++) {
            struct kept *before = atomic_load(&table[i][j]);
            if (before == NULL) continue;
            atomic_store(&table[i][j], NULL);
            wf_published_retire(&wf_op_guard, &before->retired);
        }
    wf_published_sweep(&wf_op_guard);
    wf_published_unlock(&wf_op_guard);
}
