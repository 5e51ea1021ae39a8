//! An event stream that grows, served by HTTP in a few threads of this process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// No step of a test takes as long.
const LONGEST: Duration = Duration::from_secs(60);
const PREFIXES: &str = "@prefix : <http://e/> . @prefix tree: <https://w3id.org/tree#> . \
                        @prefix ldes: <https://w3id.org/ldes#> . \
                        @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n";

/// A page: what is on it, and how it is served.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeedPage {
    pub(crate) members: Vec<u32>,
    /// Numbers of pages.
    pub(crate) leads_to: Vec<usize>,
    pub(crate) is_immutable: bool,
    /// How often it is not there before it is.
    pub(crate) fails: usize,
    /// It is somewhere else.
    pub(crate) redirects_to: Option<String>,
    /// In the place of all that.
    pub(crate) text: Option<String>,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// By page: how often it was sent whole, and how often not as it was unchanged.
    pub(crate) sent: BTreeMap<usize, usize>,
    pub(crate) unchanged: BTreeMap<usize, usize>,
    pub(crate) requests: usize,
}

#[derive(Default)]
struct State {
    pages: Vec<FeedPage>,
    asked: Asked,
}

/// A server of pages.
#[derive(Clone)]
pub(crate) struct Feed {
    state: Arc<(Mutex<State>, Condvar)>,
    pub(crate) base: String,
}

impl Feed {
    pub(crate) fn serve(pages: Vec<FeedPage>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("it has one"));
        let asked = Asked::default();
        let state = Arc::new((Mutex::new(State { pages, asked }), Condvar::new()));
        let feed = Self { state, base };
        let server = feed.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let server = server.clone();
                // A client that goes away is nothing to complain about.
                std::thread::spawn(move || drop(server.answer(connection)));
            }
        });
        feed
    }

    pub(crate) fn address(&self, page: usize) -> String {
        format!("{}/{page}", self.base)
    }

    /// Changes pages, all at once.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<FeedPage>)) {
        change(&mut self.state.0.lock().expect("no panic").pages);
    }

    pub(crate) fn asked(&self) -> Asked {
        self.state.0.lock().expect("no panic").asked.clone()
    }

    /// Waits until something was asked for.
    pub(crate) fn wait(&self, what: &str, is_there: impl Fn(&Asked) -> bool) -> Asked {
        let (state, changed) = &*self.state;
        let guard = state.lock().expect("no panic");
        let waited = changed.wait_timeout_while(guard, LONGEST, |state| !is_there(&state.asked));
        let (state, timeout) = waited.expect("no panic");
        assert!(!timeout.timed_out(), "{what}: {:?}", state.asked);
        state.asked.clone()
    }

    /// Waits until all that is there now was read: until the page was asked for at the beginning of two more
    /// rounds, the second of which begins after the first one has ended.
    pub(crate) fn settle(&self, page: usize) {
        let times = |asked: &Asked| {
            let of = |counts: &BTreeMap<usize, usize>| counts.get(&page).copied().unwrap_or(0);
            of(&asked.sent) + of(&asked.unchanged)
        };
        let before = times(&self.asked());
        self.wait("two more rounds", |asked| times(asked) >= before + 2);
    }

    fn answer(&self, mut connection: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(connection.try_clone()?).lines();
        let request = lines.next().transpose()?.unwrap_or_default();
        let mut version = None;
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("if-none-match") {
                version = Some(value.trim().to_owned());
            }
        }
        let path = request.split(' ').nth(1).unwrap_or_default();
        let page = path.trim_start_matches('/').parse().unwrap_or(usize::MAX);
        let answer = self.page(page, version.as_deref());
        connection.write_all(answer.as_bytes())?;
        // What the client sees before it is counted is counted before the client asks again.
        let (state, changed) = &*self.state;
        state.lock().expect("no panic").asked.requests += 1;
        changed.notify_all();
        Ok(())
    }

    fn page(&self, number: usize, version: Option<&str>) -> String {
        let mut state = self.state.0.lock().expect("no panic");
        let State { pages, asked } = &mut *state;
        let head = |status: &str, headers: &str, body: &str| {
            let bytes = body.len();
            format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {bytes}\r\n{headers}\r\n{body}"
            )
        };
        let Some(page) = pages.get_mut(number) else {
            return head("404 Not Found", "", "no such page");
        };
        if page.fails > 0 {
            page.fails -= 1;
            return head("503 Service Unavailable", "", "not now");
        }
        if let Some(to) = &page.redirects_to {
            return head("302 Found", &format!("Location: {to}\r\n"), "");
        }
        let (media_type, body) = text_of(&self.base, number, page);
        let etag = format!("\"{:x}\"", body.len());
        if version == Some(&etag) {
            *asked.unchanged.entry(number).or_default() += 1;
            return head("304 Not Modified", "", "");
        }
        *asked.sent.entry(number).or_default() += 1;
        let age = match page.is_immutable {
            true => "public, max-age=604800, immutable",
            false => "max-age=1",
        };
        let headers =
            format!("Content-Type: {media_type}\r\nETag: {etag}\r\nCache-Control: {age}\r\n");
        head("200 OK", &headers, &body)
    }
}

