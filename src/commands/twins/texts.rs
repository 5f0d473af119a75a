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

const PLACES: [(&str, Place); 13] = [
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
