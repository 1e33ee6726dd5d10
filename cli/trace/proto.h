/* proto.h - reads the wire format of protocol buffers, from files that may be anything. */
#ifndef WEFT_CLI_TRACE_PROTO_H
#define WEFT_CLI_TRACE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of a file. */
struct proto {
    const uint8_t *data;
    size_t bytes, at;
};

enum proto_wire { PROTO_NUMBER = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

struct proto_field {
    uint32_t number, wire;
    uint64_t value;    /* of a number */
    struct proto body; /* of bytes */
    size_t from;       /* where the field begins in its message */
};

/* Take the next field.  Returns 1; 0 at the end; -1 if the bytes at `at` are not a field. */
int proto_next(struct proto *message, struct proto_field *out);

/* True if TEXT, of a message, is WANTED. */
bool proto_is(const struct proto *text, const char *wanted);
/* Copy TEXT to OUT, of BYTES with a NUL, as it may be shown on a terminal.  A long one is cut. */
void proto_show(const struct proto *text, char *out, size_t bytes);

#endif
