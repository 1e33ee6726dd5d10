/* hosts_exchange.c - an exchange of regions between hosts.
 *
 * What ranks of this host hold is read where it lies.  Between two ranks of different hosts all
 * elements are one message, which is cut into chunks.  A chunk that is one run of the tensor goes
 * from, or into, its place.  Otherwise it is packed, or unpacked, while it is in the cache and
 * other chunks are under way.  The two ends of a message decide this separately. */
#include "hosts.h"

#include "cpu_pull.h"

#include <string.h>

#define CHUNK_MOST  (UINT64_C(256) << 10)
#define CHUNK_LEAST (UINT64_C(32) << 10)
#define ROUND_BYTES                                                                                \
    (UINT64_C(8) << 20) /* of the chunks of all ranks, as far as they may shrink                   \
                         */
#define AHEAD 3         /* rounds: one chunk of each message */

/* A message to or from another host, and how far it has been visited. */
struct flow {
    int32_t peer;
    bool sends, in_place;
    uint64_t elements;
    const struct cpu_box *box; /* that has the next element */
    uint64_t visited;          /* in place: elements of BOX */
    struct cpu_line_walk at;   /* else: the line of BOX, and how many of its elements */
    int64_t used;
    unsigned char *tensor;
    unsigned char *room; /* AHEAD chunks */
};

struct exchange {
    struct cpu_comm *comm;
    const struct cpu_shm_pull *pull;
    size_t element;
    uint64_t chunk, rounds; /* elements of a chunk, and the chunks of the longest message */
    uint32_t count;
    struct flow *flows;
    struct net_work *works[AHEAD];
};

/* ---- the elements of a message, in their order ---- */

static int64_t offset_in(const struct flow *flow, const struct cpu_box *box)
{
    return flow->sends ? box->source_offset : box->target_offset;
}

static const int64_t *strides_in(const struct flow *flow, const struct cpu_box *box)
{
    return flow->sends ? box->source_stride : box->target_stride;
}

static uint64_t elements_of(const struct cpu_box *box)
{
    uint64_t elements = 1;

    for (int d = 0; d < box->dims; d++)
        elements *= (uint64_t)box->extent[d];
    return elements;
}

/* Elements of BOX that follow one another in the tensor, from the first on. */
static uint64_t run_of(const struct flow *flow, const struct cpu_box *box)
{
    const int64_t *strides = strides_in(flow, box);
    int64_t run = 1;

    for (int d = box->dims; d-- > 0 && strides[d] == run;)
        run *= box->extent[d];
    return (uint64_t)run;
}

/* True if every chunk is one run. */
static bool lies_in_place(const struct flow *flow, uint64_t chunk)
{
    uint64_t left = flow->elements, run = 0, elements;
    int64_t end = 0;

    for (const struct cpu_box *box = flow->box; left > 0; box++, left -= elements) {
        uint64_t of_box = run_of(flow, box);

        elements = elements_of(box);
        if (run == 0 || offset_in(flow, box) != end) {
            if (run % chunk != 0) return false;
            run = 0;
        }
        if (of_box < elements && (run % chunk != 0 || of_box % chunk != 0)) return false;
        run += elements;
        end = offset_in(flow, box) + (int64_t)elements;
        if (of_box < elements) run = 0;
    }
    return true;
}

/* The address of the next chunk of a message in place, which has COUNT elements. */
static unsigned char *find_chunk(struct flow *flow, size_t element, uint64_t count)
{
    const int64_t *strides = strides_in(flow, flow->box);
    uint64_t index = flow->visited;
    int64_t offset = offset_in(flow, flow->box);

    for (int d = flow->box->dims; d-- > 0; index /= (uint64_t)flow->box->extent[d])
        offset += (int64_t)(index % (uint64_t)flow->box->extent[d]) * strides[d];
    flow->visited += count;
    while (flow->visited > 0 && flow->visited >= elements_of(flow->box)) {
        flow->visited -= elements_of(flow->box);
        flow->box++;
    }
    return flow->tensor + offset * (int64_t)element;
}

/* Elements of a tensor at equal distances. */
struct piece {
    int64_t offset, stride, count;
};

