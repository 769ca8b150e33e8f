//! The disk of the daemon's local data: its file system, its free space, and the RAID that several disks should be.

use super::finding::{Finding, Status};
use super::{names, read};
use std::path::{Path, PathBuf};

const DISK: &str = "machine.disk";
const RAID: &str = "machine.raid";
/// A file system on the machine's own disks has its own mount, of one of these kinds.
const KINDS: [&str; 3] = ["xfs", "ext4", "btrfs"];
/// Links to the instance storage of machines on AWS (`infra/node/prepare.sh`).
const INSTANCE_STORAGE: &str = "nvme-Amazon_EC2_NVMe_Instance_Storage_";
const GIB: f64 = (1_u64 << 30) as f64;

/// A mounted file system.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    point: PathBuf,
    kind: String,
    /// Its device, such as `/dev/md127`.
    source: String,
}

/// Looks at the file system of a directory and at its RAID.
pub fn look(data: &Path, least_free_bytes: u64) -> Vec<Finding> {
    #[expect(clippy::disallowed_methods, reason = "a command that finds the mount of a directory")]
    let real = match std::fs::canonicalize(data) {
        Ok(real) => real,
        Err(error) => {
            let (seen, wanted) = (format!("{}: {error}", data.display()), "the directory of local data");
            let remedy = "systemctl status tidegraph-prepare; or give the daemon's directory as --data";
            return vec![Finding::wrong(Status::Failed, DISK, seen, wanted, remedy)];
        }
    };
    let mounts = match read("/proc/self/mountinfo") {
        Ok(mounts) => mounts,
        Err(error) => return vec![Finding::unknown(DISK, error, "")],
    };
    let Some(mount) = mount_of(&mounts, &real) else {
        return vec![Finding::unknown(DISK, format!("no mount has {}", real.display()), "")];
    };
    let space = match rustix::fs::statvfs(&real) {
        Ok(stat) => Space {
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            all: stat.f_blocks.saturating_mul(stat.f_frsize),
        },
        Err(error) => return vec![Finding::unknown(DISK, format!("{}: {error}", real.display()), "")],
    };
    vec![judge(&mount, space, least_free_bytes), judge_raid(&mount.source, instance_disks())]
}

/// Bytes of a file system.
#[derive(Clone, Copy, Debug)]
struct Space {
    free: u64,
    all: u64,
}

fn judge(mount: &Mount, space: Space, least_free_bytes: u64) -> Finding {
    let gib = |bytes: u64| bytes as f64 / GIB;
    let seen = format!(
        "{} on {} ({}), {:.1} of {:.1} GiB are free",
        mount.point.display(),
        mount.source,
        mount.kind,
        gib(space.free),
        gib(space.all)
    );
    let room = format!("at least a tenth free, and {:.1} GiB in any case", gib(least_free_bytes));
    if space.free < least_free_bytes {
        let remedy = "the node leaves the map: give machines with more disk (nodes.instanceType), or more nodes (nodes.count)";
        return Finding::wrong(Status::Failed, DISK, seen, room, remedy);
    }
    if !KINDS.contains(&mount.kind.as_str()) || mount.point == Path::new("/") {
        let wanted = "a file system of its own (XFS) on the machine's disks";
        let remedy =
            "systemctl status tidegraph-prepare, which mounts it; elsewhere, mount one at the directory";
        return Finding::wrong(Status::Warning, DISK, seen, wanted, remedy);
    }
    if space.free < space.all / 10 {
        let remedy = "raise nodes.count, or take machines with more disk (nodes.instanceType)";
        return Finding::wrong(Status::Warning, DISK, seen, room, remedy);
    }
    Finding::ok(DISK, seen)
}

/// Looks at the RAID that a device is.
fn judge_raid(source: &str, disks: usize) -> Finding {
    let Some(name) = source.strip_prefix("/dev/").filter(|name| name.starts_with("md")) else {
        if disks > 1 {
            let seen = format!("{source} is one disk of {disks}");
            let remedy = "systemctl restart tidegraph-prepare, on a machine whose daemon is stopped and whose disk is not mounted";
            return Finding::wrong(Status::Failed, RAID, seen, "a RAID of all of them", remedy);
        }
        return Finding::absent(RAID, format!("{source} is not a RAID"));
    };
    #[expect(clippy::disallowed_methods, reason = "a command that resolves a link of the system")]
    let real = std::fs::canonicalize(source).unwrap_or_else(|_| PathBuf::from(format!("/dev/{name}")));
    let of = PathBuf::from("/sys/block").join(real.file_name().unwrap_or_default()).join("md");
    let get = |what: &str| read(of.join(what)).map(|text| text.trim().to_owned());
    match (get("level"), get("array_state"), get("raid_disks")) {
        (Ok(level), Ok(state), Ok(members)) => judge_array(source, &level, &state, &members, disks),
        (level, state, members) => {
            let error = [level, state, members].into_iter().find_map(Result::err).unwrap_or_default();
            Finding::unknown(RAID, error, "cat /proc/mdstat")
        }
    }
}

