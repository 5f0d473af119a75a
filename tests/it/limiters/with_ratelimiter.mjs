// ratelimiter: a transaction of eight commands on a sorted set of microseconds.
import assert from "node:assert/strict";
import { done, limits, load, port } from "./limiting.mjs";

const Limiter = load("ratelimiter");
const { Redis } = load("ioredis");

const db = new Redis({ port });
const get = (id) => new Promise((resolve, reject) => {
  const limiter = new Limiter({ id, db, max: 3, duration: 1000 });
  limiter.get((error, limit) => (error ? reject(error) : resolve(limit)));
});
const answers = [];
for (let n = 0; n < 4; n += 1) answers.push(await get("user"));
assert.deepEqual(answers.map((answer) => answer.remaining), [3, 2, 1, 0]);
for (const { total, resetMs } of answers) {
  assert.equal(total, 3);
  assert.ok(Math.abs(resetMs - Date.now() - 1000) < 500, `${resetMs - Date.now()}`);
}
// The refused are logged too: it opens when it is asked seldom enough.
await limits(async (id) => (await get(id)).remaining > 0, 3, { every: 400 });
done();
