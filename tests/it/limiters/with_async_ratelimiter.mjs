// async-ratelimiter, which koa-ratelimit counts with: one script on a sorted set of fractions.
import assert from "node:assert/strict";
import { done, limits, load, port } from "./limiting.mjs";

const RateLimiter = load("async-ratelimiter");
const { Redis } = load("ioredis");

const limiter = new RateLimiter({ db: new Redis({ port }), max: 3, duration: 1000 });
await limits(async (id) => (await limiter.get({ id })).remaining > 0, 3, { closed: 1000 });
const first = await limiter.get({ id: "other" });
assert.equal(first.total, 3);
assert.equal(first.remaining, 3);
assert.ok(Math.abs(first.reset - Date.now() / 1000) <= 2, `${first.reset}`);
assert.equal((await limiter.get({ id: "other", peek: true })).remaining, 2);
assert.equal((await limiter.get({ id: "other" })).remaining, 2);
done();
