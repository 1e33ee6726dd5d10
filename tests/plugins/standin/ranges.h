/* ranges.h - what the simulated tools for ranges have heard.  The tool's library exports
 * standin_ranges, by which a test reads it. */
#ifndef WEFT_STANDIN_RANGES_H
#define WEFT_STANDIN_RANGES_H

#include <stdint.h>

enum { STANDIN_RANGES = 4096 };

struct standin_range {
    int thread; /* from 0, in the order in which threads appear */
    int depth;  /* number of ranges of the thread that enclose it */
    int ended;  /* 1: it has ended */
    char domain[32], category[64], name[400];
    uint64_t bytes;
};

struct standin_ranges {
    int count;         /* entries of RANGES, in the order of their beginnings */
    int registrations; /* of texts */
    char problem[256]; /* the first violation of the tool's rules; "": none */
    struct standin_range ranges[STANDIN_RANGES];
};

/* Read after all threads that mark ranges have ended or are idle. */
const struct standin_ranges *standin_ranges(void);
typedef const struct standin_ranges *(*standin_ranges_function)(void);

/* For the tools themselves. */
void ranges_push(const char *domain, const char *category, const char *name, uint64_t bytes);
void ranges_pop(const char *domain);
void ranges_register(void);
void ranges_complain(const char *problem);

#endif
