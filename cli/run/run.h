/* run.h - what the files of `weft run` share.
 *
 *     spawn.c   starts the processes
 *     relay.c   passes on what they print, line by line, each with its rank
 *     watch.c   waits for them, forwards signals, ends them
 *     torch.c   the variables of PyTorch's programs
 *     counts.c  --counts: the counters of the ranks
 *     entry.c   --threads: the ranks as threads of one process */
#ifndef WEFT_CLI_RUN_H
#define WEFT_CLI_RUN_H

#include "common/cli.h"

#include <sys/types.h>

#define SECOND_NS INT64_C(1000000000)

/* One pipe of one process. */
struct run_pipe {
    int from, to; /* `to` is our own standard output or error; `from` is -1 when it has closed */
    struct wf_text line;
};

struct run_process {
    pid_t pid;         /* 0 before it runs; its process group has the same number */
    int32_t number;    /* 0: a rank from the start; else it waits for a place as this number */
    uint64_t begun_ns; /* when it was started */
    uint64_t again_ns; /* when another process is started in its stead; 0: none is */
    bool running;
    bool left;        /* it succeeded, and the processes that it left may still run */
    bool ended_by_us; /* this process sent it a signal before it ended */
    int wait_status;
    uint64_t ended_ns;
    struct run_pipe out, err;
    char last_line[256]; /* the last line on standard error that is not empty */
};

struct run_job {
    const struct cli_command *command;
    int32_t ranks;
    int32_t ranks_min; /* with which an elastic job continues; 0: it is not elastic */
    int32_t spares;    /* processes that wait for the place of a lost rank */
    bool respawns;     /* a process is started for each that is lost */
    bool has_finished; /* a rank has succeeded, so that none is replaced any more */
    int32_t numbers;   /* that were given out, of processes that wait */
    int32_t count;  /* number of processes: one per rank and spare, or one if ranks are threads */
    char **program; /* with its arguments, ended by NULL */
    bool threads, keep_going, prefix;
    int32_t shown;                /* the rank whose output is printed; -1: of all */
    int64_t timeout_ns, grace_ns; /* timeout 0: none */
    const char *stdin_policy;     /* "auto", "none" or a rank */
    bool counts_json;             /* print the counters as JSON */
    char counts_folder[192];      /* where ranks write their counters; "": they do not */

    weft_rendezvous *rendezvous;
    bool listens;         /* the user gave the address of the rendezvous */
    int master_fd;        /* holds the port; -1: none */
    uint16_t master_port; /* for MASTER_PORT */
    int signals;          /* of cli_signals_note */

    struct run_process *processes;
    int32_t running;
    int32_t first;             /* the process that failed first, or -1 */
    uint64_t begun_ns, end_ns; /* end_ns: when TERM was sent, or 0 */
    bool killed;               /* SIGKILL was sent as well */
    bool timed_out, broken_pipe;
    int interrupted; /* the signal that ended the job, or 0 */
};

/* Start process INDEX.  False after printing an error. */
bool run_spawn(struct run_job *job, int32_t index);

/* Before the fork: set variable NAME. */
void run_set_number(const char *name, int32_t value);

/* Hold a port for rank 0 of a program of PyTorch.  False after printing an error. */
bool run_torch_begin(struct run_job *job);
/* Before the fork: set the variables of rank INDEX that PyTorch reads. */
void run_torch_set_variables(const struct run_job *job, int32_t index);
/* Let the port go. */
void run_torch_end(struct run_job *job);

/* Read the available output.  Closes the pipe at its end.  False if the output of this process
 * is closed. */
bool run_relay(struct run_job *job, int32_t index, struct run_pipe *pipe);
/* Write the last line if it has no line end. */
void run_relay_rest(struct run_job *job, int32_t index, struct run_pipe *pipe);

/* Add how PROCESS has ended: "was killed by signal 9 (Killed)". */
void run_print_end(const struct run_process *process, struct wf_text *out);
/* True if PROCESS is, or was, a rank: it has not only waited for a place. */
bool run_has_place(const struct run_job *job, const struct run_process *process);
/* True if the job is elastic and enough ranks have not failed. */
bool run_can_lose(const struct run_job *job);
/* Run until every process has ended. */
void run_watch(struct run_job *job);

/* Make the folder of the counters.  False after printing an error. */
bool run_counts_begin(struct run_job *job);
/* Before the fork: tell the rank where to write its counters, if they are wanted. */
void run_counts_set_variable(const struct run_job *job);
/* Print the counters of the ranks, which have ended, and remove the folder. */
void run_counts_end(struct run_job *job);

/* --threads, in the child: run weft_main of the program on every rank.  Returns the exit code. */
int run_entry(const struct run_job *job);

#endif
