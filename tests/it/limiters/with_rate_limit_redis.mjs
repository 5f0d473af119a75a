// express-rate-limit with rate-limit-redis: an application answers 429 and says when to come back.
import assert from "node:assert/strict";
import { once } from "node:events";
import { done, limits, load, port } from "./limiting.mjs";

const express = load("express");
const { rateLimit } = load("express-rate-limit");
const { RedisStore } = load("rate-limit-redis");
const { Redis } = load("ioredis");
const { createClient } = load("redis");

const io = new Redis({ port });
const node = createClient({ socket: { port } });
await node.connect();
for (const [name, sendCommand] of [
  ["io", (command, ...words) => io.call(command, ...words)],
  ["node", (...words) => node.sendCommand(words)],
]) {
  const store = new RedisStore({ sendCommand, prefix: `${name}:` });
  const app = express();
  app.use(rateLimit({
    windowMs: 1500, limit: 2, store, standardHeaders: "draft-6", legacyHeaders: false,
    keyGenerator: (request) => request.query.user, passOnStoreError: false,
  }));
  app.get("/", (_, response) => response.send("hello"));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const get = (user) => fetch(`http://127.0.0.1:${server.address().port}/?user=${user}`);
  const ask = async (user) => {
    const { status } = await get(user);
    assert.ok([200, 429].includes(status), `status ${status}`);
    return status === 200;
  };

  const first = await get("headers");
  assert.equal(first.headers.get("RateLimit-Limit"), "2");
  assert.equal(first.headers.get("RateLimit-Remaining"), "1");
  await get("headers");
  const { status, headers } = await get("headers");
  assert.equal(status, 429);
  assert.equal(headers.get("RateLimit-Remaining"), "0");
  for (const header of ["RateLimit-Reset", "Retry-After"]) {
    assert.ok(["1", "2"].includes(headers.get(header)), `${header}: ${headers.get(header)}`);
  }
  await limits(ask, 2, { closed: 1500 });
  await store.resetKey("headers");
  assert.equal(await ask("headers"), true);
  assert.equal((await store.get("headers")).totalHits, 1);
  await store.decrement("headers");
  assert.equal((await store.get("headers")).totalHits, 0);
  server.close();
}
done();