/* The next piece, of at most MOST elements. */
static struct piece next_piece(struct flow *flow, uint64_t most)
{
    const struct cpu_line *line = &flow->at.line;
    struct piece piece;

    while (!flow->at.started || flow->used == line->count) {
        flow->used = 0;
        if (cpu_box_next_line(flow->box, &flow->at)) break;
        flow->box++;
        flow->at = (struct cpu_line_walk){0};
    }
    piece.count = line->count - flow->used;
    if ((uint64_t)piece.count > most) piece.count = (int64_t)most;
    piece.stride = flow->sends ? line->source_stride : line->target_stride;
    piece.offset = (flow->sends ? line->source : line->target) + flow->used * piece.stride;
    flow->used += piece.count;
    return piece;
}

/* Pack the next COUNT elements into ROOM, or unpack them. */
static void copy_chunk(struct flow *flow, size_t element, unsigned char *room, uint64_t count)
{
    while (count > 0) {
        struct piece piece = next_piece(flow, count);
        unsigned char *tensor = flow->tensor + piece.offset * (int64_t)element;

        if (flow->sends)
            cpu_copy_strided(element, room, 1, tensor, piece.stride, piece.count);
        else
            cpu_copy_strided(element, tensor, piece.stride, room, 1, piece.count);
        room += (size_t)piece.count * element;
        count -= (uint64_t)piece.count;
    }
}

/* ---- the messages of this rank ---- */

/* The rank at the other end of a box. */
static int32_t peer_of(const struct cpu_shm_pull *pull, const struct cpu_box *box, bool sends)
{
    return sends ? pull->readers[box->target] : pull->sources[box->source];
}

/* Append the messages of one direction to FLOWS, or only count them if that is NULL.  Those of a
 * rank's regions follow one another.  Returns their number. */
static uint32_t find_flows(const struct exchange *it, bool sends, struct flow *flows)
{
    const struct cpu_shm_pull *pull = it->pull;
    const struct cpu_regions *list = sends ? pull->served : pull->regions;
    uint32_t count = 0;
    int32_t last = -1;

    for (uint64_t i = 0; i < list->count; i++) {
        int32_t peer = peer_of(pull, &list->boxes[i], sends);

        if (peer != last && it->comm->places[peer] < 0) {
            if (flows != NULL)
                flows[count] =
                    (struct flow){.peer = peer,
                                  .sends = sends,
                                  .box = &list->as_given[i],
                                  .tensor = sends ? (void *)(uintptr_t)pull->send : pull->recv};
            count++;
        }
        last = peer;
        if (flows != NULL && it->comm->places[peer] < 0)
            flows[count - 1].elements += elements_of(&list->boxes[i]);
    }
    return count;
}

static weft_status make_flows(struct exchange *it)
{
    struct cpu_comm *comm = it->comm;
    uint32_t sends = find_flows(it, true, NULL), receives = find_flows(it, false, NULL);
    size_t chunk = it->chunk * it->element * AHEAD, bytes;
    unsigned char *room;

    if (sends > (uint32_t)comm->size || receives > (uint32_t)comm->size)
        return cpu_shm_fail(&comm->group, WEFT_ERR_INVALID,
                            "exchange: regions of one rank do not follow one another");
    it->count = sends + receives;
    if (it->count == 0) return WEFT_OK;
    bytes = it->count * sizeof *it->flows;
    PLUG_TRY(cpu_hosts_room(comm, bytes + it->count * chunk, &room));
    it->flows = (struct flow *)(void *)room;
    find_flows(it, true, it->flows);
    find_flows(it, false, it->flows + sends);
    for (uint32_t i = 0; i < it->count; i++) {
        struct flow *flow = &it->flows[i];

        flow->in_place = lies_in_place(flow, it->chunk);
        flow->room = room + bytes + i * chunk;
        if (cpu_hosts_rounds(flow->elements, it->chunk) > it->rounds)
            it->rounds = cpu_hosts_rounds(flow->elements, it->chunk);
    }
    return WEFT_OK;
}

/* ---- rounds ---- */

static unsigned char *room_of(const struct exchange *it, const struct flow *flow, uint64_t round)
{
    return flow->room + round % AHEAD * it->chunk * it->element;
}

