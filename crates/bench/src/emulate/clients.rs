//! What do the clients of one node ask, and how long do they wait for it?

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{LightClass, LightLoad, LightQuery, Lubm};
use jindou_engine::{Database, QueryClass, QueryOptions};
use jindou_fabric::pace::{self, LongWork};
use jindou_server::HeavyPriority;
use serde::{Deserialize, Serialize};

use super::Beside;
use crate::{BenchError, run};

/// Queries drawn for each client, which starts over when it has run them all.
const DRAWN: usize = 10_000;
/// The client of heavy queries asks this again and again: who takes a course with whom, and who advises
/// these. It goes through all courses, and its answer has many rows.
pub(super) const HEAVY: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n\
     SELECT ?X ?Y ?Z WHERE { ?X ub:takesCourse ?C . ?Y ub:takesCourse ?C . ?Y ub:advisor ?Z }";

/// The number of classes.
pub(super) const CLASSES: usize = LightClass::ALL.len();

/// What the clients of a node are to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Load {
    /// Universities of the data.
    pub(super) universities: u32,
    /// How many of each class there are, relative to the others.
    pub(super) weights: [u32; CLASSES],
    /// Clients, each with one query at a time.
    pub(super) clients: u32,
    /// The number of the first: each draws constants of its own.
    pub(super) first: u32,
    /// One more client asks [`HEAVY`], so.
    pub(super) heavy: Beside,
    /// How long, in milliseconds.
    pub(super) millis: u64,
}

/// How long they waited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waits {
    /// How long they asked.
    pub(super) seconds: f64,
    /// By class, for each query, in nanoseconds.
    pub(super) classes: [Vec<u32>; CLASSES],
    /// For each heavy query, in nanoseconds.
    pub(super) heavy: Vec<u64>,
}

/// The queries that are going to be asked.
pub(crate) struct Drawn {
    load: Load,
    clients: Vec<Vec<LightQuery>>,
}

impl Load {
    /// The clients of the first of several nodes, and those of the others. Heavy queries come to the first.
    pub(crate) fn dealt(&self, nodes: u32) -> (Self, Vec<Self>) {
        let mut first = self.first;
        let mut parts = (0..nodes).map(|node| {
            let clients = self.clients / nodes + u32::from(node < self.clients % nodes);
            let part = Self {
                clients,
                first,
                heavy: if node == 0 {
                    self.heavy
                } else {
                    Beside::Nothing
                },
                ..self.clone()
            };
            first += clients;
            part
        });
        let own = parts.next().unwrap_or_else(|| self.clone());
        (own, parts.collect())
    }

    /// True if somebody asks something.
    pub(crate) fn has_clients(&self) -> bool {
        self.clients > 0 || self.heavy != Beside::Nothing
    }

    /// Draws the queries, and asks some of them: plans are made then, and memory is met.
    pub(crate) fn draw(self, database: &Database) -> Result<Drawn, BenchError> {
        let data = Lubm::new(self.universities, 0);
        let clients = (0..self.clients).map(|client| {
            let mut load = LightLoad::over(data, u64::from(self.first + client))?;
            Ok((0..DRAWN).map(|_| load.draw_by(&self.weights)).collect())
        });
        let clients: Vec<Vec<LightQuery>> = clients.collect::<Result<_, BenchError>>()?;
        for query in clients.iter().flat_map(|drawn| &drawn[..DRAWN / 10]) {
            run::as_ids(database, &query.text, 1)?;
        }
        if self.heavy != Beside::Nothing {
            run::as_ids_with(database, HEAVY, heavy_options())?;
        }
        Ok(Drawn {
            load: self,
            clients,
        })
    }
}

