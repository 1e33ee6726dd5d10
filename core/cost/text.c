/* text.c - cost tables as text:
 *
 *     weft-cost 1
 *     name my-host
 *     one-sided yes
 *     copy 45000
 *     pack 60000
 *     reduce 30000
 *     flops 20000
 *     memory 100000
 *     all-gather within 200 100 45000
 *     all-gather between 60000 20000 400000
 *
 * Rates are femtoseconds per byte, `flops` is millions of operations per second; a table without
 * `flops` and `memory` does not know compute; a kind of step has nanoseconds, nanoseconds per
 * further rank and femtoseconds per byte, within a host and between hosts.  Every kind has both
 * lines, in any order; a table of version 0.1 without broadcast and reduce has the rates of
 * all-gather and reduce-scatter for them.  `#` begins a comment. */
#include "cost.h"

#include <string.h>

static const char *const link_names[WF_LINKS] = {"within", "between"};

/* Bits behind those of the rates; the lines behind NEEDED_LINES may be missing. */
enum { NEEDED_LINES = 5, HEAD_LINES = 7 };

static const char *const heads[HEAD_LINES] = {"name",   "one-sided", "copy",  "pack",
                                              "reduce", "flops",     "memory"};

struct reader {
    struct wf_scan scan;
    weft_cost_table *table;
    uint32_t seen; /* bit per kind and link, then per head line */
};

static weft_status refuse_line(const struct reader *r, const char *what)
{
    return wf_scan_fail(&r->scan, "cost table", "%s", what);
}

static void skip_to_line(struct wf_scan *scan)
{
    for (;;) {
        wf_scan_space(scan);
        if (wf_scan_char(scan, '\n') || wf_scan_char(scan, '\r')) continue;
        if (wf_scan_peek(scan) != '#') return;
        while (!wf_scan_end(scan) && wf_scan_peek(scan) != '\n')
            scan->at++;
    }
}

static bool at_line_end(const struct wf_scan *scan)
{
    char c = wf_scan_peek(scan);

    return c == '\0' || c == '\n' || c == '\r' || c == '#';
}

static weft_status read_number(struct reader *r, uint64_t *out)
{
    int64_t value;

    wf_scan_space(&r->scan);
    WF_TRY(wf_scan_int(&r->scan, "a number", &value));
    if (value > INT32_MAX * INT64_C(1000)) return refuse_line(r, "the number is too large");
    *out = (uint64_t)value;
    return WEFT_OK;
}

static weft_status mark_seen(struct reader *r, int bit)
{
    if (r->seen >> bit & 1) return refuse_line(r, "the line is listed twice");
    r->seen |= UINT32_C(1) << bit;
    return WEFT_OK;
}

static weft_status read_rate(struct reader *r, int kind)
{
    for (int link = 0; link < WF_LINKS; link++) {
        struct wf_rate *rate = &r->table->rates[kind][link];
        wf_scan_space(&r->scan);
        if (!wf_scan_word(&r->scan, link_names[link])) continue;
        WF_TRY(mark_seen(r, kind * WF_LINKS + link));
        WF_TRY(read_number(r, &rate->base_ns));
        WF_TRY(read_number(r, &rate->peer_ns));
        return read_number(r, &rate->femtoseconds);
    }
    return refuse_line(r, "expected `within` or `between`");
}

static weft_status read_name(struct reader *r)
{
    size_t length = 0;

    wf_scan_space(&r->scan);
    while (!at_line_end(&r->scan) && wf_scan_peek(&r->scan) != ' ' &&
           wf_scan_peek(&r->scan) != '\t') {
        if (length + 1 == sizeof r->table->name) return refuse_line(r, "the name is too long");
        r->table->name[length++] = wf_scan_peek(&r->scan);
        r->scan.at++;
    }
    return length > 0 ? WEFT_OK : refuse_line(r, "expected a name");
}

