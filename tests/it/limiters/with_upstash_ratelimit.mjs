// @upstash/ratelimit over ioredis: it speaks to a REST client, so words are turned into arrays.
//
// A real Redis refuses the flag in its scripts' first line; Tollgate passes over it.
import assert from "node:assert/strict";
import { done, limits, load, port } from "./limiting.mjs";

const { Ratelimit } = load("@upstash/ratelimit");
const { Redis } = load("ioredis");

const client = new Redis({ port });
const words = (values) => values.map((value) => (value === null ? "" : String(value)));
const redis = {
  evalsha: (sha, keys, values) => client.evalsha(sha, keys.length, ...keys, ...words(values)),
  eval: (script, keys, values) => client.eval(script, keys.length, ...keys, ...words(values)),
};

const algorithms = {
  fixed: [Ratelimit.fixedWindow(3, "1 s"), { aligned: true }],
  sliding: [Ratelimit.slidingWindow(3, "1 s"), { aligned: true }],
  bucket: [Ratelimit.tokenBucket(3, "1 s", 3), { closed: 1000 }],
};
for (const [prefix, [limiter, expected]] of Object.entries(algorithms)) {
  const ratelimit = new Ratelimit({ redis, limiter, prefix, ephemeralCache: false });
  const ask = async (key) => {
    const { success, limit, reset, reason } = await ratelimit.limit(key);
    assert.equal(reason, undefined);
    assert.equal(limit, 3);
    assert.ok(success || reset >= Date.now() - 1000, `reset: ${reset}`);
    return success;
  };
  await limits(ask, 3, expected);
  assert.equal((await ratelimit.getRemaining("other")).remaining, 3);
  await ratelimit.limit("other");
  assert.equal((await ratelimit.getRemaining("other")).remaining, 2);
  await ratelimit.resetUsedTokens("other");
  assert.equal((await ratelimit.getRemaining("other")).remaining, 3);
}
done();
