"""What each program here proves of a library: so many pass, the next is refused, it opens again.

Nothing sleeps through a window: it is asked again and again until it opens, and not for ever.
"""

import time

# Seconds. No window here is longer than a third of the patience.
PATIENCE = 10
PAUSE = 0.02
# A library may round the moment to whole milliseconds, at both ends.
ROUNDING = 0.005


def limits(ask, passes, closed=0, aligned=False):
    """`ask(key)` tells whether it passes: `passes` times, then not before `closed` seconds.

    Where a window may have ended between two questions, a second key is tried: because windows
    are `aligned` to the clock, or because the machine was too busy.
    """
    for key in ["first", "second"]:
        begun = time.monotonic()
        answers = [ask(key) for _ in range(passes + 1)]
        if answers == [True] * passes + [False]:
            break
        if key == "second" or not aligned and time.monotonic() - begun < closed:
            raise AssertionError(f"{passes} should pass, then none: {answers}")
    while not ask(key):
        assert time.monotonic() - begun < PATIENCE, "it never opens"
        time.sleep(PAUSE)
    took = time.monotonic() - begun
    assert took > closed - ROUNDING, f"it opened after {took} s, not {closed} s"
