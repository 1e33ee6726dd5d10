/* text.c - cost tables as text:
 *
 *     weft-cost 2
 *     base h100
 *     name my-cluster
 *     source `weft bench calibrate` on 16 hosts
 *     flops 560000000
 *     domain between 3072
 *     all-gather between 6600 2700 23000
 *     all-gather beyond 6600 2700 160000
 *
 * Rates are femtoseconds per byte; `flops`, `flops-f8`, `attention` and `peak` are millions of
 * operations per second; `launch` is nanoseconds, `domain` a count of consecutive ranks,
 * `compute-beside` and `moves-beside` percent.  A kind of step has
 * nanoseconds, nanoseconds per further rank and femtoseconds per byte for each class of links.  A
 * table with `base` has the numbers of that built-in table where it has no line.  Without `base`,
 * every kind has the lines `within` and `between`; a table of weft 0.1 without broadcast and
 * reduce has the rates of all-gather and reduce-scatter for them.  Without `beyond`, a kind costs
 * there as `between`.  Lines are in any order after the version and `base`; `#` begins a comment.
 * Version 1 has no base, source, domains, class `beyond`, peak, launch, by-size, shares-links,
 * attention, flops-f8, compute-beside and moves-beside. */
#include "cost.h"

#include <string.h>

static const char *const link_names[WF_LINKS] = {"within", "between", "beyond"};

/* The lines that are not of a kind: the first ones a table without `base` needs, those from
 * SECOND_VERSION on have come with version 2. */
enum head {
    HEAD_NAME,
    HEAD_ONE_SIDED,
    HEAD_COPY,
    HEAD_PACK,
    HEAD_REDUCE,
    HEAD_FLOPS,
    HEAD_MEMORY,
    HEAD_PEAK,
    HEAD_LAUNCH,
    HEAD_SOURCE,
    HEAD_DOMAIN_WITHIN,
    HEAD_DOMAIN_BETWEEN,
    HEAD_BY_SIZE,
    HEAD_SHARES_LINKS,
    HEAD_ATTENTION,
    HEAD_FLOPS_F8,
    HEAD_COMPUTE_BESIDE,
    HEAD_MOVES_BESIDE,
    HEAD_LINES,
    NEEDED_LINES = HEAD_FLOPS,
    SECOND_VERSION = HEAD_PEAK
};

static const char *const heads[HEAD_LINES] = {
    "name",    "one-sided",    "copy",      "pack",     "reduce",         "flops",
    "memory",  "peak",         "launch",    "source",   "domain within",  "domain between",
    "by-size", "shares-links", "attention", "flops-f8", "compute-beside", "moves-beside"};

struct reader {
    struct wf_scan scan;
    weft_cost_table *table;
    int version;
    bool inherits;
    uint64_t seen; /* bit per kind and link, then per head line */
};

static uint64_t bit_of(int kind, int link)
{
    return UINT64_C(1) << (kind * WF_LINKS + link);
}

static uint64_t bit_of_head(int head)
{
    return UINT64_C(1) << (WEFT_STEP_KINDS * WF_LINKS + head);
}

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

static weft_status mark_seen(struct reader *r, uint64_t bit)
{
    if (r->seen & bit) return refuse_line(r, "the line is listed twice");
    r->seen |= bit;
    return WEFT_OK;
}

static weft_status read_rate(struct reader *r, int kind)
{
    int links = r->version > 1 ? WF_LINKS : WF_BEYOND;

    for (int link = 0; link < links; link++) {
        struct wf_rate *rate = &r->table->rates[kind][link];
        wf_scan_space(&r->scan);
        if (!wf_scan_word(&r->scan, link_names[link])) continue;
        WF_TRY(mark_seen(r, bit_of(kind, link)));
        WF_TRY(read_number(r, &rate->base_ns));
        WF_TRY(read_number(r, &rate->peer_ns));
        return read_number(r, &rate->femtoseconds);
    }
    return refuse_line(r, r->version > 1 ? "expected `within`, `between` or `beyond`"
                                         : "expected `within` or `between`");
}

