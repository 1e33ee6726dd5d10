/* terminal.c - a layout as a grid of rank numbers. */
#include "layout/picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FEW_INDICES = 32, MANY_ROWS = 64 };

static int32_t longest_label(const struct picture *picture)
{
    int32_t longest = 0;

    for (int32_t i = 0; i < picture->rows.count; i++)
        for (int32_t j = 0; j < picture->columns.count; j++) {
            char label[PICTURE_LABEL];
            picture_label(picture, i, j, label);
            if ((int32_t)strlen(label) > longest) longest = (int32_t)strlen(label);
        }
    return longest;
}

static int32_t digits(int64_t number)
{
    char text[32];

    return snprintf(text, sizeof text, "%" PRId64, number);
}

/* Width of a cell with a blank on both sides, wide enough for its column's number. */
static int32_t cell_width(const struct picture *picture)
{
    const struct bands *columns = &picture->columns;
    int32_t label = longest_label(picture), number = digits(columns->at[columns->count - 1].start);

    return (label > number ? label : number) + 2;
}

/* Centre LABEL in WIDTH. */
static void add_centred(struct wf_text *text, const char *label, int32_t width)
{
    int32_t blanks = width - (int32_t)strlen(label);

    wf_text_add(text, "%*s%s%*s", blanks / 2, "", label, blanks - blanks / 2, "");
}

/* The nearest of the 256 colours that all terminals have. */
static int32_t terminal_colour(struct rgb c)
{
    const uint8_t parts[] = {c.red, c.green, c.blue};
    int32_t colour = 0;

    for (size_t i = 0; i < WF_COUNT(parts); i++)
        colour = 6 * colour + (parts[i] < 48 ? 0 : parts[i] < 115 ? 1 : (parts[i] - 35) / 40);
    return 16 + colour;
}

static void add_cell(const struct picture *picture, int32_t row, int32_t column, int32_t width,
                     bool colour, struct wf_text *text)
{
    struct rgb c = picture_rgb(picture_colour(picture, row, column));
    char label[PICTURE_LABEL];

    picture_label(picture, row, column, label);
    if (colour) wf_text_add(text, "\033[48;5;%d;38;5;16m", terminal_colour(c));
    add_centred(text, label, width);
    if (colour) wf_text_add(text, "\033[0m");
}

static void end_line(struct wf_text *text)
{
    while (text->length > 0 && !text->failed && text->data[text->length - 1] == ' ')
        text->data[--text->length] = '\0';
    wf_text_char(text, '\n');
}

/* Add the columns from FIRST to END - 1 below their numbers. */
static void add_columns(const struct picture *picture, int32_t first, int32_t end, int32_t left,
                        int32_t each, bool colour, struct wf_text *text)
{
    const struct bands *rows = &picture->rows;

    wf_text_add(text, "%*s", left, "");
    for (int32_t j = first; j < end; j++) {
        char number[32];
        snprintf(number, sizeof number, "%" PRId64, picture->columns.at[j].start);
        add_centred(text, number, each);
    }
    end_line(text);
    for (int32_t i = 0; i < rows->count; i++) {
        if (rows->dim >= 0)
            wf_text_add(text, "%*" PRId64 " ", left - 1, rows->at[i].start);
        else
            wf_text_add(text, "%*s", left, "");
        for (int32_t j = first; j < end; j++)
            add_cell(picture, i, j, each, colour, text);
        end_line(text);
    }
}

bool picture_add_grid(struct picture *picture, int32_t width, bool colour, struct wf_text *text)
{
    struct bands *rows = &picture->rows, *columns = &picture->columns;
    bool one_row = rows->dim < 0; /* a single row may continue below */
    int32_t left = one_row ? 2 : digits(rows->size) + 3, each = cell_width(picture), fits;

    fits = (width - left) / each;
    if (columns->size <= FEW_INDICES && (one_row || columns->size <= fits) &&
        picture_cut(columns) != WEFT_OK)
        return false;
    if (rows->size <= FEW_INDICES && picture_cut(rows) != WEFT_OK) return false;
    if (fits < 1 || rows->count > MANY_ROWS || (columns->count > fits && !one_row)) return false;
    for (int32_t at = 0; at < columns->count; at += fits)
        add_columns(picture, at, at + fits < columns->count ? at + fits : columns->count, left,
                    each, colour, text);
    return true;
}
