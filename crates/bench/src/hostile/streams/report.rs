//! What was found under attacks on streams, as tables and as JSON?

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::hostile::report::LightUnder;
use crate::machine::Machine;
use crate::table::{Table, bytes, millis, thousands};

/// What the allocator may keep of an attack, once all that it made is gone: pages in which a thousand
/// connections had their buffers. It does not grow with the next attack.
pub(super) const REST_BYTES: u64 = 192 << 20;
/// How many times its quiet value the 99th percentile of light queries may be,
const MOST_TIMES_QUIET: f64 = 10.0;
/// unless it is below so many milliseconds.
const ALWAYS_MS: f64 = 100.0;

/// One attack, and what became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AttackReport {
    /// Its name.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// How often which status came to what.
    pub answers: BTreeMap<String, u64>,
    /// The first refusal of each kind.
    pub said: BTreeMap<String, String>,
    /// Answers that should have been others.
    pub wrong: Vec<String>,
    /// The server's memory before it,
    pub before_bytes: u64,
    /// the most that it held,
    pub peak_bytes: u64,
    /// and what it held once that was back, or long after.
    pub after_bytes: u64,
    /// How long that took.
    pub back_seconds: f64,
    /// One-shot queries before it.
    pub quiet_one_shot: LightUnder,
    /// The results of the continuous query before it.
    pub quiet_continuous: LightUnder,
    /// One-shot queries beside it.
    pub one_shot: LightUnder,
    /// The results of the continuous query beside it.
    pub continuous: LightUnder,
    /// After it the server has the data that it had, and nothing of the attack.
    pub is_sound: bool,
}

/// All attacks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamsReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Of this program.
    pub version: String,
    /// Whether it was built to be fast.
    pub optimized: bool,
    /// How long attacks went on that have no end of their own.
    pub seconds: f64,
    /// What all queries of the server may hold together.
    pub memory_bytes: u64,
    /// What the windows of a stream may take, of which no attack has more than one that is filled.
    pub stream_bytes: u64,
    /// One by one.
    pub attacks: Vec<AttackReport>,
}

impl StreamsReport {
    /// What the server may hold: what it held before, what requests may add, and the windows of a stream;
    /// and a tenth for what the allocator keeps.
    #[must_use]
    pub fn ceiling_bytes(&self, attack: &AttackReport) -> u64 {
        (attack.before_bytes + self.memory_bytes + self.stream_bytes) / 10 * 11
    }

    /// What is wrong with each attack, by its name.
    #[must_use]
    pub fn failures(&self) -> Vec<(String, String)> {
        let all = self.attacks.iter().flat_map(|attack| {
            let failures = self.failures_of(attack).into_iter();
            failures.map(|failure| (attack.name.clone(), failure))
        });
        all.collect()
    }

    fn failures_of(&self, attack: &AttackReport) -> Vec<String> {
        let mut failures = attack.wrong.clone();
        let (peak, ceiling) = (attack.peak_bytes, self.ceiling_bytes(attack));
        if peak > ceiling {
            failures.push(format!("memory {} of {}", bytes(peak), bytes(ceiling)));
        }
        if attack.after_bytes > attack.before_bytes + REST_BYTES {
            failures.push(format!(
                "memory is not back: {} before, {} after",
                bytes(attack.before_bytes),
                bytes(attack.after_bytes)
            ));
        }
        for (what, light, quiet) in [
            ("one-shot", &attack.one_shot, &attack.quiet_one_shot),
            ("continuous", &attack.continuous, &attack.quiet_continuous),
        ] {
            if light.failed > 0 {
                let first = light.first_failure.as_deref().unwrap_or("");
                failures.push(format!("{} light {what} failed: {first}", light.failed));
            }
            let (p99, most) = (light.timing.p99_ms, MOST_TIMES_QUIET * quiet.timing.p99_ms);
            // Without optimization, times say nothing of a server.
            if self.optimized && p99 > ALWAYS_MS.max(most) {
                failures.push(format!("light {what} p99 {} ms", millis(p99)));
            }
        }
        if !attack.is_sound {
            failures.push("the server has not what it had".to_owned());
        }
        failures
    }
}

impl Display for StreamsReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "jindou {} on {}", self.version, self.machine)?;
        if !self.optimized {
            writeln!(f, "built without optimization: times are not judged")?;
        }
        let memory = bytes(self.memory_bytes);
        writeln!(f, "queries may hold {memory} together\n")?;
        for attack in &self.attacks {
            write_attack(f, attack)?;
        }
        let times = "p50, p99, max, ms";
        let mut table = Table::new([
            "attack",
            "peak",
            "of",
            "after",
            &format!("one-shot {times}"),
            &format!("continuous {times}"),
            "",
        ]);
        for attack in &self.attacks {
            let is_held = self.failures_of(attack).is_empty();
            table.row([
                attack.name.clone(),
                bytes(attack.peak_bytes),
                bytes(self.ceiling_bytes(attack)),
                bytes(attack.after_bytes),
                times_of(&attack.one_shot),
                times_of(&attack.continuous),
                if is_held { "held" } else { "BROKEN" }.to_owned(),
            ]);
        }
        write!(f, "{table}")?;
        for (name, failure) in self.failures() {
            write!(f, "\nBROKEN: {name}: {failure}")?;
        }
        Ok(())
    }
}

fn times_of(light: &LightUnder) -> String {
    let timing = &light.timing;
    let all = [timing.median_ms, timing.p99_ms, light.max_ms];
    all.map(millis).join(" ")
}

fn write_attack(f: &mut Formatter<'_>, attack: &AttackReport) -> fmt::Result {
    writeln!(f, "{} ({:.1} s)", attack.name, attack.seconds)?;
    for (kind, count) in &attack.answers {
        write!(f, "  {} x {kind}", thousands(*count))?;
        match attack.said.get(kind) {
            Some(said) => writeln!(f, ": {said}")?,
            None => writeln!(f)?,
        }
    }
    writeln!(f)
}
