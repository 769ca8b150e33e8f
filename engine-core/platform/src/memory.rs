//! Memory of the process and of the machine.

use std::fs;

/// Returns the resident memory of the process in bytes; `None` if the system does not report it.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the system answers in files")]
pub fn resident_bytes() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Returns the memory that the process may use, in bytes: that of the machine, or the limit of its control group if
/// that is lower.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the system answers in files")]
pub fn machine_bytes() -> Option<u64> {
    let machine = field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    // Versions 2 and 1 of control groups. Inside a container these files are those of the container.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = limits.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    Some(machine.min(limit.unwrap_or(u64::MAX)))
}

/// Returns the value of a line such as `VmRSS:  1234 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_system_are_read() {
        let text = "Name:\tx\nVmRSS:\t   12 kB\nVmData:\t 3 MB\n";
        assert_eq!(field(text, "VmRSS:"), Some(12 << 10));
        assert_eq!(field(text, "VmData:"), None);
        assert_eq!(field(text, "VmSwap:"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_fits_into_the_machine() {
        let (own, machine) = (resident_bytes().unwrap(), machine_bytes().unwrap());
        assert!(own > 1 << 20 && own <= machine, "{own} of {machine}");
    }
}