static weft_status start_round(struct exchange *it, uint64_t round)
{
    struct net_part *sends = it->comm->other_hosts->parts, *receives = sends + it->comm->size;
    uint32_t send_count = 0, receive_count = 0;

    for (uint32_t i = 0; i < it->count; i++) {
        struct flow *flow = &it->flows[i];
        uint64_t count = cpu_hosts_part(flow->elements, it->chunk, round);
        struct net_part part = {.peer = flow->peer, .bytes = count * it->element};

        if (count == 0) continue;
        part.data =
            flow->in_place ? find_chunk(flow, it->element, count) : room_of(it, flow, round);
        if (flow->sends && !flow->in_place) copy_chunk(flow, it->element, part.data, count);
        if (flow->sends)
            sends[send_count++] = part;
        else
            receives[receive_count++] = part;
    }
    return cpu_hosts_start_to_ranks(it->comm, send_count, sends, receive_count, receives,
                                    &it->works[round % AHEAD]);
}

static weft_status finish_round(struct exchange *it, uint64_t round)
{
    struct net_work *work = it->works[round % AHEAD];

    it->works[round % AHEAD] = NULL;
    PLUG_TRY(cpu_hosts_wait(it->comm, work));
    for (uint32_t i = 0; i < it->count; i++) {
        struct flow *flow = &it->flows[i];

        if (!flow->sends && !flow->in_place)
            copy_chunk(flow, it->element, room_of(it, flow, round),
                       cpu_hosts_part(flow->elements, it->chunk, round));
    }
    return WEFT_OK;
}

/* What the ranks of this host hold. */
static weft_status read_near(const struct exchange *it)
{
    struct cpu_comm *comm = it->comm;
    const struct cpu_shm_pull *pull = it->pull;

    if (comm->group.size > 1) return cpu_shm_pull(&comm->group, pull);
    for (uint64_t i = 0; i < pull->regions->count; i++) {
        const struct cpu_box *box = &pull->regions->boxes[i];

        if (pull->sources[box->source] == comm->rank)
            cpu_box_copy(box, it->element, pull->send, pull->recv);
    }
    return WEFT_OK;
}

static weft_status run_rounds(struct exchange *it)
{
    for (uint64_t round = 0; round < AHEAD - 1 && round < it->rounds; round++)
        PLUG_TRY(start_round(it, round));
    PLUG_TRY(read_near(it));
    for (uint64_t round = 0; round < it->rounds; round++) {
        if (round + AHEAD - 1 < it->rounds) PLUG_TRY(start_round(it, round + AHEAD - 1));
        PLUG_TRY(finish_round(it, round));
    }
    return WEFT_OK;
}

static weft_status exchange(struct cpu_comm *comm, const struct cpu_shm_pull *pull)
{
    struct exchange it = {.comm = comm, .pull = pull, .element = pull->regions->element};
    uint64_t bytes = ROUND_BYTES / (uint64_t)comm->size;
    struct net_failure ignored;
    weft_status status;

    if (bytes > CHUNK_MOST) bytes = CHUNK_MOST;
    if (bytes < CHUNK_LEAST) bytes = CHUNK_LEAST;
    it.chunk = bytes / it.element;
    status = make_flows(&it);
    if (status == WEFT_OK) status = run_rounds(&it);
    if (status == WEFT_OK) return status;
    cpu_hosts_disconnect(comm); /* ends the remaining messages */
    for (int i = 0; i < AHEAD; i++)
        (void)comm->other_hosts->carrier->wait(comm->other_hosts->network, it.works[i], &ignored);
    return status;
}

weft_status cpu_hosts_exchange_regions(struct cpu_comm *comm, const struct cpu_shm_pull *pull)
{
    struct cpu_shm_op op = {.identity = pull->identity,
                            .collective = SHM_PULL,
                            .dtype = pull->dtype,
                            .root = -1,
                            .element = pull->regions->element};
    weft_status status = WEFT_OK;

    comm->group.doing = cpu_call_name(SHM_PULL);
    if (comm->group.flags & WEFT_COMM_CHECK) status = cpu_hosts_check(comm, &op);
    comm->other_hosts->call = cpu_shm_call_of(&op, comm->size);
    if (status == WEFT_OK) status = exchange(comm, pull);
    if (status != WEFT_OK) cpu_hosts_disconnect(comm);
    return status;
}
