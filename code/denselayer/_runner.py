"""Run the jobs of a suite: variants spread over worker processes, their samples interleaved."""

import time
from dataclasses import dataclass, field

from ._machine import Onlooker, machine
from ._samples import FAILED, Case, Samples
from ._timing import orders
from ._workers import Worker, WorkerError, environment

START = 60.0
"""Seconds that a worker has to start."""
LEAST = 5
"""Rounds that are never left out to save time."""


@dataclass(frozen=True)
class Variant:
    """One way to do the work of a job.

    Args:
        name: how tables call it, such as ``"fused"``.
        module, function: where its ``make`` is: ``make(shape, dtype, threads, **options)`` allocates
            everything and returns a closure that does the work once and returns its result. The closure may
            have an attribute ``note``, which is kept.
        library: variants of one library share a process; ``"torch"`` and ``"torch 2"`` do not.
        options: further keyword arguments for ``make``; plain values.
        environ: environment variables of its process.

    >>> Variant("plain", "benchmarks.kernels.numpy_layers", "plain", "numpy").library
    'numpy'
    """

    name: str
    module: str
    function: str
    library: str
    options: dict = field(default_factory=dict)
    environ: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """A piece of work, and the variants that do it; it becomes a Case.

    ``clock`` is ``"wall"``, or ``"cpu"`` for the processor time of all threads of the process: the measure
    for one thread on a machine that others use too. After ``limit`` seconds no new round begins, except that
    there are at least five. ``timeout`` is how long a worker may take for an answer.

    >>> Job("64,784,256", {"batch": 64, "in_features": 784, "out_features": 256}, ()).rounds
    15
    """

    name: str
    shape: dict
    variants: tuple
    dtype: str = "float32"
    threads: int = 1
    operations: int | None = None
    traffic: int | None = None
    rounds: int = 15
    min_seconds: float = 0.02
    clock: str = "wall"
    timeout: float = 120.0
    limit: float | None = None


class Stopped(KeyboardInterrupt):
    """Ctrl-C while jobs were measured; ``samples`` holds the jobs that were finished."""

    def __init__(self, samples):
        super().__init__()
        self.samples = samples


def run(suite, jobs, *, seed=0, progress=lambda text: None):
    """Measure jobs over worker processes: a process for each library, environment and number of threads.

    In each round every variant gives one sample, in an order drawn anew. A variant that raises, dies or hangs
    is left out from then on, with the reason in ``Case.missing``; its samples of earlier rounds are dropped.

    Args:
        suite: its name.
        jobs: the Jobs.
        seed: of the orders.
        progress: called with a line of text now and then.

    Returns:
        A Samples.

    Raises:
        Stopped: after Ctrl-C; a KeyboardInterrupt with the ``samples`` of the jobs that were finished.

    Source:
        T. Hoefler and R. Belli, "Scientific benchmarking of parallel computing systems", SC 2015.

    >>> run("demo", []).cases
    ()
    """
    jobs, cases, pool = list(jobs), [], _Pool()
    try:
        for number, job in enumerate(jobs, 1):
            progress(f"{suite} {number}/{len(jobs)}: {job.name} {job.dtype}, {job.threads} threads")
            cases.append(_measure(job, pool, f"{seed} {suite} {number}", progress))
    except KeyboardInterrupt:
        raise Stopped(_together(suite, pool, cases)) from None
    finally:
        pool.close()
    return _together(suite, pool, cases)


def _together(suite, pool, cases):
    found = pool.machine or machine()
    return Samples(suite, {key: value for key, value in found.items() if key != "threads"}, tuple(cases))


class _Pool:
    """Workers by library, threads and environment; one that fails is replaced when it is next wanted."""

    def __init__(self):
        self.workers = {}
        self.machine = None

    def worker(self, variant, threads):
        key = (variant.library, threads, tuple(sorted(variant.environ.items())))
        if key not in self.workers:
            worker = Worker(variant.library, environment(threads, variant.environ))
            self.workers[key] = worker
            try:
                found = worker.ask("machine", START)
            except WorkerError:
                self.drop(worker)
                raise
            if self.machine is None:
                self.machine = found
        return self.workers[key]

    def drop(self, worker):
        self.workers = {key: each for key, each in self.workers.items() if each is not worker}
        worker.kill()

    def forget(self, threads):
        """Free what the last job held; end the workers with another number of threads."""
        for key, worker in list(self.workers.items()):
            if key[1] != threads:
                del self.workers[key]
                worker.close()
            else:
                try:
                    worker.ask("forget", START)
                    worker.rest()
                except WorkerError:
                    self.drop(worker)

    def close(self):
        for worker in self.workers.values():
            worker.close()
        self.workers = {}


def _measure(job, pool, seed, progress):
    pool.forget(job.threads)
    ready, missing, notes = _prepare(job, pool, progress)
    times = {name: [] for name in ready}
    others, onlooker, own = [], Onlooker(), time.process_time()
    start = time.perf_counter()
    for order in orders(list(ready), job.rounds, seed):
        if job.limit and len(others) >= LEAST and time.perf_counter() - start > job.limit:
            break
        used = 0.0
        for name in order:
            if name not in ready:
                continue
            worker, loops = ready[name]
            try:
                answer = worker.ask("sample", job.timeout, variant=name, loops=loops, clock=job.clock)
            except WorkerError as error:
                _lose(job, name, error, ready, missing, pool, progress)
                continue
            worker.rest()
            times[name].append(max(answer["ns"], 1) / 1e9)
            used += answer["own"]
        before, own = own, time.process_time()
        others.append(onlooker.look(used + own - before))
    kept = {variant.name: times[variant.name] for variant in job.variants if variant.name in ready}
    known = tuple(others) if others and None not in others else None
    same = {key: getattr(job, key) for key in ("name", "shape", "dtype", "threads", "clock")}
    counts = {"operations": job.operations, "traffic": job.traffic}
    return Case(seconds=kept, missing=missing, notes=notes, others=known, **same, **counts)


def _prepare(job, pool, progress):
    """Make all closures; those that cannot be made are missing, with the reason."""
    ready, missing, notes = {}, {}, {}
    for variant in job.variants:
        worker = None
        try:
            worker = pool.worker(variant, job.threads)
            answer = worker.ask(
                "prepare",
                job.timeout,
                variant=variant.name,
                module=variant.module,
                function=variant.function,
                options=variant.options,
                shape=job.shape,
                dtype=job.dtype,
                threads=job.threads,
                min_seconds=job.min_seconds,
            )
            worker.rest()
        except WorkerError as error:
            ready[variant.name] = (worker, 0)
            _lose(job, variant.name, error, ready, missing, pool, progress)
            continue
        ready[variant.name] = (worker, answer["loops"])
        if answer["note"] is not None:
            notes[variant.name] = answer["note"]
    return ready, missing, notes


def _lose(job, name, error, ready, missing, pool, progress):
    """Leave a variant out; with a worker that is gone go all the variants it held."""
    worker = ready[name][0]
    missing[name] = str(error) if error.unsupported else f"{FAILED}{error}"
    progress(f"  {name}: {missing[name]}")
    del ready[name]
    if worker is None or error.alive:
        return
    pool.drop(worker)
    for other in [each for each, (holder, _) in ready.items() if holder is worker]:
        missing[other] = f"{FAILED}its process ended with {name!r} ({error})"
        progress(f"  {other}: {missing[other]}")
        del ready[other]
