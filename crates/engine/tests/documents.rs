//! Is what a document of RDF takes counted before it is taken, and given back?

use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use jindou_counting::peak;
use jindou_engine::ingest::{Format, IngestError, LoadOptions, Source};
use jindou_engine::{
    CancellationToken, Config, Database, EngineError, MemoryPool, QueryResults, UpdateOptions,
};

const POOL_BYTES: u64 = 24 << 20;
/// What is not counted: the document itself, the first MiB, buffers of readers and parsers.
const BESIDES: u64 = 6 << 20;

/// One test measures at a time.
static ONE: Mutex<()> = Mutex::new(());

fn database(pool: &Arc<MemoryPool>) -> Database {
    let mut config = Config::default();
    config.memory_pool = Some(Arc::clone(pool));
    config.threads = 1;
    Database::with_config(config)
}

/// A property of RDF/XML that holds this, with this attribute.
fn xml(held: &str, attribute: &str) -> String {
    let rdf = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'";
    format!("<rdf:RDF {rdf}><e:a><e:p {attribute}>{held}</e:p></e:a></rdf:RDF>")
}

/// Documents of some MB that stand for many times as much.
fn documents() -> Vec<(&'static str, String)> {
    let long = "x".repeat(8000);
    let many = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    vec![
        (
            "a.ttl",
            format!("<http://e/a> <http://e/b> {}2 .", many("1,", 2 << 20)),
        ),
        (
            "a.ttl",
            format!(
                "@prefix p: <http://{long}> .\n{}",
                many("p:a p:b p:c.\n", 1 << 20)
            ),
        ),
        (
            "a.ttl",
            format!("<http://e/a> <http://e/b> {}2 .", many("[],", 2 << 20)),
        ),
        // What the parser itself holds: brackets, with predicates, prefixes, and long tokens.
        (
            "a.ttl",
            format!("<http://e/a> <http://e/b> {}", many("[<p> ", 2 << 20)),
        ),
        (
            "a.trig",
            format!("<http://e/a> <http://e/b> {}", many("(", 2 << 20)),
        ),
        (
            "a.ttl",
            format!(
                "@prefix p: <http://{long}> . p:a p:b {}",
                many("[p:c ", 64 << 10)
            ),
        ),
        (
            "a.ttl",
            (0..200_000)
                .map(|n| format!("@prefix p{n}:<>.\n"))
                .collect(),
        ),
        (
            "a.ttl",
            format!(
                "@base <http://{long}> . {}",
                (0..50_000)
                    .map(|n| format!("@prefix p{n}:<>.\n"))
                    .collect::<String>()
            ),
        ),
        (
            "a.ttl",
            format!("<http://e/a> <http://e/b> \"{}\" .", many("x", 12 << 20)),
        ),
        (
            "a.nt",
            format!("<http://e/a> <http://e/b> \"{}\" .", many("x", 12 << 20)),
        ),
        (
            "a.rdf",
            xml(&many("<b/>", 1 << 20), "rdf:parseType='Literal'"),
        ),
        (
            "a.rdf",
            xml(&many("<b c='d'>e</b>", 1 << 20), "rdf:parseType='Literal'"),
        ),
        ("a.rdf", xml(&many("x", 12 << 20), "")),
        ("a.rdf", xml(&format!("<!--{}-->", many("x", 12 << 20)), "")),
        ("a.rdf", xml("", &format!("e:q='{}'", many("x", 12 << 20)))),
        (
            "a.jsonld",
            format!("{{\"http://e/p\":[{}2]}}", many("1,", 1 << 20)),
        ),
        (
            "a.jsonld",
            format!("[{}{{}}]", many("{\"http://e/p\":1},", 1 << 20)),
        ),
        (
            "a.jsonld",
            format!(
                "{{\"@context\":{{\"p\":\"http://{long}\"}},\"@graph\":[{}{{}}]}}",
                many("{\"p\":1},", 1 << 18)
            ),
        ),
        (
            "a.jsonld",
            format!(
                "{{\"@id\":\"http://{long}\",\"http://e/p\":[{}2]}}",
                many("1,", 1 << 18)
            ),
        ),
    ]
}

#[test]
fn no_document_holds_more_than_the_pool_has() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = Arc::new(MemoryPool::new(POOL_BYTES));
    let database = database(&pool);
    let options = UpdateOptions::default();
    for (number, (name, text)) in documents().into_iter().enumerate() {
        let sources = vec![Source::bytes(name, text).with_base_iri("http://e/")];
        let (held, done) = peak(|| database.add_to_graph(None, sources, &options));
        println!("{number} {name}: {held} bytes");
        let refused = matches!(
            done,
            Err(EngineError::DocumentBeyondPool {
                limit_bytes: POOL_BYTES
            })
        );
        assert!(refused, "{number} {name}: {done:?}");
        assert!(
            held <= POOL_BYTES + BESIDES,
            "{number} {name}: {held} bytes"
        );
        assert_eq!(pool.held_bytes(), 0, "{number} {name}");
    }
    // A usual document is loaded, also where the pool has nothing left.
    let all = pool.reserve(POOL_BYTES).expect("nothing is taken");
    let small = vec![Source::bytes("a.ttl", "<http://e/a> <http://e/b> 1, 2 .")];
    let done = database.add_to_graph(None, small, &options);
    assert_eq!(done.expect("a light document").update.inserted, 2);
    drop(all);
    assert_eq!(pool.held_bytes(), 0);
}

