/* rules.h - the internals of mapping rules.
 *
 *     layers.{i}.qkv.weight   = cat0(model.layers.{i}.{q,k,v}_proj.weight)
 *
 * A rule has a pattern for the names of new tensors and an expression over patterns for the names
 * of tensors that exist.  rules.c reads the text, names.c matches names, shadow.c finds rules that
 * have no effect, apply.c makes views of the tensors of a checkpoint, casts.c casts them, usage.c
 * checks that every element is used once. */
#ifndef WEFT_FILE_RULES_H
#define WEFT_FILE_RULES_H

#include "checkpoint/rules/view.h"

/* ---- names.c ---- */

enum { WF_MOST_CAPTURES = 8, WF_MOST_PARTS = 24 };

enum wf_name_kind { WF_NAME_TEXT, WF_NAME_CAPTURE, WF_NAME_STAR, WF_NAME_CHOICE };

struct wf_name_part {
    uint8_t kind;
    uint8_t capture;  /* CAPTURE and STAR: number in the rule */
    const char *text; /* TEXT */
    size_t length;
};

/* A pattern of names. */
struct wf_pattern {
    const char *text; /* as it stands in the file */
    struct wf_name_part *parts;
    size_t count;
    const char **choices; /* of the one part {a,b,c} */
    size_t choice_count;  /* 0: no list */
    uint32_t captures;    /* bit per capture */
};

/* What captures stand for; NULL: anything. */
struct wf_bound {
    const char *text[WF_MOST_CAPTURES];
    size_t length[WF_MOST_CAPTURES];
};

/* The names of the captures of a rule; that of the n-th * of a pattern is "*n". */
struct wf_capture_names {
    const char *names[WF_MOST_CAPTURES];
    size_t count;
};

/* Read a pattern from LENGTH bytes of TEXT. */
weft_status wf_pattern_read(struct wf_arena *arena, const char *text, size_t length,
                            struct wf_capture_names *names, struct wf_pattern *out) WF_NODISCARD;
/* Does NAME match PATTERN with choice CHOICE?  BOUND has what captures must be, and receives what
 * the others are.  After false, BOUND is unchanged.  A name that takes millions of comparisons does
 * not match. */
bool wf_pattern_match(const struct wf_pattern *pattern, size_t choice, const char *name,
                      struct wf_bound *bound);
/* Append the name that PATTERN gives; captures that are free end it.  False: it has such. */
bool wf_pattern_name(const struct wf_pattern *pattern, size_t choice, const struct wf_bound *bound,
                     struct wf_text *out);

/* ---- rules.c ---- */

enum wf_function {
    WF_RULE_NAME, /* not a function: a pattern of names */
    WF_RULE_CAT,
    WF_RULE_SPLIT,
    WF_RULE_STACK,
    WF_RULE_UNSTACK,
    WF_RULE_INTERLEAVE,
    WF_RULE_DEINTERLEAVE,
    WF_RULE_SLICE,
    WF_RULE_PAD,
    WF_RULE_ALIGN,
    WF_RULE_GROUP,
    WF_RULE_FLATTEN,
    WF_RULE_TRANSPOSE,
    WF_RULE_RESHAPE,
    WF_RULE_PERMUTE_HEADS,
    WF_RULE_UNPERMUTE_HEADS,
    WF_RULE_CAST,
    WF_RULE_TIE
};

struct wf_rule_term {
    uint8_t function;
    bool ratio; /* the numbers are separated by colons */
    int32_t dim;
    int32_t dtype; /* CAST: row of dtypes.c */
    struct wf_pattern pattern;
    struct wf_rule_term **terms;
    size_t count;
    int64_t *numbers;
    size_t number_count;
};

enum wf_rule_kind { WF_RULE_MAP, WF_RULE_DROP, WF_RULE_CASTS };

struct wf_rule {
    uint8_t kind;
    bool optional; /* it may match nothing */
    uint32_t line;
    int32_t dtype;             /* CASTS */
    struct wf_pattern pattern; /* MAP, CASTS: of new names; DROP: of old ones */
    struct wf_rule_term *term; /* MAP */
};

