"""redis-py against a Tollgate on the port given: handshake, limiter, counter idiom, pipeline."""

import sys

import redis

port = int(sys.argv[1])
for protocol in (2, 3):
    client = redis.Redis(port=port, protocol=protocol, client_name="py", decode_responses=True)
    assert client.ping()
    assert client.client_getname() == "py"
    assert client.info()["redis_version"].startswith("7.2")
    assert client.execute_command("RL.LIMIT", f"py:{protocol}", 2, "1m") == [0, 2, 1, -1, 60000]
    assert client.execute_command("RL.LIMIT", f"py:{protocol}", 2, "1m") == [0, 2, 0, -1, 60000]
    assert client.execute_command("RL.LIMIT", f"py:{protocol}", 2, "1m")[0] == 1
    # The idiom that limits with what every Redis has.
    pipeline = client.pipeline(transaction=False)
    pipeline.incr(f"count:{protocol}")
    pipeline.expire(f"count:{protocol}", 60, nx=True)
    pipeline.ttl(f"count:{protocol}")
    assert pipeline.execute() == [1, True, 60]
    assert client.set("k", "v", nx=True, ex=10) is True
    assert client.set("k", "w", nx=True) is None
    assert client.get("k") == "v"
    assert client.delete("k") == 1
    try:
        client.execute_command("RL.LIMIT", "k", -1, "1m")
        raise AssertionError("a negative limit passed")
    except redis.ResponseError as error:
        assert "limit" in str(error), error
    client.close()
print("done")
