//! `tidegraph user`: hashes passwords, and edits the file of users.

use crate::authentication::{Entry, Grant, UsersFile, check_name, hash};
use anyhow::Context;
use clap::{Args, Subcommand};
use std::fs::{OpenOptions, Permissions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidegraph_platform::read_secret_file_up_to;

/// Most bytes of the file.
const LONGEST_BYTES: u64 = 1 << 20;

/// Flags of `user`.
#[derive(Args, Debug)]
pub struct User {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Read a password from the terminal or from standard input, and print its hash.
    Hash,
    /// Add a user to a file, or change the password and the roles of one. The password is read from the terminal or
    /// from standard input.
    Add {
        /// Name of the user.
        name: String,
        /// File of users. It is made if it does not exist.
        #[arg(long, value_name = "FILE")]
        users: PathBuf,
        /// Role of the user: read, write, load or admin, in one graph of the service as GRAPH:ROLE; may be given more than
        /// once. Without a role the user may only
        /// see the health and the metrics of the service.
        #[arg(long)]
        role: Vec<Grant>,
    },
    /// Remove a user from a file.
    Remove {
        /// Name of the user.
        name: String,
        /// File of users.
        #[arg(long, value_name = "FILE")]
        users: PathBuf,
    },
}

impl User {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// If a name or a password is wrong, or the file cannot be read or written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Hash => println!("{}", hashed()?),
            Command::Add { name, users, role } => {
                check_name(&name).map_err(anyhow::Error::msg)?;
                let mut file = read(&users)?.unwrap_or_default();
                let mut roles: Vec<String> = role.iter().map(ToString::to_string).collect();
                roles.dedup();
                let entry = Entry { name, password: hashed()?, roles };
                match file.users.iter_mut().find(|user| user.name == entry.name) {
                    Some(user) => *user = entry,
                    None => file.users.push(entry),
                }
                write(&users, &file)?;
            }
            Command::Remove { name, users } => {
                let mut file =
                    read(&users)?.with_context(|| format!("there is no file {}", users.display()))?;
                let before = file.users.len();
                file.users.retain(|user| user.name != name);
                anyhow::ensure!(
                    file.users.len() < before,
                    "there is no user {name:?} in {}",
                    users.display()
                );
                write(&users, &file)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads a password and hashes it.
fn hashed() -> anyhow::Result<String> {
    let password = if io::stdin().is_terminal() {
        let first = rpassword::prompt_password("Password: ")?;
        anyhow::ensure!(first == rpassword::prompt_password("Again: ")?, "the two passwords differ");
        first
    } else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    hash(&password).map_err(anyhow::Error::msg)
}

/// Reads a file; `None` if there is none.
fn read(file: &Path) -> anyhow::Result<Option<UsersFile>> {
    match read_secret_file_up_to(file, LONGEST_BYTES) {
        Ok(text) => {
            let parsed = UsersFile::parse(&text).map_err(anyhow::Error::msg);
            Ok(Some(parsed.with_context(|| file.display().to_string())?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

/// Writes a file in one step: a service that reads it meanwhile sees the old one or the new one.
#[expect(clippy::disallowed_methods, reason = "the file is one that the user names")]
fn write(file: &Path, users: &UsersFile) -> anyhow::Result<()> {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let write = || -> io::Result<()> {
        let mut made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        made.set_permissions(Permissions::from_mode(0o600))?;
        made.write_all(&serde_json::to_vec_pretty(users)?)?;
        made.write_all(b"\n")?;
        made.sync_all()?;
        // The service may run as another user, of the same group.
        if let Ok(old) = std::fs::metadata(file) {
            made.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o660))?;
        }
        std::fs::rename(&new, file)
    };
    write().with_context(|| format!("{} cannot be written", file.display()))
}
