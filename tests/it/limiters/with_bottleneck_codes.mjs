// bottleneck's scripts end with codes, which it knows by their whole text.
//
// Since Redis 7 a code of one word comes with a prefix, and bottleneck takes it for a failure.
import assert from "node:assert/strict";
import { done, load, port } from "./limiting.mjs";

const Bottleneck = load("bottleneck");
const Redis = load("ioredis");

const limiter = new Bottleneck({
  id: "codes", datastore: "ioredis", Redis, clientOptions: { port },
  maxConcurrent: 1, highWater: 0, strategy: Bottleneck.strategy.OVERFLOW, timeout: 60_000,
});
await limiter.ready();
await assert.rejects(limiter.schedule({ weight: 2 }, async () => 1), /having a weight of 2/);
assert.equal(await limiter.schedule(async () => 1), 1);
// Whoever has been forgotten registers again, and goes on.
const client = new Redis({ port });
assert.ok(await client.del(...(await client.keys("b_codes_client_*"))) > 0);
assert.equal(await limiter.schedule(async () => 2), 2);
// So does a limiter whose settings are gone.
await client.flushall();
assert.equal(await limiter.schedule(async () => 3), 3);
await limiter.disconnect();
done();
