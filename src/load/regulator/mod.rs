//! Regulators: bounds that hold whatever the level, asked before anything is shed.
//!
//! Each guards one resource that a few requests can exhaust while the service as a whole has
//! time to spare: bytes in flight, one hot key, memory, tasks. Each that is not wanted is off.

mod bytes;
mod hot_key;
mod memory;
mod tasks;

pub use self::bytes::{Bytes, Held};
pub use self::hot_key::{HotKey, HotKeyOptions};
pub use self::memory::Memory;
pub use self::tasks::Tasks;
