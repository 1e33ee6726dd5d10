"""Time limits of torch.distributed: the shortest one that is set holds, if a rank does not come."""

import pytest

torch = pytest.importorskip("torch")

from test_torch import torchrun_text  # noqa: E402, F401

PROGRAM = """
    import datetime, os, torch, torch.distributed as dist, weft
    from torch._C._distributed_c10d import AllgatherOptions, AllreduceOptions, BarrierOptions, ReduceScatterOptions
    import weft.torch as wt

    SHORT, LONG = datetime.timedelta(seconds=1), datetime.timedelta(hours=1)
    rank, cases = int(os.environ["RANK"]), 0
    agent = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=LONG)

    def late(call, *texts):
        "Rank 1 makes no call before rank 0 has its error."
        global cases
        cases += 1
        if rank == 1:
            agent.get(f"over/{cases}")
            return
        try: call()
        except TimeoutError as error: assert all(text in str(error) for text in texts), error
        else: raise AssertionError("no error")
        agent.set(f"over/{cases}", "yes")

    def options(kind, timeout, **values):
        made = kind()
        made.timeout = timeout
        for name, value in values.items():
            if hasattr(made, name): setattr(made, name, value)
        return made

    x = torch.ones(4)
"""


@pytest.mark.parametrize("variables", [{"LIMIT": "4"}, {"LIMIT": "3600", "WEFT_TIMEOUT": "4"}])
def test_the_limit_of_the_first_group_and_of_the_environment(torchrun_text, variables):  # noqa: F811
    torchrun_text(2, PROGRAM + """
    agent.set(f"here/{rank}", "yes")  # the limit holds for the start of the group, too: both ranks begin together
    agent.wait(["here/0", "here/1"])
    dist.init_process_group("weft", timeout=datetime.timedelta(seconds=float(os.environ["LIMIT"])))
    late(lambda: dist.all_reduce(x), "all_reduce")
    os._exit(0)  # the group has failed
    """, **variables)


def test_the_limits_of_groups_and_calls(torchrun_text):  # noqa: F811
    torchrun_text(2, PROGRAM + """
    dist.init_process_group("weft", timeout=LONG)
    make = lambda timeout=LONG: dist.new_group([0, 1], timeout=timeout)

    group = make(SHORT)
    late(lambda: dist.all_reduce(x, group=group), "all_reduce")

    def shorten(group):
        "PyTorch 2.11 passes the limit to its own backends alone."
        if hasattr(dist, "set_timeout"): dist.distributed_c10d._set_pg_timeout(SHORT, group)
        else: group.set_timeout(SHORT)

    for call in (lambda group: dist.all_reduce(x, group=group), lambda group: dist.barrier(group=group),
                 lambda group: dist.recv(x, 1, group=group),
                 lambda group: dist.all_reduce(x, group=group, async_op=True).wait()):
        group = make()
        shorten(group)
        late(lambda: call(group))

    def coalesced(group):
        with dist._coalescing_manager(group):
            dist.all_reduce(x, group=group)
            dist.all_reduce(torch.ones(3), group=group)

    group = make()
    shorten(group)
    late(lambda: coalesced(group))

    for is_later in (False, True):  # whether the caller waits later, as the option asyncOp says
        group = make()
        late(lambda: group.allreduce([x], options(AllreduceOptions, SHORT, asyncOp=is_later)).wait())
        group = make()
        late(lambda: group.allgather([[x, x.clone()]], [x], options(AllgatherOptions, SHORT, asyncOp=is_later)).wait())
        group = make()
        source = [torch.ones(4), torch.ones(4)]
        late(lambda: group.reduce_scatter([x], [source], options(ReduceScatterOptions, SHORT, asyncOp=is_later)).wait())
        group = make()
        late(lambda: group.barrier(options(BarrierOptions, SHORT, asyncOp=is_later)).wait())

    group = make()
    late(lambda: dist.irecv(x, 1, group=group).wait(SHORT))
    group = make()
    late(lambda: dist.all_reduce(x, group=group, async_op=True).wait(SHORT))

    group = make()  # a longer limit changes nothing, and calls that are complete in time have no error
    dist.distributed_c10d._set_pg_timeout(LONG, group)
    for limit in (SHORT, LONG):
        y = torch.ones(3)
        group.allreduce([y], options(AllreduceOptions, LONG)).wait(LONG)
        assert y.tolist() == [2, 2, 2]
    os._exit(0)  # most groups have failed
    """)


