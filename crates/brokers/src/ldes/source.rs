//! How is an event stream replicated, and then followed, each member once?
//!
//! From its first page on, every page that a relation leads to is read, whatever the relation says: first
//! those that begin earliest. Each page is taken as a whole: its new members are pushed in the order of their
//! times, with marks of them; then, if it will never change, a mark that it is done and of where it leads. A
//! page that fails is tried again, while others go on. All that may change is asked for again from time to
//! time, and what is new on any of it is pushed together, in the order of times.
//!
//! What is not in the marks is known by this thread alone. After whatever fails as a whole, it begins anew
//! with the marks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use jindou_engine::{FeedMessage, LdesSource, Page, PageAnswer, PageRequest, Producer, TimeSource};
use oxrdf::{NamedNode, NamedOrBlankNode, Term};

use super::marks::{Bounds, Mark, Marks};
use super::page::{Link, PageError, Quads, TimePath, page_of};
use crate::error::BrokerError;
use crate::source::SourceJob;
use crate::status::Pages;
use crate::stop::Backoff;

const ACCEPT: &str = "application/trig, application/n-quads;q=0.9, text/turtle;q=0.9, \
                      application/n-triples;q=0.8, application/ld+json;q=0.7";
/// The longest page, and how long one may take.
const MOST_PAGE_BYTES: u64 = 16 << 20;
const PAGE_TIME: Duration = Duration::from_secs(30);
/// Members that are pushed together, and bytes of these.
const MOST_MESSAGES: usize = 1_000;
const MOST_BYTES: usize = 1 << 20;
/// Bytes of members that wait until all pages of a round were read, beyond which they do not wait.
const MOST_FOUND_BYTES: usize = 8 << 20;

/// Reads until that fails.
///
/// # Errors
/// Always one: why it ended.
pub(crate) fn read(job: &SourceJob, definition: &LdesSource) -> Result<Infallible, BrokerError> {
    let mut reader = Reader::new(job, definition)?;
    let poll = Duration::from_millis(definition.poll_ms);
    let (mut next_poll, mut backoff) = (Instant::now(), Backoff::new());
    loop {
        let begin = Instant::now();
        let is_whole = begin >= next_poll;
        let failure = reader.round(is_whole)?;
        if is_whole {
            next_poll = begin.max(Instant::now()) + poll;
        }
        let until_poll = next_poll.saturating_duration_since(Instant::now());
        match failure {
            None => {
                backoff = Backoff::new();
                job.connected();
                job.stop.wait(until_poll)?;
            }
            Some(error) => {
                job.fail(error.to_string());
                job.stop.wait(backoff.next().min(until_poll))?;
            }
        }
    }
}

struct Reader<'a> {
    job: &'a SourceJob,
    producer: String,
    marks: Marks,
    /// Pages that were read and may change, with their versions.
    open: BTreeMap<String, Option<String>>,
    /// Pages that are to be read, with the time from which on they have members.
    waiting: BTreeMap<String, i64>,
    /// The first page, and that of the view that it tells of: they are never done, as they say what the
    /// event stream is.
    roots: Vec<String>,
    /// The event stream, where it is told.
    stream: Option<NamedNode>,
    /// Where members have their times, where it is told.
    time_path: Option<TimePath>,
    /// All pages were read once.
    is_following: bool,
    found: Vec<Found>,
    found_bytes: usize,
    /// Pages whose members are among those found.
    fresh: Vec<Fresh>,
}

/// A member that is to be pushed.
struct Found {
    mark: Mark,
    /// By which it is ordered, and which its message has where it needs one.
    time_ms: Option<i64>,
    message: FeedMessage,
    place: String,
}

/// A page that was just read.
struct Fresh {
    address: String,
    etag: Option<String>,
    /// It will never change.
    is_immutable: bool,
    members: Vec<Mark>,
    links: Vec<Link>,
}

/// Why a page was not taken.
enum Failure {
    /// Others can be.
    OfPage(BrokerError),
    OfAll(BrokerError),
}

impl<'a> Reader<'a> {
    fn new(job: &'a SourceJob, definition: &LdesSource) -> Result<Self, BrokerError> {
        let root = page_of(&definition.url).to_owned();
        let marks = Marks::read(&job.feed.notes(), Bounds::default())?;
        let mut waiting = marks.found().clone();
        waiting.insert(root.clone(), i64::MIN);
        let time_path = match &job.feed.definition().time {
            TimeSource::Predicate(predicate) => {
                Some(TimePath(vec![NamedNode::new_unchecked(predicate.as_str())]))
            }
            _ => None,
        };
        Ok(Self {
            job,
            producer: format!("ldes:{root}"),
            marks,
            open: BTreeMap::new(),
            waiting,
            roots: vec![root],
            stream: None,
            time_path,
            is_following: false,
            found: Vec::new(),
            found_bytes: 0,
            fresh: Vec::new(),
        })
    }

