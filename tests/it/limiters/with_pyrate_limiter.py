"""pyrate-limiter: two rates at once in a sorted set, by a script that it loads only once."""

import sys
import time

import redis
from pyrate_limiter import Limiter, Rate, RedisBucket

from limiting import limits

client = redis.Redis(port=int(sys.argv[1]), db=3)
limiters, buckets = {}, {}
for key in ("first", "second", "other"):
    rates = [Rate(3, 1_000), Rate(100, 60_000)]
    buckets[key] = RedisBucket.init(rates, client, f"pyrate:{key}")
    limiters[key] = Limiter(buckets[key])
limits(lambda key: limiters[key].try_acquire("name", blocking=False), 3, closed=1)
assert limiters["other"].try_acquire("name", weight=2, blocking=False)
assert not limiters["other"].try_acquire("name", weight=2, blocking=False)
assert buckets["other"].count() == 2
assert buckets["other"].peek(0) is not None
assert buckets["other"].leak(int(time.time() * 1_000) + 120_000) == 2
buckets["first"].flush()
buckets["second"].flush()
assert client.dbsize() == 0
for limiter in limiters.values():
    limiter.close()
print("done")
