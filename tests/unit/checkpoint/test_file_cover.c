#include "checkpoint/file.h"
#include "support/allocfail.h"
#include "support/checkpoints.h"
#include "support/random.h"
#include "support/suite.h"

enum { MOST = 64 };

static struct wf_piece boxes[MOST];
static int64_t offsets[MOST][3], sizes[MOST][3];
static struct wf_input a = {.name = "A"}, b = {.name = "B"};
static struct wf_input *files[] = {&a, &b};
static struct wf_inputs inputs = {.list = files, .count = 2};
static struct wf_tensor tensor = {.name = "t"};
static const int64_t *shape;

static void begin(int32_t dims, const int64_t *whole)
{
    tensor.count = 0;
    tensor.dims = (int8_t)dims;
    tensor.shape = shape = whole;
}

static void add(const int64_t *offset, const int64_t *size)
{
    size_t i = tensor.count++;

    memcpy(offsets[i], offset, (size_t)tensor.dims * sizeof *offset);
    memcpy(sizes[i], size, (size_t)tensor.dims * sizeof *size);
    boxes[i] = (struct wf_piece){.name = "t",
                                 .offset = offsets[i],
                                 .shape = sizes[i],
                                 .file = i % 2,
                                 .rank = -1,
                                 .dims = tensor.dims};
}

static weft_status check(void)
{
    return wf_cover_check(&tensor, boxes, &inputs);
}

#define BOX(...) ((const int64_t[]){__VA_ARGS__})

TEST(a_grid_is_a_cover)
{
    begin(2, BOX(4, 6));
    add(BOX(2, 0), BOX(2, 3));
    add(BOX(0, 0), BOX(2, 3));
    add(BOX(2, 3), BOX(2, 3));
    add(BOX(0, 3), BOX(2, 3));
    OK(check());
}

TEST(a_wheel_is_a_cover)
{
    begin(2, BOX(3, 3)); /* no straight line cuts it in two */
    add(BOX(0, 0), BOX(1, 2));
    add(BOX(0, 2), BOX(2, 1));
    add(BOX(2, 1), BOX(1, 2));
    add(BOX(1, 0), BOX(2, 1));
    REFUSED(check(), WEFT_ERR_PARSE, "tensor \"t\": no file has element [1,1]");
    add(BOX(1, 1), BOX(1, 1));
    OK(check());
}

TEST(the_first_gap_and_overlap_are_named)
{
    begin(1, BOX(10));
    add(BOX(0), BOX(4));
    add(BOX(6), BOX(4));
    REFUSED(check(), WEFT_ERR_PARSE, "no file has element [4]");
    add(BOX(3), BOX(3));
    REFUSED(check(), WEFT_ERR_PARSE, "element [3] stands in A and in");
    begin(1, BOX(10));
    add(BOX(0), BOX(9));
    REFUSED(check(), WEFT_ERR_PARSE, "no file has element [9]");
    begin(1, BOX(10));
    REFUSED(check(), WEFT_ERR_PARSE, "no file has element [0]");
}

TEST(empty_boxes_and_tensors_do_not_matter)
{
    begin(1, BOX(4));
    add(BOX(2), BOX(0));
    add(BOX(0), BOX(4));
    add(BOX(4), BOX(0));
    OK(check());
    begin(2, BOX(0, 5));
    OK(check());
    begin(0, BOX(0));
    REFUSED(check(), WEFT_ERR_PARSE, "no file has element []");
    add(BOX(0), BOX(0));
    OK(check());
    add(BOX(0), BOX(0));
    REFUSED(check(), WEFT_ERR_PARSE, "element [] stands in A and in B");
}

/* Cut a box at random; leave one piece out or put one in twice. */
static void cut(struct random *r, const int64_t *offset, const int64_t *size, int depth)
{
    int64_t first[3], second[3], later[3];
    int32_t dim = random_in(r, 0, 2);

    if (depth == 0 || size[dim] < 2) {
        add(offset, size);
        return;
    }
    memcpy(first, size, sizeof first);
    memcpy(second, size, sizeof second);
    memcpy(later, offset, sizeof later);
    first[dim] = random_in(r, 1, (int32_t)size[dim] - 1);
    second[dim] -= first[dim];
    later[dim] += first[dim];
    cut(r, offset, first, depth - 1);
    cut(r, later, second, depth - 1);
}

TEST(random_cuts_are_covers_and_lose_it_with_any_change)
{
    struct random r = random_begin("test_file_cover");
    int cases = test_cases(500);

    for (int i = 0; i < cases; i++) {
        int64_t whole[] = {random_in(&r, 1, 9), random_in(&r, 1, 9), random_in(&r, 1, 9)};
        size_t last;
        begin(3, whole);
        cut(&r, BOX(0, 0, 0), whole, random_in(&r, 0, 5));
        OK(check());
        last = (size_t)random_in(&r, 0, (int32_t)tensor.count - 1);
        add(offsets[last], sizes[last]);
        REFUSED(check(), WEFT_ERR_PARSE, "stands in");
        tensor.count--;
        boxes[last] = boxes[tensor.count - 1];
        tensor.count--;
        REFUSED(check(), WEFT_ERR_PARSE, "no file has element");
    }
}

TEST(allocation_failures_are_reported)
{
    begin(1, BOX(4));
    add(BOX(0), BOX(4));
    ALLOCATIONS_FAIL(check(), (void)0);
}
