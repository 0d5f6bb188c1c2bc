//! What Linux tells of processor, process and memory. Elsewhere nothing is known, and nothing is said.

use std::path::{Path, PathBuf};

/// The name of the processor, as the system calls it.
pub fn processor() -> Option<String> {
    field("/proc/cpuinfo", "model name")
}

/// The signals that the parent of this process wants ignored: bit 0 is signal 1.
#[cfg(unix)]
pub(super) fn ignored_signals() -> u64 {
    field("/proc/self/status", "SigIgn").and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0)
}

/// How much memory this process can still have, and what bounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Free {
    /// Bytes.
    pub bytes: usize,
    /// What has no more.
    pub bound: &'static str,
    /// How there could be more.
    pub way_out: &'static str,
}

/// The least of what the machine has, the limits of this process (`ulimit`), and those of its control groups, which containers and
/// batch systems use.
pub fn free_memory() -> Option<Free> {
    let machine = || Some(kilobytes("/proc/meminfo", "MemAvailable")? + kilobytes("/proc/meminfo", "SwapFree")?);
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let under = |limit, used| Some(soft_limit(&limits, limit)?.saturating_sub(kilobytes("/proc/self/status", used)?));
    let all = [
        (machine(), "this machine", "or a machine with more"),
        (under("Max address space", "VmSize"), "the limit of address space", "or raise the limit by `ulimit -v`"),
        (under("Max data size", "VmData"), "the limit of data", "or raise the limit by `ulimit -d`"),
        (group_memory(), "the limit of this container or job", "or give it more"),
    ];
    let known = all.into_iter().filter_map(|(bytes, bound, way_out)| Some(Free { bytes: bytes?, bound, way_out }));
    known.min_by_key(|free| free.bytes)
}

/// The first number in a row of `/proc/self/limits`; `None` without a limit.
fn soft_limit(limits: &str, name: &str) -> Option<usize> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// What is left to the control groups that this process is in.
fn group_memory() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(|line| group_of(line, Path::new("/sys/fs/cgroup"))).min()
}

/// What is left to one of them, and to those above it, by a line of `/proc/self/cgroup` and the folder of all groups. Files that the
/// system would drop for others count as free.
fn group_of(line: &str, root: &Path) -> Option<usize> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (kinds, group) = (parts.next()?, parts.next()?.trim_start_matches('/'));
    let (root, [limit, used, cached]) = match kinds {
        "" => (root.to_owned(), ["memory.max", "memory.current", "inactive_file"]),
        kinds if kinds.split(',').any(|kind| kind == "memory") => {
            let names = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"];
            (root.join("memory"), names)
        }
        _ => return None,
    };
    let left = |folder: &Path| -> Option<usize> {
        let number = |name: &str| std::fs::read_to_string(folder.join(name)).ok()?.trim().parse::<usize>().ok();
        let stat = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cached = stat.lines().find_map(|line| line.strip_prefix(cached)?.trim().parse().ok()).unwrap_or(0);
        Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(cached)))
    };
    let folder: PathBuf = root.join(group);
    folder.ancestors().take_while(|folder| folder.starts_with(&root)).filter_map(left).min()
}

/// A number of `kB` in bytes.
fn kilobytes(file: &str, key: &str) -> Option<usize> {
    Some(1024 * field(file, key)?.trim_end_matches("kB").trim().parse::<usize>().ok()?)
}

/// What follows the colon of the first line that begins with `key`.
fn field(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_none() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max data size             unlimited            unlimited            bytes     \n\
                      Max address space         2048000000           unlimited            bytes     \n";
        assert_eq!(soft_limit(limits, "Max address space"), Some(2_048_000_000));
        assert_eq!(soft_limit(limits, "Max data size"), None);
        assert_eq!(soft_limit("", "Max data size"), None);
    }

    #[test]
    fn the_tightest_of_all_control_groups_counts_and_files_in_it_are_free() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (group, limit, used, cached) in [("job", "9000\n", "5000\n", 1000), ("job/step", "max\n", "4000\n", 900)] {
            write(&format!("{group}/memory.max"), limit);
            write(&format!("{group}/memory.current"), used);
            write(&format!("{group}/memory.stat"), &format!("anon 4000\ninactive_file {cached}\n"));
        }
        let left = |line: &str| group_of(line, root.path());
        assert_eq!(
            (left("0::/job/step"), left("0::/other"), left("5:cpu:/job"), left("")),
            (Some(5000), None, None, None)
        );
        // The older kind, whose stand-in for no limit is a large number.
        for (group, limit) in [("memory", i64::MAX), ("memory/pod", 7000)] {
            write(&format!("{group}/memory.limit_in_bytes"), &format!("{limit}\n"));
            write(&format!("{group}/memory.usage_in_bytes"), "6000\n");
            write(&format!("{group}/memory.stat"), "total_inactive_file 500\n");
        }
        assert_eq!(left("4:cpu,memory:/pod"), Some(1500));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_memory() {
        assert!(free_memory().is_some_and(|free| free.bytes > 0));
        assert_eq!(ignored_signals() & 1 << 14, 0, "SIGTERM is heard");
    }
}
