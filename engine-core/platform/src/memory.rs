//! Memory of the process and of the machine.

use std::fs;

/// Bytes of memory that the process has now (its resident set); `None` where the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    field(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Bytes that the process may have: those of the machine, or of the control group that it runs in, if that allows less.
#[must_use]
pub fn machine_bytes() -> Option<u64> {
    let machine = field(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    // Version 2 of control groups, and version 1. Seen from inside a container these are its own.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = limits.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    Some(machine.min(limit.unwrap_or(u64::MAX)))
}

/// A line such as `VmRSS:  1234 kB`, in bytes.
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
