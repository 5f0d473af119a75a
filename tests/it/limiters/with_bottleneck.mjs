// bottleneck, clustered: two limiters share one reservoir and tell each other by messages.
import assert from "node:assert/strict";
import { done, load, port } from "./limiting.mjs";

const Bottleneck = load("bottleneck");
const Redis = load("ioredis");

const limiter = () => {
  const made = new Bottleneck({
    id: "shared", datastore: "ioredis", Redis, clientOptions: { port },
    reservoir: 3, reservoirRefreshAmount: 3, reservoirRefreshInterval: 500, heartbeatInterval: 100,
    maxConcurrent: 2, timeout: 60_000,
  });
  made.on("error", (error) => { throw error; });
  return made;
};
// The reservoir is filled so long after it was made, however slow this machine is meanwhile.
const begun = performance.now();
const [one, other] = [limiter(), limiter()];
await Promise.all([one.ready(), other.ready()]);

// Seven jobs on both: three at once, and twice more must wait for the reservoir to be filled.
let [running, running_max] = [0, 0];
const job = async () => {
  running += 1;
  running_max = Math.max(running, running_max);
  await new Promise((resolve) => setTimeout(resolve, 5));
  running -= 1;
  return performance.now() - begun;
};
const ends = await Promise.all([1, 2, 3, 4, 5, 6, 7].map(
  (n) => (n % 2 ? one : other).schedule(job),
));
ends.sort((a, b) => a - b);
assert.ok(ends[3] > 300 && ends[6] > 800 && ends[6] < 10_000, `${ends}`);
assert.equal(running_max, 2);

// A message of one reaches both.
const heard = new Promise((resolve) => other.on("message", resolve));
await one.publish("hello");
assert.equal(await heard, "hello");
await Promise.all([one.disconnect(), other.disconnect()]);
done();