static weft_status read_one_sided(struct reader *r)
{
    wf_scan_space(&r->scan);
    r->table->one_sided = wf_scan_word(&r->scan, "yes");
    if (r->table->one_sided || wf_scan_word(&r->scan, "no")) return WEFT_OK;
    return refuse_line(r, "expected `yes` or `no`");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static weft_status read_line(struct reader *r)
{
    uint64_t *const rates[] = {&r->table->copy, &r->table->pack, &r->table->reduce,
                               &r->table->flops, &r->table->memory};

    for (int kind = 0; kind < WEFT_STEP_KINDS; kind++) {
        struct wf_scan before = r->scan;
        if (wf_scan_word(&r->scan, weft_step_name((uint32_t)kind)) && wf_scan_char(&r->scan, ' ') &&
            !is_digit(wf_scan_peek(&r->scan)))
            return read_rate(r, kind); /* `reduce 500` is not a kind's line */
        r->scan = before;
    }
    for (int head = 0; head < HEAD_LINES; head++) {
        struct wf_scan before = r->scan;
        if (!wf_scan_word(&r->scan, heads[head]) || !wf_scan_char(&r->scan, ' ')) {
            r->scan = before;
            continue;
        }
        WF_TRY(mark_seen(r, WEFT_STEP_KINDS * WF_LINKS + head));
        if (head == 0) return read_name(r);
        return head == 1 ? read_one_sided(r) : read_number(r, rates[head - 2]);
    }
    return refuse_line(r, "expected a kind of step, name, one-sided, copy, pack, reduce, flops or "
                          "memory");
}

/* Give kinds that are newer than the table the rates of a similar one. */
static void add_later_kinds(struct reader *r)
{
    static const struct {
        int kind, like;
    } later[] = {{WEFT_STEP_BROADCAST, WEFT_STEP_ALL_GATHER},
                 {WEFT_STEP_REDUCE, WEFT_STEP_REDUCE_SCATTER}};

    for (size_t i = 0; i < WF_COUNT(later); i++)
        for (int link = 0; link < WF_LINKS; link++) {
            int bit = later[i].kind * WF_LINKS + link;
            if (r->seen >> bit & 1) continue;
            r->table->rates[later[i].kind][link] = r->table->rates[later[i].like][link];
            if (r->seen >> (later[i].like * WF_LINKS + link) & 1) r->seen |= UINT32_C(1) << bit;
        }
}

static weft_status read_table(struct reader *r)
{
    skip_to_line(&r->scan);
    if (!wf_scan_word(&r->scan, "weft-cost 1")) return refuse_line(r, "expected `weft-cost 1`");
    while (skip_to_line(&r->scan), !wf_scan_end(&r->scan)) {
        WF_TRY(read_line(r));
        wf_scan_space(&r->scan);
        if (!at_line_end(&r->scan)) return refuse_line(r, "expected the end of the line");
    }
    add_later_kinds(r);
    for (int bit = 0; bit < WEFT_STEP_KINDS * WF_LINKS; bit++)
        if (!(r->seen >> bit & 1))
            return wf_fail(WEFT_ERR_PARSE, "cost table: the line `%s %s` is missing",
                           weft_step_name((uint32_t)(bit / WF_LINKS)), link_names[bit % WF_LINKS]);
    for (int head = 0; head < NEEDED_LINES; head++)
        if (!(r->seen >> (WEFT_STEP_KINDS * WF_LINKS + head) & 1))
            return wf_fail(WEFT_ERR_PARSE, "cost table: the line `%s` is missing", heads[head]);
    return WEFT_OK;
}

weft_status weft_cost_table_parse(const char *text, weft_cost_table **out)
{
    struct reader r = {.scan = {text, 0}};
    weft_status status;

    WF_TRY(wf_require(text, "weft_cost_table_parse: text"));
    WF_TRY(wf_require(out, "weft_cost_table_parse: out"));
    r.table = wf_calloc(1, sizeof *r.table);
    if (r.table == NULL) return wf_fail_memory(sizeof *r.table);
    atomic_init(&r.table->references, 1);
    status = read_table(&r);
    if (status == WEFT_OK)
        *out = r.table;
    else
        wf_free(r.table);
    return status;
}

weft_status weft_cost_table_print(const weft_cost_table *table, char *text, size_t size,
                                  size_t *needed)
{
    struct wf_text printed = {0};

    WF_TRY(wf_require(table, "weft_cost_table_print: table"));
    if (size > 0) WF_TRY(wf_require(text, "weft_cost_table_print: text"));
    wf_text_add(&printed, "weft-cost 1\nname %s\none-sided %s\n", table->name,
                table->one_sided ? "yes" : "no");
    wf_text_add(&printed, "copy %llu\npack %llu\nreduce %llu\n", (unsigned long long)table->copy,
                (unsigned long long)table->pack, (unsigned long long)table->reduce);
    if (table->flops > 0) wf_text_add(&printed, "flops %llu\n", (unsigned long long)table->flops);
    if (table->memory > 0)
        wf_text_add(&printed, "memory %llu\n", (unsigned long long)table->memory);
    for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
        for (int link = 0; link < WF_LINKS; link++) {
            const struct wf_rate *rate = &table->rates[kind][link];
            wf_text_add(&printed, "%s %s %llu %llu %llu\n", weft_step_name((uint32_t)kind),
                        link_names[link], (unsigned long long)rate->base_ns,
                        (unsigned long long)rate->peer_ns, (unsigned long long)rate->femtoseconds);
        }
    return wf_text_copy_out(&printed, text, size, needed);
}
