#include "support/fake_world.h"
#include "support/suite.h"

#include <sys/socket.h>
#include <unistd.h>

/* An exchange among threads, as a user would provide it. */
struct board {
    pthread_barrier_t barrier;
    char cards[8][4096];
    int32_t size;
    bool broken;
};

struct seat {
    struct board *board;
    int32_t rank;
    const char *rendezvous, *token;
    struct seen seen;
    int32_t got_rank, got_size, got_local;
    pthread_t thread;
};

static weft_status user_all_gather(void *self, const void *mine, void *all, uint64_t bytes)
{
    struct seat *seat = self;

    if (seat->board->broken) return WEFT_ERR_SYSTEM;
    memcpy(seat->board->cards[seat->rank], mine, (size_t)bytes);
    pthread_barrier_wait(&seat->board->barrier);
    for (int32_t i = 0; i < seat->board->size; i++)
        memcpy((char *)all + (size_t)i * bytes, seat->board->cards[i], (size_t)bytes);
    pthread_barrier_wait(&seat->board->barrier);
    return WEFT_OK;
}

static void *join_by_exchange(void *argument)
{
    struct seat *seat = argument;
    weft_exchange exchange = {seat, user_all_gather};
    weft_init_options options = {.struct_size = sizeof options,
                                 .rank = seat->rank,
                                 .size = seat->board->size,
                                 .exchange = seat->rendezvous == NULL ? &exchange : NULL,
                                 .rendezvous = seat->rendezvous,
                                 .token = seat->token,
                                 .join_timeout_ns = 5 * WF_SECOND_NS};
    OWNED(weft_context) *context = NULL;

    note_seen(&seat->seen, wf_context_create(&options, fake_plugin(), &context));
    if (seat->seen.status != WEFT_OK) return NULL;
    seat->got_rank = weft_rank(context);
    seat->got_size = weft_size(context);
    seat->got_local = weft_local_rank(context);
    note_seen(&seat->seen, weft_barrier(weft_world(context), NULL));
    return NULL;
}

static struct seat seats[8];
static struct board board;

static void join_all(int32_t size, const char *rendezvous, const char *token)
{
    board.size = size;
    pthread_barrier_init(&board.barrier, NULL, (unsigned)size);
    for (int32_t rank = 0; rank < size; rank++) {
        seats[rank] =
            (struct seat){.board = &board, .rank = rank, .rendezvous = rendezvous, .token = token};
        ck_assert_int_eq(pthread_create(&seats[rank].thread, NULL, join_by_exchange, &seats[rank]),
                         0);
    }
    for (int32_t rank = 0; rank < size; rank++)
        pthread_join(seats[rank].thread, NULL);
    pthread_barrier_destroy(&board.barrier);
}

static void all_joined(int32_t size)
{
    for (int32_t rank = 0; rank < size; rank++) {
        ck_assert_msg(seats[rank].seen.status == WEFT_OK, "rank %d: %s", rank,
                      seats[rank].seen.text);
        ck_assert_int_eq(seats[rank].got_rank, rank);
        ck_assert_int_eq(seats[rank].got_size, size);
        ck_assert_int_eq(seats[rank].got_local, rank);
    }
}

TEST(a_users_exchange_brings_ranks_together)
{
    fake_reset();
    join_all(4, NULL, NULL);
    all_joined(4);
}

TEST(an_address_and_a_token_bring_ranks_together)
{
    static const char *const addresses[] = {"unix:weft-test-place", "127.0.0.1:PORT"};

    fake_reset();
    for (size_t i = 0; i < WF_COUNT(addresses); i++) {
        struct wf_address probe = {.host = "127.0.0.1"};
        int fds[WF_MAX_LISTENERS];
        size_t count;
        char text[64];

        ck_assert_int_eq(wf_address_listen(&probe, fds, &count), WEFT_OK);
        snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)probe.port);
        close(fds[0]);
        join_all(3, i == 0 ? addresses[0] : text, "a token of the test");
        all_joined(3);
    }
}

TEST(an_exchange_that_fails_is_said)
{
    fake_reset();
    board.broken = true;
    join_all(1, NULL, NULL);
    all_joined(1); /* a single rank exchanges nothing */
    join_all(2, NULL, NULL);
    board.broken = false;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(seats[i].seen.status, WEFT_ERR_SYSTEM);
        ck_assert_ptr_nonnull(strstr(seats[i].seen.text, "weft_init_options.exchange returned"));
    }
}

TEST(a_rendezvous_that_cannot_be_served_is_said_on_all)
{
    fake_reset();
    setenv("WEFT_LISTEN", "203.0.113.7", 1); /* an address that no host here has */
    join_all(2, NULL, NULL);
    unsetenv("WEFT_LISTEN");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(seats[i].seen.status, WEFT_ERR_SYSTEM);
        ck_assert_ptr_nonnull(
            strstr(seats[i].seen.text, "rank 0: the rendezvous cannot listen on 203.0.113.7"));
        ck_assert_ptr_nonnull(strstr(seats[i].seen.text, "; set WEFT_LISTEN to another address"));
    }
}

