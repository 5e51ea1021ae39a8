//! How are several things timed so that their ratios mean something? By turns: A B A B, so that
//! whatever else the machine does touches all.

use std::time::{Duration, Instant};

use crate::BenchError;
use crate::figure::Figure;
use crate::timing::Timing;

/// What takes less is run once before each timed run, for the caches that others just filled.
const CHEAP: Duration = Duration::from_millis(20);

/// When does timing end?
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Timed runs of one side at most; at least one is made.
    pub max_runs: usize,
    /// Time for all runs of one side; the run that passes it is its last.
    pub budget: Duration,
    /// Time after which one run is given up.
    pub limit: Duration,
}

/// What is known of one side so far.
enum SideState {
    Running {
        times: Vec<Duration>,
        spent: Duration,
    },
    Ended(Figure),
}

/// Times each side by turns. `ended` has an entry a side: what is known of it already, if it
/// shall not run. `run` runs a side once and gives its time; `None` if that passed the limit.
pub fn by_turns(
    ended: Vec<Option<Figure>>,
    bounds: Bounds,
    mut run: impl FnMut(usize) -> Result<Option<Duration>, BenchError>,
) -> Vec<Figure> {
    let begin = |known: Option<Figure>| match known {
        Some(figure) => SideState::Ended(figure),
        None => SideState::Running {
            times: Vec::new(),
            spent: Duration::ZERO,
        },
    };
    let mut states: Vec<SideState> = ended.into_iter().map(begin).collect();
    while states
        .iter()
        .any(|state| matches!(state, SideState::Running { .. }))
    {
        for (side, state) in states.iter_mut().enumerate() {
            turn(state, bounds, || run(side));
        }
    }
    let ended = states.into_iter().map(|state| match state {
        SideState::Ended(figure) => figure,
        SideState::Running { .. } => unreachable!("the loop above ends when none runs"),
    });
    ended.collect()
}

/// One more timed run of a side, unless it has ended.
fn turn(
    state: &mut SideState,
    bounds: Bounds,
    mut run: impl FnMut() -> Result<Option<Duration>, BenchError>,
) {
    let SideState::Running { times, spent } = state else {
        return;
    };
    let mut run = || match run() {
        Ok(Some(time)) => Ok(time),
        Ok(None) => Err(Figure::gave_up(bounds.limit)),
        Err(error) => Err(Figure::failed(&error)),
    };
    let begun = Instant::now();
    let warmed = match times.last().is_none_or(|&last| last < CHEAP) {
        true => run().map(drop),
        false => Ok(()),
    };
    match warmed.and_then(|()| run()) {
        Ok(time) => times.push(time),
        Err(figure) => {
            *state = SideState::Ended(figure);
            return;
        }
    }
    *spent += begun.elapsed();
    if *spent >= bounds.budget || times.len() >= bounds.max_runs {
        let timing = Timing::of(std::mem::take(times));
        *state = SideState::Ended(Figure::Timed { timing });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        max_runs: 3,
        budget: Duration::MAX,
        limit: Duration::from_secs(20),
    };

    #[test]
    fn sides_alternate_and_each_timed_run_has_a_warm_one_before_it() {
        let mut order = Vec::new();
        let figures = by_turns(vec![None, None], BOUNDS, |side| {
            order.push(side);
            Ok(Some(Duration::from_millis(1)))
        });
        assert_eq!(order, [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]);
        for figure in figures {
            assert!(matches!(figure, Figure::Timed { timing } if timing.runs == 3));
        }
    }

    #[test]
    fn what_takes_long_is_run_without_a_warm_run_from_the_second_turn_on() {
        let mut runs = 0;
        by_turns(vec![None], BOUNDS, |_| {
            runs += 1;
            Ok(Some(CHEAP))
        });
        assert_eq!(runs, 4);
    }

    #[test]
    fn a_budget_that_is_spent_leaves_one_run() {
        let bounds = Bounds {
            budget: Duration::ZERO,
            ..BOUNDS
        };
        let figures = by_turns(vec![None], bounds, |_| Ok(Some(Duration::ZERO)));
        assert!(matches!(figures[..], [Figure::Timed { timing }] if timing.runs == 1));
    }

    #[test]
    fn a_side_that_ended_before_or_is_cut_runs_no_more() {
        let known = Figure::gave_up(Duration::from_secs(1));
        let mut runs = [0; 3];
        let figures = by_turns(vec![Some(known.clone()), None, None], BOUNDS, |side| {
            runs[side] += 1;
            match side {
                1 => Ok(None),
                _ => Err(BenchError::Thread),
            }
        });
        assert_eq!(runs, [0, 1, 1]);
        assert_eq!(figures[0], known);
        assert_eq!(figures[1], Figure::gave_up(BOUNDS.limit));
        assert!(matches!(figures[2], Figure::Failed { .. }));
    }
}
