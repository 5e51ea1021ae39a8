//! How does a source of a stream get a page of the web?
//!
//! As LOAD gets a document, and from addresses that LOAD may read; but whole, and not again where the page is
//! as it was. The request is on a thread of its own, so that whoever waits for it can give it up at once.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use jindou_exec::{MemoryPool, Reservation};
use ureq::http::{HeaderName, Response, Uri, header};
use ureq::{Agent, Body};

use crate::web::{Ask, Web, WebError, WebLimits, excerpt, media_type};
use crate::{Database, EngineError};

/// Bytes that are read, and reserved, at once.
const PART_BYTES: usize = 64 << 10;
/// How long to wait between two looks whether the page is still wanted.
const LOOK: Duration = Duration::from_millis(20);

/// A page that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// Its address.
    pub address: &'a str,
    /// The media types that can be read.
    pub accept: &'a str,
    /// The `ETag` of the page when it was read before: if it is as it was, it does not come again.
    pub etag: Option<&'a str>,
    /// How long it may be.
    pub most_bytes: u64,
    /// How long it may take.
    pub timeout: Duration,
}

/// What came instead of a page, or the page.
#[derive(Debug)]
#[non_exhaustive]
pub enum PageAnswer {
    /// It is as it was.
    Unchanged,
    /// It is another one than before, or was not read before.
    Page(Page),
    /// It was given up.
    GivenUp,
}

/// A page of the web.
#[derive(Debug)]
#[non_exhaustive]
pub struct Page {
    /// The address that it was read from at last, which is the base of IRIs in it.
    pub address: String,
    /// What it is written in.
    pub media_type: Option<String>,
    /// Which version of it this is.
    pub etag: Option<String>,
    /// How long it may be kept, as `Cache-Control` says.
    pub cache_control: Option<String>,
    /// Its text.
    pub bytes: Vec<u8>,
    /// Counts the bytes of the text as long as they are there.
    _memory: Option<Reservation>,
}

impl Database {
    /// Whether a source may read pages at an address: LOAD has to be allowed to.
    ///
    /// # Errors
    /// [`WebError::NotAllowed`] and [`WebError::NoAddress`].
    pub fn check_page(&self, address: &str) -> Result<(), WebError> {
        self.page_limits(0, Duration::ZERO)
            .allowed(address)
            .map(drop)
    }

    /// A page of the web, unless `is_over` says meanwhile that nobody wants it any more.
    ///
    /// # Errors
    /// [`EngineError::PoolExhausted`]; [`EngineError::Document`] where it cannot be had, or may not be read:
    /// each address that leads to it has to be allowed.
    pub fn page(
        &self,
        request: &PageRequest<'_>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<PageAnswer, EngineError> {
        let failed = |source| EngineError::Document {
            address: request.address.to_owned(),
            source,
        };
        let limits = self.page_limits(request.most_bytes, request.timeout);
        let address = limits.allowed(request.address).map_err(failed)?;
        let getting = Getting {
            web: Web::new(limits),
            address,
            accept: request.accept.to_owned(),
            etag: request.etag.map(str::to_owned),
            pool: self.config().memory_pool.clone(),
        };
        let agent = getting.web.agent();
        let (sender, receiver) = sync_channel(1);
        let started = thread::Builder::new()
            .name("jindou-page".to_owned())
            .spawn(move || getting.run(&sender));
        started.map_err(|error| {
            let reason = format!("no thread for it: {error}");
            failed(WebError::Unreachable { reason })
        })?;
        let _shut = Shut(Some(agent));
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(answer) => {
                    return answer.map_err(|error| match error {
                        NoPage::Web(error) => failed(error),
                        NoPage::Memory(error) => error,
                    });
                }
                Err(RecvTimeoutError::Timeout) if is_over() => return Ok(PageAnswer::GivenUp),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let reason = "an internal error ended the request".to_owned();
                    return Err(failed(WebError::Unreachable { reason }));
                }
            }
        }
    }

    fn page_limits(&self, most_bytes: u64, timeout: Duration) -> WebLimits {
        let config = self.config();
        WebLimits {
            policies: vec![config.load_addresses.clone()],
            connect_timeout: config.service_connect_timeout,
            timeout: Some(timeout),
            response_bytes: most_bytes,
        }
    }
}

/// Shuts the connection of a request that is given up, so that its thread ends.
struct Shut(Option<Agent>);

impl Drop for Shut {
    fn drop(&mut self) {
        if let Some(agent) = self.0.take() {
            agent.shutdown();
        }
    }
}

enum NoPage {
    Web(WebError),
    Memory(EngineError),
}

impl From<WebError> for NoPage {
    fn from(error: WebError) -> Self {
        Self::Web(error)
    }
}

/// A request under way.
struct Getting {
    web: Web,
    address: Uri,
    accept: String,
    etag: Option<String>,
    /// Not the database, which may be closed before a request that was given up has ended.
    pool: Option<Arc<MemoryPool>>,
}

impl Getting {
    fn run(self, sender: &SyncSender<Result<PageAnswer, NoPage>>) {
        // Nobody to tell is all right: it was given up.
        let _told = sender.send(self.get());
    }

    fn get(&self) -> Result<PageAnswer, NoPage> {
        let ask = Ask {
            accept: &self.accept,
            form: None,
            if_none_match: self.etag.as_deref(),
        };
        let (mut response, address) = self.web.respond(self.address.clone(), ask)?;
        let status = response.status().as_u16();
        match status {
            200 => {}
            304 if self.etag.is_some() => return Ok(PageAnswer::Unchanged),
            _ => {
                let body = excerpt(response.body_mut());
                return Err(WebError::Status { status, body }.into());
            }
        }
        let media_type = media_type(&response).map(str::to_owned);
        let etag = text_of(&response, header::ETAG);
        let cache_control = text_of(&response, header::CACHE_CONTROL);
        let (bytes, memory) = self.read(response)?;
        Ok(PageAnswer::Page(Page {
            address: address.to_string(),
            media_type,
            etag,
            cache_control,
            bytes,
            _memory: memory,
        }))
    }

    /// The body, whose bytes are reserved before they are there.
    fn read(&self, response: Response<Body>) -> Result<(Vec<u8>, Option<Reservation>), NoPage> {
        let exhausted = |limit_bytes| NoPage::Memory(EngineError::PoolExhausted { limit_bytes });
        let mut memory = match &self.pool {
            Some(pool) => Some(
                pool.reserve(0)
                    .ok_or_else(|| exhausted(pool.limit_bytes()))?,
            ),
            None => None,
        };
        let (mut bytes, mut body) = (Vec::new(), self.web.body(response));
        loop {
            if let (Some(memory), Some(pool)) = (&mut memory, &self.pool)
                // A growing vector has up to twice what is in it.
                && !memory.try_grow(2 * PART_BYTES as u64)
            {
                return Err(exhausted(pool.limit_bytes()));
            }
            let part = body
                .by_ref()
                .take(PART_BYTES as u64)
                .read_to_end(&mut bytes);
            let count = part.map_err(|error| {
                self.web.broken().unwrap_or_else(|| WebError::Unreachable {
                    reason: error.to_string(),
                })
            })?;
            if count == 0 {
                return Ok((bytes, memory));
            }
        }
    }
}

/// The value of a header; `None` where it is no text.
fn text_of(response: &Response<Body>, name: HeaderName) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    Some(value.to_owned())
}
