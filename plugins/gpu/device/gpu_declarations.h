/* gpu_declarations.h - compile-time checks of declarations against a vendor's headers. */
#ifndef WEFT_GPU_DECLARATIONS_H
#define WEFT_GPU_DECLARATIONS_H

#include <stddef.h>

#define SAME_TYPE(a, b)  __builtin_types_compatible_p(__typeof__(a), __typeof__(b))
#define SAME_VALUE(a, b) _Static_assert((long long)(a) == (long long)(b), #b)
#define SAME_SIZE(a, b)  _Static_assert(sizeof(struct a) == sizeof(b), #b)
#define SAME_PLACE(a, field, b, their_field)                                                       \
    _Static_assert(offsetof(struct a, field) == offsetof(b, their_field), #b "." #their_field)

#endif