    /// Reads all pages that are to be read, and those that they lead to; and in a whole round those that may
    /// change. Gives the first error of a page, where one failed.
    fn round(&mut self, is_whole: bool) -> Result<Option<BrokerError>, BrokerError> {
        let mut queue = Queue::default();
        if is_whole {
            self.open.keys().for_each(|page| queue.push(page, i64::MIN));
        }
        for (page, from_ms) in &self.waiting {
            queue.push(page, *from_ms);
        }
        let mut failure = None;
        while let Some(address) = queue.pop() {
            self.job.stop.check()?;
            match self.visit(&address) {
                Ok(links) => {
                    self.waiting.remove(&address);
                    for link in links {
                        if !self.open.contains_key(&link.address) {
                            queue.push(&link.address, link.from_ms);
                            self.waiting.entry(link.address).or_insert(link.from_ms);
                        }
                    }
                    self.marks
                        .limit_pages(self.open.len() + self.waiting.len())?;
                }
                Err(Failure::OfPage(error)) => {
                    self.open.remove(&address);
                    self.waiting.entry(address).or_insert(i64::MIN);
                    failure.get_or_insert(error);
                }
                Err(Failure::OfAll(error)) => return Err(error),
            }
            if !self.is_following || self.found_bytes >= MOST_FOUND_BYTES {
                self.settle()?;
            }
        }
        self.settle()?;
        self.is_following |= failure.is_none();
        Ok(failure)
    }

    /// Reads a page, unless it is as it was. Gives the pages that it leads to and that are not known.
    fn visit(&mut self, address: &str) -> Result<Vec<Link>, Failure> {
        let request = PageRequest {
            address,
            accept: ACCEPT,
            etag: self.open.get(address).and_then(Option::as_deref),
            most_bytes: MOST_PAGE_BYTES,
            timeout: PAGE_TIME,
        };
        let failed = |error: PageError| {
            Failure::OfPage(BrokerError::Page {
                address: address.to_owned(),
                source: Box::new(error),
            })
        };
        let answer = self.job.database.page(&request, &|| self.job.stop.is_set());
        match answer.map_err(|error| failed(error.into()))? {
            PageAnswer::Page(page) => self.take(address, &page).map_err(failed),
            PageAnswer::Unchanged => Ok(Vec::new()),
            _ => Err(Failure::OfAll(BrokerError::Stopped)),
        }
    }

    /// Takes what is new on a page: all of it, or nothing.
    fn take(&mut self, address: &str, page: &Page) -> Result<Vec<Link>, PageError> {
        let quads = Quads::read(page, self.job.pool.clone())?;
        let mut links = self.learn(address, page, &quads)?;
        let members = quads.members(self.stream.as_ref());
        let found = self.new_members(address, &quads, &members)?;
        links.extend(quads.links(self.time_path.as_ref())?);
        links.retain(|link| link.address != address && !self.marks.is_done(&link.address));
        for member in &found {
            self.marks.add(member.mark);
            self.found_bytes += member.message.text.len() + member.place.len();
        }
        self.found.extend(found);
        let is_root = self.roots.iter().any(|root| root == address);
        self.fresh.push(Fresh {
            address: address.to_owned(),
            etag: page.etag.clone(),
            is_immutable: is_immutable(page) && !is_root,
            members: members.into_iter().filter_map(mark_of).collect(),
            links: links.clone(),
        });
        Ok(links)
    }

    /// Learns from a page what the event stream is. Gives its view, if the first page is not one itself.
    fn learn(&mut self, address: &str, page: &Page, quads: &Quads) -> Result<Vec<Link>, PageError> {
        if self.time_path.is_none() {
            self.time_path = quads.time_path()?;
        }
        if !self.roots.iter().any(|root| root == address) {
            return Ok(Vec::new());
        }
        let is_here = |view: &str| {
            let view = page_of(view);
            view == address || view == page_of(&page.address)
        };
        let views: BTreeSet<(&str, Option<&NamedNode>)> = quads
            .views()
            .map(|(stream, view)| {
                let stream = match stream {
                    NamedOrBlankNode::NamedNode(stream) => Some(stream),
                    NamedOrBlankNode::BlankNode(_) => None,
                };
                (view.as_str(), stream)
            })
            .collect();
        let own = views.iter().find(|(view, _)| is_here(view));
        // A view has all members of its event stream, so that one will do.
        let Some((view, stream)) = own.or(views.first()) else {
            return Ok(Vec::new());
        };
        self.stream = self.stream.take().or_else(|| stream.cloned());
        if is_here(view) || self.roots.len() > 1 {
            return Ok(Vec::new());
        }
        let view = page_of(view).to_owned();
        self.roots.push(view.clone());
        Ok(vec![Link {
            address: view,
            from_ms: i64::MIN,
        }])
    }

