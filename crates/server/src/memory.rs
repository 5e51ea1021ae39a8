//! How much memory may the queries of a server hold, and how is its database set up for that?

use std::fs;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use jindou_engine::ingest::ThreadStart;
use jindou_engine::{Config, MemoryPool, Reservation};

use crate::error::Refusal;
use crate::queries::Client;
use crate::threads::{HeavyPriority, take_short_turns};

/// What all queries may hold together where the machine does not tell its memory.
const UNKNOWN_TOTAL_BYTES: u64 = 4 << 30;
/// What one query may hold at most unless told otherwise.
const QUERY_BYTES: u64 = 4 << 30;
/// The part of the total that is kept for what nobody counts: connections, threads, queries that
/// have just begun, and what the allocator has not given back yet.
const UNCOUNTED_SHARE: u64 = 5;
/// The most that is kept for that: it grows with clients and not with the machine.
const MOST_UNCOUNTED_BYTES: u64 = 512 << 20;

/// Answers up to this size, in bytes, are not booked: the number of connections bounds them.
const UNBOOKED_BYTES: usize = 16 << 10;
/// An answer up to this size, in bytes, is light: it is given also while others hold all memory,
const LIGHT_ANSWER_BYTES: usize = 128 << 10;
/// as long as those that wait for their clients hold no more than this together, or
const LIGHT_ANSWERS_BYTES: u64 = 8 << 20;
/// one in so many bytes of what is kept for what nobody counts.
const LIGHT_SHARE: u64 = 8;
/// Once they hold all but one in so many bytes of that, those go whose clients have read nothing
/// for so long: else some slow clients would keep light queries of all others from being answered.
const LIGHT_ROOM_SHARE: u64 = 4;
const LIGHT_PATIENCE: Duration = Duration::from_millis(250);

/// Bounds on the memory of queries. The data itself is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// All queries together, the answers that wait for their clients, and what of both is not
    /// counted: half of the machine's memory, or of what its control group allows. A fifth, and
    /// 512 MiB at most, is kept for what is not counted.
    pub total_bytes: u64,
    /// One query: 4 GiB, and no more than half of what all may hold.
    pub query_bytes: u64,
}

impl MemoryLimits {
    /// These bounds, where they are given, and the defaults for the rest. Reads two files of the
    /// system.
    #[must_use]
    pub fn new(total_bytes: Option<u64>, query_bytes: Option<u64>) -> Self {
        let half = || machine_bytes().map_or(UNKNOWN_TOTAL_BYTES, |bytes| bytes / 2);
        let total_bytes = total_bytes.unwrap_or_else(half);
        let query_bytes = query_bytes.unwrap_or(QUERY_BYTES.min(counted(total_bytes) / 2));
        Self {
            total_bytes,
            query_bytes,
        }
    }

    /// Settings for a database that is served: these bounds, and threads for heavy queries with
    /// this priority, which should be that of the server's configuration.
    #[must_use]
    pub fn engine_config(self, heavy_priority: HeavyPriority) -> Config {
        let mut config = Config::default();
        config.query_memory_bytes = self.query_bytes;
        config.memory_pool = Some(Arc::new(MemoryPool::new(counted(self.total_bytes))));
        config.worker_start = Some(ThreadStart::new(move || heavy_priority.take()));
        config.light_start = Some(ThreadStart::new(take_short_turns));
        config.reading_start = Some(ThreadStart::new(move || heavy_priority.take_to_read()));
        config.update_start = Some(ThreadStart::new(move || heavy_priority.take_to_update()));
        config
    }
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self::new(None, None)
    }
}

/// What queries may hold of a total, as it is counted.
fn counted(total_bytes: u64) -> u64 {
    total_bytes - (total_bytes / UNCOUNTED_SHARE).min(MOST_UNCOUNTED_BYTES)
}

/// What is left out of a pool of this size that [`MemoryLimits::engine_config`] made.
pub(crate) fn spare_bytes(pool_bytes: u64) -> u64 {
    (pool_bytes / (UNCOUNTED_SHARE - 1)).min(MOST_UNCOUNTED_BYTES)
}

/// What answers take from when they are there as a whole, until they are sent.
pub(crate) struct AnswerMemory {
    pool: Option<Arc<MemoryPool>>,
    /// Of what nobody counts, for light answers.
    light: Arc<MemoryPool>,
    /// Those that hold some of it.
    held: Mutex<Vec<LightAnswer>>,
}

/// A light answer that waits for its client.
struct LightAnswer {
    since: Instant,
    bytes: u64,
    /// Nothing once it is sent.
    memory: Weak<Reservation>,
    client: Arc<Client>,
}

