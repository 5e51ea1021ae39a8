//! On what machine was it measured, and how much memory does this process hold?

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::table::bytes;

/// The hardware and kernel of a measurement; what the system does not tell reads `unknown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The model of the processor.
    pub cpu: String,
    /// How many threads can run at once.
    pub cores: usize,
    /// Physical memory in bytes; 0 if unknown.
    pub memory_bytes: u64,
    /// The name and release of the kernel.
    pub kernel: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let release = read("/proc/sys/kernel/osrelease");
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name").map_or_else(unknown, str::to_owned),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kibibytes(&read("/proc/meminfo"), "MemTotal").unwrap_or(0),
            kernel: match release.trim() {
                "" => std::env::consts::OS.to_owned(),
                release => format!("{} {release}", read("/proc/sys/kernel/ostype").trim()),
            },
        }
    }
}

impl Display for Machine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, {} memory, {}",
            self.cpu,
            self.cores,
            bytes(self.memory_bytes),
            self.kernel
        )
    }
}

/// Memory of this process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Resident now.
    pub resident_bytes: u64,
    /// Resident at most so far.
    pub peak_bytes: u64,
}

impl Memory {
    /// Asks the system.
    ///
    /// # Errors
    /// [`BenchError::Memory`] where there is no `/proc/self/status`.
    pub fn of_this_process() -> Result<Self, BenchError> {
        Self::of("self")
    }

    /// Asks the system about another process of this user's.
    ///
    /// # Errors
    /// [`BenchError::Memory`] where there is no `/proc`, or no such process any more.
    pub fn of_process(process: u32) -> Result<Self, BenchError> {
        Self::of(&process.to_string())
    }

    /// Lets another process's peak begin anew at what is resident now.
    ///
    /// # Errors
    /// [`BenchError::Memory`], as where that needs a newer kernel.
    pub fn forget_peak_of(process: u32) -> Result<(), BenchError> {
        let path = format!("/proc/{process}/clear_refs");
        fs::write(&path, "5").map_err(|e| BenchError::Memory {
            reason: format!("{path}: {e}"),
        })
    }

    fn of(process: &str) -> Result<Self, BenchError> {
        let path = format!("/proc/{process}/status");
        let status = fs::read_to_string(&path).map_err(|e| BenchError::Memory {
            reason: format!("{path}: {e}"),
        })?;
        let get = |name: &str| {
            kibibytes(&status, name).ok_or_else(|| BenchError::Memory {
                reason: format!("{path} has no {name}"),
            })
        };
        Ok(Self {
            resident_bytes: get("VmRSS")?,
            peak_bytes: get("VmHWM")?,
        })
    }
}

/// What of this process's memory is resident, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// All of it, mapped files included.
    pub all_bytes: u64,
    /// What is no part of a file.
    pub anonymous_bytes: u64,
}

impl Resident {
    /// Asks the system. Costs microseconds.
    ///
    /// # Errors
    /// [`BenchError::Memory`] where there is no `/proc/self/status`.
    pub fn now() -> Result<Self, BenchError> {
        let path = "/proc/self/status";
        let failed = |reason: String| BenchError::Memory { reason };
        let status = fs::read_to_string(path).map_err(|e| failed(format!("{path}: {e}")))?;
        let get = |name: &str| {
            kibibytes(&status, name).ok_or_else(|| failed(format!("{path} has no {name}")))
        };
        Ok(Self {
            all_bytes: get("VmRSS")?,
            anonymous_bytes: get("RssAnon")?,
        })
    }

    /// The larger of both in each part.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            all_bytes: self.all_bytes.max(other.all_bytes),
            anonymous_bytes: self.anonymous_bytes.max(other.anonymous_bytes),
        }
    }
}

/// The time that all threads of this process, ended ones included, have had a core.
#[must_use]
pub fn process_cpu() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

/// The time that this thread has had a core.
#[must_use]
pub fn thread_cpu() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

/// The value of the first line `name : value`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim())
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let number = field(text, name)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let text = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t    12 kB\n";
        assert_eq!(kibibytes(text, "VmRSS"), Some(12 << 10));
        assert_eq!(kibibytes(text, "VmHWM"), Some(2 << 20));
        assert_eq!(kibibytes(text, "VmSwap"), None);
        assert_eq!(
            field("model name\t: A CPU: 3\n", "model name"),
            Some("A CPU: 3")
        );
    }

    #[test]
    fn this_process_holds_memory() {
        if !std::path::Path::new("/proc/self/status").exists() {
            println!("SKIPPED: memory of this process (/proc/self/status is absent)");
            return;
        }
        let memory = Memory::of_this_process().unwrap();
        assert!(memory.resident_bytes > 0 && memory.peak_bytes >= memory.resident_bytes);
        let resident = Resident::now().unwrap();
        assert!(resident.anonymous_bytes > 0 && resident.all_bytes >= resident.anonymous_bytes);
    }

    #[test]
    fn work_takes_time_of_a_core() {
        let (process, thread) = (process_cpu(), thread_cpu());
        while thread_cpu() - thread < Duration::from_millis(2) {
            std::hint::black_box(0);
        }
        assert!(process_cpu() - process >= Duration::from_millis(2));
    }
}
