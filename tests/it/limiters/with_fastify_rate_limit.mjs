// @fastify/rate-limit: an application answers 429, and says when to come back.
import assert from "node:assert/strict";
import { done, limits, load, port } from "./limiting.mjs";

const fastify = load("fastify");
const rateLimit = load("@fastify/rate-limit");
const { Redis } = load("ioredis");

for (const options of [{}, { continueExceeding: true }, { exponentialBackoff: true }]) {
  const app = fastify();
  await app.register(rateLimit, {
    redis: new Redis({ port }), nameSpace: JSON.stringify(options), max: 2, timeWindow: 1000,
    keyGenerator: (request) => request.query.user, skipOnError: false, ...options,
  });
  app.get("/", async () => "hello");
  const get = (user) => app.inject({ url: "/", query: { user } });

  const first = await get("headers");
  assert.equal(first.headers["x-ratelimit-limit"], "2");
  assert.equal(first.headers["x-ratelimit-remaining"], "1");
  assert.equal(first.headers["x-ratelimit-reset"], "1");
  await get("headers");
  const { statusCode, headers } = await get("headers");
  assert.equal(statusCode, 429);
  assert.equal(headers["x-ratelimit-remaining"], "0");
  assert.ok(Number(headers["retry-after"]) >= 1, headers["retry-after"]);
  if (Object.keys(options).length === 0) {
    const ask = async (user) => (await get(user)).statusCode === 200;
    await limits(ask, 2, { closed: 1000 });
  }
  await app.close();
}
done();
