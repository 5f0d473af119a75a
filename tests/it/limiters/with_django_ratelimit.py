"""django-ratelimit over django-redis: counting through a framework's cache."""

import sys

import django
from django.conf import settings

from limiting import limits

LOCATION = f"redis://127.0.0.1:{int(sys.argv[1])}/5"
settings.configure(
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": LOCATION}},
    RATELIMIT_FAIL_OPEN=False,
)
django.setup()

from django.core.cache import cache
from django.test import RequestFactory
from django_ratelimit.core import get_usage

requests = RequestFactory()


def usage(key):
    request = requests.get("/")
    return get_usage(request, group="all", key=lambda *_: key, rate="3/2s", increment=True)


limits(lambda key: not usage(key)["should_limit"], 3, aligned=True)
counted = usage("headers")
assert counted["limit"] == 3 and counted["count"] == 1, counted
assert 0 <= counted["time_left"] <= 2, counted
# The rest of the cache that it counts with.
assert cache.set("key", {"a": 1}, timeout=60) and cache.get("key") == {"a": 1}
assert cache.add("key", 2) is False
assert cache.ttl("key") == 60
assert cache.set_many({"one": 1, "two": 2}) is None
assert cache.get_many(["one", "two", "none"]) == {"one": 1, "two": 2}
assert cache.incr("one", 5) == 6
assert cache.persist("key") and cache.ttl("key") is None
assert sorted(cache.keys("o*")) == ["one"]
assert cache.delete_pattern("*") >= 3
print("done")
