//! Where policies come from: files or etcd, watched.

mod options;
mod replica;

pub(crate) use options::{EtcdOptions, Options};
