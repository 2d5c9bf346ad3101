# SPDX-License-Identifier: MIT
"""Interleaved timing: every round runs each contestant once, in a random order; each sample starts with a
flushed L2 and behind a kernel that hides the launch. Ratios are formed within a round."""
import random
import statistics
import time

FLUSH_BYTES = 256 << 20  # several times the largest L2


class Budget:
    """How long a comparison may still take."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.begin = time.monotonic()

    def left(self):
        return self.end - time.monotonic()

    def spent(self):
        return time.monotonic() - self.begin


def quartiles(values):
    """[lower quartile, median, upper quartile], interpolated."""
    values = list(values)
    return statistics.quantiles(values, method="inclusive") if len(values) > 1 else 3 * values


def spread(values):
    low, median, high = quartiles(values)
    return {"median": median, "q1": low, "q3": high, "n": len(values)}


def ratio_of(ours, theirs):
    """How many times as fast `theirs` is, by the ratios within each round."""
    low, median, high = quartiles([a / b for a, b in zip(ours, theirs)])
    return {"ratio": median, "low": low, "high": high}


def enqueue_seconds(call):
    """How long the host needs to launch `call`, once it is warm."""
    import torch
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    seconds = time.perf_counter() - start
    torch.cuda.synchronize()
    return seconds


def order(names, turn):
    """The order of round `turn`: random, and the same in every run. An order that only rotates gives each
    contestant the same predecessor in nearly every round. At its power limit a GPU is slower after a kernel that
    needs much power than after one that needs little."""
    return random.Random(turn).sample(list(names), len(names))


def time_all(contestants, rounds, flush, warm_up=2):
    """Milliseconds per contestant (name -> callable): one figure per round."""
    import torch
    times = {name: [] for name in contestants}
    names = list(contestants)
    longest = 0.0
    for name in names:
        for _ in range(warm_up):
            contestants[name]()
        longest = max(longest, enqueue_seconds(contestants[name]))
    # The device spins while the host enqueues the flush, the events and the launch. 2e9: no clock is faster.
    spin = int(2e9 * (1.5 * longest + 100e-6))
    for turn in range(rounds):
        events = []
        for name in order(names, turn):
            torch.cuda._sleep(spin)
            # Read, not written: the write-back of dirty lines would delay the next kernel.
            flush.sum()
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            contestants[name]()
            stop.record()
            events.append((name, start, stop))
        torch.cuda.synchronize()
        for name, start, stop in events:
            times[name].append(start.elapsed_time(stop))
    return times


def fastest(configs, make_call, flush, budget, samples=5):
    """(config, call) of the fastest that compiles and fits, or (None, reason).

    Without a flush buffer (no GPU) the first that runs is taken."""
    best, reason = None, "no configuration"
    for config in configs:
        if best and budget.left() <= 0:
            break
        call = make_call(config)
        try:
            call()
            if flush is None:
                return config, call
            median = quartiles(time_all({"": call}, samples, flush, 1)[""])[1]
        except Exception as error:  # Triton has many: too much shared memory, a compiler that gives up
            reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]
            continue
        if best is None or median < best[0]:
            best = (median, config, call)
    return (best[1], best[2]) if best else (None, reason)