    /// The members on a page that were not taken yet.
    fn new_members(
        &self,
        address: &str,
        quads: &Quads,
        members: &[&Term],
    ) -> Result<Vec<Found>, PageError> {
        let named: Vec<&NamedNode> = members
            .iter()
            .filter_map(|member| match member {
                Term::NamedNode(member) => Some(member),
                _ => None,
            })
            .collect();
        let names: HashSet<&str> = named.iter().map(|member| member.as_str()).collect();
        let new = named
            .into_iter()
            .filter(|member| !self.marks.has(Mark::of(member.as_str())));
        let new: Vec<&NamedNode> = new.collect();
        let needs_times = self.job.feed.needs_times();
        if needs_times && self.time_path.is_none() && !new.is_empty() {
            return Err(PageError::NoTimePath);
        }
        let found = new.into_iter().map(|member| {
            let statements = quads.statements(member, &names);
            let path = self.time_path.as_ref();
            let time_ms = path.and_then(|path| path.time_ms(member, &statements));
            let text = statements.iter().map(|quad| format!("{quad} .\n"));
            Found {
                mark: Mark::of(member.as_str()),
                time_ms,
                message: FeedMessage {
                    time_ms: time_ms.filter(|_| needs_times),
                    text: text.collect::<String>().into_bytes(),
                },
                place: format!("{address}, member {member}"),
            }
        });
        Ok(found.collect())
    }

    /// Makes the members that were found part of the stream, and notes which pages are done.
    fn settle(&mut self) -> Result<(), BrokerError> {
        let mut found = std::mem::take(&mut self.found);
        self.found_bytes = 0;
        found.sort_by_key(|member| member.time_ms);
        let mut found = found.into_iter().peekable();
        loop {
            let (mut messages, mut places, mut bytes) = (Vec::new(), Vec::new(), 0);
            while messages.len() < MOST_MESSAGES && bytes < MOST_BYTES {
                let Some(member) = found.next() else {
                    break;
                };
                bytes += member.message.text.len();
                self.refuse_empty(&member);
                self.marks.note(member.mark);
                messages.push(member.message);
                places.push(member.place);
            }
            let is_last = found.peek().is_none();
            if is_last {
                self.finish_pages()?;
            }
            self.push(&messages, &places)?;
            if is_last {
                break;
            }
        }
        if self.marks.are_too_long(self.job.feed.notes_bytes()) {
            self.job.replace_notes(&self.marks.write())?;
        }
        self.tell_pages();
        Ok(())
    }

    /// A member of which the page says nothing is passed over.
    fn refuse_empty(&self, member: &Found) {
        if member.message.text.is_empty() {
            let error = "the page has no statements of this member";
            let mut status = self.job.status.lock();
            status.refuse(member.place.clone(), error, b"");
        }
    }

    fn push(&mut self, messages: &[FeedMessage], places: &[String]) -> Result<(), BrokerError> {
        let notes = self.marks.take_new();
        if notes.is_empty() {
            return Ok(());
        }
        // So that what was put in, but perhaps not synced, is not put in again.
        let last = self.job.feed.last_sequence(&self.producer);
        let by = [Producer {
            name: &self.producer,
            sequence: last.unwrap_or(0) + 1,
        }];
        let place_of = |at: usize| places[at].clone();
        self.job.push_noting(&by, messages, &notes, &place_of)
    }

    /// Of pages whose last members are in the next push: those that never change are done, and others are
    /// asked for again.
    fn finish_pages(&mut self) -> Result<(), BrokerError> {
        for page in std::mem::take(&mut self.fresh) {
            if !page.is_immutable {
                self.open.insert(page.address, page.etag);
                continue;
            }
            self.open.remove(&page.address);
            self.marks.finish_page(&page.address, &page.members);
            for link in page.links {
                self.marks.find_page(&link.address, link.from_ms);
            }
        }
        self.marks.limit()
    }

    fn tell_pages(&self) {
        self.job.status.lock().pages = Some(Pages {
            done: self.marks.pages_done() as u64,
            open: self.open.len() as u64,
            waiting: self.waiting.len() as u64,
        });
    }
}

/// Pages that are to be read in a round, each once.
#[derive(Default)]
struct Queue {
    pages: BinaryHeap<Reverse<(i64, String)>>,
    seen: HashSet<String>,
}

impl Queue {
    fn push(&mut self, page: &str, from_ms: i64) {
        if self.seen.insert(page.to_owned()) {
            self.pages.push(Reverse((from_ms, page.to_owned())));
        }
    }

    /// The page that begins earliest.
    fn pop(&mut self) -> Option<String> {
        let Reverse((_, page)) = self.pages.pop()?;
        Some(page)
    }
}

fn mark_of(member: &Term) -> Option<Mark> {
    match member {
        Term::NamedNode(member) => Some(Mark::of(member.as_str())),
        _ => None,
    }
}

/// Whether the server says that a page will never change.
fn is_immutable(page: &Page) -> bool {
    let control = page.cache_control.as_deref().unwrap_or_default();
    let mut directives = control.split(',');
    directives.any(|directive| directive.trim().eq_ignore_ascii_case("immutable"))
}
