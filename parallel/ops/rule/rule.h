/* rule.h - one line of rule text as a small struct: tensors made of factors, and clauses.
 *
 * read.c and clause.c parse, pack.c makes the object, print.c prints, explain.c writes words,
 * complete.c refuses rules that cannot hold, and registry.c keeps the rules by the names of
 * operators. */
#ifndef WEFT_OPS_RULE_H
#define WEFT_OPS_RULE_H

#include "base/base.h"

#include <stdatomic.h>

enum {
    WF_RULE_NAMES = 48,
    WF_RULE_ATTRS = 12,
    WF_RULE_TENSORS = 24, /* inputs and outputs */
    WF_RULE_SYMBOLS = 32,
    WF_RULE_PATTERNS = 96,
    WF_RULE_PARTS = 64,
    WF_RULE_TERMS = 32,
    WF_RULE_TEXT = 4000 /* bytes of one line */
};

/* A piece of the rule's text. */
struct wf_word {
    uint16_t at;
    uint16_t length;
};

enum wf_compare {
    WF_IS_LISTED,
    WF_IS_EQUAL,
    WF_IS_OTHER,
    WF_IS_LESS,
    WF_IS_LESS_EQUAL,
    WF_IS_MORE,
    WF_IS_MORE_EQUAL
};

/* An attribute of the operator.  With a comparison it is a guard: the line applies only if the
 * comparison holds. */
struct wf_rule_attr {
    struct wf_word name, value;
    double number; /* the value, if it is one */
    uint8_t compare, is_number;
};

enum wf_symbol_kind {
    WF_SYMBOL_FACTOR, /* k: an index that the operator iterates over */
    WF_SYMBOL_GROUP,  /* K: one factor for each dimension that an attribute lists */
    WF_SYMBOL_RUN,    /* S..: one factor for each of the remaining dimensions */
    WF_SYMBOL_REST    /* ..: the same, and it broadcasts */
};

/* What the clauses say about a symbol. */
enum wf_symbol_flag {
    WF_WHOLE = 1,  /* never split */
    WF_OWN = 2,    /* outputs may be split where inputs lack it */
    WF_MASK = 4,   /* an indexed dimension: lookups outside of the part give 0 */
    WF_HALO = 8,   /* whole, unless the edges of neighbours are fetched */
    WF_HERE = 16,  /* free; the kernel needs its offset */
    WF_EVEN = 32,  /* only equal parts */
    WF_VARIES = 64 /* sizes may differ between inputs; where they do, it is whole */
};

enum wf_reduce {
    WF_REDUCE_NONE,
    WF_REDUCE_SUM,
    WF_REDUCE_AVG,
    WF_REDUCE_MAX,
    WF_REDUCE_MIN,
    WF_REDUCE_PROD,
    WF_REDUCE_ALL,
    WF_REDUCE_ANY,
    WF_REDUCE_NORM /* by the attribute p: max, min, sum, or whole */
};

struct wf_symbol {
    struct wf_word name; /* empty for .. */
    uint8_t kind, flags, reduce;
    uint8_t size_attr; /* 1 + the attribute that has the size or sizes; 0: none */
    uint32_t step;     /* parts begin and end at multiples of it; 0: anywhere */
    int64_t size;      /* -1: from the tensors or the attribute */
};

enum wf_pattern_kind { WF_PATTERN_SYMBOL, WF_PATTERN_PRODUCT, WF_PATTERN_ONE };

/* An entry between the brackets of a tensor. */
struct wf_pattern {
    uint8_t kind;
    uint8_t attr;         /* 1 + the attribute that gives the position; 0: none */
    uint8_t first, count; /* symbols, in `parts`; the outermost first */
};

/* Where the dtype of an output comes from.  FIRST: the input whose memory it is, or the first
 * input; JOIN: the dtype that holds all inputs and the attributes with fractions; FLOAT: the same,
 * at least f32; WIDE: that of the first input, at least i64; COMPLEX, REAL: the complex dtype of
 * it, and the dtype of its real part. */
enum wf_type_kind {
    WF_TYPE_FIRST,
    WF_TYPE_DTYPE,
    WF_TYPE_ATTR,
    WF_TYPE_TENSOR,
    WF_TYPE_JOIN,
    WF_TYPE_FLOAT,
    WF_TYPE_WIDE,
    WF_TYPE_COMPLEX,
    WF_TYPE_REAL
};

struct wf_slot {
    struct wf_word name;
    uint8_t optional, list, broadcast; /* ? * ~ */
    uint8_t shape_only, adds;          /* clauses shape and add */
    uint8_t same;                      /* clause same: a number for inputs of one dtype; 0: none */
    uint8_t first, count;              /* patterns */
    uint8_t inplace;                   /* of an output: 1 + the input whose memory it is */
    uint8_t type, type_value;          /* of an output: enum wf_type_kind and its argument */
    uint8_t has_from;
    uint32_t depends; /* of an output: bit per input */
};

enum wf_clause { WF_LIN, WF_AFF, WF_MONO, WF_ANTI, WF_PASS, WF_HOM, WF_TURN };

