"""Come together with the other processes of a run, or say who is missing."""

from __future__ import annotations

from datetime import timedelta

import torch.distributed as dist


class MissingRanks(RuntimeError):
    """Some ranks did not come in time."""

    def __init__(self, missing: list[int], ranks: int, seconds: float):
        names = ", ".join(map(str, missing))
        super().__init__(f"of {ranks} ranks these did not come within {seconds:g} s: {names}")
        self.missing = missing


def join(join_seconds: float, answer_seconds: float) -> tuple[int, int]:
    """Wait for all ranks that torchrun started, and make the group; our rank, and how many there are.

    Args:
        join_seconds: how long to wait for the others.
        answer_seconds: how long an exchange may wait for another rank later on.

    Raises:
        MissingRanks: with the ranks that did not come.
    """
    wait = timedelta(seconds=join_seconds)
    store, rank, ranks = next(dist.rendezvous("env://", timeout=wait))
    keys = [f"here/{other}" for other in range(ranks)]
    store.set(keys[rank], "yes")
    try:
        store.wait(keys, wait)
    except dist.DistStoreError:
        missing = [other for other, key in enumerate(keys) if not store.check([key])]
        raise MissingRanks(missing, ranks, join_seconds) from None
    group = dist.PrefixStore("group", store)
    timeout = timedelta(seconds=answer_seconds)
    dist.init_process_group("gloo", store=group, rank=rank, world_size=ranks, timeout=timeout)
    return rank, ranks
