// rolling-rate-limiter: a transaction on a sorted set, over ioredis and over node-redis.
import assert from "node:assert/strict";
import { done, limits, load, port } from "./limiting.mjs";

const { RedisRateLimiter } = load("rolling-rate-limiter");
const { Redis } = load("ioredis");
const { createClient } = load("redis");

const node = createClient({ socket: { port } });
await node.connect();
for (const [namespace, client] of [["io:", new Redis({ port })], ["node:", node]]) {
  const limiter = new RedisRateLimiter({ client, namespace, interval: 1000, maxInInterval: 3 });
  // What is refused counts too: so it is asked without counting.
  const asked = { first: 0, second: 0 };
  await limits(async (key) => {
    const counts = (asked[key] += 1) <= 4;
    const info = await (counts ? limiter.limitWithInfo(key) : limiter.wouldLimitWithInfo(key));
    assert.ok(info.millisecondsUntilAllowed <= 1000, info);
    return !info.blocked;
  }, 3, { closed: 1000 });
  await limiter.clear("first");
  assert.equal((await limiter.limitWithInfo("first")).actionsRemaining, 2);
}
done();