/// Lines of N-Triples with an IRI of a few MB each, made as they are read.
struct LongLines {
    lines: std::ops::Range<u32>,
    rest: Cursor<Vec<u8>>,
    read: Arc<AtomicU64>,
}

impl LongLines {
    const IRI_BYTES: usize = 5 << 19;

    fn document(lines: u32, read: &Arc<AtomicU64>) -> Vec<Source> {
        let lines = Self {
            lines: 0..lines,
            rest: Cursor::default(),
            read: Arc::clone(read),
        };
        vec![Source::reader("a document", lines).with_format(Format::NTriples)]
    }
}

impl Read for LongLines {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.rest.read(buffer)?;
        if read == 0
            && let Some(number) = self.lines.next()
        {
            let long = "x".repeat(Self::IRI_BYTES);
            let line = format!("<http://e/{number}/{long}> <http://e/p> <http://e/o> .\n");
            self.rest = Cursor::new(line.into_bytes());
            return self.read(buffer);
        }
        self.read.fetch_add(read as u64, Relaxed);
        Ok(read)
    }
}

/// There are far fewer of them than quads between two looks at what a sink holds.
#[test]
fn long_terms_of_a_document_of_any_length_are_counted_as_they_come() {
    const ROOM: u64 = 64 << 20;
    // What an interner sets aside before it has terms for it, and a chunk of text.
    const OF_THREAD: u64 = 10 << 20;
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = Arc::new(MemoryPool::new(ROOM));
    let database = database(&pool);
    let options = UpdateOptions::default();
    let threads = LoadOptions::default().threads.get() as u64;
    let read = Arc::new(AtomicU64::new(0));
    let (held, done) =
        peak(|| database.add_to_graph(None, LongLines::document(200, &read), &options));
    let refused = matches!(
        done,
        Err(EngineError::DocumentBeyondPool { limit_bytes: ROOM })
    );
    assert!(refused, "{done:?}");
    let allowed = ROOM + BESIDES + threads * OF_THREAD;
    println!("{held} bytes, of {} that were read", read.load(Relaxed));
    assert!(held <= allowed, "{held} bytes, not {allowed}");
    assert!(read.load(Relaxed) <= allowed, "it is not read to its end");
    assert_eq!(pool.held_bytes(), 0);
    let nothing = database.query("ASK { ?s ?p ?o }");
    assert!(matches!(nothing, Ok(QueryResults::Boolean(false))));
    // Two of them fit.
    let done = database.add_to_graph(None, LongLines::document(2, &read), &options);
    assert_eq!(done.expect("there is room").update.inserted, 2);
    assert_eq!(pool.held_bytes(), 0);
}

/// What a LOAD says.
fn load(database: &Database, path: &std::path::Path) -> Result<u64, EngineError> {
    let done = database.update(&format!("LOAD <file://{}>", path.display()))?;
    Ok(done.inserted)
}

#[test]
fn load_reads_no_pipe_and_no_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe.ttl");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let device = folder.path().join("zero.ttl");
    std::os::unix::fs::symlink("/dev/zero", &device).expect("a link");
    let database = Database::new();
    for path in [pipe, device] {
        let refused = load(&database, &path);
        let by_name = matches!(
            &refused,
            Err(EngineError::Ingest(IngestError::NoRegularFile { file }))
                if **file == *path.display().to_string()
        );
        assert!(by_name, "{refused:?}");
    }
}

#[test]
fn a_document_is_given_up_when_its_time_is_over() {
    /// A body that is cancelled while it is read, and has no end.
    struct Endless(CancellationToken);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.cancel();
            buffer.fill(b'\n');
            Ok(buffer.len())
        }
    }
    let database = Database::new();
    for format in [
        Format::Turtle,
        Format::NTriples,
        Format::RdfXml,
        Format::JsonLd,
    ] {
        let token = CancellationToken::new();
        let options = UpdateOptions {
            cancellation: Some(token.clone()),
            ..UpdateOptions::default()
        };
        let body = Source::reader("a body", Endless(token)).with_format(format);
        let done = database.add_to_graph(None, vec![body], &options);
        assert!(matches!(done, Err(EngineError::Cancelled)), "{done:?}");
    }
}
