/* registry.h - rules by the names of operators. */
#ifndef WEFT_OPS_REGISTRY_H
#define WEFT_OPS_REGISTRY_H

#include "base/published.h"
#include "rule.h"

enum { WF_OP_LINES = 16 /* rules of one name */ };

/* An operator: the rules of one name, in their order. */
struct wf_op_entry {
    uint32_t hash;    /* of the name, in the table */
    const char *name; /* in the text of the first rule */
    uint16_t length, rule_count;
    bool registered; /* by the program; otherwise one of weft's own */
    bool takes_any;  /* any attribute: an operator without a rule */
    bool uses;       /* a rule of it, or of its parts, may have the clause `use` */
    uint64_t digest; /* of the name and the rules */
    struct wf_rule *rules[WF_OP_LINES];
};

/* The guard of the registry and of the cache of choices. */
extern struct wf_published wf_op_guard;

/* The operators that have rules, COUNT of them, in no order.  Between wf_op_enter and
 * wf_op_leave. */
const struct wf_op_entry *wf_op_all(uint32_t *count);
/* Between wf_op_enter and wf_op_leave: the operator NAME, or NULL.  WEFT_ERR_NO_MEMORY: weft's own
 * rules could not be read. */
weft_status wf_op_enter(uint32_t *ticket) WF_NODISCARD;
void wf_op_leave(uint32_t ticket);
const struct wf_op_entry *wf_op_find(const char *name);
/* WEFT_ERR_NOT_FOUND with a similar name.  FUNCTION is the public one. */
weft_status wf_op_refuse_name(const char *function, const char *name) WF_NODISCARD;

/* ---- steps.c; between wf_op_enter and wf_op_leave ---- */

enum { WF_OP_STEPS = 32 /* of an operator that is made of others */ };

struct wf_op_step {
    char name[64];
    uint32_t inputs;
    uint32_t attrs; /* bit per attribute of the call that the operator knows */
};

static inline bool wf_op_is_chain(const struct wf_op_entry *entry)
{
    return entry->rules[0]->step_count > 0;
}
/* The operators that ENTRY is made of, each with a rule of its own.  FIND gives the operator of a
 * name.  WEFT_ERR_INVALID: one has no rule, they are in a circle, or there are too many. */
weft_status wf_op_list_steps(const struct wf_op_entry *entry,
                             const struct wf_op_entry *(*find)(const void *, const char *),
                             const void *where, struct wf_op_step *out,
                             uint32_t *count) WF_NODISCARD;

/* ---- names.c ---- */

/* Adds what is printed of OP, which was asked for as NAME, to OUT. */
typedef void wf_op_describer(const struct wf_op_entry *op, const char *name, struct wf_text *out);
/* Print what ADD adds for the operator NAME, as snprintf does.  Errors name FUNCTION. */
weft_status wf_op_describe(const char *function, const char *name, wf_op_describer *add, char *text,
                           size_t size, size_t *needed) WF_NODISCARD;

/* ---- names.c; between wf_op_enter and wf_op_leave ---- */

/* The operator NAME, also without the "_" of the form in place, the ".out" of the form that is
 * given the memory of its outputs, and the "foreach_" of the form on lists; NULL: not known. */
const struct wf_op_entry *wf_op_find_form(const char *name);
/* The name here of PyTorch's operator NAME, such as aten.add_.Tensor, in OUT; any other NAME
 * itself. */
const char *wf_op_foreign_name(const char *name, char *out, size_t bytes);

/* weft's own rules, one per line (builtin.c). */
extern const char *const wf_op_builtin[];
extern const size_t wf_op_builtin_count;

#endif