impl Drawn {
    /// Asks them, each client on a thread of its own.
    pub(crate) fn ask(&self, database: &Database) -> Result<Waits, BenchError> {
        let length = Duration::from_millis(self.load.millis);
        let is_over = &AtomicBool::new(false);
        let priority = self.load.heavy.priority();
        let heavy = u32::from(priority.is_some());
        let begin = &Barrier::new((self.load.clients + heavy) as usize);
        std::thread::scope(|scope| {
            let clients = self.clients.iter().map(|drawn| {
                scope.spawn(move || {
                    // As a server's threads for light queries do; where it is refused, the figures say so.
                    let _ = jindou_fabric::schedule::take_short_turns();
                    begin.wait();
                    light(database, drawn, length)
                })
            });
            let clients: Vec<_> = clients.collect();
            let heavy = priority.map(|priority| {
                scope.spawn(move || {
                    priority.take();
                    let _long = begin_long_work(priority);
                    begin.wait();
                    heavy_ones(database, is_over)
                })
            });
            let mut waits = Waits {
                seconds: length.as_secs_f64(),
                ..Waits::default()
            };
            let clients: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            is_over.store(true, Ordering::Relaxed);
            if let Some(heavy) = heavy {
                waits.heavy = heavy.join().map_err(|_| BenchError::Thread)??;
            }
            for client in clients {
                let classes = client.map_err(|_| BenchError::Thread)??;
                for (all, more) in waits.classes.iter_mut().zip(classes) {
                    all.extend(more);
                }
            }
            Ok(waits)
        })
    }
}

/// Has light queries get cores soon beside a heavy one, where it is to leave them to these.
fn begin_long_work(priority: HeavyPriority) -> Option<LongWork> {
    if priority == HeavyPriority::Same {
        return None;
    }
    // Without it they wait for some milliseconds.
    let _is_interrupted = pace::interrupt_long_work();
    Some(LongWork::begin())
}

fn heavy_options() -> QueryOptions {
    QueryOptions {
        class: QueryClass::Heavy,
        ..QueryOptions::default()
    }
}

/// One client's queries, by class.
fn light(
    database: &Database,
    drawn: &[LightQuery],
    length: Duration,
) -> Result<[Vec<u32>; CLASSES], BenchError> {
    let mut waits: [Vec<u32>; CLASSES] = Default::default();
    let start = Instant::now();
    let mut now = start;
    for query in drawn.iter().cycle() {
        run::as_ids(database, &query.text, 1)?;
        let then = Instant::now();
        let nanos = u32::try_from((then - now).as_nanos()).unwrap_or(u32::MAX);
        waits[query.class as usize].push(nanos);
        now = then;
        if now - start >= length {
            break;
        }
    }
    Ok(waits)
}

/// The times of heavy queries, one after the other, until that is over.
fn heavy_ones(database: &Database, is_over: &AtomicBool) -> Result<Vec<u64>, BenchError> {
    let mut waits = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        run::as_ids_with(database, HEAVY, heavy_options())?;
        waits.push(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_a_child_comes_there() {
        let load = Load {
            universities: 2,
            weights: [1, 2, 3, 4, 5, 6],
            clients: 3,
            first: 7,
            heavy: Beside::Same,
            millis: 1_000,
        };
        let text = serde_json::to_string(&load).unwrap();
        assert_eq!(serde_json::from_str::<Load>(&text).unwrap(), load);
        let waits = Waits {
            seconds: 1.5,
            classes: std::array::from_fn(|class| vec![class as u32; class]),
            heavy: vec![1 << 40],
        };
        let text = serde_json::to_string(&waits).unwrap();
        assert_eq!(serde_json::from_str::<Waits>(&text).unwrap(), waits);
    }

    #[test]
    fn clients_are_dealt_in_turn() {
        let load = Load {
            universities: 1,
            weights: [1; CLASSES],
            clients: 5,
            first: 0,
            heavy: Beside::Classes,
            millis: 1,
        };
        let (own, others) = load.dealt(3);
        let all: Vec<(u32, u32, Beside)> = std::iter::once(&own)
            .chain(&others)
            .map(|part| (part.clients, part.first, part.heavy))
            .collect();
        let none = Beside::Nothing;
        assert_eq!(all, [(2, 0, Beside::Classes), (2, 2, none), (1, 4, none)]);
        assert!(
            !Load {
                clients: 0,
                heavy: Beside::Nothing,
                ..load
            }
            .has_clients()
        );
    }

    #[test]
    fn classes_are_numbered_in_their_order() {
        for (number, class) in LightClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, number);
        }
    }
}