/// What an answer takes until it is dropped.
#[derive(Debug)]
pub(crate) struct BookedAnswer(
    #[expect(dead_code, reason = "held until it is dropped")] Arc<Reservation>,
);

impl AnswerMemory {
    /// For a server whose queries share this pool.
    pub(crate) fn new(pool: Option<&Arc<MemoryPool>>) -> Self {
        let spare = pool.map_or(u64::MAX, |pool| spare_bytes(pool.limit_bytes()));
        Self {
            pool: pool.cloned(),
            light: Arc::new(MemoryPool::new(
                LIGHT_ANSWERS_BYTES.min(spare / LIGHT_SHARE),
            )),
            held: Mutex::default(),
        }
    }

    /// What an answer of so many bytes takes; nothing if it is small. To a `client` whose connection may be cut, a
    /// light one is given also while others hold all memory.
    ///
    /// # Errors
    /// Others hold all that there is.
    pub(crate) fn book(
        &self,
        bytes: usize,
        client: Option<&Arc<Client>>,
    ) -> Result<Option<BookedAnswer>, Refusal> {
        let Some(pool) = self.pool.as_ref().filter(|_| bytes > UNBOOKED_BYTES) else {
            return Ok(None);
        };
        let counted = |bytes| {
            pool.reserve(bytes)
                .map(|taken| BookedAnswer(Arc::new(taken)))
        };
        let client = client.filter(|_| bytes <= LIGHT_ANSWER_BYTES);
        let light = || self.book_light(bytes as u64, client?, Instant::now());
        match counted(bytes as u64).or_else(light) {
            Some(taken) => Ok(Some(taken)),
            None => Err(Refusal::pool_exhausted(pool.limit_bytes())),
        }
    }

    fn book_light(&self, bytes: u64, client: &Arc<Client>, now: Instant) -> Option<BookedAnswer> {
        let mut held = self.held.lock().expect("nobody panics while it has it");
        self.make_room(&mut held, now);
        let memory = Arc::new(self.light.reserve(bytes)?);
        held.push(LightAnswer {
            since: now,
            bytes,
            memory: Arc::downgrade(&memory),
            client: Arc::clone(client),
        });
        Some(BookedAnswer(memory))
    }

    /// Cuts off clients that have read nothing for long, those first that have done so for longest, until so much is
    /// free, or will be soon, that the next ones have room.
    fn make_room(&self, held: &mut Vec<LightAnswer>, now: Instant) {
        held.retain(|one| one.memory.strong_count() > 0);
        let limit = self.light.limit_bytes();
        let most = limit - limit / LIGHT_ROOM_SHARE;
        let mut bytes = self.light.held_bytes();
        if bytes <= most {
            return;
        }
        held.sort_by_cached_key(|one| one.client.reading_since(one.since));
        let is_cut = |one: &LightAnswer| {
            let waits = now.saturating_duration_since(one.client.reading_since(one.since));
            let is_slow = bytes > most && waits >= LIGHT_PATIENCE;
            if is_slow {
                one.client.cut();
                bytes = bytes.saturating_sub(one.bytes);
            }
            is_slow
        };
        let cut = held.iter().map(is_cut).take_while(|is_cut| *is_cut).count();
        held.drain(..cut);
    }
}

