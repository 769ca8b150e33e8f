//! Checks of the repository itself: `cargo run -p xtask -- tidy`.
//!
//! The command reads the files of the repository and prints a complaint for each violated rule. It never changes a
//! file. Exit code 0: no complaints; 1: complaints; 2: wrong arguments, or the repository cannot be read.

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
    // The variable at run time names the clone in which the command runs. The value at build time may name another
    // clone, because clones can share builds.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here).join("..")
}
