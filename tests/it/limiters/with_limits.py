"""limits, which is also what flask-limiter and slowapi count with: its three strategies."""

import asyncio
import sys

import limits.aio
from limits import parse, strategies
from limits.storage import storage_from_string

from limiting import limits as limits_with

port = int(sys.argv[1])
storage = storage_from_string(f"redis://127.0.0.1:{port}/1")
assert storage.check()
rate = parse("3 per 1 second")
for strategy, closed in [
    (strategies.FixedWindowRateLimiter, 1),
    (strategies.MovingWindowRateLimiter, 1),
    (strategies.SlidingWindowCounterRateLimiter, 0),
]:
    limiter = strategy(storage)
    name = strategy.__name__
    limits_with(lambda key: limiter.hit(rate, name, key), 3, closed, aligned=closed == 0)
    limiter.clear(rate, name, "other")
    assert limiter.test(rate, name, "other")
    assert limiter.hit(rate, name, "other", cost=2)
    assert limiter.get_window_stats(rate, name, "other").remaining == 1
    assert not limiter.hit(rate, name, "other", cost=2)
    limiter.clear(rate, name, "other")
    assert limiter.get_window_stats(rate, name, "other").remaining == 3
assert storage.reset() >= 0
assert storage.get("nothing") == 0


async def asynchronous():
    uri = f"async+redis://127.0.0.1:{port}/1"
    waiting = storage_from_string(uri, implementation="redispy")
    limiter = limits.aio.strategies.MovingWindowRateLimiter(waiting)
    asked = [limiter.hit(rate, "asynchronous") for _ in range(8)]
    assert sorted(await asyncio.gather(*asked)) == [False] * 5 + [True] * 3


asyncio.run(asynchronous())
print("done")
