#include "rendezvous/rendezvous.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

static const char *hex(const uint8_t digest[WF_SHA256_BYTES])
{
    static char text[2 * WF_SHA256_BYTES + 1];

    for (size_t i = 0; i < WF_SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)digest[i]);
    return text;
}

static const char *sha(const void *data, size_t bytes)
{
    uint8_t digest[WF_SHA256_BYTES];

    wf_sha256(data, bytes, digest);
    return hex(digest);
}

TEST(digests_are_those_of_fips_180)
{
    char million[1000000];

    memset(million, 'a', sizeof million);
    ck_assert_str_eq(sha("", 0),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ck_assert_str_eq(sha("abc", 3),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_str_eq(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    ck_assert_str_eq(sha(million, sizeof million),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(keyed_digests_are_those_of_rfc_4231)
{
    static const char long_text[] =
        "This is a test using a larger than block-size key and a larger than block-size data. The "
        "key needs to be hashed before being used by the HMAC algorithm.";
    uint8_t key[131], data[50], digest[WF_SHA256_BYTES];

    memset(key, 0x0b, 20);
    wf_hmac_sha256(key, 20, "Hi There", 8, digest);
    ck_assert_str_eq(hex(digest),
                     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    wf_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, digest);
    ck_assert_str_eq(hex(digest),
                     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    wf_hmac_sha256(key, 20, data, 50, digest);
    ck_assert_str_eq(hex(digest),
                     "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (uint8_t i = 0; i < 25; i++)
        key[i] = (uint8_t)(i + 1);
    memset(data, 0xcd, sizeof data);
    wf_hmac_sha256(key, 25, data, 50, digest);
    ck_assert_str_eq(hex(digest),
                     "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(key, 0x0c, 20);
    wf_hmac_sha256(key, 20, "Test With Truncation", 20, digest);
    ck_assert_int_eq(strncmp(hex(digest), "a3b6167473100ee06e0c796c2955552b", 32), 0);
    memset(key, 0xaa, sizeof key);
    wf_hmac_sha256(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
                   digest);
    ck_assert_str_eq(hex(digest),
                     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    wf_hmac_sha256(key, sizeof key, long_text, strlen(long_text), digest);
    ck_assert_str_eq(hex(digest),
                     "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(pieces_are_hashed_as_one)
{
    weft_blob pieces[] = {{"what do ya ", 11}, {"", 0}, {"want for nothing?", 17}};
    uint8_t digest[WF_SHA256_BYTES];

    wf_hmac_sha256_pieces("Jefe", 4, pieces, WF_COUNT(pieces), digest);
    ck_assert_str_eq(hex(digest),
                     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(secrets_are_equal_only_in_every_byte)
{
    uint8_t a[32], b[32];

    wf_random_bytes(a, sizeof a);
    memcpy(b, a, sizeof a);
    ck_assert(wf_secret_equal(a, b, sizeof a));
    for (size_t i = 0; i < sizeof a; i++) {
        b[i] ^= 0x10;
        ck_assert(!wf_secret_equal(a, b, sizeof a));
        b[i] ^= 0x10;
    }
}

TEST(random_bytes_fill_any_length)
{
    uint8_t large[1000] = {0}, other[1000] = {0};
    size_t zeros = 0;

    wf_random_bytes(large, sizeof large);
    wf_random_bytes(other, sizeof other);
    for (size_t i = 0; i < sizeof large; i++)
        zeros += large[i] == 0;
    ck_assert_uint_lt(zeros, 40);
    ck_assert(memcmp(large, other, sizeof large) != 0);
}
