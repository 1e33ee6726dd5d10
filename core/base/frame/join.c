/* join.c - the handshake: each side proves that it knows the job's token, without showing it. */
#include "frame.h"

#include <string.h>

#define MAGIC       "weft-rv3"
#define MAGIC_BYTES 8

/* The proof's fields before the hash: rank, size, pid, the number of its standby, and its age. */
#define CLAIM_BYTES (WF_PROOF_BYTES - WF_SHA256_BYTES)

_Static_assert(MAGIC_BYTES + WF_NONCE_BYTES == WF_HELLO_BYTES, "a hello is magic and nonce");
_Static_assert(CLAIM_BYTES == 32, "a claim has five fields");

struct wf_job_key wf_job_key(const char *token)
{
    struct wf_job_key key;

    wf_hmac_sha256("weft job token", 14, token, strlen(token), key.bytes);
    return key;
}

struct wf_job_key wf_standby_key(const struct wf_job_key *key, uint64_t job)
{
    struct wf_job_key derived;
    uint8_t number[8];
    weft_blob pieces[] = {{"standby ", 8}, {number, sizeof number}};

    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(job >> (8 * i));
    wf_hmac_sha256_pieces(key->bytes, sizeof key->bytes, pieces, WF_COUNT(pieces), derived.bytes);
    return derived;
}

void wf_join_hello(const uint8_t nonce[WF_NONCE_BYTES], uint8_t out[WF_HELLO_BYTES])
{
    memcpy(out, MAGIC, MAGIC_BYTES);
    memcpy(out + MAGIC_BYTES, nonce, WF_NONCE_BYTES);
}

bool wf_join_may_be_hello(const uint8_t *in, size_t bytes)
{
    return memcmp(in, MAGIC, bytes < MAGIC_BYTES ? bytes : MAGIC_BYTES) == 0;
}

bool wf_join_read_hello(const uint8_t in[WF_HELLO_BYTES], uint8_t nonce[WF_NONCE_BYTES])
{
    if (!wf_join_may_be_hello(in, WF_HELLO_BYTES)) return false;
    memcpy(nonce, in + MAGIC_BYTES, WF_NONCE_BYTES);
    return true;
}

static void prove(const struct wf_job_key *key, const char role[8], const struct wf_join *join,
                  const uint8_t claim[CLAIM_BYTES], uint8_t out[WF_SHA256_BYTES])
{
    uint8_t all[8 + 2 * WF_NONCE_BYTES + CLAIM_BYTES];

    memcpy(all, role, 8);
    memcpy(all + 8, join->client_nonce, WF_NONCE_BYTES);
    memcpy(all + 8 + WF_NONCE_BYTES, join->server_nonce, WF_NONCE_BYTES);
    memcpy(all + 8 + 2 * WF_NONCE_BYTES, claim, CLAIM_BYTES);
    wf_hmac_sha256(key->bytes, sizeof key->bytes, all, sizeof all, out);
}

static void write_claim(const struct wf_join *join, uint8_t out[CLAIM_BYTES])
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)((uint32_t)join->rank >> (8 * i));
        out[4 + i] = (uint8_t)((uint32_t)join->size >> (8 * i));
    }
    for (int i = 0; i < 8; i++) {
        out[8 + i] = (uint8_t)(join->pid >> (8 * i));
        out[16 + i] = (uint8_t)(join->standby >> (8 * i));
        out[24 + i] = (uint8_t)(join->age_ms >> (8 * i));
    }
}

static void read_claim(const uint8_t in[CLAIM_BYTES], struct wf_join *join)
{
    struct wf_reader reader = {in, CLAIM_BYTES, false};

    join->rank = (int32_t)wf_take_u32(&reader);
    join->size = (int32_t)wf_take_u32(&reader);
    join->pid = wf_take_u64(&reader);
    join->standby = wf_take_u64(&reader);
    join->age_ms = wf_take_u64(&reader);
}

void wf_join_proof(const struct wf_job_key *key, const struct wf_join *join,
                   uint8_t out[WF_PROOF_BYTES])
{
    write_claim(join, out);
    prove(key, "client  ", join, out, out + CLAIM_BYTES);
}

bool wf_join_read_proof(const struct wf_job_key *key, const uint8_t in[WF_PROOF_BYTES],
                        struct wf_join *join)
{
    uint8_t want[WF_SHA256_BYTES];

    prove(key, "client  ", join, in, want);
    if (!wf_secret_equal(want, in + CLAIM_BYTES, sizeof want)) return false;
    read_claim(in, join);
    return true;
}

void wf_join_server_proof(const struct wf_job_key *key, const struct wf_join *join,
                          uint8_t out[WF_SHA256_BYTES])
{
    uint8_t claim[CLAIM_BYTES];

    write_claim(join, claim);
    prove(key, "server  ", join, claim, out);
}

void wf_join_seals(const struct wf_job_key *key, const struct wf_join *join,
                   struct wf_seal *to_server, struct wf_seal *to_client)
{
    uint8_t claim[CLAIM_BYTES];

    write_claim(join, claim);
    *to_server = (struct wf_seal){.on = true};
    *to_client = (struct wf_seal){.on = true};
    prove(key, "toserver", join, claim, to_server->key);
    prove(key, "toclient", join, claim, to_client->key);
}
