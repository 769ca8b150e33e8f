//! Chores of this repository that are easier said in Rust than in a shell: `cargo run -p xtask -- tidy`.
//!
//! It reads the repository and says what is wrong; it never changes a file.

#![allow(clippy::disallowed_methods, reason = "chores of the repository read its files")]

mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p xtask -- tidy";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    match tidy::check_repository(&repository_root()) {
        Ok(complaints) if complaints.is_empty() => {
            println!("tidy: nothing to complain about");
            ExitCode::SUCCESS
        }
        Ok(complaints) => {
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            eprintln!("tidy: {} complaints", complaints.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy could not look: {error}");
            ExitCode::from(2)
        }
    }
}

fn repository_root() -> std::path::PathBuf {
    // Where it runs, not where it was built: builds are shared between clones.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).join("..")
}
