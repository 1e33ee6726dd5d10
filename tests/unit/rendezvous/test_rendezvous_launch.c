#include "rendezvous/launch.h"
#include "support/suite.h"
#include "weft/status.h"

#include <string.h>

#define ENVIRONMENT(...) ((struct wf_environment){(char *const[]){__VA_ARGS__, NULL}, false})

static struct wf_launch read_ok(struct wf_environment environment)
{
    struct wf_launch launch;
    weft_status status = wf_launch_read(environment, &launch);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
    return launch;
}

/* The error text; the status must be WEFT_ERR_INVALID. */
static const char *read_error(struct wf_environment environment)
{
    struct wf_launch launch = {.size = 77};

    ck_assert_int_eq(wf_launch_read(environment, &launch), WEFT_ERR_INVALID);
    ck_assert_int_eq(launch.size, 77);
    return weft_last_error();
}

#define SAYS(text, part) ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in: %s", part, text)

TEST(without_a_launcher_it_is_a_world_of_one)
{
    struct wf_launch launch = read_ok((struct wf_environment){(char *const[]){NULL}, false});

    ck_assert_str_eq(launch.launcher, "none");
    ck_assert_int_eq(launch.rank, 0);
    ck_assert_int_eq(launch.size, 1);
    ck_assert_int_eq(launch.local_rank, -1);
}

static char *torchrun[] = {"RANK=3",
                           "WORLD_SIZE=8",
                           "LOCAL_RANK=1",
                           "LOCAL_WORLD_SIZE=2",
                           "MASTER_ADDR=node1",
                           "MASTER_PORT=29400",
                           NULL};
