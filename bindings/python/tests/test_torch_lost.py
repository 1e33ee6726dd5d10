"""Jobs of torch.distributed after the loss of a rank, in the same processes."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

PROGRAM = textwrap.dedent("""
    import datetime, os, signal, sys, torch, torch.distributed as dist, weft
    import weft.torch as wt
    from torch import nn

    folder, lost, store, ports = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4].split(",")
    name, first = int(sys.argv[5]), int(sys.argv[6])  # of this process; the job that it begins with

    def init(job, rank, size):
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_PORT=ports[job - 1])
        method = f"file://{folder}/store.{job}" if store == "file" else None
        dist.init_process_group("weft", init_method=method, rank=rank, world_size=size,
                                timeout=datetime.timedelta(seconds=100))

    def train(rank, size):
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
        model(torch.full((1, 3), rank + 1.0)).sum().backward()
        assert torch.allclose(model.module.weight.grad, torch.full((2, 3), (size + 1) / 2)), model.module.weight.grad
        pair = dist.new_group([0, size - 1])
        x = torch.ones(2)
        if rank in (0, size - 1):
            dist.all_reduce(x, group=pair)
            assert x.tolist() == [2, 2]
        dist.barrier()

    if first == 1:
        init(1, name, 3)
        train(name, 3)
        if name == lost:
            os.kill(os.getpid(), signal.SIGKILL)
        kept = []
        try:
            for _ in range(1000000):
                dist.all_reduce(torch.ones(1 << 10))
        except weft.PeerError as error:
            text = str(error)
            kept.append(error)  # its traceback keeps objects of the job
        assert f"rank {lost}" in text, text
        dist.destroy_process_group()
        rest = [other for other in range(3) if other != lost]
        init(2, rest.index(name), 2)
        assert wt.context_for("cpu").size == 2
        train(rest.index(name), 2)
        context = wt.context_for("cpu")
        dist.destroy_process_group()
        init(3, rest.index(name), 2)
        assert wt.context_for("cpu") is context  # nothing has failed
        train(rest.index(name), 2)
        del context
        dist.destroy_process_group()
    if first <= 4:
        init(4, name, 3)
        train(name, 3)
        if name == (lost + 1) % 3:
            os.kill(os.getpid(), signal.SIGKILL)  # between two jobs, and the others make no call that tells them
        dist.destroy_process_group()
    init(5, name, 3)
    train(name, 3)
    dist.destroy_process_group()
""")


@pytest.mark.parametrize(("lost", "store"), [(1, "file"), (0, "tcp")])
def test_ranks_that_are_left_and_ranks_that_start_again_go_on(tmp_path, lost, store):
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.socket()) for _ in range(5)]  # a store for each job
        for one in free:
            one.bind(("127.0.0.1", 0))
        ports = ",".join(str(one.getsockname()[1]) for one in free)
    variables = {**os.environ, "MASTER_ADDR": "127.0.0.1"}

    def start(name, job):
        arguments = map(str, (tmp_path, lost, store, ports, name, job))
        with open(tmp_path / f"output.{name}.{job}", "w") as output:
            return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], env=variables, stdout=output, stderr=output)

    ranks = [start(name, 1) for name in range(3)]
    try:
        for name, job in ((lost, 4), ((lost + 1) % 3, 5)):
            code = ranks[name].wait(300)
            assert code == -signal.SIGKILL, (tmp_path / f"output.{name}.1").read_text()
            ranks[name] = start(name, job)
        codes = [process.wait(300) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    assert codes == [0, 0, 0], "".join(path.read_text() for path in sorted(tmp_path.glob("output.*")))
