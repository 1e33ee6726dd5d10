/* figures.c - elements as NumPy writes them in an array.
 *
 * A float has the fewest digits that identify it among the numbers of its dtype, but at most eight
 * after the point.  All floats of an array have an exponent if one is large, one is small, or they
 * differ by more than a factor of 1000. */
#include "tensor.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRECISION = 8, DIGITS = 17 };

/* The digits of a finite number: 0.D1 D2 D3 ... times 10^POINT. */
struct digits {
    char text[DIGITS + 1];
    int count, point;
};

/* The dtype of one part of DTYPE. */
static uint32_t part_of(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64    ? WEFT_DTYPE_F32
           : dtype == WEFT_DTYPE_C128 ? WEFT_DTYPE_F64
                                      : dtype;
}

static bool identifies(uint32_t dtype, const char *text, double value)
{
    _Alignas(8) char element[8];

    if (dtype == WEFT_DTYPE_F32) return kit_read_float(text, NULL) == (float)value;
    if (dtype == WEFT_DTYPE_F64) return kit_read_double(text, NULL) == value;
    wf_number_store(dtype, (struct wf_number){.re = kit_read_double(text, NULL)}, element);
    return wf_number_load(dtype, element).re == value;
}

/* The digits of |VALUE|: the fewest that identify it, or COUNT. */
static void find_digits(uint32_t dtype, double value, int count, struct digits *out)
{
    char text[40] = "";
    bool fixed = count > 0;
    int used = 0;

    value = fabs(value);
    for (int tried = fixed ? count : 1; tried <= DIGITS; tried++) {
        kit_print(text, sizeof text, "%.*e", tried - 1, value);
        used = tried;
        if (fixed || identifies(dtype, text, value)) break;
    }
    out->count = 0;
    for (const char *c = text; *c != 'e' && *c != '\0'; c++)
        if (*c != '.' && out->count < DIGITS) out->text[out->count++] = *c;
    out->text[out->count] = '\0';
    out->point = value == 0 ? 1 : atoi(strchr(text, 'e') + 1) + 1;
    while (out->count > 1 && out->text[out->count - 1] == '0' && used > 1)
        out->text[--out->count] = '\0';
}

/* ---- without an exponent ---- */

/* Write |VALUE| as "12.5" or "3.": at most PRECISION digits after the point, no zeros at the end.
 */
static void print_positional(uint32_t dtype, double value, char *out, size_t bytes)
{
    struct digits digits;
    size_t at = 0;

    find_digits(dtype, value, 0, &digits);
    if (digits.count - digits.point > PRECISION) {
        kit_print(out, bytes, "%.*f", PRECISION, fabs(value));
        for (at = strlen(out); at > 0 && out[at - 1] == '0'; at--)
            out[at - 1] = '\0';
        return;
    }
    for (int i = digits.point < 1 ? digits.point - 1 : 0; i < digits.count || i < digits.point;
         i++) {
        if (i == digits.point && at + 1 < bytes) out[at++] = '.';
        if (at + 1 < bytes) out[at++] = i >= 0 && i < digits.count ? digits.text[i] : '0';
    }
    if (digits.count <= digits.point && at + 1 < bytes) out[at++] = '.';
    if (value == 0) at = (size_t)snprintf(out, bytes, "0.");
    out[at] = '\0';
}

/* ---- with an exponent ---- */

static void find_few_digits(uint32_t dtype, double value, struct digits *out)
{
    find_digits(dtype, value, 0, out);
    if (out->count > PRECISION + 1) find_digits(dtype, value, PRECISION + 1, out);
}

static void print_exponent(double value, const struct wf_figure *figure, char *out, size_t bytes)
{
    char text[40];
    const char *mark;
    int power;

    kit_print(text, sizeof text, "%.*e", figure->fraction, fabs(value));
    mark = strchr(text, 'e');
    power = atoi(mark + 1);
    snprintf(out, bytes, "%.*s%se%c%0*d", (int)(mark - text), text,
             figure->fraction == 0 ? "." : "", power < 0 ? '-' : '+', figure->power, abs(power));
}

/* ---- the format of an array ---- */

static double part_at(uint32_t dtype, const char *elements, int64_t index, bool imaginary)
{
    struct wf_number number =
        wf_number_load(dtype, elements + (size_t)index * wf_dtype_bytes(dtype));

    return imaginary ? number.im : number.re;
}