fn judge_array(source: &str, level: &str, state: &str, members: &str, disks: usize) -> Finding {
    let seen = format!("{source}: {level} of {members} disks, {state}");
    let works =
        matches!(state, "clean" | "active" | "active-idle" | "write-pending" | "readonly" | "read-auto");
    let has_all = members.parse::<usize>().is_ok_and(|members| members >= disks);
    if works && has_all {
        return Finding::ok(RAID, seen);
    }
    let wanted = format!("active, of all {disks} disks");
    let remedy =
        "cat /proc/mdstat; a machine whose disk is broken is best ended: its replicas are restored elsewhere";
    Finding::wrong(Status::Failed, RAID, seen, wanted, remedy)
}

/// Counts the disks of the machine's instance storage, as `infra/node/prepare.sh` does: links to partitions and second
/// links to a disk are left out.
fn instance_disks() -> usize {
    let all = names(Path::new("/dev/disk/by-id")).unwrap_or_default();
    all.iter().filter(|name| is_instance_disk(name)).count()
}

fn is_instance_disk(name: &str) -> bool {
    let Some(serial) = name.strip_prefix(INSTANCE_STORAGE) else { return false };
    let is_second = serial
        .rsplit_once('_')
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    !serial.contains("-part") && !is_second
}

/// Finds the mount of a path in a text of `/proc/PID/mountinfo`: the last one of the longest mount point.
fn mount_of(mountinfo: &str, path: &Path) -> Option<Mount> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = PathBuf::from(unescaped(before.split(' ').nth(4)?));
        let mut rest = after.split(' ');
        let (kind, source) = (rest.next()?.to_owned(), unescaped(rest.next()?));
        path.starts_with(&point).then_some(Mount { point, kind, source })
    });
    mounts.max_by_key(|mount| mount.point.components().count())
}

/// Replaces the escapes of mountinfo: `\040` is a space.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(part.get(3..).unwrap_or_default());
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 259:1 / / rw,noatime shared:1 - xfs /dev/nvme0n1p1 rw,attr2
30 22 0:25 / /run rw,nosuid shared:12 - tmpfs tmpfs rw,size=6g
41 22 9:127 / /var/lib/tidegraph rw,nosuid,nodev,noexec,noatime shared:20 - xfs /dev/md127 rw
42 22 9:1 / /mnt/two\\040words rw - ext4 /dev/sdb rw
";

    fn mount(path: &str) -> Mount {
        mount_of(MOUNTS, Path::new(path)).unwrap()
    }

    #[test]
    fn the_longest_mount_point_has_a_path() {
        assert_eq!(mount("/var/lib/tidegraph/spill").source, "/dev/md127");
        assert_eq!(mount("/var/lib/tidegraph2").point, Path::new("/"));
        assert_eq!(mount("/mnt/two words/x").kind, "ext4");
        assert_eq!(mount_of("", Path::new("/x")), None);
        assert_eq!(mount_of("a line without the middle\n", Path::new("/x")), None);
    }

    #[test]
    fn free_space_and_the_kind_of_the_file_system_are_judged() {
        let (own, root, volatile) = (mount("/var/lib/tidegraph"), mount("/home"), mount("/run/x"));
        let space = |free: u64| Space { free: free << 30, all: 900 << 30 };
        let status = |mount: &Mount, free| judge(mount, space(free), 1 << 30).status;
        assert_eq!(status(&own, 800), Status::Ok);
        assert_eq!(status(&own, 50), Status::Warning);
        assert_eq!(status(&own, 0), Status::Failed);
        assert_eq!(status(&root, 800), Status::Warning);
        assert_eq!(status(&volatile, 800), Status::Warning);
        let said = judge(&own, space(450), 1 << 30);
        assert_eq!(said.seen, "/var/lib/tidegraph on /dev/md127 (xfs), 450.0 of 900.0 GiB are free");
    }

    #[test]
    fn a_raid_has_all_disks_and_is_active() {
        let judged = |state, disks| judge_array("/dev/md127", "raid0", state, "2", disks);
        assert_eq!(judged("clean", 2).status, Status::Ok);
        assert_eq!(judged("clean", 2).seen, "/dev/md127: raid0 of 2 disks, clean");
        assert_eq!(judged("inactive", 2).status, Status::Failed);
        assert_eq!(judged("clean", 4).status, Status::Failed);
        assert_eq!(judge_raid("/dev/nvme1n1", 1).status, Status::Absent);
        assert_eq!(judge_raid("/dev/nvme1n1", 2).status, Status::Failed);
    }

    #[test]
    fn links_to_partitions_and_second_links_are_no_disks() {
        let link = |rest: &str| is_instance_disk(&format!("{INSTANCE_STORAGE}{rest}"));
        assert!(link("AWS1234ABCD"));
        assert!(!link("AWS1234ABCD_1"));
        assert!(!link("AWS1234ABCD-part1"));
        assert!(!is_instance_disk("nvme-Amazon_Elastic_Block_Store_vol1"));
    }
}
