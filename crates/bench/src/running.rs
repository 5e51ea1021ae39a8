//! How is a child watched while it works, and how does it end with the process that started it?
//!
//! Its standard input ends with that process, however that ends, and then it does. What it says on its standard output
//! are the steps of its work, a line each, and last what it measured.

use std::io::{self, BufReader, Read as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::BenchError;

/// What a line begins with that names a step.
const STEP: &str = "@ ";

/// A step of a child's work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// When it began, in seconds after the start of the child.
    pub at_seconds: f64,
}

/// What a child has said so far.
#[derive(Debug, Default)]
struct Said {
    steps: Vec<Step>,
    last: String,
}

/// A child at work. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    command: String,
    child: Child,
    begun: Instant,
    /// The child ends when this does.
    input: Option<ChildStdin>,
    said: Arc<Mutex<Said>>,
    output: Option<JoinHandle<io::Result<()>>>,
    errors: Option<JoinHandle<io::Result<String>>>,
}

impl Running {
    /// Starts a command.
    ///
    /// # Errors
    /// [`BenchError::Child`].
    pub(crate) fn start(mut command: Command) -> Result<Self, BenchError> {
        let text = format!("{command:?}");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C at a terminal is for this process, with which the child ends.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let begun = Instant::now();
        let mut child = command.spawn().map_err(|error| BenchError::Child {
            command: text.clone(),
            reason: error.to_string(),
        })?;
        let said = Arc::<Mutex<Said>>::default();
        let output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut errors = child.stderr.take().expect("it is a pipe");
        let heard = Arc::clone(&said);
        Ok(Self {
            command: text,
            begun,
            input: child.stdin.take(),
            child,
            said,
            output: Some(thread::spawn(move || hear(output, &heard, begun))),
            errors: Some(thread::spawn(move || {
                let mut bytes = Vec::new();
                errors.read_to_end(&mut bytes)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            })),
        })
    }

    /// Whether it still works.
    ///
    /// # Errors
    /// [`BenchError::Child`] if the system does not say.
    pub(crate) fn is_at_work(&mut self) -> Result<bool, BenchError> {
        let ended = self.child.try_wait();
        let ended = ended.map_err(|error| self.failed(error.to_string()))?;
        Ok(ended.is_none())
    }

    /// The time since its start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Kills it; the step in which that found it, `None` before the first.
    ///
    /// # Errors
    /// [`BenchError::Child`] if the system does not let it be killed.
    pub(crate) fn kill(mut self) -> Result<Option<String>, BenchError> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map_err(|error| self.failed(error.to_string()))?;
        // What it has started may have its output, and ends with the input.
        drop(self.input.take());
        self.heard()?;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(said.steps.last().map(|step| step.name.clone()))
    }

    /// Waits until it ends, and reads what it measured.
    ///
    /// # Errors
    /// [`BenchError::Child`], with the last line of what it said on its standard error.
    pub(crate) fn finish<T: DeserializeOwned>(mut self) -> Result<(T, Vec<Step>), BenchError> {
        let ended = self.child.wait();
        let status = ended.map_err(|error| self.failed(error.to_string()))?;
        let errors = self.heard()?;
        if !status.success() {
            let last = errors.lines().last().unwrap_or("nothing said");
            return Err(self.failed(format!("{status}: {last}")));
        }
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        let measured = serde_json::from_str(&said.last);
        let measured = measured.map_err(|error| self.failed(error.to_string()))?;
        Ok((measured, said.steps))
    }

    /// Waits for all that it has said; what it said on its standard error.
    fn heard(&mut self) -> Result<String, BenchError> {
        let output = self.output.take().map_or(Ok(Ok(())), JoinHandle::join);
        let errors = self.errors.take();
        let errors = errors.map_or(Ok(Ok(String::new())), JoinHandle::join);
        let (Ok(output), Ok(errors)) = (output, errors) else {
            return Err(BenchError::Thread);
        };
        let said = output.and(errors);
        said.map_err(|error| self.failed(error.to_string()))
    }

    fn failed(&self, reason: String) -> BenchError {
        BenchError::Child {
            command: self.command.clone(),
            reason,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        // It may have ended by itself, which is what most do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines to their end.
fn hear(output: impl io::BufRead, said: &Mutex<Said>, begun: Instant) -> io::Result<()> {
    for line in output.lines() {
        let line = line?;
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        match line.strip_prefix(STEP) {
            Some(name) => said.steps.push(Step {
                name: name.to_owned(),
                at_seconds: begun.elapsed().as_secs_f64(),
            }),
            None => said.last = line,
        }
    }
    Ok(())
}

/// The child's side: says that a step begins.
pub(crate) fn say_step(name: &str) {
    println!("{STEP}{name}");
}

/// The child's side: once standard input ends, which it does with the process that started this one, calls a function
/// and ends this process.
pub fn end_with_input(at_end: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        // An error is an end, too.
        let _bytes = io::copy(&mut io::stdin().lock(), &mut io::sink());
        at_end();
        std::process::exit(1);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Running::start(command).expect("there is a shell")
    }

    #[test]
    fn steps_and_what_was_measured_are_told_apart() {
        let running = shell("echo '@ one'; echo '@ two'; echo 7; echo note >&2");
        let (measured, steps) = running.finish::<u64>().expect("it is a number");
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!((measured, names), (7, vec!["one", "two"]));
    }

    #[test]
    fn a_failure_is_told_by_its_last_line() {
        let running = shell("echo first >&2; echo second >&2; exit 3");
        let failed = running.finish::<u64>().expect_err("it failed").to_string();
        assert!(failed.ends_with("3: second"), "{failed}");
    }

    #[test]
    fn what_is_killed_says_in_which_step_that_found_it() {
        let mut running = shell("echo '@ one'; cat; echo '@ never'");
        let is_heard = |running: &Running| !running.said.lock().unwrap().steps.is_empty();
        while !is_heard(&running) {
            thread::yield_now();
        }
        assert!(running.is_at_work().expect("the system says so"));
        assert_eq!(running.kill().expect("it is there").as_deref(), Some("one"));
    }
}