/// The time of a member, in milliseconds.
pub(crate) fn time_of(member: u32) -> i64 {
    1_000 * i64::from(member)
}

/// How many statements a member has on a page.
pub(crate) fn statements_of(page: usize) -> u64 {
    match page % 4 {
        0 => 5,
        _ => 4,
    }
}

/// A page in one of four formats, by its number.
fn text_of(base: &str, number: usize, page: &FeedPage) -> (&'static str, String) {
    if let Some(text) = &page.text {
        return ("text/turtle", text.clone());
    }
    match number % 4 {
        0 => ("application/trig; charset=utf-8", turtle(base, page, true)),
        1 => ("text/turtle", turtle(base, page, false)),
        2 => ("application/n-quads", lines(base, number, page)),
        _ => ("application/ld+json", json(base, number, page)),
    }
}

fn turtle(base: &str, page: &FeedPage, has_graphs: bool) -> String {
    let mut text = format!(
        "{PREFIXES}<{base}/feed> a ldes:EventStream ; tree:view <{base}/0> ; ldes:timestampPath :at .\n\
         <{base}/other> tree:member :notOfThis . :notOfThis :value 0 .\n"
    );
    for to in &page.leads_to {
        let _ = writeln!(text, "<> tree:relation [ tree:node <{base}/{to}#here> ] .");
    }
    for member in &page.members {
        let time = i64::from(*member);
        let _ = writeln!(
            text,
            "<{base}/feed> tree:member :m{member} . :m{member} :value {member} ; :in [ :deep {member} ] ; \
             :at \"1970-01-01T00:{:02}:{:02}Z\"^^xsd:dateTime .",
            time / 60,
            time % 60
        );
        if has_graphs {
            let _ = writeln!(text, ":m{member} {{ :m{member} :inside {member} }}");
        }
    }
    text
}

fn lines(base: &str, number: usize, page: &FeedPage) -> String {
    let tree = "https://w3id.org/tree#";
    let integer = "^^<http://www.w3.org/2001/XMLSchema#integer>";
    let mut text = String::new();
    for to in &page.leads_to {
        let _ = writeln!(
            text,
            "<{base}/{number}> <{tree}relation> _:to{to} .\n\
             _:to{to} <{tree}node> <{base}/{to}> ."
        );
    }
    for member in &page.members {
        let (name, time_ms) = (format!("<http://e/m{member}>"), time_of(*member));
        let _ = writeln!(
            text,
            "<{base}/feed> <{tree}member> {name} .\n{name} <http://e/value> \"{member}\"{integer} .\n\
             {name} <http://e/in> _:b{member} .\n_:b{member} <http://e/deep> \"{member}\"{integer} .\n\
             {name} <http://e/at> \"{time_ms}\"{integer} ."
        );
    }
    text
}

fn json(base: &str, number: usize, page: &FeedPage) -> String {
    let tree = "https://w3id.org/tree#";
    let relations = page.leads_to.iter().map(
        |to| serde_json::json!({ (format!("{tree}node")): { "@id": format!("{base}/{to}") } }),
    );
    let members = page.members.iter().map(|member| {
        serde_json::json!({
            "@id": format!("http://e/m{member}"),
            "http://e/value": member,
            "http://e/in": { "http://e/deep": member },
            "http://e/at": time_of(*member),
        })
    });
    let document = serde_json::json!([
        {
            "@id": format!("{base}/{number}"),
            (format!("{tree}relation")): relations.collect::<Vec<_>>(),
        },
        { "@id": format!("{base}/feed"), (format!("{tree}member")): members.collect::<Vec<_>>() },
    ]);
    document.to_string()
}
