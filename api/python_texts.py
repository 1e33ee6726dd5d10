"""Docstrings of Python for what C says in one comment of several functions or fields, or in words that only C has."""

TEXTS = {
    "weft_cp_plan_info.work_largest": "Pairs of a query and a key that the rank with most of them sees, by its coordinate on the axis."
    " Elements of custom blocks count as seen. With \"heads\", ranks share the heads: it is `work_total` divided by the ranks, rounded up.",
    "weft_cp_plan_info.work_total": "Pairs of a query and a key that all ranks see together. Elements of custom blocks count as seen.",
    "weft_experts_info.first": "The first expert of this rank.",
    "weft_experts_info.here": "How many experts this rank has.",
    "weft_fsdp_group_info.bytes_gathered": "Bytes of gathered parameters that the group has allocated; memory of the caller is not counted."
    " If ranks are simulated, they are the bytes of all ranks.",
    "weft_fsdp_group_info.bytes_gradients": "Bytes of reduced gradients that the group has allocated.",
    "weft_fsdp_group_info.bytes_kept": "Bytes of the parts of gathered parameters that were kept, which the group has allocated.",
    "weft_fsdp_group_info.bytes_peak": "The largest sum that `bytes_gathered`, `bytes_kept`, `bytes_gradients` and `bytes_sums` had, also during calls.",
    "weft_fsdp_group_info.bytes_sums": "Bytes of gradients that wait for a later reduction, which the group has allocated.",
    "weft_checkpoint_info.tensors": "The number of tensors. They are numbered from 0, in ascending order of their names.",
    "weft_reshard_info.tensors": "The number of tensors.",
    "weft_overlap_info.concurrent": "Whether rows can travel while a rank computes: on a device, and on processors if the host has two of them"
    " for every rank. Otherwise a call with chunks=0 moves and computes one after the other.",
    "weft_op_backward_inputs": "The number of inputs of the forward call.",
    "weft_op_backward_outputs": "The number of outputs of the forward call.",
    "weft_op_cache_clear": "Forget the choices that weft keeps of calls of weft.ops.check and weft.ops.propose. It keeps those of about 4096 calls."
    " A call with fixed or wanted layouts is not kept. Kept choices hold references to layouts, plans and meshes.",
    "weft_op_digest": "A digest of all rules that apply now. Two ranks have the same one if they have the same rules, in whatever order"
    " these were registered. 0 if memory ran out.",
    "weft_spec_order_to_strides": "The layout with strides, SS, in place of orders of splits. Some systems express the order of splits by strides:"
    " SS(d,f) on an axis means that later axes, whose sizes multiply to f, have split dimension d before this axis. S(0)[1],S(0)[0] on a"
    " 2x4 mesh becomes SS(0,4),S(0). Every element is on the same ranks as before. WEFT_ERR_UNSUPPORTED: no such layout exists, because of"
    " uneven sizes; the text names the axis or the rank.",
    "weft_spec_strides_to_order": "The layout with orders of splits in place of strides, SS. The reverse of weft_spec_order_to_strides: SS(0,4),S(0) on"
    " a 2x4 mesh becomes S(0)[1],S(0)[0]. Every element is on the same ranks as before. WEFT_ERR_UNSUPPORTED: no such layout exists, because"
    " the strides do not express an order or because of uneven sizes; the text names the axis or the rank.",
    "weft_spec_parse_placements": "Create the layout of a tensor with this dtype and shape on a mesh, with PLACEMENTS as text, such as \"S(0),R\"."
    " WEFT_ERR_PARSE: PLACEMENTS are malformed. WEFT_ERR_INVALID: no such layout can exist on MESH.",
    "weft_experts_route": "Exchange the counts of tokens with the other ranks. This rank has COUNTS[i] tokens for expert i, for the experts of all"
    " ranks; its tokens are ordered by expert. Collective over the ranks along the axis: one all-to-all on STREAM. The call returns when the"
    " counts are exchanged. WEFT_ERR_INVALID: a rank has a negative count, another number of counts, a negative capacity, or more than"
    " WEFT_EXPERTS_MAX_TOKENS tokens. WEFT_ERR_NO_MEMORY: a rank has no memory. Both are the same error on all ranks, which names the rank, and"
    " the experts stay usable.",
    "weft_fsdp_gradient_create": "Create a tensor in the layout of the gradient of gathered parameter INDEX (weft_fsdp_gradient_spec). It is filled"
    " with zeros in the order of the compute stream.",
    "weft_fsdp_unshard_end": "Make the compute stream wait for the gathered parameters, then begin to gather the groups that"
    " weft_fsdp_prefetch_set lists for the phase, unless they are gathered. If the gather has failed by now, the call raises its error, and"
    " the group is sharded again. If it fails later, the call that ends the use of the parameters raises the error: weft_fsdp_reshard, or"
    " weft_fsdp_reduce_begin without `keep`. The group is then sharded; after a reshard that keeps a part it stays gathered until the next reshard.",
    "weft_context_next": "Make the next generation of an elastic job from the ranks that are left. Collective over these: each calls it, after"
    " a communicator has failed with WEFT_ERR_PEER, WEFT_ERR_TIMEOUT or WEFT_ERR_ABORTED, or at a point of its own choice. When a rank calls it,"
    " the communicators of the others fail with WEFT_ERR_ABORTED. A rank that does not call it within the time limit of its communicators, while"
    " others wait, is expelled. The context becomes that of the next generation, with the same device and memory, where this rank may have"
    " another number. Streams, works and tensors keep their memory: weft_tensor_to_host reads a tensor of before, and other calls with it"
    " are refused. Communicators, moves, symmetric memory and training systems of before refuse every call with a text that names their"
    " generation. On success no lost process can write memory of this rank any more: on this host it is dead. A process that still runs is"
    " killed first, unless WEFT_SILENT is 0. `step` is a number that this rank has completed; the result has the largest one of all ranks."
    " After a failure only this function and weft_context_release may be called; tensors can be read as above. WEFT_ERR_INVALID: the job is not"
    " elastic (WEFT_ELASTIC). WEFT_ERR_PEER: this rank was expelled, fewer ranks than WEFT_ELASTIC are left, or the rendezvous has ended."
    " WEFT_ERR_TIMEOUT: the process of a lost rank lives, and may not be killed (the text names it); or the rendezvous does not answer.",
    "weft_context_grow": "Take newcomers into an elastic job: processes that its launcher has started later (`weft run --spares`,"
    " `--respawn`). Collective over all ranks, at a point that the program chooses, where no work of a communicator is unfinished. If"
    " processes wait for a place and ranks are missing, the next generation begins with them, as by weft_context_next, and they take the"
    " numbers of lost ranks. Otherwise nothing changes, also if the newcomers fail before all have agreed. In a newcomer, weft.init()"
    " returns with the context of that generation. A loss of ranks takes newcomers in, too. `step` and the errors are those of"
    " weft_context_next; after WEFT_ERR_TIMEOUT the generation goes on.",
    "weft_overlap_gather": "Gather the rows of INPUT from all ranks along the axis, and call CONSUME for them: first for those of this rank, then"
    " for those of the other ranks as they arrive, in chunks. Each row is in exactly one call. Several matmuls of the same input share one"
    " gather: CONSUME computes them all. With chunks=-1, CONSUME is called once, after the gather. The rows that it reads are not kept."
    " Collective. An exception of CONSUME fails the call, and the communicator on all ranks: the other ranks get WEFT_ERR_ABORTED, or"
    " WEFT_ERR_MISMATCH if that is the exception. The call waits for STREAM before it begins, passes it to CONSUME, and returns when the work"
    " is complete. WEFT_ERR_INVALID: the ranks along the axis do not share the rows as S(0) does, this rank's shard has gaps, a keyword is"
    " outside its range, or the call needs more bytes than were prepared. WEFT_ERR_MISMATCH: ranks make different calls; the communicator"
    " then has failed on all ranks. If one rank gathers and another reduces, and the backend has no symmetric memory, it is WEFT_ERR_TIMEOUT"
    " instead, or the data is undefined.",
    "weft_overlap_reduce_scatter": "Call PRODUCE for all rows, each in exactly one call: first for those of the other ranks, in chunks, which are"
    " sent while PRODUCE computes the next ones, then for those of this rank. Set this rank's rows of OUTPUT to the sum of what all ranks have"
    " produced for them, added up in the order of the ranks. On gloo-cpu within a host, and on nvshmem with weft's collectives, these are the"
    " bits of weft_reduce_scatter_v. With chunks=-1, PRODUCE is called once, before a weft_reduce_scatter_v. Otherwise as weft_overlap_gather.",
    "weft_record_counts_operations": "The number of operations of a kind, such as \"all-reduce\". 0 until the counting has ended.",
    "weft_record_counts_steps": "The number of steps of plans of a kind, such as \"all-gather\". 0 until the counting has ended.",
    "weft_spec_parse_shards": "Create the layout whose shards have these local shapes. SHARDS has DIMS sizes for each rank of MESH, in row-major order"
    " of the mesh. PLACEMENTS is a text, such as \"S(0),R\": an S becomes a G if the local sizes are not its chunks. WEFT_ERR_MISMATCH: two"
    " shards contradict each other; the text names the ranks. WEFT_ERR_INVALID: SHARDS has another number of entries, or an outer axis leaves"
    " unequal sizes and an inner one needs a G.",
    "weft_spec_counts": "For collectives with a count for each rank (weft_all_gather_v): the number of elements that each of RANKS holds, and the"
    " sum of the counts before it. A rank outside the mesh counts 0. The gathered elements are row-major only if the layout splits dimension 0"
    " alone, by S or G in the order of RANKS. RANKS may be NULL: 0, 1, 2 and so on, as many as the mesh has. Returns (`counts`, `offsets`).",
    "weft_dtype_bytes": "Bytes of an element of a dtype, such as \"f32\". ValueError: there is no such dtype.",
    "weft_tensor_use": "Note that work that uses this tensor has been posted to STREAM, such as a kernel of the program. When the tensor is deleted, its"
    " memory is freed in the order of STREAM. If work of several streams uses it, the last call names a stream that waits for the others."
    " WEFT_ERR_INVALID: STREAM is of another context.",
    "weft_tensor_to_host": "Copy this rank's shard to HOST, an array in host memory of its dtype and shape, or the bytes of one, and wait for"
    " it. If ranks are simulated, the array has the shards of all ranks, one after the other, in one dimension. Where NumPy has no such dtype,"
    " unsigned integers of its size stand for it. ValueError: HOST has another dtype or shape. WEFT_ERR_NO_MEMORY: the shard has gaps, and there is"
    " no memory for the copy without gaps that the first such call allocates.",
    "weft_tensor_from_host": "Set this rank's shard from HOST, an array in host memory of its dtype and shape, or the bytes of one, and wait for it."
    " Otherwise as weft_tensor_to_host.",
    "weft_stream_native": "The address of the vendor's stream; None: the backend has none.",
    "weft_symm_local": "The address of this rank's memory, which is valid until the object is closed or deleted.",
    "weft_work_native": "The address of the vendor's event; None: the backend has none. It is valid until the object is closed or deleted, because"
    " weft reuses it for other work. The event of a work that was made of one stays the caller's.",
    "weft_work_test": "Whether the recorded work is complete. An error of the work is permanent: every later test and wait raises it.",
    "weft_comm_has_messages": "Whether the backend has messages: weft_send and weft_receive. Simulated ranks have none.",
    "weft_bound_scratch": "Bytes of scratch that a run uses on this rank. The moves of a context share it: each stream has one piece, as large"
    " as the largest move that has run on it needs. It is at most weft.Plan.peak_bytes, plus buffers for arrays with strides. It can be larger"
    " if ranks cannot read each other's memory, if the backend does not have a collective, or if weft reduces or casts in place of the"
    " backend; weft then also allocates as many bytes of host memory. With very many ranks, weft.Plan.peak_bytes is an estimate"
    " (docs/planner.md).",
    "weft_tensors_move_into": "Move tensors, at least one, each to the target with its index. Collective. The two have one shape, and all tensors one"
    " context. Several tensors travel as one batch. After the first move between the same layouts nothing is allocated. A target may"
    " overlap the tensor that is moved to it in any way, and must not overlap any other tensor of the call. A tensor is copied on the way if"
    " it has gaps between its elements, or if it overlaps its target and begins at another address. The first such move allocates memory"
    " for the copy. If a rank has none, it gets WEFT_ERR_NO_MEMORY, and the world communicator fails on all ranks.",
}
