//! The integration tests, one binary: each plays at a server over a real socket.
//!
//! A server of ours runs inside the test under a clock that the test moves, so windows open
//! without waiting; where the program itself is the subject, its binary is started. A real
//! Redis settles what is right for standard commands: it must be installed (`make test` does).

#[cfg(feature = "client-central")]
mod client;
mod checks;
mod clients;
mod connections;
mod debug;
mod deploy;
#[cfg(feature = "etcd")]
mod etcd;
mod eviction;
mod exposition;
mod governed;
mod http;
mod introspection;
mod keyspace;
mod limiters;
mod limits;
mod load;
mod log;
mod lua_compat;
mod lua_libraries;
mod monitoring;
mod policies;
#[cfg(feature = "etcd")]
mod policies_etcd;
mod policy_command;
mod policy_documents;
mod policy_program;
mod operator;
mod program;
mod prometheus;
mod pushes;
mod readme;
mod redis;
mod redis_rs;
#[cfg(feature = "etcd")]
mod relay;
mod resp;
mod server;
mod scripts;
mod store;
mod top;
mod transactions;
mod transcript;
mod twins;
mod waiting;
mod wire;