/* A name: the text up to the next space. */
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

/* The rest of the line. */
static weft_status read_source(struct reader *r)
{
    char *source = r->table->source;
    size_t length = 0;

    wf_scan_space(&r->scan);
    while (!at_line_end(&r->scan)) {
        char c = wf_scan_peek(&r->scan);
        if (length + 1 == sizeof r->table->source) return refuse_line(r, "the source is too long");
        if ((unsigned char)c < ' ') return refuse_line(r, "a source has no control characters");
        source[length++] = c;
        r->scan.at++;
    }
    while (length > 0 && source[length - 1] == ' ')
        length--;
    source[length] = '\0';
    return length > 0 ? WEFT_OK : refuse_line(r, "expected a source");
}

static weft_status read_answer(struct reader *r, bool *out)
{
    wf_scan_space(&r->scan);
    *out = wf_scan_word(&r->scan, "yes");
    if (*out || wf_scan_word(&r->scan, "no")) return WEFT_OK;
    return refuse_line(r, "expected `yes` or `no`");
}

static weft_status read_head(struct reader *r, enum head head)
{
    weft_cost_table *t = r->table;

    switch (head) {
    case HEAD_NAME:
        return read_name(r);
    case HEAD_SOURCE:
        return read_source(r);
    case HEAD_ONE_SIDED:
        return read_answer(r, &t->one_sided);
    case HEAD_BY_SIZE:
        return read_answer(r, &t->by_size);
    case HEAD_SHARES_LINKS:
        return read_answer(r, &t->shares_links);
    case HEAD_DOMAIN_WITHIN:
        return read_number(r, &t->domains[WF_WITHIN_HOST]);
    case HEAD_DOMAIN_BETWEEN:
        return read_number(r, &t->domains[WF_BETWEEN_HOSTS]);
    default: {
        uint64_t *const numbers[] = {[HEAD_COPY] = &t->copy,
                                     [HEAD_PACK] = &t->pack,
                                     [HEAD_REDUCE] = &t->reduce,
                                     [HEAD_FLOPS] = &t->flops,
                                     [HEAD_MEMORY] = &t->memory,
                                     [HEAD_PEAK] = &t->peak,
                                     [HEAD_LAUNCH] = &t->launch,
                                     [HEAD_ATTENTION] = &t->attention,
                                     [HEAD_FLOPS_F8] = &t->flops_f8,
                                     [HEAD_COMPUTE_BESIDE] = &t->compute_beside,
                                     [HEAD_MOVES_BESIDE] = &t->moves_beside};
        return read_number(r, numbers[head]);
    }
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static weft_status read_line(struct reader *r)
{
    for (int kind = 0; kind < WEFT_STEP_KINDS; kind++) {
        struct wf_scan before = r->scan;
        if (wf_scan_word(&r->scan, weft_step_name((uint32_t)kind)) && wf_scan_char(&r->scan, ' ') &&
            !is_digit(wf_scan_peek(&r->scan)))
            return read_rate(r, kind); /* `reduce 500` is not a kind's line */
        r->scan = before;
    }
    for (int head = 0; head < (r->version > 1 ? (int)HEAD_LINES : (int)SECOND_VERSION); head++) {
        struct wf_scan before = r->scan;
        if (!wf_scan_word(&r->scan, heads[head]) || !wf_scan_char(&r->scan, ' ')) {
            r->scan = before;
            continue;
        }
        WF_TRY(mark_seen(r, bit_of_head(head)));
        return read_head(r, (enum head)head);
    }
    return refuse_line(r, r->version > 1
                              ? "expected a kind of step, name, source, one-sided, by-size, "
                                "shares-links, domain, copy, pack, reduce, flops, flops-f8, "
                                "attention, memory, peak, launch, compute-beside or moves-beside"
                              : "expected a kind of step, name, one-sided, copy, pack, reduce, "
                                "flops or memory");
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
            if (r->seen & bit_of(later[i].kind, link)) continue;
            r->table->rates[later[i].kind][link] = r->table->rates[later[i].like][link];
            if (r->seen & bit_of(later[i].like, link)) r->seen |= bit_of(later[i].kind, link);
        }
}

/* A kind without a line `beyond` costs there as between hosts. */
static void add_beyond(struct reader *r)
{
    for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
        if (!(r->seen & bit_of(kind, WF_BEYOND)) &&
            (!r->inherits || (r->seen & bit_of(kind, WF_BETWEEN_HOSTS))))
            r->table->rates[kind][WF_BEYOND] = r->table->rates[kind][WF_BETWEEN_HOSTS];
}

static weft_status check_missing(const struct reader *r)
{
    for (int kind = 0; !r->inherits && kind < WEFT_STEP_KINDS; kind++)
        for (int link = 0; link < WF_BEYOND; link++)
            if (!(r->seen & bit_of(kind, link)))
                return wf_fail(WEFT_ERR_PARSE, "cost table: the line `%s %s` is missing",
                               weft_step_name((uint32_t)kind), link_names[link]);
    for (int head = 0; head < (r->inherits ? HEAD_NAME + 1 : (int)NEEDED_LINES); head++)
        if (!(r->seen & bit_of_head(head)))
            return wf_fail(WEFT_ERR_PARSE, "cost table: the line `%s` is missing", heads[head]);
    return WEFT_OK;
}

static weft_status check_numbers(const weft_cost_table *t)
{
    uint64_t within = t->domains[WF_WITHIN_HOST], between = t->domains[WF_BETWEEN_HOSTS];

    if (t->peak > 0 && t->flops > t->peak)
        return wf_fail(WEFT_ERR_PARSE,
                       "cost table: `flops` is %llu, more than the `peak` of %llu; utilisation "
                       "refers to `peak`",
                       (unsigned long long)t->flops, (unsigned long long)t->peak);
    if (t->peak > 0 && t->attention > t->peak)
        return wf_fail(WEFT_ERR_PARSE,
                       "cost table: `attention` is %llu, more than the `peak` of %llu",
                       (unsigned long long)t->attention, (unsigned long long)t->peak);
    if (t->compute_beside > 1000 || t->moves_beside > 1000)
        return wf_fail(
            WEFT_ERR_PARSE, "cost table: `%s` is %llu percent; it is at most 1000",
            t->compute_beside > 1000 ? "compute-beside" : "moves-beside",
            (unsigned long long)(t->compute_beside > 1000 ? t->compute_beside : t->moves_beside));
    if (within > 0 && between % within != 0)
        return wf_fail(WEFT_ERR_PARSE,
                       "cost table: `domain between` is %llu, which is no multiple of `domain "
                       "within`, %llu",
                       (unsigned long long)between, (unsigned long long)within);
    return WEFT_OK;
}

/* The line `base`, if there is one: take the numbers of a built-in table. */
static weft_status read_base(struct reader *r)
{
    static const char changed[] = "changed from the table ";
    weft_cost_table *base;

    if (!wf_scan_word(&r->scan, "base") || !wf_scan_char(&r->scan, ' ')) return WEFT_OK;
    if (r->version == 1) return refuse_line(r, "a table of version 1 has no base");
    WF_TRY(read_name(r));
    base = wf_cost_built_in(r->table->name);
    if (base == NULL)
        return refuse_line(r, "the base is none of the built-in tables " WF_COST_NAMES);
    r->inherits = true;
    wf_cost_inherit(r->table, base);
    memset(r->table->source, 0, sizeof r->table->source);
    memcpy(r->table->source, changed, sizeof changed);
    memcpy(r->table->source + sizeof changed - 1, base->name, sizeof base->name);
    memset(r->table->name, 0, sizeof r->table->name);
    weft_cost_table_release(&base);
    return WEFT_OK;
}

static weft_status read_table(struct reader *r)
{
    skip_to_line(&r->scan);
    r->version = wf_scan_word(&r->scan, "weft-cost 1")   ? 1
                 : wf_scan_word(&r->scan, "weft-cost 2") ? 2
                                                         : 0;
    if (r->version == 0) return refuse_line(r, "expected `weft-cost 1` or `weft-cost 2`");
    wf_scan_space(&r->scan);
    if (!at_line_end(&r->scan)) return refuse_line(r, "expected the end of the line");
    skip_to_line(&r->scan);
    WF_TRY(read_base(r));
    while (skip_to_line(&r->scan), !wf_scan_end(&r->scan)) {
        WF_TRY(read_line(r));
        wf_scan_space(&r->scan);
        if (!at_line_end(&r->scan)) return refuse_line(r, "expected the end of the line");
    }
    if (!r->inherits) add_later_kinds(r);
    add_beyond(r);
    WF_TRY(check_missing(r));
    return check_numbers(r->table);
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

static void add_number(struct wf_text *out, enum head head, uint64_t number, bool always)
{
    if (number > 0 || always)
        wf_text_add(out, "%s %llu\n", heads[head], (unsigned long long)number);
}

static void add_answer(struct wf_text *out, enum head head, bool answer)
{
    wf_text_add(out, "%s %s\n", heads[head], answer ? "yes" : "no");
}

static void add_heads(const weft_cost_table *table, struct wf_text *out)
{
    wf_text_add(out, "weft-cost 2\nname %s\n", table->name);
    if (table->source[0] != '\0') wf_text_add(out, "source %s\n", table->source);
    add_answer(out, HEAD_ONE_SIDED, table->one_sided);
    add_answer(out, HEAD_SHARES_LINKS, table->shares_links);
    add_answer(out, HEAD_BY_SIZE, table->by_size);
    add_number(out, HEAD_COPY, table->copy, true);
    add_number(out, HEAD_PACK, table->pack, true);
    add_number(out, HEAD_REDUCE, table->reduce, true);
    add_number(out, HEAD_FLOPS, table->flops, false);
    add_number(out, HEAD_MEMORY, table->memory, false);
    add_number(out, HEAD_PEAK, table->peak, false);
    add_number(out, HEAD_LAUNCH, table->launch, false);
    add_number(out, HEAD_ATTENTION, table->attention, false);
    add_number(out, HEAD_FLOPS_F8, table->flops_f8, false);
    add_number(out, HEAD_COMPUTE_BESIDE, table->compute_beside, false);
    add_number(out, HEAD_MOVES_BESIDE, table->moves_beside, false);
    add_number(out, HEAD_DOMAIN_WITHIN, table->domains[WF_WITHIN_HOST], false);
    add_number(out, HEAD_DOMAIN_BETWEEN, table->domains[WF_BETWEEN_HOSTS], false);
}

weft_status weft_cost_table_print(const weft_cost_table *table, char *text, size_t size,
                                  size_t *needed)
{
    struct wf_text printed = {0};

    WF_TRY(wf_require(table, "weft_cost_table_print: table"));
    if (size > 0) WF_TRY(wf_require(text, "weft_cost_table_print: text"));
    add_heads(table, &printed);
    for (int kind = 0; kind < WEFT_STEP_KINDS; kind++)
        for (int link = 0; link < WF_LINKS; link++) {
            const struct wf_rate *rate = &table->rates[kind][link];
            wf_text_add(&printed, "%s %s %llu %llu %llu\n", weft_step_name((uint32_t)kind),
                        link_names[link], (unsigned long long)rate->base_ns,
                        (unsigned long long)rate->peer_ns, (unsigned long long)rate->femtoseconds);
        }
    return wf_text_copy_out(&printed, text, size, needed);
}
