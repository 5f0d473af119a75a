// rate-limiter-flexible over ioredis and over node-redis: its script, its transactions, its blocks.
import assert from "node:assert/strict";
import { done, limits, load, port } from "./limiting.mjs";

const { RateLimiterRedis, RateLimiterRedisNonAtomic } = load("rate-limiter-flexible");
const { Redis } = load("ioredis");
const { createClient } = load("redis");

const refused = (answer) => {
  if (answer instanceof Error) throw answer;
  // A Redis tells 0 within the last millisecond.
  assert.ok(answer.msBeforeNext >= 0 && answer.msBeforeNext <= 1000, answer);
  return false;
};
const ask = (limiter) => (key) => limiter.consume(key).then(() => true, refused);

const nodeRedis = createClient({ socket: { port } });
await nodeRedis.connect();
for (const client of [
  { storeClient: new Redis({ port }) },
  { storeClient: nodeRedis, useRedisPackage: true },
]) {
  const keyPrefix = client.useRedisPackage ? "node" : "io";
  const limiter = new RateLimiterRedis({ ...client, keyPrefix, points: 3, duration: 1 });
  await limits(ask(limiter), 3, { closed: 1000 });
  assert.equal((await limiter.consume("other", 2)).remainingPoints, 1);
  assert.equal((await limiter.penalty("other", 2)).consumedPoints, 4);
  assert.equal((await limiter.reward("other", 3)).consumedPoints, 1);
  assert.equal((await limiter.get("other")).remainingPoints, 2);
  await limiter.block("other", 1);
  assert.equal(await ask(limiter)("other"), false);
  assert.equal(await limiter.delete("other"), true);
  assert.equal(await limiter.get("other"), null);
  await limiter.set("other", 2, 1);
  assert.equal((await limiter.get("other")).remainingPoints, 1);

  const blocking = new RateLimiterRedis({
    ...client, keyPrefix: `${keyPrefix}:block`, points: 1, duration: 60, blockDuration: 1,
  });
  await limits(ask(blocking), 1, { closed: 1000 });
}
const storeClient = new Redis({ port });
const apart = new RateLimiterRedisNonAtomic({ storeClient, keyPrefix: "na", points: 2, duration: 1 });
await limits(ask(apart), 2, { closed: 1000 });
done();
