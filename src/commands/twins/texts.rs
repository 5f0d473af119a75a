//! The texts of the scripts that have twins, from where they stand.
//!
//! Those of other projects are in the packages that the tests of libraries install; nothing of
//! them is kept here but the SHA-1.

use std::path::{Path, PathBuf};

/// Where a text stands, and what its library makes of it before it sends it.
#[derive(Clone, Copy)]
enum Place {
    /// A file of this project.
    Own(&'static str),
    /// A file of a Python package, as it is.
    Python(&'static str),
    /// A string of three quotes behind some words in a file of a Python package.
    PythonText(&'static str, &'static str),
    /// A file of a node package, as it is.
    NodeFile(&'static str),
    /// A template literal behind some words in a file of a node package.
    Node(&'static str, &'static str, Made),
}

/// What is made of a literal.
#[derive(Clone, Copy)]
enum Made {
    Unchanged,
    /// Blanks at the beginning of lines go, and those around it all.
    Flush,
    /// A backslash at the end of a line joins it with the next, as JavaScript has it.
    Joined,
}

/// What stands before the scripts of throttled-py.
const LIMITS: &str = "ATOMIC_ACTION_TYPE_LIMIT\n\n    SCRIPTS: str =";
const PEEKS: &str = "ATOMIC_ACTION_TYPE_PEEK\n\n    SCRIPTS: str =";

const PLACES: [(&str, Place); 22] = [
    ("lua-compat/concurrency-lease", Place::Own("concurrency-lease")),
    ("lua-compat/sliding-counter", Place::Own("sliding-counter")),
    ("lua-compat/sliding-log", Place::Own("sliding-log")),
    ("lua-compat/token-bucket", Place::Own("token-bucket")),
    ("lua-compat/fixed-window", Place::Own("fixed-window")),
    ("lua-compat/gcra", Place::Own("gcra")),
    (
        "rate-limit-redis 6 increment",
        Place::Node("rate-limit-redis/dist/index.mjs", "increment:", Made::Flush),
    ),
    ("rate-limit-redis 6 get", Place::Node("rate-limit-redis/dist/index.mjs", "get:", Made::Flush)),
    (
        "rate-limiter-flexible 11",
        Place::Node(
            "rate-limiter-flexible/lib/RateLimiterRedis.js",
            "incrTtlLuaScript =",
            Made::Joined,
        ),
    ),
    ("limits 5 incr_expire", Place::Python("limits/resources/redis/lua_scripts/incr_expire.lua")),
    (
        "limits 5 acquire_moving_window",
        Place::Python("limits/resources/redis/lua_scripts/acquire_moving_window.lua"),
    ),
    (
        "limits 5 acquire_sliding_window",
        Place::Python("limits/resources/redis/lua_scripts/acquire_sliding_window.lua"),
    ),
    (
        "limits 5 sliding_window",
        Place::Python("limits/resources/redis/lua_scripts/sliding_window.lua"),
    ),
    (
        "throttled-py 3 sliding window",
        Place::PythonText("throttled/rate_limiter/sliding_window.py", LIMITS),
    ),
    (
        "throttled-py 3 token bucket",
        Place::PythonText("throttled/rate_limiter/token_bucket.py", LIMITS),
    ),
    (
        "throttled-py 3 leaking bucket",
        Place::PythonText("throttled/rate_limiter/leaking_bucket.py", LIMITS),
    ),
    ("throttled-py 3 gcra", Place::PythonText("throttled/rate_limiter/gcra.py", LIMITS)),
    ("throttled-py 3 gcra peek", Place::PythonText("throttled/rate_limiter/gcra.py", PEEKS)),
    ("redis-gcra 0", Place::NodeFile("redis-gcra/lib/gcra.lua")),
    ("async-ratelimiter 1", Place::Node("async-ratelimiter/src/index.js", "lua:", Made::Unchanged)),
    (
        "@fastify/rate-limit 11 incr",
        Place::Node("@fastify/rate-limit/store/RedisStore.js", "const lua =", Made::Unchanged),
    ),
    (
        "@fastify/rate-limit 11 read",
        Place::Node("@fastify/rate-limit/store/RedisStore.js", "const luaRead =", Made::Unchanged),
    ),
];

/// The text as it is sent.
pub(super) fn text(name: &str) -> Vec<u8> {
    let known = PLACES.iter().find(|(known, _)| *known == name);
    match known.expect("every twin has its place here").1 {
        Place::Own(folder) => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            read(&root.join("lua-compat").join(folder).join("script.lua")).into_bytes()
        }
        Place::Python(path) => read(&python_packages().join(path)).into_bytes(),
        Place::PythonText(path, before) => {
            let source = read(&python_packages().join(path));
            let text = source.split_once(before).and_then(|(_, rest)| rest.split("\"\"\"").nth(1));
            text.expect("the text is there").as_bytes().to_vec()
        }
        Place::NodeFile(path) => read(&libraries().join("node_modules").join(path)).into_bytes(),
        Place::Node(path, before, made) => {
            let source = read(&libraries().join("node_modules").join(path));
            let literal = source.split_once(before).and_then(|(_, rest)| rest.split('`').nth(1));
            made_of(literal.expect("the literal is there"), made).into_bytes()
        }
    }
}

fn made_of(literal: &str, made: Made) -> String {
    match made {
        Made::Unchanged => literal.to_owned(),
        Made::Joined => literal.replace("\\\n", ""),
        Made::Flush => {
            let lines: Vec<&str> = literal.lines().map(str::trim_start).collect();
            lines.join("\n").replace("\n\n", "\n").trim().to_owned()
        }
    }
}

/// `make test` installs them.
fn libraries() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    root.join(target).join("clients")
}

fn python_packages() -> PathBuf {
    let versions = std::fs::read_dir(libraries().join("venv/lib")).expect("`make test` made it");
    let version = versions.flatten().next().expect("there is one Python");
    version.path().join("site-packages")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|err| {
        panic!("{} is not there ({err}): `make test` installs it", path.display())
    })
}
