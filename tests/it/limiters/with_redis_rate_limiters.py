"""redis-rate-limiters: a token bucket that is waited for, and a semaphore that blocks on a list."""

import sys
import time

from limiters import MaxSleepExceededError, SyncSemaphore, SyncTokenBucket
from redis import Redis

client = Redis(port=int(sys.argv[1]), db=6)


def bucket(max_sleep):
    return SyncTokenBucket(
        connection=client,
        name="bucket",
        capacity=2,
        refill_frequency=1,
        refill_amount=2,
        max_sleep=max_sleep,
    )


# It refuses nobody whose turn comes soon enough: the third is kept waiting for it.
begun = time.monotonic()
for turn in range(3):
    with bucket(max_sleep=2):
        took = time.monotonic() - begun
        assert took > 0.995 if turn == 2 else took < 0.995, (turn, took)
try:
    for turn in range(3):
        with bucket(max_sleep=0.5):
            pass
    raise AssertionError("three turns at once of two")
except MaxSleepExceededError:
    pass

semaphore = SyncSemaphore(connection=client, name="places", capacity=2, max_sleep=0.2, expiry=30)
with semaphore, semaphore:
    begun = time.monotonic()
    try:
        with semaphore:
            raise AssertionError("a third place of two")
    except MaxSleepExceededError:
        assert time.monotonic() - begun > 0.15
with semaphore:
    pass
print("done")
