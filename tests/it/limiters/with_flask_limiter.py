"""flask-limiter: an application answers 429, and its headers say when to come back."""

import sys
import time

from flask import Flask, request
from flask_limiter import Limiter

from limiting import limits

port = int(sys.argv[1])
for strategy in ("fixed-window", "moving-window"):
    app = Flask(strategy)
    limiter = Limiter(
        key_func=lambda: request.args["user"],
        app=app,
        storage_uri=f"redis://127.0.0.1:{port}/2",
        strategy=strategy,
        headers_enabled=True,
        in_memory_fallback_enabled=False,
        swallow_errors=False,
        key_prefix=strategy,
    )

    @app.get("/")
    @limiter.limit("2 per 2 seconds")
    def index():
        return "hello"

    client = app.test_client()
    response = client.get("/?user=headers")
    assert response.headers["X-RateLimit-Limit"] == "2"
    assert response.headers["X-RateLimit-Remaining"] == "1"
    client.get("/?user=headers")
    response = client.get("/?user=headers")
    assert response.status_code == 429
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert 0 <= int(response.headers["Retry-After"]) <= 2
    assert abs(int(response.headers["X-RateLimit-Reset"]) - time.time()) <= 3

    def ask(user):
        status = client.get(f"/?user={user}").status_code
        assert status in (200, 429), status
        return status == 200

    limits(ask, 2, closed=2)
print("done")
