/* peek.h - memory that another thread writes meanwhile, read without an order, to see that the
 * write has happened. */
#ifndef WEFT_TESTS_PEEK_H
#define WEFT_TESTS_PEEK_H

__attribute__((no_sanitize("thread"), noinline)) static float peek(const float *memory)
{
    return *(const volatile float *)memory;
}

#endif