def test_a_job_after_another_has_its_own_limit(torchrun_text):  # noqa: F811
    torchrun_text(2, PROGRAM + """
    dist.init_process_group("weft", timeout=LONG)
    dist.all_reduce(x)
    context = wt.context_for("cpu")
    dist.destroy_process_group()
    dist.init_process_group("weft", timeout=SHORT)
    assert wt.context_for("cpu") is context
    late(lambda: dist.all_reduce(x), "all_reduce")
    os._exit(0)
    """)


def test_collectives_that_are_waited_for_later_keep_their_order(torchrun_text):  # noqa: F811
    torchrun_text(2, """
    import time
    import torch, torch.distributed as dist
    import weft.torch

    dist.init_process_group("weft")
    rank, pair = dist.get_rank(), dist.new_group([0, 1])
    # each rank begins with another group, so that a call that waits for the other rank would wait forever
    x, y = torch.ones(1 << 16), torch.ones(2, 3).t()
    first, second = (None, pair) if rank == 0 else (pair, None)
    works = [dist.all_reduce(x if first is None else y, group=first, async_op=True)]
    works.append(dist.all_reduce(x if second is None else y, group=second, async_op=True))
    for work in works:
        work.wait()
    assert (x == 2).all() and (y == 2).all()
    # calls of both kinds on one group
    for step in range(20):
        z, parts = torch.full((3,), float(step)), [torch.empty(3), torch.empty(3)]
        works = [dist.all_reduce(z, async_op=True)]
        dist.all_reduce(x)
        works.append(dist.all_gather(parts, torch.full((3,), float(rank)), async_op=True))
        dist.barrier()
        [work.wait() for work in works]
        assert (z == 2 * step).all() and [part[0].item() for part in parts] == [0, 1]
    assert (x == 2 ** 21).all()
    # inputs of different sizes are compared when all ranks have told theirs, also if one of them comes late
    for late in range(2):
        if rank == late: time.sleep(0.3)
        parts = [torch.empty(1), torch.empty(2)]
        dist.all_gather(parts, torch.full((rank + 1,), float(rank)), async_op=True).wait()
        assert parts[0].tolist() == [0] and parts[1].tolist() == [1, 1]
    dist.all_reduce(torch.ones(1 << 20), async_op=True)  # nobody keeps tensor and work
    dist.barrier()
    dist.destroy_process_group()
    """)


def test_a_job_after_one_that_failed(torchrun_text):  # noqa: F811
    torchrun_text(2, PROGRAM + """
    dist.init_process_group("weft")
    context = wt.context_for("cpu")
    try: dist.all_reduce(torch.ones(4 + rank))
    except weft.MismatchError as error: kept = error  # it keeps objects of the job
    else: raise AssertionError("no error")
    del context
    dist.destroy_process_group()
    dist.init_process_group("weft")
    assert wt.context_for("cpu") is weft.current()
    dist.all_reduce(x)
    assert x.tolist() == [2] * x.numel(), x
    dist.destroy_process_group()
    """)


def test_a_context_of_the_program_that_failed_is_not_replaced(torchrun_text):  # noqa: F811
    torchrun_text(2, PROGRAM + """
    weft.init()
    dist.init_process_group("weft")
    assert wt.context_for("cpu") is weft.current()
    dist.all_reduce(x)
    if rank == 0: weft.Comm(weft.current()).abort()
    dist.destroy_process_group()
    try: dist.init_process_group("weft")
    except RuntimeError as error: assert "the context of weft.init failed before: " in str(error), error
    else: raise AssertionError("it was joined")
    os._exit(0)
    """)
