//! On what machine was it measured, and how much memory does this process hold?

use std::fmt::{self, Display, Formatter};
use std::fs;

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
    }
}
