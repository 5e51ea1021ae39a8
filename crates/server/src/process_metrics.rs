//! What does the process take of the machine, by the names that Prometheus has for it?

use std::fmt;

use crate::metrics_now::Figure;

/// Nothing where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn encode_process(out: &mut Figure<'_>) -> fmt::Result {
    match read() {
        Ok(process) => process.encode(out),
        Err(error) => {
            tracing::debug!(%error, "the process's figures cannot be read");
            Ok(())
        }
    }
}

/// Nothing where the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn encode_process(_: &mut Figure<'_>) -> fmt::Result {
    Ok(())
}

#[cfg(target_os = "linux")]
struct Figures {
    resident_bytes: u64,
    virtual_bytes: u64,
    cpu_seconds: f64,
    open_files: usize,
    most_files: Option<u64>,
    /// Since 1970.
    started_seconds: f64,
    threads: i64,
}

#[cfg(target_os = "linux")]
fn read() -> procfs::ProcResult<Figures> {
    use procfs::process::{LimitValue, Process};
    let process = Process::myself()?;
    let stat = process.stat()?;
    let ticks = procfs::ticks_per_second() as f64;
    let most_files = match process.limits()?.max_open_files.soft_limit {
        LimitValue::Value(most) => Some(most),
        LimitValue::Unlimited => None,
    };
    Ok(Figures {
        resident_bytes: stat.rss * procfs::page_size(),
        virtual_bytes: stat.vsize,
        cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
        open_files: process.fd_count()?,
        most_files,
        started_seconds: procfs::boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
        threads: stat.num_threads,
    })
}

#[cfg(target_os = "linux")]
impl Figures {
    fn encode(&self, out: &mut Figure<'_>) -> fmt::Result {
        out.gauge(
            (
                "process_resident_memory_bytes",
                "Resident memory of the process.",
            ),
            self.resident_bytes,
        )?;
        out.gauge(
            (
                "process_virtual_memory_bytes",
                "Address space of the process.",
            ),
            self.virtual_bytes,
        )?;
        out.counter(
            (
                "process_cpu_seconds",
                "Time that the process had of the cores.",
            ),
            self.cpu_seconds,
        )?;
        out.gauge(
            ("process_open_fds", "Open files and connections."),
            self.open_files,
        )?;
        if let Some(most) = self.most_files {
            out.gauge(
                ("process_max_fds", "Files and connections that may be open."),
                most,
            )?;
        }
        out.gauge(
            (
                "process_start_time_seconds",
                "When the process began, in seconds since 1970.",
            ),
            self.started_seconds,
        )?;
        out.gauge(("process_threads", "Threads of the process."), self.threads)
    }
}
