/* cpu_average.h - averages of integers, many at a time; part of cpu_kernels.h.
 *
 * A sum must be exact before it is divided, so it is kept in a wider type: a type of the vector
 * hardware if it can hold the sum, else 128 bits.  The sum is then exact as a float or double.  A
 * quotient that is not an integer is further from the next integer than the rounding error, so
 * truncation gives the exact quotient. */

/* FITS: quotients are within the type, as averages are; else they wrap. */
#define SUM_NEAR(name, type, near, whole, real)                                                    \
    static void sum_near_##name(void *sums, const void *source, size_t count)                      \
    {                                                                                              \
        near *t = sums;                                                                            \
        const type *s = source;                                                                    \
        INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = t[i] + (near)s[i];                   \
    }                                                                                              \
    static void divide_near_##name(void *target, const void *sums, uint32_t parts, bool fits,      \
                                   size_t count)                                                   \
    {                                                                                              \
        type *t = target;                                                                          \
        const near *s = sums;                                                                      \
        real n = (real)parts;                                                                      \
        if (fits) {                                                                                \
            INDEPENDENT for (size_t i = 0; i < count; i++) t[i] = (type)(whole)((real)s[i] / n);   \
        } else {                                                                                   \
            for (size_t i = 0; i < count; i++)                                                     \
                t[i] = (type)(uint64_t)(int64_t)((real)s[i] / n);                                  \
        }                                                                                          \
    }

#define SUM_WIDE(name, type)                                                                       \
    static void sum_##name(void *sums, const void *source, size_t count)                           \
    {                                                                                              \
        cpu_wide *t = sums;                                                                        \
        const type *s = source;                                                                    \
        for (size_t i = 0; i < count; i++)                                                         \
            t[i] += (cpu_wide)s[i];                                                                \
    }                                                                                              \
    static void quotient_##name(void *target, const void *sums, uint32_t parts, size_t count)      \
    {                                                                                              \
        type *t = target;                                                                          \
        const cpu_wide *s = sums;                                                                  \
        for (size_t i = 0; i < count; i++) {                                                       \
            int64_t near = (int64_t)s[i];                                                          \
            if ((cpu_wide)near == s[i])                                                            \
                t[i] = (type)(uint64_t)(near / (int64_t)parts);                                    \
            else                                                                                   \
                t[i] = (type)(uint64_t)(s[i] / (cpu_wide)parts);                                   \
        }                                                                                          \
    }

SUM_NEAR(i8, int8_t, int32_t, int32_t, float)
SUM_NEAR(u8, uint8_t, int32_t, int32_t, float)
SUM_NEAR(i16, int16_t, int32_t, int32_t, float)
SUM_NEAR(u16, uint16_t, int32_t, int32_t, float)
SUM_NEAR(i32, int32_t, double, int32_t, double)
SUM_NEAR(u32, uint32_t, double, uint32_t, double)
SUM_WIDE(i8, int8_t)
SUM_WIDE(u8, uint8_t)
SUM_WIDE(i16, int16_t)
SUM_WIDE(u16, uint16_t)
SUM_WIDE(i32, int32_t)
SUM_WIDE(u32, uint32_t)
SUM_WIDE(i64, int64_t)
SUM_WIDE(u64, uint64_t)

/* The sum of so many numbers is exact in the 24 bits of a float, or the 53 bits of a double. */
#define AVERAGE_NEAR(name, near, count)                                                            \
    {                                                                                              \
        sum_##name, quotient_##name, sum_near_##name, divide_near_##name, sizeof(near), count      \
    }
#define AVERAGE_OF_i8  AVERAGE_NEAR(i8, int32_t, 1u << 15)
#define AVERAGE_OF_u8  AVERAGE_NEAR(u8, int32_t, 1u << 15)
#define AVERAGE_OF_i16 AVERAGE_NEAR(i16, int32_t, 1u << 8)
#define AVERAGE_OF_u16 AVERAGE_NEAR(u16, int32_t, 1u << 8)
#define AVERAGE_OF_i32 AVERAGE_NEAR(i32, double, 1u << 20)
#define AVERAGE_OF_u32 AVERAGE_NEAR(u32, double, 1u << 20)
#define AVERAGE_OF_i64                                                                             \
    {                                                                                              \
        .sum = sum_i64, .divide = quotient_i64                                                     \
    }
#define AVERAGE_OF_u64                                                                             \
    {                                                                                              \
        .sum = sum_u64, .divide = quotient_u64                                                     \
    }
