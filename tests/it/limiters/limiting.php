<?php
// What each program here proves of a library: so many pass, the next is refused, it opens again.
//
// Nothing sleeps through a window: it is asked again and again until it opens, and not for ever.

// Seconds. No window here is longer than a third of the patience.
const PATIENCE = 10;
const PAUSE = 0.02;
// A library may round the moment to whole milliseconds, at both ends.
const ROUNDING = 0.005;

function expect(bool $holds, string $otherwise): void
{
    if (!$holds) {
        throw new RuntimeException($otherwise);
    }
}

/**
 * `$ask($key)` tells whether it passes: `$passes` times, then not before `$closed` seconds.
 *
 * Where a window may have ended between two questions, a second key is tried: because windows
 * are `$aligned` to the clock, or because the machine was too busy.
 */
function limits(callable $ask, int $passes, float $closed = 0, bool $aligned = false): void
{
    $expected = [...array_fill(0, $passes, true), false];
    foreach (['first', 'second'] as $key) {
        $begun = microtime(true);
        $answers = array_map(fn () => $ask($key), $expected);
        if ($answers === $expected) {
            break;
        }
        $isOver = $aligned || microtime(true) - $begun > $closed;
        expect($key === 'first' && $isOver, "$passes should pass: " . json_encode($answers));
    }
    while (!$ask($key)) {
        expect(microtime(true) - $begun < PATIENCE, 'it never opens');
        usleep((int) (PAUSE * 1e6));
    }
    $took = microtime(true) - $begun;
    expect($took > $closed - ROUNDING, "it opened after $took s, not $closed s");
}