/* Inputs that may be partial together.  The other inputs are replicas then. */
struct wf_term {
    uint8_t clause, from, to; /* from, to: enum wf_reduce, of hom and turn */
    uint32_t inputs;          /* bit per input */
};

enum { WF_RULE_CUTS = 4 };

/* The clause `parts`: a factor that consists of others, one after another. */
struct wf_cut {
    uint8_t whole; /* 1 + the symbol; 0: the rule has no such clause */
    uint8_t count;
    uint8_t parts[WF_RULE_CUTS]; /* symbols */
    int64_t skip;                /* indices of the whole before the first part */
};

struct wf_rule {
    _Atomic(int64_t) references;
    uint64_t hash; /* of the text */
    const char *text;
    const char *body; /* in `text`, behind the names: what lines of different names can share */
    uint8_t name_count, attr_count, input_count, output_count;
    uint8_t symbol_count, pattern_count, part_count, term_count;
    /* The operators behind "is" in a line "NAME is a; b".  They stand behind the names.  For each,
     * `parts` has the number of its inputs, or 0.  Such a line has nothing else. */
    uint8_t step_count;
    uint8_t random;
    struct wf_word use, make, check; /* length 0: none */
    struct wf_cut cut;
    struct wf_word *names;
    struct wf_rule_attr *attrs;
    struct wf_slot *slots; /* inputs, then outputs */
    struct wf_symbol *symbols;
    struct wf_pattern *patterns;
    uint8_t *parts;
    struct wf_term *terms;
};

/* A rule in the making, with room for the largest one. */
struct wf_rule_draft {
    struct wf_rule rule; /* its arrays are those below */
    struct wf_word names[WF_RULE_NAMES];
    struct wf_rule_attr attrs[WF_RULE_ATTRS];
    struct wf_slot slots[WF_RULE_TENSORS];
    struct wf_symbol symbols[WF_RULE_SYMBOLS];
    struct wf_pattern patterns[WF_RULE_PATTERNS];
    uint8_t parts[WF_RULE_PARTS];
    struct wf_term terms[WF_RULE_TERMS];
};

/* The state of the parser. */
struct wf_rule_reader {
    struct wf_scan scan;
    struct wf_rule_draft *draft;
};

/* ---- read.c ---- */

/* The rule that the line of TEXT at *AT describes; *AT is then behind the line.  *OUT is NULL if
 * the line is empty or a comment.  The caller drops *OUT. */
weft_status wf_rule_read(const char *text, size_t *at, struct wf_rule **out) WF_NODISCARD;
/* An error at the reader's position. */
weft_status wf_rule_fail(const struct wf_rule_reader *r, const char *expected) WF_NODISCARD;
/* Take a name and find it, for clause.c. */
bool wf_rule_take_word(struct wf_rule_reader *r, struct wf_word *out);
int wf_rule_find_symbol(const struct wf_rule_reader *r, struct wf_word name);
int wf_rule_find_attr(const struct wf_rule_reader *r, struct wf_word name);
weft_status wf_rule_read_number(struct wf_rule_reader *r, double *out) WF_NODISCARD;

/* ---- pack.c ---- */

/* A copy of FROM with one reference.  The caller drops it. */
weft_status wf_rule_pack(const struct wf_rule *from, struct wf_rule **out) WF_NODISCARD;
struct wf_rule *wf_rule_retain(struct wf_rule *rule);
void wf_rule_drop(struct wf_rule *rule); /* accepts NULL */
size_t wf_rule_bytes(const struct wf_rule *rule);

/* ---- clause.c ---- */

/* The clauses behind the signature, up to the end of the line. */
weft_status wf_rule_read_clauses(struct wf_rule_reader *r) WF_NODISCARD;
const char *wf_reduce_name(uint32_t reduce); /* of enum wf_reduce */
/* The reduction of the placement P(op) that REDUCE leaves: enum weft_reduction. */
uint32_t wf_reduce_placement(uint32_t reduce);

/* ---- print.c ---- */

/* The one text of RULE; wf_rule_read makes an equal rule from it. */
void wf_rule_print(const struct wf_rule *rule, struct wf_text *out);

/* ---- complete.c ---- */

/* WEFT_ERR_INVALID: a factor that may be split is lost in an output, or a clause contradicts the
 * signature. */
weft_status wf_rule_complete(const struct wf_rule *rule) WF_NODISCARD;

static inline bool wf_word_is(const struct wf_rule *rule, struct wf_word word, const char *text)
{
    size_t i = 0;

    for (; i < word.length; i++)
        if (text[i] != rule->text[word.at + i]) return false;
    return text[i] == '\0';
}

static inline bool wf_words_same(const struct wf_rule *rule, struct wf_word a, struct wf_word b)
{
    if (a.length != b.length) return false;
    for (size_t i = 0; i < a.length; i++)
        if (rule->text[a.at + i] != rule->text[b.at + i]) return false;
    return true;
}

/* For messages: printf's %.*s takes both. */
#define WF_WORD(rule, word) (int)(word).length, (rule)->text + (word).at

#endif
