//! How is a graph asked that several members of a cluster have, which meet over the network?

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    Between, ClusterOptions, Config, Database, EngineError, Fsync, LoadOptions, PeerList,
    SplitProgress,
};

/// How long members may take to meet.
const PATIENCE: Duration = Duration::from_secs(60);
/// Shards of a graph.
const SHARDS: usize = 8;

/// How many members there are, and how they reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// How many.
    pub count: usize,
    /// They map each other's memory; otherwise all goes over TCP.
    pub maps_memory: bool,
    /// Each has its part of the store; otherwise all read the whole.
    pub have_parts: bool,
}

impl Members {
    /// Those that `JINDOU_MEMBERS` asks for, as in `3` or `3,tcp,parts`.
    ///
    /// # Panics
    /// If it says something else.
    #[must_use]
    pub fn of_environment() -> Option<Self> {
        let text = std::env::var("JINDOU_MEMBERS").ok()?;
        let mut words = text.split(',');
        let count = words.next().and_then(|count| count.parse().ok());
        let count = count.filter(|count| *count > 0);
        let mut members = Self {
            count: count.unwrap_or_else(|| panic!("JINDOU_MEMBERS={text}: a number")),
            maps_memory: true,
            have_parts: false,
        };
        for word in words {
            match word {
                "tcp" => members.maps_memory = false,
                "parts" => members.have_parts = true,
                _ => panic!(
                    "JINDOU_MEMBERS={text}: a number, `,tcp` where all goes over TCP, `,parts` where each has its part"
                ),
            }
        }
        Some(members)
    }

    /// Loads sources into a store that all members read, or have parts of, and gives one of them, at each call another one. The
    /// others, and the store, are there for as long as that one.
    ///
    /// # Errors
    /// Whatever the engine says of the sources.
    ///
    /// # Panics
    /// If the members do not meet.
    pub fn load(self, sources: Vec<Source>, mut config: Config) -> Result<Database, EngineError> {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let folder = Arc::new(tempfile::tempdir().expect("a folder for a store"));
        let location = folder.path().join("store");
        let mut of_store = Config::default();
        of_store.durability.fsync = Fsync::Never;
        let (options, progress) = (LoadOptions::default(), Progress::default());
        drop(Database::create(
            &location, sources, &options, &progress, of_store,
        )?);
        let mut ports: Vec<Option<TcpListener>> = (0..self.count)
            .map(|_| Some(TcpListener::bind("127.0.0.1:0").expect("a port")))
            .collect();
        let peers = peers(&ports);
        let parts = folder.path().join("parts");
        if self.have_parts {
            Database::split(&location, &peers, &parts, &SplitProgress::default())?;
        }
        let place = |number: usize| match self.have_parts {
            true => parts.join(name(number)),
            false => location.clone(),
        };
        let asked = ASKED.fetch_add(1, Ordering::Relaxed) % self.count;
        let others = (0..self.count).filter(|number| *number != asked);
        let others: Result<Vec<Database>, EngineError> = others
            .map(|number| {
                self.member(
                    &place(number),
                    &peers,
                    (number, ports[number].take()),
                    config.clone(),
                )
            })
            .collect();
        let others = others?;
        // What stands between queries and the graph is there for as long as the database.
        let kept = Arc::new((others.clone(), folder));
        config.between = Some(Between(Arc::new(move |source| {
            let _kept = &kept;
            source
        })));
        let database = self.member(&place(asked), &peers, (asked, ports[asked].take()), config)?;
        for member in others.iter().chain([&database]) {
            let has_all = member.wait_for_cluster(PATIENCE);
            assert!(has_all, "they do not meet: {:?}", member.cluster());
        }
        Ok(database)
    }

    fn member(
        self,
        location: &Path,
        peers: &PeerList,
        (number, listener): (usize, Option<TcpListener>),
        config: Config,
    ) -> Result<Database, EngineError> {
        let database = Database::open_to_join(location, config)?;
        database.join(ClusterOptions {
            peers: peers.clone(),
            secret: None,
            node: peers.node(&name(number)).expect("it is in the list"),
            maps_memory: self.maps_memory,
            listener,
            keeper: None,
            max_staleness: None,
        })?;
        Ok(database)
    }
}

/// A list of members that listen at these ports.
fn peers(ports: &[Option<TcpListener>]) -> PeerList {
    let members = ports.iter().flatten().enumerate().map(|(number, port)| {
        let address = port.local_addr().expect("it has one");
        format!(
            "[[node]]\nname = \"{}\"\naddress = \"{address}\"\n",
            name(number)
        )
    });
    let text = format!("shards = {SHARDS}\n{}", members.collect::<String>());
    PeerList::parse(&text).expect("a list of peers")
}

fn name(number: usize) -> String {
    format!("member-{number}")
}
