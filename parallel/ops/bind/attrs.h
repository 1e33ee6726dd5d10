/* attrs.h - the attributes of a call. */
#ifndef WEFT_OPS_BIND_ATTRS_H
#define WEFT_OPS_BIND_ATTRS_H

#include "base/base.h"
#include "weft/ops.h"

/* WEFT_ERR_VERSION: FIELD of the call, the SIZE of the elements of a list, is not KNOWN, which
 * weft's TYPE has. */
weft_status wf_call_check_size(const char *function, const char *field, size_t size,
                               const char *type, size_t known) WF_NODISCARD;
/* WEFT_ERR_INVALID: an attribute has no name, an unknown kind, or no value. */
weft_status wf_attrs_check(const char *function, const weft_op_call *call) WF_NODISCARD;
const weft_op_attr *wf_attr_find(const weft_op_call *call, const char *name, size_t length);
/* The kinds and values are the same; reals have the same bits. */
bool wf_attr_same_value(const weft_op_attr *a, const weft_op_attr *b);
/* True if the attribute is a number; a list of one number is one. */
bool wf_attr_number(const weft_op_attr *attr, double *out);
/* False if the attribute is absent, is not a number, or has a fraction. */
bool wf_attr_int(const weft_op_call *call, const char *name, int64_t *out);
/* The numbers of a list, or of a list with the one number.  False: absent, or text. */
bool wf_attr_list(const weft_op_attr *attr, const int64_t **list, uint32_t *count);
/* True if the call has the attribute keepdim, and it is not 0. */
bool wf_attr_keepdim(const weft_op_call *call);
/* True if all guards of RULE hold. */
struct wf_rule;
bool wf_attr_guards_hold(const struct wf_rule *rule, const weft_op_call *call);

#endif
