//! What do requests of clients say of kills, once all of them are known?

use std::time::{Duration, Instant};

use serde::Serialize;

use super::client::{Failed, Outcome};

/// Failed requests that are shown of each kind of time.
const EXAMPLES: usize = 10;

/// How a figure is spread over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// How many rounds.
    pub count: usize,
    /// The one in the middle, the lower of two.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |place: Option<usize>| place.map_or(f64::NAN, |place| values[place]);
        let last = values.len().checked_sub(1);
        Self {
            count: values.len(),
            median: at(last.map(|last| last / 2)),
            max: at(last),
        }
    }

    fn of_times(times: impl Iterator<Item = Duration>) -> Self {
        Self::of(times.map(|time| time.as_secs_f64() * 1e3))
    }
}

/// What clients sent, and how much of it failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Requests {
    /// Light queries sent.
    pub queries: u64,
    /// Those that failed.
    pub queries_failed: Failed,
    /// Updates sent.
    pub updates: u64,
    /// Those that were not acknowledged.
    pub updates_failed: Failed,
    /// The longest time that a light query took or failed after, in milliseconds.
    pub longest_query_ms: f64,
    /// Some of those that failed.
    pub examples: Vec<FailedRequest>,
}

/// What kills of nodes in one role came to.
#[derive(Debug, Clone, Serialize)]
pub struct Failures {
    /// Until all other nodes said that it is away, in milliseconds.
    pub noticed_ms: Spread,
    /// Until an update was acknowledged that was sent after the kill.
    pub acknowledged_ms: Spread,
    /// The longest time that a light query at another node took or failed after, from the kill until all nodes were in sync.
    pub longest_query_ms: Spread,
    /// From the start of the process until the node was in sync.
    pub in_sync_ms: Spread,
    /// Transactions committed between the kill and that.
    pub missed: Spread,
    /// What was sent to the other nodes in that time.
    pub others: Requests,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedRequest {
    /// The node that it was sent to.
    pub node: String,
    /// Whether it was an update.
    pub is_update: bool,
    /// When it was sent, in milliseconds from the kill that it was around.
    pub sent_ms: Option<f64>,
    /// How long it took.
    pub took_ms: f64,
    /// What the client was told.
    pub reason: String,
}

/// What all kills came to.
#[derive(Debug, Clone, Serialize)]
pub struct FailureReport {
    /// Of the node that led.
    pub leader: Failures,
    /// Of one that did not.
    pub follower: Failures,
    /// What was sent while all nodes were there.
    pub between: Requests,
}

/// A request of a client.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// The number of the server.
    pub(super) server: usize,
    pub(super) is_update: bool,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
    pub(super) outcome: Outcome,
}

impl Sample {
    fn took_ms(&self) -> f64 {
        ms(self.begun, self.ended)
    }

    fn failed(&self, killed: Option<Instant>) -> Option<FailedRequest> {
        Some(FailedRequest {
            node: super::name(self.server as u32),
            is_update: self.is_update,
            sent_ms: killed.map(|killed| ms(killed, self.begun) - ms(self.begun, killed)),
            took_ms: self.took_ms(),
            reason: self.outcome.failure()?,
        })
    }
}

/// From one instant to another in milliseconds; 0 where that is before.
fn ms(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}

/// A kill and what was seen of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// The number of the server that was killed,
    pub(super) victim: usize,
    /// whether it led,
    pub(super) led: bool,
    /// and when it was.
    pub(super) killed: Instant,
    /// From then until all others said so.
    pub(super) noticed: Duration,
    /// From its start until it was in sync.
    pub(super) in_sync: Duration,
    /// Transactions that it missed.
    pub(super) missed: u64,
    /// When all nodes were there and in sync again.
    pub(super) whole: Instant,
}

/// The figures of these kills, from requests in any order.
pub(super) fn report(rounds: &[Round], samples: &[Sample]) -> FailureReport {
    let mut around = vec![Vec::new(); rounds.len()];
    let mut between = Requests::default();
    for sample in samples {
        // One that outlasts all of a round is of no other: it began there.
        match rounds.iter().position(|round| round.is_around(sample)) {
            Some(round) if rounds[round].victim == sample.server => {}
            Some(round) => around[round].push(sample),
            None => between.note(sample, None),
        }
    }
    let of = |led: bool| {
        let both = rounds.iter().zip(&around);
        failures(both.filter(|(round, _)| round.led == led).collect())
    };
    FailureReport {
        leader: of(true),
        follower: of(false),
        between,
    }
}

/// Those of rounds, each with what was sent to the other nodes.
fn failures(rounds: Vec<(&Round, &Vec<&Sample>)>) -> Failures {
    let mut others = Requests::default();
    let mut longest = Vec::new();
    for (round, samples) in &rounds {
        let mut of_round = Requests::default();
        for sample in *samples {
            of_round.note(sample, None);
            others.note(sample, Some(round.killed));
        }
        longest.push(of_round.longest_query_ms);
    }
    let acknowledged = (rounds.iter()).filter_map(|(round, samples)| round.acknowledged(samples));
    let all = || rounds.iter().map(|(round, _)| round);
    Failures {
        noticed_ms: Spread::of_times(all().map(|round| round.noticed)),
        acknowledged_ms: Spread::of_times(acknowledged),
        longest_query_ms: Spread::of(longest),
        in_sync_ms: Spread::of_times(all().map(|round| round.in_sync)),
        missed: Spread::of(all().map(|round| round.missed as f64)),
        others,
    }
}

