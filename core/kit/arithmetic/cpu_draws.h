/* cpu_draws.h - random numbers, many at a time; part of cpu_kernels.h. */

/* Blocks FIRST .. FIRST + COUNT, whose lower words do not wrap, four words each.  COUNT is even:
 * two blocks at a time, because a round waits for the one before. */
static void draw_words(const struct cpu_bits *bits, uint64_t first, size_t count, uint32_t *out)
{
    uint32_t block = (uint32_t)first, upper = (uint32_t)(first >> 32), half = (uint32_t)count / 2;
    uint32_t offset[] = {(uint32_t)bits->offset, (uint32_t)(bits->offset >> 32)};
    uint32_t key[] = {(uint32_t)bits->seed, (uint32_t)(bits->seed >> 32)};

    INDEPENDENT for (size_t i = 0; i < half; i++)
    {
        uint32_t a = block + (uint32_t)i, b = upper, c = offset[0], d = offset[1];
        uint32_t e = a + half, f = upper, g = offset[0], h = offset[1];
        uint32_t *words = out + 4 * i, *more = words + 4 * (size_t)half;

        _Pragma("GCC unroll 10") for (uint32_t r = 0; r < PHILOX_ROUNDS; r++)
        {
            uint32_t key_0 = key[0] + r * PHILOX_WEYL_0, key_1 = key[1] + r * PHILOX_WEYL_1;

            philox_round(&a, &b, &c, &d, key_0, key_1);
            philox_round(&e, &f, &g, &h, key_0, key_1);
        }
        words[0] = a;
        words[1] = b;
        words[2] = c;
        words[3] = d;
        more[0] = e;
        more[1] = f;
        more[2] = g;
        more[3] = h;
    }
}

static void draw_uniform(const struct cpu_range *range, const uint32_t *words, size_t count,
                         float *out)
{
    float low = range->low, unit = range->unit, last = range->last;
    uint32_t dropped = range->dropped;

    INDEPENDENT for (size_t i = 0; i < count; i++)
    {
        out[i] = uniform_f32(words[i], dropped, low, unit, last);
    }
}

/* COUNT is even. */
static void draw_normal(float mean, float deviation, const uint32_t *words, size_t count,
                        float *out)
{
    INDEPENDENT for (size_t i = 0; i < count / 2; i++)
    {
        float first, second;

        normal_pair_f32(words[2 * i], words[2 * i + 1], &first, &second);
        out[2 * i] = mean + deviation * first;
        out[2 * i + 1] = mean + deviation * second;
    }
}
