/* svg.c - a timeline as a picture.  Bubbles, the time in which a rank is idle, are grey. */
#include "schedule/drawing.h"

#include <math.h>

enum { LEFT = 72, TOP = 64, ROW = 28, GAP = 6, WIDTH = 1100, MOST_BOXES = 200000 };

static const char style[] =
    "<style>text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:#1f2933}"
    ".title{font-size:18px;font-weight:bold}.note{font-size:13px;fill:#52606d}"
    ".name{font-size:10px;text-anchor:middle}.F{fill:#9ecae9}.B{fill:#a1d99b}.I{fill:#c7e9c0}"
    ".W{fill:#74c476}.idle{fill:#e4e7eb}rect{stroke:#fff;stroke-width:.5}</style>\n";

struct picture {
    const weft_timeline *timeline;
    struct wf_text *out;
    double scale; /* pixels per unit of time */
};

static void add_box(const struct picture *p, int32_t rank, const weft_schedule_action *action,
                    uint64_t begin, uint64_t end)
{
    double x = LEFT + p->scale * (double)begin, width = p->scale * (double)(end - begin);
    int y = TOP + rank * (ROW + GAP);
    struct wf_text name = {0};

    schedule_add_action(action, &name);
    wf_text_add(p->out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" class=\"%s\">", x,
                y, width, ROW,
                weft_schedule_action_name((enum weft_schedule_action_kind)action->kind));
    if (name.data != NULL)
        wf_text_add(p->out, "<title>%s: %llu to %llu</title>", name.data, (unsigned long long)begin,
                    (unsigned long long)end);
    wf_text_add(p->out, "</rect>\n");
    if (name.data != NULL && width > 6.5 * (double)name.length)
        wf_text_add(p->out, "<text x=\"%.2f\" y=\"%d\" class=\"name\">%s</text>\n", x + width / 2,
                    y + ROW / 2 + 4, name.data);
    wf_text_free(&name);
}

static weft_status add_row(const struct picture *p, int32_t rank, uint64_t makespan)
{
    const weft_schedule_action *row;
    uint64_t begin, end;
    size_t count;

    WF_TRY(weft_schedule_actions(weft_timeline_schedule(p->timeline), rank, &count, &row,
                                 sizeof *row));
    wf_text_add(p->out, "<text x=\"8\" y=\"%d\" class=\"note\">rank %d</text>\n",
                TOP + rank * (ROW + GAP) + ROW / 2 + 4, rank);
    wf_text_add(p->out, "<rect x=\"%d\" y=\"%d\" width=\"%.2f\" height=\"%d\" class=\"idle\"/>\n",
                LEFT, TOP + rank * (ROW + GAP), p->scale * (double)makespan, ROW);
    for (size_t i = 0; i < count; i++) {
        if (row[i].kind > WEFT_SCHEDULE_ACTION_W) continue;
        WF_TRY(weft_timeline_span(p->timeline, rank, i, &begin, &end));
        add_box(p, rank, &row[i], begin, end);
    }
    return WEFT_OK;
}

weft_status schedule_add_svg(const weft_timeline *timeline, struct wf_text *out)
{
    weft_schedule_info s = {.struct_size = sizeof s};
    weft_timeline_info info = {.struct_size = sizeof info};
    struct picture p = {timeline, out, 0};
    int height;

    WF_TRY(weft_schedule_get(weft_timeline_schedule(timeline), &s));
    WF_TRY(weft_timeline_get(timeline, &info));
    if (s.actions > MOST_BOXES)
        return wf_fail(WEFT_ERR_INVALID, "the picture would have %lld boxes; the most is %d",
                       (long long)s.actions, MOST_BOXES);
    p.scale =
        fmin((double)(WIDTH - LEFT - 20) / (double)(info.makespan > 0 ? info.makespan : 1), 40);
    height = TOP + s.ranks * (ROW + GAP) + 12;
    wf_text_add(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\">\n%s<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
                WIDTH, height, WIDTH, height, style, WIDTH, height);
    wf_text_add(out, "<text x=\"8\" y=\"26\" class=\"title\">%s</text>\n", s.name);
    wf_text_add(
        out,
        "<text x=\"8\" y=\"46\" class=\"note\">%d rank%s, %d stage%s, %d microbatch%s: time "
        "%llu, idle %.1f %%, at most %llu activation%s on a rank</text>\n",
        s.ranks, WF_PLURAL(s.ranks), s.stages, WF_PLURAL(s.stages), s.microbatches,
        s.microbatches == 1 ? "" : "es", (unsigned long long)info.makespan, 100 * info.idle_share,
        (unsigned long long)info.peak, WF_PLURAL(info.peak));
    for (int32_t r = 0; r < s.ranks; r++)
        WF_TRY(add_row(&p, r, info.makespan));
    wf_text_add(out, "</svg>\n");
    return WEFT_OK;
}