struct weft_checkpoint_rules {
    uint64_t made;
    struct wf_arena arena;
    const char *path; /* of their file; NULL: they are of a text */
    /* Lines `let` take numbers of a model.  The rules are read again for each checkpoint. */
    bool wants_model;
    const char *text, *values; /* VALUES may be NULL */
    struct wf_rule *rules;
    size_t count, capacity;
};

/* ---- rules.c ---- */

/* Create RULES, which want a model, with the numbers of the model of checkpoint OF.  The caller
 * releases *OUT. */
weft_status wf_rules_for(const weft_checkpoint_rules *rules, const weft_checkpoint *of,
                         weft_checkpoint_rules **out) WF_NODISCARD;

/* ---- apply.c ---- */

/* A tensor that rules make. */
struct wf_target {
    const char *name;
    const struct wf_view *view;
    int32_t dtype; /* row of dtypes.c, after a cast */
    uint32_t line;
    uint32_t cast; /* line of the rule that has decided the dtype; 0: none has */
};

struct wf_mapping {
    const weft_checkpoint *base;
    const weft_checkpoint_rules *rules;
    struct wf_arena *arena;
    struct wf_target *targets;
    size_t count, capacity;
    uint32_t *table; /* of names: number of the target + 1, by hash */
    size_t table_size;
    uint8_t *state;  /* by tensor of the base: WF_USED_* */
    uint32_t *lines; /* by tensor of the base: the last rule that used or dropped it; 0: none */
    uint32_t line;   /* of the rule that is applied */
    int64_t *used;   /* elements that targets use, but for ties */
};

enum { WF_USED_NAMED = 1, WF_USED_DROPPED = 2, WF_USED_TIED = 4 };

/* Make the targets.  The caller frees *OUT, after a failure too. */
weft_status wf_mapping_make(const weft_checkpoint *base, const weft_checkpoint_rules *rules,
                            struct wf_arena *arena, struct wf_mapping *out) WF_NODISCARD;
void wf_mapping_free(struct wf_mapping *mapping);
/* The target NAME, or NULL. */
struct wf_target *wf_mapping_find(const struct wf_mapping *mapping, const char *name);

/* ---- shadow.c ---- */

/* Refuse a rule to which an earlier one leaves nothing, whatever the tensors are. */
weft_status wf_rules_check_order(const weft_checkpoint_rules *rules) WF_NODISCARD;
bool wf_rule_matches(const struct wf_rule *rule, const char *name);
/* Log a warning about RULE, with its file and line. */
void wf_rule_warn(const struct wf_mapping *mapping, const struct wf_rule *rule, const char *format,
                  ...) WF_PRINTF(3, 4);
/* RULE has matched no tensor that is left: an error, or for an optional one at most a warning. */
weft_status wf_rule_unmatched(const struct wf_mapping *mapping,
                              const struct wf_rule *rule) WF_NODISCARD;

/* ---- casts.c ---- */

/* WEFT_ERR_UNSUPPORTED: weft does not cast the dtype FROM to TO, rows of dtypes.c. */
weft_status wf_cast_check(int32_t from, int32_t to) WF_NODISCARD;
/* Cast the new tensors of floating point that RULE matches, and no cast has yet.  A rule that has
 * no effect is an error or a warning. */
weft_status wf_rule_cast(struct wf_mapping *mapping, const struct wf_rule *rule) WF_NODISCARD;

/* ---- expression.c ---- */

/* The value of TERM, with what captures stand for: one view or several.  WANTED is the number of
 * new tensors, if that is known; otherwise 0.  *DTYPE is set if there is a cast. */
weft_status wf_rule_evaluate(struct wf_mapping *mapping, const struct wf_rule_term *term,
                             const struct wf_bound *bound, size_t wanted, struct wf_view_list *out,
                             int32_t *dtype) WF_NODISCARD;

/* ---- usage.c ---- */

/* Check that every element of the base goes to one target, unless it is dropped or tied. */
weft_status wf_mapping_check(const struct wf_mapping *mapping) WF_NODISCARD;

#endif
