"""throttled-py: its five algorithms, on strings and hashes, by the server's time."""

import sys
from datetime import timedelta

from throttled import RateLimiterType, Throttled, rate_limiter, store

from limiting import limits

# How long each stays closed, in seconds; all but the last count in whole seconds of the clock.
ALGORITHMS = [
    (RateLimiterType.FIXED_WINDOW, 0),
    (RateLimiterType.SLIDING_WINDOW, 0),
    (RateLimiterType.TOKEN_BUCKET, 0),
    (RateLimiterType.LEAKING_BUCKET, 0),
    (RateLimiterType.GCRA, 1),
]

backend = store.RedisStore(server=f"redis://127.0.0.1:{int(sys.argv[1])}/4")
quota = rate_limiter.per_duration(timedelta(seconds=2), limit=2, burst=2)
for algorithm, closed in ALGORITHMS:
    throttle = Throttled(using=algorithm.value, quota=quota, store=backend, timeout=-1)
    limits(lambda key: not throttle.limit(key).limited, 2, closed, aligned=closed == 0)
    first = throttle.limit("state")
    assert first.state.remaining == 1 and first.state.limit == 2, first
    throttle.limit("state")
    refused = throttle.limit("state")
    if refused.limited:
        assert 0 < refused.state.retry_after <= 2, refused
    assert throttle.peek("state").limit == 2
print("done")
