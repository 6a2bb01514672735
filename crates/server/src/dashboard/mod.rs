//! The page that an operator opens: its files are part of the binary, and served from there.
//!
//! They are built from `web/` and lie in `web/dist`; the build script compresses them. No file system is ever asked for them,
//! so that a path from outside can lead to nothing else. In a build without the feature `ui` there are none.

#[cfg(feature = "ui")]
mod accept;
#[cfg(feature = "ui")]
mod document;
#[cfg(feature = "ui")]
mod embedded;
#[cfg(feature = "ui")]
mod fnv;
#[cfg(feature = "ui")]
mod policy;
#[cfg(not(feature = "ui"))]
mod without;

#[cfg(feature = "ui")]
pub(crate) use embedded::Dashboard;
#[cfg(not(feature = "ui"))]
pub(crate) use without::Dashboard;
