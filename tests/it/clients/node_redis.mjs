// node-redis against a Tollgate on the port given: handshake, limiter, auto-pipelining.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(process.argv[3] + "/");
const { createClient } = require("redis");

for (const RESP of [2, 3]) {
  const client = createClient({ socket: { port: Number(process.argv[2]) }, RESP, name: "node" });
  client.on("error", (error) => { throw error; });
  await client.connect();
  assert.equal(await client.ping(), "PONG");
  const ask = () => client.sendCommand(["RL.LIMIT", `node:${RESP}`, "5", "1m"]);
  const replies = await Promise.all(Array.from({ length: 20 }, ask));
  assert.equal(replies.filter((reply) => reply[0] === 0).length, 5);
  assert.equal(await client.incr(`count:${RESP}`), 1);
  assert.equal(await client.expire(`count:${RESP}`, 60, "NX"), 1);
  assert.equal(await client.ttl(`count:${RESP}`), 60);
  await client.close();
}
console.log("done");
