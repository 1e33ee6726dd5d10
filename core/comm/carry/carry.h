/* carry.h - collectives that the backend does not have, carried by what it has.
 *
 *     transport.c  finds what COMM's backend has
 *     carry.c    collectives that move elements
 *     reduce.c   collectives that reduce: contributions are moved, and the host reduces them
 *
 * All ranks decide alike: `support` gives every rank the same answer, a plugin has messages and
 * pull on all ranks or on none, and which collective a call is follows from its arguments. */
#ifndef WEFT_COMM_CARRY_CARRY_H
#define WEFT_COMM_CARRY_CARRY_H

#include "comm/comm.h"

/* ---- transport.c ---- */

/* What carries parts of any size between all ranks of a communicator, the best first. */
enum wf_transport {
    WF_TRANSPORT_UNKNOWN, /* not asked yet */
    WF_TRANSPORT_ALL_TO_ALL_V,
    WF_TRANSPORT_MESSAGES,   /* send and receive, in a group */
    WF_TRANSPORT_PULL,       /* with regions of the kernel table */
    WF_TRANSPORT_ALL_GATHER, /* every rank gets all parts */
    WF_TRANSPORT_NONE
};

/* True if COMM's backend itself has COLLECTIVE at LEVEL or better. */
bool wf_backend_has(const weft_comm *comm, uint32_t collective, uint32_t dtype, uint32_t reduction,
                    uint32_t level);
/* True if COMM's backend can pull.  It cannot read memory of other hosts, nor of processes that do
 * not permit it.  A pull takes regions of the backend's kernel table. */
bool wf_backend_pulls(const weft_comm *comm);
/* True if COMM's backend can exchange regions of its kernel table. */
bool wf_backend_exchanges(const weft_comm *comm);
/* True if COMM's backend has send and receive. */
bool wf_backend_has_messages(const weft_comm *comm);
/* What carries parts on COMM: not WF_TRANSPORT_UNKNOWN. */
enum wf_transport wf_transport_of(weft_comm *comm);
/* "all_to_all_v", "messages", ... */
const char *wf_transport_name(enum wf_transport transport);
/* The error of WHAT, which needs a transport, on COMM, which has none. */
weft_status wf_transport_refuse(const weft_comm *comm, const char *what);

/* ---- carry.c ---- */

/* True if weft carries ARGS, which are checked and which the backend has just refused. */
bool wf_carry_is_ours(weft_comm *comm, const weft_collective_args *args);
/* Carry ARGS.  If memory is missing on a rank, COMM fails. */
weft_status wf_carry_collective(weft_comm *comm, const weft_collective_args *args) WF_NODISCARD;
/* Refuse ARGS, which weft carries or reduces, inside a call group. */
weft_status wf_carry_refuse_group(const weft_comm *comm, const weft_collective_args *args);

/* ---- reduce.c ---- */

/* The dtypes, one bit each, that COMM's backend averages. */
uint32_t wf_average_by_backend(const weft_comm *comm);
/* True if weft computes the average of ARGS, which are checked, because the backend does not. */
bool wf_average_is_ours(const weft_comm *comm, const weft_collective_args *args);
/* Reduce the contributions in host memory, and wait for the result.  If memory is missing on a
 * rank, COMM fails. */
weft_status wf_reduce_collective(weft_comm *comm, const weft_collective_args *args) WF_NODISCARD;

#endif
