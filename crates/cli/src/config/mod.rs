//! The configuration of the server: defaults, under a file, under the environment, under flags.
//!
//! A layer is what one of those says; what it does not say comes from the layer below. `keys` is the one table of what can
//! be said: the layer, its defaults, the names of variables and the documentation are made from it. `value` says how each
//! kind of value is read and written, `file` reads a file and knows where in it everything stands, `sources` puts the
//! layers over each other and knows which of them said what, `effective` is what the server is started with. A wrong value
//! stops the start with a message that says which value, and where it stands.

mod effective;
mod file;
mod keys;
mod sources;
mod value;
mod wrong;

pub(crate) use effective::{Config, workers};
pub(crate) use file::misplaced;
pub(crate) use keys::{KEYS, Key, Layer};
pub(crate) use sources::{FILE, Sources};
pub(crate) use wrong::Wrong;