TEST(a_taken_name_is_reported_with_its_owner_and_the_setting)
{
    struct wf_address taken = {.is_unix = true};
    int fds[WF_MAX_LISTENERS];
    char text[WF_ADDRESS_TEXT], owner[64];
    size_t count;

    fake_reset();
    snprintf(taken.host, sizeof taken.host, "weft-test-place-%d", (int)getpid());
    wf_address_print(&taken, text);
    ck_assert_int_eq(wf_address_listen(&taken, fds, &count), WEFT_OK);
    setenv("WEFT_RENDEZVOUS", text, 1);
    join_all(2, NULL, NULL); /* through an exchange, rank 1 gets rank 0's failure */
    unsetenv("WEFT_RENDEZVOUS");
    close(fds[0]);
    snprintf(owner, sizeof owner, ": process %d of ", (int)getpid());
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(seats[i].seen.status, WEFT_ERR_SYSTEM);
        ck_assert_ptr_nonnull(strstr(seats[i].seen.text, owner));
        ck_assert_ptr_nonnull(
            strstr(seats[i].seen.text, "; set WEFT_RENDEZVOUS to another address on all ranks"));
    }
}

/* As in a rank of `weft run`, whose program gives its ranks and how they find each other itself. */
TEST(a_launcher_that_serves_its_own_job_does_not_disturb_another)
{
    struct wf_address taken = {.is_unix = true};
    int fds[WF_MAX_LISTENERS];
    char text[WF_ADDRESS_TEXT];
    size_t count;

    fake_reset();
    snprintf(taken.host, sizeof taken.host, "weft-test-launcher-%d", (int)getpid());
    wf_address_print(&taken, text);
    ck_assert_int_eq(wf_address_listen(&taken, fds, &count), WEFT_OK);
    setenv("WEFT_RENDEZVOUS", text, 1);
    setenv("WEFT_SERVED", "1", 1);
    join_all(2, NULL, NULL);
    all_joined(2);
    join_all(2, "unix:weft-test-inner", NULL);
    all_joined(2);
    unsetenv("WEFT_SERVED");
    unsetenv("WEFT_RENDEZVOUS");
    close(fds[0]);
}

static void refuse_rank(const weft_init_options *options, weft_status status, const char *part)
{
    weft_context *context;

    ck_assert_int_eq(wf_context_create(options, fake_plugin(), &context), status);
    ck_assert_msg(strstr(weft_last_error(), part) != NULL, "no \"%s\" in: %s", part,
                  weft_last_error());
}

TEST(an_address_that_is_taken_or_unserved_is_told_with_what_to_check)
{
    struct wf_address taken = {.is_unix = true};
    int fds[WF_MAX_LISTENERS];
    char text[WF_ADDRESS_TEXT];
    weft_init_options options = {.struct_size = sizeof options,
                                 .size = 2,
                                 .rendezvous = text,
                                 .join_timeout_ns = WF_SECOND_NS / 5};
    size_t count;

    fake_reset();
    snprintf(taken.host, sizeof taken.host, "weft-test-taken-%d", (int)getpid());
    wf_address_print(&taken, text);
    ck_assert_int_eq(wf_address_listen(&taken, fds, &count), WEFT_OK);
    refuse_rank(
        &options, WEFT_ERR_SYSTEM,
        "listens there; if two processes have weft_init_options.rank 0, give each its own rank; "
        "otherwise set weft_init_options.rendezvous to another address on all ranks");
    close(fds[0]);
    options.rank = 1;
    refuse_rank(&options, WEFT_ERR_TIMEOUT,
                ", which rank 0 serves: the rendezvous cannot be reached: Connection refused; is "
                "rank 0 running on this host, with the same weft_init_options.rendezvous?");
    options.rendezvous = "nowhere";
    refuse_rank(&options, WEFT_ERR_PARSE, "weft_init_options.rendezvous is \"nowhere\"");
}

TEST(a_network_address_without_a_token_is_refused)
{
    fake_reset();
    join_all(2, "127.0.0.1:1", NULL);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(seats[i].seen.status, WEFT_ERR_INVALID);
        ck_assert_ptr_nonnull(strstr(seats[i].seen.text, "set weft_init_options.token or "));
    }
}

TEST(options_at_odds_are_refused)
{
    weft_exchange exchange = {NULL, user_all_gather};
    weft_init_options options = {
        .struct_size = sizeof options, .rank = 2, .size = 2, .exchange = &exchange};
    weft_context *context;

    fake_reset();
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    ck_assert_str_eq(
        weft_last_error(),
        "weft_init: weft_init_options.rank is 2 and size is 2; rank must be from 0 to size - 1");
    options.rank = 1;
    options.rendezvous = "unix:x";
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "set at most one of"));
    options = (weft_init_options){.struct_size = sizeof options, .rank = 1, .size = 2};
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(),
                                 "weft_init_options.rank is 1 and .size is 2, but "
                                 ".rendezvous is not set"));
    options = (weft_init_options){.struct_size = sizeof options, .rank = 1};
    ck_assert_int_eq(wf_context_create(&options, fake_plugin(), &context), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_init: weft_init_options.rank is 1, but .size is not set; set both, or "
                     "neither: then they come from the launcher");
}