/* From here on, floats of DTYPE have an exponent. */
static double limit_of(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_F64 ? 1e8 : dtype == WEFT_DTYPE_F32 ? 1e6 : 1e3;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* Widen FIGURE for the finite VALUE.  A part after another has its sign always. */
static void include(struct wf_figure *figure, uint32_t dtype, double value, bool imaginary)
{
    int sign = signbit(value) != 0 && !imaginary;
    struct digits digits;
    char text[64];

    if (figure->exponent) {
        find_few_digits(dtype, value, &digits);
        figure->left = most(figure->left, 1 + sign);
        figure->fraction = most(figure->fraction, digits.count - 1);
        figure->power = most(figure->power, abs(digits.point - 1) > 99 ? 3 : 2);
        return;
    }
    print_positional(dtype, value, text, sizeof text);
    figure->left = most(figure->left, (int)(strchr(text, '.') - text) + sign);
    figure->right = most(figure->right, (int)strlen(strchr(text, '.') + 1));
}

static void choose_figure(struct wf_figure *figure, uint32_t dtype, const char *elements,
                          int64_t count, bool imaginary)
{
    double least = INFINITY, largest = 0;
    int others = 0; /* width of what is not finite */

    *figure = (struct wf_figure){0};
    for (int64_t i = 0; i < count; i++) {
        double value = fabs(part_at(dtype, elements, i, imaginary));

        if (!isfinite(value) || value == 0) continue;
        least = fmin(least, value);
        largest = fmax(largest, value);
    }
    figure->exponent = largest > 0 && (largest >= limit_of(part_of(dtype)) || least < 1e-4 ||
                                       largest / least > 1000);
    for (int64_t i = 0; i < count; i++) {
        double value = part_at(dtype, elements, i, imaginary);

        if (isfinite(value))
            include(figure, part_of(dtype), value, imaginary);
        else
            others = most(others, isnan(value) ? 3 - imaginary : 3 + (value < 0 && !imaginary));
    }
    if (figure->exponent) figure->right = figure->fraction + 2 + figure->power;
    if (others > 0) figure->left = most(figure->left, others - figure->right - 1);
}

void wf_figures_choose(struct wf_figures *figures, uint32_t dtype, const char *elements,
                       int64_t count)
{
    *figures = (struct wf_figures){.dtype = dtype};
    if (wf_dtype_is_float(dtype) || wf_dtype_is_complex(dtype)) {
        choose_figure(&figures->re, dtype, elements, count, false);
        if (wf_dtype_is_complex(dtype)) choose_figure(&figures->im, dtype, elements, count, true);
        return;
    }
    if (dtype == WEFT_DTYPE_BOOL) figures->re.left = 5;
    for (int64_t i = 0; i < count; i++) {
        char text[WF_FIGURE_BYTES];

        wf_figure_print(figures, elements + (size_t)i * wf_dtype_bytes(dtype), text);
        figures->re.left = most(figures->re.left, (int)strlen(text));
    }
}

/* Write VALUE; the second part of an element always with its sign. */
static void print_part(const struct wf_figure *figure, uint32_t dtype, double value, bool is_second,
                       char *out, size_t bytes)
{
    char text[80], *point;
    const char *sign = signbit(value) != 0 ? "-" : is_second ? "+" : "";
    int left = figure->left + (is_second ? 1 : 0), width = left + 1 + figure->right, padding;

    if (!isfinite(value)) {
        if (isnan(value)) sign = is_second ? "+" : "";
        snprintf(text, sizeof text, "%s%s", sign, isnan(value) ? "nan" : "inf");
        snprintf(out, bytes, "%*s", width, text);
        return;
    }
    if (figure->exponent)
        print_exponent(value, figure, text, sizeof text);
    else
        print_positional(dtype, value, text, sizeof text);
    point = strchr(text, '.');
    padding = left - (int)(point - text) - (int)strlen(sign);
    snprintf(out, bytes, "%*s%s%-*s", padding > 0 ? padding : 0, "", sign,
             (int)(point - text) + 1 + figure->right, text);
}

void wf_figure_print(const struct wf_figures *figures, const void *element,
                     char out[WF_FIGURE_BYTES])
{
    uint32_t dtype = figures->dtype;
    struct wf_number number = wf_number_load(dtype, element);
    size_t length;
    char text[32], second[80];

    if (wf_dtype_is_float(dtype) || wf_dtype_is_complex(dtype)) {
        print_part(&figures->re, part_of(dtype), number.re, false, out, 80);
        if (!wf_dtype_is_complex(dtype)) return;
        print_part(&figures->im, part_of(dtype), number.im, true, second, sizeof second);
        for (length = strlen(second); length > 0 && second[length - 1] == ' '; length--)
            continue;
        snprintf(out + strlen(out), 80, "%.*sj%s", (int)length, second, second + length);
        return;
    }
    if (dtype == WEFT_DTYPE_BOOL)
        snprintf(text, sizeof text, "%s", number.integer != 0 ? "True" : "False");
    else if (wf_dtype_is_signed(dtype))
        snprintf(text, sizeof text, "%lld", (long long)number.integer);
    else
        snprintf(text, sizeof text, "%llu", (unsigned long long)number.integer);
    snprintf(out, WF_FIGURE_BYTES, "%*s", figures->re.left, text);
}

struct wf_exact wf_exact(double value)
{
    struct wf_exact out;

    for (int digits = 6; digits <= 17; digits++) {
        kit_print(out.text, sizeof out.text, "%.*g", digits, value);
        if (kit_read_double(out.text, NULL) == value) break;
    }
    return out;
}