impl Round {
    /// Whether a request was under way between the kill and when all was as before.
    fn is_around(&self, sample: &Sample) -> bool {
        sample.ended >= self.killed && sample.begun <= self.whole
    }

    /// How long it took until the first update was acknowledged, of those sent to others, that was sent after the kill.
    fn acknowledged(&self, samples: &[&Sample]) -> Option<Duration> {
        let is_next = |sample: &&&Sample| {
            sample.is_update && sample.outcome == Outcome::Done && sample.begun >= self.killed
        };
        let ends = samples.iter().filter(is_next).map(|sample| sample.ended);
        ends.min().map(|ended| ended.duration_since(self.killed))
    }
}

impl Requests {
    /// Counts a request, which may be one around a kill.
    pub(super) fn note(&mut self, sample: &Sample, killed: Option<Instant>) {
        match sample.is_update {
            true => {
                self.updates += 1;
                self.updates_failed.note(&sample.outcome);
            }
            false => {
                self.queries += 1;
                self.queries_failed.note(&sample.outcome);
                self.longest_query_ms = self.longest_query_ms.max(sample.took_ms());
            }
        }
        if self.examples.len() < EXAMPLES {
            self.examples.extend(sample.failed(killed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_and_the_largest() {
        let spread = Spread::of([3.0, 1.0, 2.0]);
        assert_eq!((spread.count, spread.median, spread.max), (3, 2.0, 3.0));
        assert_eq!(Spread::of([4.0, 1.0]).median, 1.0);
        assert!(Spread::of([]).median.is_nan());
    }

    /// Times in milliseconds from one instant.
    fn sample(
        server: usize,
        is_update: bool,
        (begun, ended): (u64, u64),
        outcome: Outcome,
    ) -> Sample {
        let at = |ms| origin() + Duration::from_millis(ms);
        Sample {
            server,
            is_update,
            begun: at(begun),
            ended: at(ended),
            outcome,
        }
    }

    fn report_of(rounds: &[Round], sample: Sample) -> FailureReport {
        report(rounds, &[sample])
    }

    fn origin() -> Instant {
        static ORIGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *ORIGIN.get_or_init(Instant::now)
    }

    #[test]
    fn what_others_are_asked_around_a_kill_is_counted_and_what_the_killed_node_is_asked_is_not() {
        let round = Round {
            victim: 0,
            led: true,
            killed: origin() + Duration::from_millis(1_000),
            noticed: Duration::from_millis(3),
            in_sync: Duration::from_millis(400),
            missed: 12,
            whole: origin() + Duration::from_millis(5_000),
        };
        let done = Outcome::Done;
        let refused = |status| Outcome::Refused {
            status,
            said: "not now".to_owned(),
        };
        let cut = Outcome::Cut("it ended".to_owned());
        let samples = [
            sample(1, false, (10, 12), done.clone()),
            sample(0, false, (999, 1_001), cut),
            sample(1, false, (990, 1_200), done.clone()),
            sample(2, false, (1_300, 1_800), refused(503)),
            sample(1, true, (999, 1_100), done.clone()),
            sample(2, true, (1_001, 2_501), done),
            sample(1, true, (1_002, 2_502), refused(504)),
            sample(2, true, (6_000, 6_001), refused(503)),
        ];
        let report = report(&[round], &samples);
        let others = &report.leader.others;
        assert_eq!((others.queries, others.updates), (2, 3));
        assert_eq!(others.queries_failed.to_string(), "1 by 503");
        assert_eq!(others.updates_failed.to_string(), "1 by 504");
        let [example, update] = others.examples.as_slice() else {
            panic!("{others:?}");
        };
        assert_eq!((example.sent_ms, example.took_ms), (Some(300.0), 500.0));
        assert_eq!((&*example.node, &*example.reason), ("c", "503: not now"));
        assert!(update.is_update && !example.is_update);
        assert_eq!(report.leader.longest_query_ms.max, 500.0);
        assert_eq!(report.leader.acknowledged_ms.median, 1_501.0);
        assert_eq!(report.leader.missed.max, 12.0);
        assert_eq!((report.between.queries, report.between.updates), (1, 1));
        assert_eq!(report.between.updates_failed.count(), 1);
        assert_eq!(report.follower.noticed_ms.count, 0);
        let mut next = round;
        (next.led, next.victim) = (false, 1);
        next.killed = origin() + Duration::from_millis(7_000);
        next.whole = origin() + Duration::from_millis(9_000);
        let report = report_of(
            &[round, next],
            sample(2, true, (1_900, 8_000), refused(503)),
        );
        let failed = [&report.leader, &report.follower].map(|it| it.others.updates_failed.count());
        assert_eq!(failed, [1, 0], "it is of the kill that it began after");
    }
}
