//! Where policies come from: a file, a folder or etcd, watched.
//!
//! One thread of its own has a *source*, which tells what it holds and what changes; the
//! *replica*, which makes of that the least that is news; and the *keeper*, which hands the news
//! to the book of policies and tells what came of it. What is compiled holds up neither clients
//! nor probes.
//!
//! Changes that come within 50 ms are taken over as one. A source that is away changes nothing:
//! what was last good stays in force, is kept on disk, and is where a start without its source
//! begins. A source that was away tells everything again, so nothing that happened meanwhile is
//! missed, and what has not changed is no news.
//!
//! Policies are never edited in memory: who writes one writes to the store (`Writer`), and the
//! change comes back by the watch.

mod disk;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "etcd")]
mod etcd_store;
mod files;
mod folder;
mod keeper;
mod last_good;
#[cfg(all(test, feature = "etcd"))]
mod living_member;
#[cfg(feature = "etcd")]
mod members;
#[cfg_attr(not(feature = "etcd"), expect(dead_code, reason = "a folder tells all or nothing"))]
mod news;
mod options;
mod replica;
#[cfg_attr(not(feature = "etcd"), expect(dead_code, reason = "a folder is there or is not"))]
mod thread;
mod writer;

pub(crate) use disk::replace;
#[cfg(feature = "etcd")]
pub(crate) use etcd::watch_etcd;
pub(crate) use files::documents;
pub(crate) use options::{EtcdOptions, Options};
pub(crate) use thread::{Target, Watch, watch_path};
pub(crate) use writer::Writer;

use news::{Fault, News, is_away};
