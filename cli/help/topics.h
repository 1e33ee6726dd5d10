/* topics.h - the formats of texts and files that the tool reads, for `weft help TOPIC`. */
#ifndef WEFT_CLI_HELP_TOPICS_H
#define WEFT_CLI_HELP_TOPICS_H

#include <stddef.h>

struct help_topic {
    const char *name, *summary;
    const char *page; /* of docs/ */
    const char *text; /* lines; those that begin with four blanks are in the format */
};

extern const struct help_topic help_topics[];
extern const size_t help_topic_count;

/* NULL: there is no such topic. */
const struct help_topic *help_topic_find(const char *name);

#endif