static char *openmpi[] = {"OMPI_COMM_WORLD_RANK=1",       "OMPI_COMM_WORLD_SIZE=2",
                          "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                          "OMPI_MCA_ess_base_jobid=149",  NULL};
static char *pmi[] = {"PMI_RANK=0", "PMI_SIZE=4", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=4", NULL};
static char *slurm[] = {"SLURM_PROCID=5",
                        "SLURM_STEP_NUM_TASKS=6",
                        "SLURM_LOCALID=2",
                        "SLURM_STEP_NUM_NODES=2",
                        "SLURM_JOB_ID=77",
                        "SLURM_STEP_ID=0",
                        NULL};

TEST(every_launcher_is_understood)
{
    struct wf_launch t = read_ok((struct wf_environment){torchrun, false});
    struct wf_launch o = read_ok((struct wf_environment){openmpi, false});
    struct wf_launch p = read_ok((struct wf_environment){pmi, false});
    struct wf_launch s = read_ok((struct wf_environment){slurm, false});

    ck_assert_str_eq(t.launcher, "torchrun");
    ck_assert_int_eq(t.rank, 3);
    ck_assert_int_eq(t.size, 8);
    ck_assert_int_eq(t.local_rank, 1);
    ck_assert(!t.one_host);
    ck_assert_str_eq(t.master, "node1");
    ck_assert_uint_eq(t.master_port, 29400);
    ck_assert_str_eq(o.launcher, "openmpi");
    ck_assert_int_eq(o.rank, 1);
    ck_assert_int_eq(o.size, 2);
    ck_assert(o.one_host);
    ck_assert_str_eq(o.job, "openmpi:149");
    ck_assert_str_eq(p.launcher, "pmi");
    ck_assert(p.one_host);
    ck_assert_str_ne(p.job, "");
    ck_assert_str_eq(s.launcher, "slurm");
    ck_assert_int_eq(s.rank, 5);
    ck_assert_int_eq(s.size, 6);
    ck_assert_int_eq(s.local_rank, 2);
    ck_assert(!s.one_host);
    ck_assert_str_eq(s.job, "slurm:77:0");
}

TEST(a_batch_script_of_slurm_is_not_a_rank)
{
    struct wf_launch launch =
        read_ok(ENVIRONMENT("SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=77"));

    ck_assert_str_eq(launch.launcher, "none");
    ck_assert_int_eq(launch.size, 1);
}

TEST(the_inner_launcher_counts)
{
    struct wf_launch launch =
        read_ok(ENVIRONMENT("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "RANK=5", "WORLD_SIZE=8"));

    ck_assert_str_eq(launch.launcher, "torchrun");
    ck_assert_int_eq(launch.rank, 5);
    launch = read_ok(ENVIRONMENT("WEFT_RANK=1", "WEFT_SIZE=3", "RANK=5", "WORLD_SIZE=8"));
    ck_assert_str_eq(launch.launcher, "weft");
    ck_assert_int_eq(launch.rank, 1);
}

/* `weft run` sets both kinds of variables; a torchrun inside replaces one kind. */
TEST(a_torchrun_inside_weft_run_counts)
{
    struct wf_launch launch =
        read_ok(ENVIRONMENT("WEFT_LAUNCHER=weft", "WEFT_SERVED=1", "WEFT_RANK=0", "WEFT_SIZE=1",
                            "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"));

    ck_assert_str_eq(launch.launcher, "weft");
    ck_assert(!launch.is_inside);
    launch = read_ok(ENVIRONMENT("WEFT_LAUNCHER=weft", "WEFT_SERVED=1", "WEFT_RANK=0",
                                 "WEFT_SIZE=1", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                                 "MASTER_PORT=2", "TORCHELASTIC_RUN_ID=a"));
    ck_assert_str_eq(launch.launcher, "torchrun");
    ck_assert_int_eq(launch.rank, 1);
    ck_assert_int_eq(launch.size, 2);
    ck_assert(launch.is_inside);
    launch = read_ok(ENVIRONMENT("WEFT_RANK=0", "WEFT_SIZE=1", "RANK=1", "WORLD_SIZE=2",
                                 "TORCHELASTIC_RUN_ID=a"));
    ck_assert_str_eq(launch.launcher, "weft"); /* which a user may set in a worker of torchrun */
    ck_assert(!launch.is_inside);
}

TEST(the_user_may_say_which_launcher_counts)
{
    struct wf_launch launch =
        read_ok(ENVIRONMENT("WEFT_LAUNCHER=slurm", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=8",
                            "RANK=5", "WORLD_SIZE=8"));

    ck_assert_str_eq(launch.launcher, "slurm");
    ck_assert_int_eq(launch.rank, 1);
    launch = read_ok(ENVIRONMENT("WEFT_LAUNCHER=none", "RANK=5", "WORLD_SIZE=8"));
    ck_assert_int_eq(launch.size, 1);
    SAYS(read_error(ENVIRONMENT("WEFT_LAUNCHER=slurn")), "expected auto, none, weft, torchrun");
    SAYS(read_error(ENVIRONMENT("WEFT_LAUNCHER=pmi")), "PMI_RANK and PMI_SIZE are not set");
}

TEST(half_set_variables_are_named)
{
    SAYS(read_error(ENVIRONMENT("RANK=0")), "RANK is set, but WORLD_SIZE is not");
    SAYS(read_error(ENVIRONMENT("WORLD_SIZE=2", "RANK=")), "WORLD_SIZE is set, but RANK is not");
    SAYS(read_error(ENVIRONMENT("WEFT_SIZE=2")), "WEFT_SIZE is set, but WEFT_RANK is not");
    SAYS(read_error(ENVIRONMENT("OMPI_COMM_WORLD_RANK=0")), "OMPI_COMM_WORLD_SIZE is not");
    SAYS(read_error(ENVIRONMENT("SLURM_STEP_NUM_TASKS=2")), "SLURM_PROCID is not");
}

TEST(values_out_of_range_are_named)
{
    SAYS(read_error(ENVIRONMENT("RANK=2", "WORLD_SIZE=2")), "RANK is 2 and WORLD_SIZE is 2");
    SAYS(read_error(ENVIRONMENT("RANK=-1", "WORLD_SIZE=2")), "RANK is \"-1\"");
    SAYS(read_error(ENVIRONMENT("RANK=0", "WORLD_SIZE=0")), "WORLD_SIZE is \"0\"");
    SAYS(read_error(ENVIRONMENT("RANK=0x1", "WORLD_SIZE=2")), "RANK is \"0x1\"");
    SAYS(read_error(ENVIRONMENT("RANK=0", "WORLD_SIZE=99999999999")), "99999999999");
    SAYS(read_error(ENVIRONMENT("RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=3")),
         "LOCAL_WORLD_SIZE is 3; it must be at most WORLD_SIZE, which is 2");
    SAYS(read_error(ENVIRONMENT("RANK=0", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2", "LOCAL_RANK=2")),
         "LOCAL_RANK is 2");
    SAYS(read_error(
             ENVIRONMENT("RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=[::1]:4242", "MASTER_PORT=29500")),
         "without brackets and port");
    SAYS(read_error(ENVIRONMENT("RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=n", "MASTER_PORT=65535")),
         "MASTER_PORT is 65535");
}

TEST(launchers_at_odds_are_named)
{
    const char *said = read_error(
        ENVIRONMENT("RANK=0", "WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"));

    SAYS(said, "RANK is 0, but OMPI_COMM_WORLD_RANK is 1, both with 2 ranks");
    SAYS(said, "WEFT_LAUNCHER=torchrun");
    (void)read_ok(
        ENVIRONMENT("RANK=1", "WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"));
}

/* ---- where they meet ---- */

static weft_status meet(const struct wf_launch *launch, const char *rendezvous, const char *token,
                        struct wf_address *address)
{
    struct wf_job_key key;

    return wf_launch_rendezvous(launch, rendezvous, "WEFT_RENDEZVOUS", token, address, &key);
}

TEST(ranks_of_one_host_meet_at_a_unix_socket_of_their_job)
{
    struct wf_launch a = read_ok((struct wf_environment){openmpi, false}), b = a;
    struct wf_address one, same, other;

    ck_assert_int_eq(meet(&a, NULL, NULL, &one), WEFT_OK);
    ck_assert(one.is_unix);
    a.rank = 0;
    ck_assert_int_eq(meet(&a, NULL, NULL, &same), WEFT_OK);
    ck_assert_str_eq(one.host, same.host);
    strcpy(b.job, "openmpi:150");
    ck_assert_int_eq(meet(&b, NULL, NULL, &other), WEFT_OK);
    ck_assert_str_ne(one.host, other.host);
}

TEST(ranks_of_several_hosts_need_an_address_and_a_token)
{
    struct wf_launch t = read_ok((struct wf_environment){torchrun, false});
    struct wf_launch s = read_ok((struct wf_environment){slurm, false});
    struct wf_address address;

    ck_assert_int_eq(meet(&t, NULL, "0123456789abcdef", &address), WEFT_OK);
    ck_assert_str_eq(address.host, "node1");
    ck_assert_uint_eq(address.port, 29401);
    ck_assert_int_eq(meet(&t, NULL, NULL, &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(), "WEFT_TOKEN");
    ck_assert_int_eq(meet(&s, NULL, "0123456789abcdef", &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(), "WEFT_RENDEZVOUS");
    ck_assert_int_eq(meet(&s, "node2:7", "0123456789abcdef", &address), WEFT_OK);
    ck_assert_str_eq(address.host, "node2");
    ck_assert_int_eq(meet(&s, "127.0.0.1:7", NULL, &address), WEFT_ERR_INVALID);
    t.master_port = 0;
    ck_assert_int_eq(meet(&t, NULL, "0123456789abcdef", &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(), "MASTER_PORT");
}

TEST(a_missing_variable_of_the_rendezvous_is_named)
{
    struct wf_launch weft = read_ok(ENVIRONMENT("WEFT_RANK=1", "WEFT_SIZE=4"));
    struct wf_launch slurm_ranks = read_ok((struct wf_environment){slurm, false});
    struct wf_address address;

    ck_assert_int_eq(meet(&weft, NULL, NULL, &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(), "WEFT_RANK and WEFT_SIZE are set, but WEFT_RENDEZVOUS is not");
    SAYS(weft_last_error(), "rank 1 cannot find the other ranks");
    SAYS(weft_last_error(), "WEFT_RENDEZVOUS=unix:my-job if all ranks are on one host");
    SAYS(weft_last_error(), "`weft run -n 4 PROGRAM`");
    ck_assert_int_eq(meet(&slurm_ranks, NULL, NULL, &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(), "SLURM_PROCID and SLURM_STEP_NUM_TASKS of slurm are set, but");
    SAYS(weft_last_error(), "WEFT_RENDEZVOUS=HOST-OF-RANK-0:29400 and one WEFT_TOKEN");
    ck_assert_int_eq(meet(&weft, "unix:my-job", NULL, &address), WEFT_OK); /* as it says */
    ck_assert_int_eq(meet(&weft, "node", NULL, &address), WEFT_ERR_PARSE);
    SAYS(weft_last_error(), "WEFT_RENDEZVOUS is \"node\"");
}

TEST(a_program_that_gives_its_rank_is_told_which_option_is_missing)
{
    struct wf_launch own = {.launcher = "options", .rank = 1, .size = 2, .local_rank = -1};
    struct wf_address address;

    ck_assert_int_eq(meet(&own, NULL, NULL, &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(),
         "weft_init: weft_init_options.rank is 1 and .size is 2, but .rendezvous is "
         "not set, so rank 1 cannot find the other ranks");
    ck_assert_int_eq(meet(&own, "node2:7", NULL, &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(), "set weft_init_options.token or WEFT_TOKEN to one secret on all ranks");
}

TEST(settings_are_called_by_the_names_that_the_user_knows)
{
    struct wf_launch own = {.launcher = "options"};
    struct wf_launch weft = read_ok(ENVIRONMENT("WEFT_RANK=1", "WEFT_SIZE=4"));
    struct wf_launch t = read_ok((struct wf_environment){torchrun, false});
    struct wf_launch s = read_ok((struct wf_environment){slurm, false});

    ck_assert_str_eq(wf_launch_rank_setting(&own), "weft_init_options.rank");
    ck_assert_str_eq(wf_launch_address_setting(&own), "weft_init_options.rendezvous");
    ck_assert_str_eq(wf_launch_rank_setting(&weft), "WEFT_RANK");
    ck_assert_str_eq(wf_launch_address_setting(&weft), "WEFT_RENDEZVOUS");
    ck_assert_str_eq(wf_launch_rank_setting(&t), "RANK");
    ck_assert_str_eq(wf_launch_address_setting(&t), "MASTER_PORT");
    ck_assert_str_eq(wf_launch_rank_setting(&s), "SLURM_PROCID");
    ck_assert_ptr_null(wf_launch_address_setting(&s));
}

TEST(a_short_token_is_refused)
{
    struct wf_launch t = read_ok((struct wf_environment){torchrun, false});
    struct wf_launch o = read_ok((struct wf_environment){openmpi, false});
    struct wf_address address;

    ck_assert_int_eq(meet(&t, NULL, "0123456789abcde", &address), WEFT_ERR_INVALID);
    SAYS(weft_last_error(), "WEFT_TOKEN");
    SAYS(weft_last_error(), "has 15 characters; a token must have at least 16");
    SAYS(weft_last_error(), "openssl rand -hex 16");
    ck_assert_int_eq(meet(&o, NULL, "secret", &address), WEFT_ERR_INVALID); /* on one host too */
    ck_assert_int_eq(meet(&o, NULL, "0123456789abcdef", &address), WEFT_OK);
}

TEST(a_loopback_master_means_one_host)
{
    struct wf_launch launch = read_ok(
        ENVIRONMENT("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"));
    struct wf_address address;

    ck_assert(launch.one_host);
    ck_assert_int_eq(meet(&launch, NULL, NULL, &address), WEFT_OK);
    ck_assert(address.is_unix);
}
