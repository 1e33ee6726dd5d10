#include "rendezvous/rendezvous.h"
#include "support/suite.h"

#include <string.h>

static struct wf_join sample(void)
{
    struct wf_join join = {.rank = 3, .size = 8, .pid = 4242, .standby = 29400};

    memset(join.client_nonce, 1, sizeof join.client_nonce);
    memset(join.server_nonce, 2, sizeof join.server_nonce);
    return join;
}

/* The state of the server before the proof. */
static struct wf_join nonces_of(const struct wf_join *join)
{
    struct wf_join bare = *join;

    bare.rank = bare.size = 0;
    bare.pid = bare.standby = 0;
    return bare;
}

TEST(a_hello_carries_its_nonce)
{
    uint8_t nonce[WF_NONCE_BYTES] = "0123456789abcde", hello[WF_HELLO_BYTES], got[WF_NONCE_BYTES];

    wf_join_hello(nonce, hello);
    ck_assert(wf_join_read_hello(hello, got));
    ck_assert_mem_eq(got, nonce, sizeof nonce);
    for (size_t bytes = 0; bytes <= WF_HELLO_BYTES; bytes++)
        ck_assert(wf_join_may_be_hello(hello, bytes));
    hello[3] ^= 1;
    ck_assert(!wf_join_read_hello(hello, got));
    ck_assert(wf_join_may_be_hello(hello, 3));
    ck_assert(!wf_join_may_be_hello(hello, 4));
}

TEST(a_client_with_the_token_is_accepted)
{
    struct wf_job_key key = wf_job_key("a secret");
    struct wf_join join = sample(), seen = nonces_of(&join);
    uint8_t proof[WF_PROOF_BYTES];

    wf_join_proof(&key, &join, proof);
    ck_assert(wf_join_read_proof(&key, proof, &seen));
    ck_assert_int_eq(seen.rank, 3);
    ck_assert_int_eq(seen.size, 8);
    ck_assert_uint_eq(seen.pid, 4242);
    ck_assert_uint_eq(seen.standby, 29400);
}

TEST(another_token_is_refused)
{
    struct wf_job_key key = wf_job_key("a secret"), other = wf_job_key("a Secret");
    struct wf_join join = sample(), seen = nonces_of(&join);
    uint8_t proof[WF_PROOF_BYTES];

    wf_join_proof(&other, &join, proof);
    ck_assert(!wf_join_read_proof(&key, proof, &seen));
    ck_assert_int_eq(seen.rank, 0);
}

TEST(no_bit_of_a_proof_can_be_changed)
{
    struct wf_job_key key = wf_job_key("a secret");
    struct wf_join join = sample();
    uint8_t proof[WF_PROOF_BYTES];

    wf_join_proof(&key, &join, proof);
    for (size_t bit = 0; bit < 8 * WF_PROOF_BYTES; bit++) {
        struct wf_join seen = nonces_of(&join);

        proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert(!wf_join_read_proof(&key, proof, &seen));
        proof[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(a_recorded_proof_is_worth_nothing_later)
{
    struct wf_job_key key = wf_job_key("a secret");
    struct wf_join join = sample(), later = nonces_of(&join);
    uint8_t proof[WF_PROOF_BYTES];

    wf_join_proof(&key, &join, proof);
    later.server_nonce[0] ^= 1;
    ck_assert(!wf_join_read_proof(&key, proof, &later));
}

TEST(a_clients_proof_does_not_serve_as_a_servers)
{
    struct wf_job_key key = wf_job_key("a secret"), other = wf_job_key("none");
    struct wf_join join = sample();
    uint8_t proof[WF_PROOF_BYTES], server[WF_SHA256_BYTES], wrong[WF_SHA256_BYTES];

    wf_join_proof(&key, &join, proof);
    wf_join_server_proof(&key, &join, server);
    wf_join_server_proof(&other, &join, wrong);
    ck_assert(memcmp(proof + WF_PROOF_BYTES - WF_SHA256_BYTES, server, sizeof server) != 0);
    ck_assert(memcmp(server, wrong, sizeof server) != 0);
}

static bool same_key(const struct wf_seal *a, const struct wf_seal *b)
{
    return memcmp(a->key, b->key, sizeof a->key) == 0;
}

TEST(every_connection_and_direction_has_a_key_of_its_own)
{
    struct wf_job_key key = wf_job_key("a secret"), other = wf_job_key("a Secret");
    struct wf_job_key standby = wf_standby_key(&key, 1), second = wf_standby_key(&key, 2);
    struct wf_join join = sample(), changed[3] = {join, join, join};
    struct wf_seal there, back, again, other_there, other_back;

    wf_join_seals(&key, &join, &there, &back);
    ck_assert(there.on && back.on && there.sequence == 0 && back.sequence == 0);
    ck_assert(!same_key(&there, &back));
    wf_join_seals(&key, &join, &again, &other_back);
    ck_assert(same_key(&there, &again) && same_key(&back, &other_back));
    changed[0].client_nonce[3] ^= 1;
    changed[1].server_nonce[3] ^= 1;
    changed[2].rank = 4;
    for (int i = 0; i < 3; i++) {
        wf_join_seals(&key, &changed[i], &other_there, &other_back);
        ck_assert(!same_key(&there, &other_there) && !same_key(&back, &other_back));
    }
    wf_join_seals(&other, &join, &other_there, &other_back);
    ck_assert(!same_key(&there, &other_there) && !same_key(&back, &other_back));
    ck_assert(memcmp(&standby, &key, sizeof key) != 0);
    ck_assert(memcmp(&standby, &second, sizeof key) != 0);
}