/// The memory of the machine, or of this process's control group if that is less.
fn machine_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(total);
    // "max" where there is no limit.
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (machine, group) => machine.or(group),
    }
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_never_has_all_unless_it_is_told_to() {
        assert_eq!(
            MemoryLimits::new(Some(1 << 30), None).query_bytes,
            counted(1 << 30) / 2
        );
        assert_eq!(
            MemoryLimits::new(Some(64 << 30), None).query_bytes,
            QUERY_BYTES
        );
        assert_eq!(MemoryLimits::new(Some(5), Some(7)).query_bytes, 7);
        let defaults = MemoryLimits::default();
        assert!(defaults.query_bytes <= defaults.total_bytes);
    }

    fn client() -> Arc<Client> {
        Arc::new(Client::new(([127, 0, 0, 1], 1).into()))
    }

    #[test]
    fn light_answers_are_given_while_others_hold_all_but_not_without_bound() {
        let pool = Arc::new(MemoryPool::new(4 << 20));
        let memory = AnswerMemory::new(Some(&pool));
        let client = client();
        let book = |bytes| memory.book(bytes, Some(&client));
        let _all = pool.reserve(4 << 20).expect("nobody else has any");
        assert!(book(LIGHT_ANSWER_BYTES + 1).is_err());
        assert!(
            memory.book(LIGHT_ANSWER_BYTES, None).is_err(),
            "nobody could be cut off"
        );
        let mut held = Vec::new();
        while let Ok(one) = book(LIGHT_ANSWER_BYTES) {
            held.push(one.expect("it is not small"));
        }
        assert_eq!(held.len(), (1 << 20) / 8 / LIGHT_ANSWER_BYTES);
        assert!(book(UNBOOKED_BYTES).expect("small").is_none());
        held.pop();
        assert!(book(LIGHT_ANSWER_BYTES).is_ok());
        assert!(
            AnswerMemory::new(None)
                .book(1 << 30, None)
                .expect("no bound")
                .is_none()
        );
    }

    #[test]
    fn who_does_not_read_a_light_answer_is_cut_off_before_others_get_none() {
        let pool = Arc::new(MemoryPool::new(64 << 20));
        let memory = AnswerMemory::new(Some(&pool));
        let bytes = LIGHT_ANSWER_BYTES as u64;
        let places = memory.light.limit_bytes() / bytes;
        let (begun, slow) = (Instant::now(), client());
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        let is_cut = || {
            // It is ready at once if it ever is.
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = slow.until_cut() => true,
                    () = std::future::ready(()) => false,
                }
            })
        };
        let held: Vec<BookedAnswer> = (0..places)
            .map(|_| memory.book_light(bytes, &slow, begun).expect("room"))
            .collect();
        assert!(memory.book_light(bytes, &client(), begun).is_none());
        assert!(!is_cut(), "they have had no time to read");
        let later = begun + LIGHT_PATIENCE;
        assert!(memory.book_light(bytes, &client(), later).is_none());
        assert!(is_cut());
        let left = memory.held.lock().expect("nobody panicked").len() as u64;
        assert_eq!(
            left,
            places - places.div_ceil(LIGHT_ROOM_SHARE),
            "no more than room needs"
        );
        drop(held);
        let other = client();
        for _ in 0..2 * places {
            assert!(
                memory.book_light(bytes, &other, later).is_some(),
                "what was sent is free"
            );
        }
        assert!(memory.held.lock().expect("nobody panicked").len() <= 1);
        assert!(!is_cut());
    }

    #[test]
    fn who_reads_a_light_answer_is_not_cut_off_before_those_who_do_not() {
        let pool = Arc::new(MemoryPool::new(64 << 20));
        let memory = AnswerMemory::new(Some(&pool));
        let bytes = LIGHT_ANSWER_BYTES as u64;
        let places = memory.light.limit_bytes() / bytes;
        let (begun, reads) = (Instant::now(), client());
        let others: Vec<Arc<Client>> = (1..places).map(|_| client()).collect();
        let mut held = vec![memory.book_light(bytes, &reads, begun).expect("room")];
        for other in &others {
            held.push(memory.book_light(bytes, other, begun).expect("room"));
        }
        let is_held = |client: &Arc<Client>| {
            let held = memory.held.lock().expect("nobody panicked");
            held.iter().any(|one| Arc::ptr_eq(&one.client, client))
        };
        let later = begun + LIGHT_PATIENCE;
        reads.note_reading(later);
        assert!(memory.book_light(bytes, &client(), later).is_none());
        assert!(is_held(&reads));
        let gone = others.iter().filter(|other| !is_held(other)).count() as u64;
        assert_eq!(gone, places.div_ceil(LIGHT_ROOM_SHARE));
        // Nobody else is left: it stays while it reads.
        drop(held.split_off(1));
        let more = 1..places;
        let more: Vec<_> = more
            .map(|_| memory.book_light(bytes, &reads, later))
            .collect();
        assert!(more.iter().all(Option::is_some));
        reads.note_reading(later + LIGHT_PATIENCE);
        assert!(
            memory
                .book_light(bytes, &client(), later + LIGHT_PATIENCE)
                .is_none()
        );
        assert!(is_held(&reads));
    }

    #[test]
    fn what_is_spared_follows_from_the_pool() {
        for total in [8, 1 << 20, 1 << 30, 5 << 30] {
            let sum = counted(total) + spare_bytes(counted(total));
            assert!(sum.abs_diff(total) <= 1, "{total}");
        }
    }

    #[test]
    fn the_machines_memory_is_read() {
        let text = "MemFree: 1 kB\nMemTotal:       2048 kB\n";
        assert_eq!(total(text), Some(2 << 20));
        assert_eq!(total("MemTotal: many"), None);
    }
}
