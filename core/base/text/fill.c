/* fill.c - texts in which products such as $heads*$head_dim stand for numbers. */
#include "base/base.h"

#include <inttypes.h>
#include <string.h>

/* The next factor: $name or digits. */
static weft_status read_factor(struct wf_scan *scan, wf_number_find *find, void *state,
                               int64_t *out)
{
    const char *name = NULL;
    size_t length = 0;

    if (!wf_scan_char(scan, '$')) return wf_scan_int(scan, "a number or $ and a name", out);
    if (!wf_scan_name(scan, &name, &length))
        return wf_scan_fail(scan, "numbers of a model", "expected a name after $");
    return find(state, name, length, out);
}

/* Does a product such as 2*$heads begin at TEXT, and not within a word? */
static bool begins_product(const char *text, size_t at)
{
    size_t digits = strspn(text + at, "0123456789");

    if (text[at] == '$') return true;
    if (digits == 0 || text[at + digits] != '*') return false;
    if (at > 0 &&
        (text[at - 1] == '_' || (wf_lower(text[at - 1]) >= 'a' && wf_lower(text[at - 1]) <= 'z')))
        return false;
    return text[at + strspn(text + at, "0123456789*")] == '$';
}

weft_status wf_text_fill(const char *text, wf_number_find *find, void *state, struct wf_text *out)
{
    struct wf_scan scan = {.text = text};

    while (!wf_scan_end(&scan)) {
        int64_t product = 1, factor;

        if (!begins_product(text, scan.at)) {
            wf_text_char(out, wf_scan_peek(&scan));
            scan.at++;
            continue;
        }
        do {
            WF_TRY(read_factor(&scan, find, state, &factor));
            if (__builtin_mul_overflow(product, factor, &product))
                return wf_scan_fail(&scan, "numbers of a model", "the product exceeds 2^63 - 1");
        } while (wf_scan_char(&scan, '*'));
        wf_text_add(out, "%" PRId64, product);
    }
    return wf_text_status(out);
}
