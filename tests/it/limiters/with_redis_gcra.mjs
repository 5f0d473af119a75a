// redis-gcra: a script that computes with texts, and one key a limit.
import assert from "node:assert/strict";
import { done, limits, load, port } from "./limiting.mjs";

const { Redis } = load("ioredis");
const redis = new Redis({ port });
const limiter = load("redis-gcra")({ redis, keyPrefix: "gcra:", burst: 3, rate: 1, period: 500 });

await limits(async (key) => {
  const { limited, retryIn } = await limiter.limit({ key });
  assert.ok(limited ? retryIn > 0 && retryIn <= 500 : retryIn === 0, `${retryIn}`);
  return !limited;
}, 3, { closed: 500 });
assert.equal((await limiter.limit({ key: "other", cost: 2 })).remaining, 1);
assert.equal((await limiter.peek({ key: "other" })).remaining, 1);
assert.equal((await limiter.limit({ key: "other", cost: 2 })).limited, true);
assert.equal(await limiter.reset({ key: "other" }), true);
assert.equal(await limiter.reset({ key: "other" }), false);
done();
