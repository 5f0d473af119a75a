// What each program here proves of a library: so many pass, the next is refused, it opens again.
//
// Nothing sleeps through a window: it is asked again and again until it opens, and not for ever.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

/// Milliseconds. No window here is longer than a third of the patience.
const PATIENCE = 10_000;
const PAUSE = 20;
/// A library may round the moment to whole milliseconds, at both ends.
const ROUNDING = 5;

/// Where the server listens.
export const port = Number(process.argv[2]);
/// Loads what is installed with the tests.
export const load = createRequire(process.argv[3] + "/");

/// `ask(key)` tells whether it passes: `passes` times, then not before `closed` milliseconds.
///
/// Where a window may have ended between two questions, a second key is tried: because windows
/// are `aligned` to the clock, or because the machine was too busy. `every` so many milliseconds
/// it is asked whether it has opened.
export async function limits(ask, passes, { closed = 0, aligned = false, every = PAUSE } = {}) {
  const expected = [...Array(passes).fill(true), false];
  let key, begun;
  for (key of ["first", "second"]) {
    begun = performance.now();
    const answers = [];
    for (const _ of expected) answers.push(await ask(key));
    const is_over = aligned || performance.now() - begun > closed;
    if (isDeepStrictEqual(answers, expected)) break;
    assert.ok(key === "first" && is_over, `${passes} should pass, then none: ${answers}`);
  }
  while (!(await ask(key))) {
    assert.ok(performance.now() - begun < PATIENCE, "it never opens");
    await pause(every);
  }
  const took = performance.now() - begun;
  assert.ok(took > closed - ROUNDING, `it opened after ${took} ms, not ${closed} ms`);
}

/// Says that all held, and ends: some libraries keep timers or connections open.
export function done() {
  console.log("done");
  process.exit(0);
}
