// ioredis against a Tollgate on the port given: handshake with its ready check, limiter, pipeline.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(process.argv[3] + "/");
const { Redis } = require("ioredis");

const client = new Redis({ port: Number(process.argv[2]), connectionName: "io", db: 3 });
client.on("error", (error) => { throw error; });
assert.equal(await client.ping(), "PONG");
assert.equal(await client.client("GETNAME"), "io");
const pipeline = client.pipeline();
for (let n = 0; n < 20; n += 1) pipeline.call("RL.LIMIT", "io", "5", "1m");
const replies = await pipeline.exec();
assert.equal(replies.filter(([error, reply]) => error === null && reply[0] === 0).length, 5);
assert.equal(await client.set("k", "v", "PX", 10000, "NX"), "OK");
assert.equal(await client.get("k"), "v");
assert.deepEqual(await client.mget("k", "none"), ["v", null]);
assert.equal(await client.quit(), "OK");
console.log("done");
