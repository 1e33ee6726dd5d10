/* frame.h - authenticated frames: what the rendezvous and the feeds of live weights send.
 *
 *     sha256.c    the keyed hash that proves knowledge of a token
 *     wire.c      bytes <-> frames
 *     join.c      the handshake */
#ifndef WEFT_BASE_FRAME_FRAME_H
#define WEFT_BASE_FRAME_FRAME_H

#include "base/base.h"

/* ---- sha256.c ---- */

#define WF_SHA256_BYTES 32

void wf_sha256(const void *data, size_t bytes, uint8_t out[WF_SHA256_BYTES]);
void wf_hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                    uint8_t out[WF_SHA256_BYTES]);
/* The same over COUNT pieces, one after the other. */
void wf_hmac_sha256_pieces(const void *key, size_t key_bytes, const weft_blob *pieces, size_t count,
                           uint8_t out[WF_SHA256_BYTES]);
/* In a time that does not depend on the contents. */
bool wf_secret_equal(const void *a, const void *b, size_t bytes);
/* From the kernel; never fails. */
void wf_random_bytes(void *out, size_t bytes);

/* ---- wire.c ---- */

/* Everything is little-endian.  A frame is a header and a payload.  A sealed frame has a tag after
 * its header and, if the payload is not empty, another after that: keyed hashes over the frame's
 * number and the bytes before the tag.  A forged length is therefore detected. */
#define WF_FRAME_HEADER 16
#define WF_FRAME_TAG    WF_SHA256_BYTES
#define WF_FRAME_MAX    (UINT64_C(1) << 30)
#define WF_FRAME_PLAIN  UINT64_C(256) /* the longest payload without a seal */
#define WF_FRAME_TYPES  18            /* types of frames are above 0 and below this */

/* One direction of a connection after the handshake.  The frames do not contain their number; a
 * frame that is repeated, lost or reordered therefore fails the check of its tag. */
struct wf_seal {
    bool on;
    uint8_t key[WF_SHA256_BYTES];
    uint64_t sequence;
};

struct wf_frame {
    uint16_t type;
    uint64_t id;
    const uint8_t *payload; /* inside the inbox; valid until wf_frame_drop */
    size_t bytes;
};

/* Bytes that arrived and are not yet parsed. */
struct wf_inbox {
    struct wf_text bytes;
    size_t taken;
    struct wf_seal seal; /* of arriving frames */
    bool checked;        /* the next frame's header has the right tag */
};

/* Start a frame in OUT, add to it with wf_put_, then end it.  SEAL is the connection's, or one that
 * is off. */
size_t wf_frame_begin(struct wf_text *out, const struct wf_seal *seal, uint16_t type, uint64_t id);
void wf_frame_end(struct wf_text *out, struct wf_seal *seal, size_t begin);

void wf_put_u32(struct wf_text *out, uint32_t value);
void wf_put_u64(struct wf_text *out, uint64_t value);
void wf_put_blob(struct wf_text *out, const void *data, uint64_t bytes);
void wf_put_string(struct wf_text *out, const char *text);
void wf_put_ranks(struct wf_text *out, const int32_t *ranks, int32_t count);

/* Reading past the end gives zeros and empty blobs and sets `failed`. */
struct wf_reader {
    const uint8_t *data;
    size_t left;
    bool failed;
};

struct wf_reader wf_frame_reader(const struct wf_frame *frame);
uint32_t wf_take_u32(struct wf_reader *reader);
uint64_t wf_take_u64(struct wf_reader *reader);
weft_blob wf_take_blob(struct wf_reader *reader);
/* WEFT_ERR_INTERNAL and `failed` for a number that no status has. */
weft_status wf_take_status(struct wf_reader *reader);
/* Into a buffer, cut to its size.  Control characters, and bytes that are not UTF-8, become '?'. */
void wf_take_string(struct wf_reader *reader, char *out, size_t bytes);

/* Take the next whole frame.  Returns OK; IN_PROGRESS if bytes are missing; ERR_PARSE if the header
 * is invalid; ERR_INVALID if a tag is wrong. */
weft_status wf_frame_next(struct wf_inbox *inbox, struct wf_frame *out) WF_NODISCARD;
void wf_frame_drop(struct wf_inbox *inbox, const struct wf_frame *frame);
void wf_inbox_free(struct wf_inbox *inbox);

/* ---- join.c: the handshake ----
 *
 *     client -> server   magic, client's nonce
 *     server -> client   magic, server's nonce
 *     client -> server   its claim (rank, size, ...), its proof
 *     server -> client   frame ADMITTED with the server's proof, or REFUSED if the token is wrong
 *
 * A proof is a keyed hash over both nonces.  The token is not sent, and a proof cannot be used
 * twice.  A server sends no byte to a peer that does not begin with the magic.  All later frames
 * are sealed, each direction with its own key, which depends on both nonces. */

#define WF_NONCE_BYTES 16
#define WF_HELLO_BYTES 24
#define WF_PROOF_BYTES 64

struct wf_job_key {
    uint8_t bytes[WF_SHA256_BYTES];
};

/* The key that is derived from TOKEN. */
struct wf_job_key wf_job_key(const char *token);
/* The key of the standby of job number JOB. */
struct wf_job_key wf_standby_key(const struct wf_job_key *key, uint64_t job);

struct wf_join {
    uint8_t client_nonce[WF_NONCE_BYTES], server_nonce[WF_NONCE_BYTES];
    int32_t rank, size;
    uint64_t pid;
    uint64_t standby; /* number of the standby that the rank offers; 0: none */
    uint64_t age_ms;  /* time that its process has run; 0: unknown */
};

void wf_join_hello(const uint8_t nonce[WF_NONCE_BYTES], uint8_t out[WF_HELLO_BYTES]);
bool wf_join_read_hello(const uint8_t in[WF_HELLO_BYTES], uint8_t nonce[WF_NONCE_BYTES]);
/* True if BYTES of IN, fewer than a hello, can be the beginning of one. */
bool wf_join_may_be_hello(const uint8_t *in, size_t bytes);
void wf_join_proof(const struct wf_job_key *key, const struct wf_join *join,
                   uint8_t out[WF_PROOF_BYTES]);
/* Fills the claim of JOIN, whose nonces are set; false if the proof is wrong. */
bool wf_join_read_proof(const struct wf_job_key *key, const uint8_t in[WF_PROOF_BYTES],
                        struct wf_join *join);
void wf_join_server_proof(const struct wf_job_key *key, const struct wf_join *join,
                          uint8_t out[WF_SHA256_BYTES]);
/* What seals the frames of JOIN's connection. */
void wf_join_seals(const struct wf_job_key *key, const struct wf_join *join,
                   struct wf_seal *to_server, struct wf_seal *to_client);

#endif
