//! Makes the page ready to be served: every file of `web/dist` as it is and compressed, and a table of them.
//!
//! It never calls npm: what was built is in the repository, and `cargo xtask ui` builds it. Where it was built from other
//! sources than those that lie beside it, this says so. Without the feature `ui` there is nothing to do.

#[cfg(feature = "ui")]
mod embed;
#[cfg(feature = "ui")]
mod source_hash;

fn main() {
    println!("cargo::rerun-if-changed=build");
    // Cargo shows it, and stops.
    #[cfg(feature = "ui")]
    if let Err(error) = embed::embed() {
        println!("cargo::error={error}");
    }
}
