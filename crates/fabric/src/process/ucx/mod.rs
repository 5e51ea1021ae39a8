//! How is one UCX worker shared by the threads of a node, and who frees what belongs to it?
//!
//! Its calls are serialized by a lock. A message that is sent under other locks goes to a list first,
//! and leaves with the next one who has the worker.

mod ffi;
mod library;

#[cfg(test)]
mod abi_tests;

use std::collections::VecDeque;
use std::ffi::{CString, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use self::ffi::{Handle, Status};
use self::library::Ucx;
use crate::FabricError;

/// The only kind of messages.
const MESSAGE: u32 = 1;
/// The most messages that wait to be handled; those beyond are lost, as if their sender were.
const MAX_WAITING_MESSAGES: usize = 1 << 16;

/// A handle of UCX, used only as its functions allow.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Raw(Handle);

// SAFETY: UCX lets any thread use its handles, one at a time for those of a worker, which the
// worker's lock ensures.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// A context and its worker.
pub(in crate::process) struct Engine {
    ucx: Ucx,
    worker: Mutex<Worker>,
    /// Messages for the next one who has the worker.
    posted: Mutex<Vec<(Endpoint, Vec<u64>)>>,
    /// Readable when the worker has something to do.
    event_fd: c_int,
}

/// What only one thread at a time may use.
struct Worker {
    handle: Raw,
    inbox: Arc<Inbox>,
    sends: VecDeque<Outgoing>,
    /// UCX calls with these until the worker is gone.
    flags: Vec<Arc<AtomicBool>>,
}

/// Messages that came while the worker made progress.
#[derive(Default)]
struct Inbox(Mutex<Vec<Vec<u64>>>);

/// A request of UCX, and the words that it sends.
struct Outgoing {
    request: Raw,
    _words: Vec<u64>,
}

/// An endpoint: a way to a peer.
#[derive(Clone, Copy)]
pub(in crate::process) struct Endpoint(Raw);

/// The worker, for one thread.
pub(in crate::process) struct Turn<'a> {
    engine: &'a Engine,
    worker: MutexGuard<'a, Worker>,
}

impl Engine {
    /// A worker of this library that uses these transports, named as `UCX_TLS` names them.
    pub(in crate::process) fn new(
        library: &str,
        transports: &str,
    ) -> Result<Arc<Self>, FabricError> {
        let ucx = Ucx::load(library)?;
        let context = new_context(&ucx, transports)?;
        let inbox = Arc::<Inbox>::default();
        let created = new_worker(&ucx, context, &inbox);
        let (handle, event_fd) = match created {
            Ok(created) => created,
            Err(error) => {
                // SAFETY: the context has no worker.
                unsafe { (ucx.functions.cleanup)(context.0) };
                return Err(error);
            }
        };
        let worker = Worker {
            handle,
            inbox,
            sends: VecDeque::new(),
            flags: Vec::new(),
        };
        let engine = Self {
            ucx,
            worker: Mutex::new(worker),
            posted: Mutex::default(),
            event_fd,
        };
        let engine = Arc::new(engine);
        // UCX 1.13 faults now and then when ways are closed while their peers close them, so nothing
        // is closed: an engine is there until its process ends, which closes all.
        std::mem::forget(Arc::clone(&engine));
        Ok(engine)
    }

    /// The worker, waiting for it.
    pub(in crate::process) fn turn(&self) -> Turn<'_> {
        let (engine, worker) = (self, self.worker.lock());
        Turn { engine, worker }
    }

    /// The worker, if nobody has it.
    pub(in crate::process) fn try_turn(&self) -> Option<Turn<'_>> {
        let worker = self.worker.try_lock()?;
        Some(Turn {
            engine: self,
            worker,
        })
    }

    /// Has a message sent by [`Turn::flush`].
    pub(in crate::process) fn post(&self, endpoint: Endpoint, words: Vec<u64>) {
        self.posted.lock().push((endpoint, words));
    }

    pub(in crate::process) fn has_posts(&self) -> bool {
        !self.posted.lock().is_empty()
    }

    /// Readable when the worker has something to do, once [`Turn::arm`] gave true.
    pub(in crate::process) fn event_fd(&self) -> c_int {
        self.event_fd
    }
}

fn new_context(ucx: &Ucx, transports: &str) -> Result<Raw, FabricError> {
    let functions = &ucx.functions;
    let transports = CString::new(transports).map_err(|_| FabricError::Malformed("transports"))?;
    let parameters = ffi::Params {
        field_mask: ffi::PARAM_FEATURES,
        features: ffi::FEATURE_AM | ffi::FEATURE_WAKEUP,
        request_size: 0,
        request_init: null(),
        request_cleanup: null(),
        tag_sender_mask: 0,
        mt_workers_shared: 0,
        estimated_num_eps: 0,
        estimated_num_ppn: 0,
        name: null(),
    };
    let options = [
        (c"TLS", transports.as_c_str()),
        // Messages arrive whole in the callback, whatever their length.
        (c"RNDV_THRESH", c"inf"),
        // For peers that end without a word, as when their machine loses power.
        (c"KEEPALIVE_INTERVAL", c"1s"),
    ];
    let mut config = null_mut();
    // SAFETY: no prefix and no file are what the function allows; the configuration is released
    // after its use; the parameters say which of them count.
    unsafe {
        let status = (functions.config_read)(null(), null(), &raw mut config);
        ucx.check("ucp_config_read", status)?;
        let mut context = null_mut();
        let set = options.iter().try_for_each(|(name, value)| {
            let status = (functions.config_modify)(config, name.as_ptr(), value.as_ptr());
            ucx.check("ucp_config_modify", status)
        });
        let made = set.and_then(|()| {
            let (major, minor) = (ffi::API_MAJOR, ffi::API_MINOR);
            let parameters = &raw const parameters;
            let status =
                (functions.init_version)(major, minor, parameters, config, &raw mut context);
            ucx.check("ucp_init_version", status)
        });
        (functions.config_release)(config);
        made.map(|()| Raw(context))
    }
}

/// A worker and the descriptor that tells of its events.
fn new_worker(ucx: &Ucx, context: Raw, inbox: &Arc<Inbox>) -> Result<(Raw, c_int), FabricError> {
    let functions = &ucx.functions;
    let parameters = ffi::WorkerParams {
        field_mask: ffi::WORKER_THREAD_MODE,
        thread_mode: ffi::THREAD_MODE_SERIALIZED,
        cpu_mask: [0; 16],
        events: 0,
        user_data: null_mut(),
        event_fd: 0,
        flags: 0,
        name: null(),
        am_alignment: 0,
        client_id: 0,
    };
    let handler = ffi::AmHandlerParam {
        field_mask: ffi::AM_ALL_FIELDS,
        id: MESSAGE,
        flags: ffi::AM_WHOLE_MESSAGE,
        callback: Some(receive),
        argument: Arc::as_ptr(inbox).cast_mut().cast(),
    };
    let mut worker = null_mut();
    // SAFETY: the context is alive; the parameters say which of them count.
    let status =
        unsafe { (functions.worker_create)(context.0, &raw const parameters, &raw mut worker) };
    ucx.check("ucp_worker_create", status)?;
    let mut event_fd = 0;
    // SAFETY: the worker is alive; the inbox is kept for as long.
    let ready = unsafe {
        let status = (functions.worker_set_am_recv_handler)(worker, &raw const handler);
        ucx.check("ucp_worker_set_am_recv_handler", status)
            .and_then(|()| {
                let status = (functions.worker_get_efd)(worker, &raw mut event_fd);
                ucx.check("ucp_worker_get_efd", status)
            })
    };
    if let Err(error) = ready {
        // SAFETY: nobody else has the worker.
        unsafe { (functions.worker_destroy)(worker) };
        return Err(error);
    }
    Ok((Raw(worker), event_fd))
}

/// UCX calls this with a message, while a thread makes progress.
///
/// # Safety
/// `argument` is an inbox, `data` is `length` bytes unless `parameters` say otherwise.
unsafe extern "C" fn receive(
    argument: *mut c_void,
    _header: *const c_void,
    _header_length: usize,
    data: *mut c_void,
    length: usize,
    parameters: *const ffi::AmRecvParam,
) -> Status {
    // SAFETY: the caller gives parameters that live until this returns.
    let is_here = unsafe { (*parameters).recv_attr } & ffi::AM_RECV_RNDV == 0;
    if is_here && length.is_multiple_of(8) && !data.is_null() {
        let mut words = vec![0_u64; length / 8];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        // SAFETY: the caller gives an inbox, which outlives the worker, and so many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(data.cast::<u8>(), bytes.as_mut_ptr(), length);
            let mut inbox = (*argument.cast::<Inbox>()).0.lock();
            if inbox.len() < MAX_WAITING_MESSAGES {
                inbox.push(words);
            }
        }
    }
    ffi::OK
}

/// UCX calls this when the peer of an endpoint failed, while a thread makes progress.
///
/// # Safety
/// `argument` is a flag that the worker keeps.
unsafe extern "C" fn lose(argument: *mut c_void, _endpoint: Handle, _status: Status) {
    // SAFETY: as the caller says.
    unsafe { (*argument.cast::<AtomicBool>()).store(true, Ordering::SeqCst) };
}

impl Turn<'_> {
    /// Lets UCX work until it has nothing to do, or a while; the messages that came.
    pub(in crate::process) fn progress(&mut self) -> Vec<Vec<u64>> {
        /// Calls before others have their turn.
        const CALLS: u32 = 64;
        for _ in 0..CALLS {
            // SAFETY: the worker is alive and this thread's.
            if unsafe { (self.engine.ucx.functions.worker_progress)(self.worker.handle.0) } == 0 {
                break;
            }
        }
        self.sweep();
        std::mem::take(&mut *self.worker.inbox.0.lock())
    }

    /// True if the event descriptor tells of what comes next; false if there is something already.
    pub(in crate::process) fn arm(&mut self) -> bool {
        // SAFETY: the worker is alive and this thread's.
        let status = unsafe { (self.engine.ucx.functions.worker_arm)(self.worker.handle.0) };
        status != ffi::ERR_BUSY
    }

    /// True if something waits to be sent.
    pub(in crate::process) fn has_sends(&self) -> bool {
        !self.worker.sends.is_empty()
    }

    /// What a peer needs to connect.
    pub(in crate::process) fn address(&mut self) -> Result<Vec<u8>, FabricError> {
        let ucx = &self.engine.ucx;
        let worker = self.worker.handle.0;
        let (mut address, mut length) = (null_mut(), 0);
        // SAFETY: the worker is alive and this thread's.
        let status = unsafe {
            (ucx.functions.worker_get_address)(worker, &raw mut address, &raw mut length)
        };
        ucx.check("ucp_worker_get_address", status)?;
        // SAFETY: UCX gives so many bytes, which are released after they were copied.
        unsafe {
            let bytes = std::slice::from_raw_parts(address.cast::<u8>(), length).to_vec();
            (ucx.functions.worker_release_address)(worker, address);
            Ok(bytes)
        }
    }

    /// A way to the worker of this address; the flag becomes true when it is lost.
    pub(in crate::process) fn connect(
        &mut self,
        address: &[u8],
        is_lost: &Arc<AtomicBool>,
    ) -> Result<Endpoint, FabricError> {
        let handler = ffi::ErrHandler {
            callback: Some(lose),
            argument: Arc::as_ptr(is_lost).cast_mut().cast(),
        };
        self.worker.flags.push(Arc::clone(is_lost));
        let mask = ffi::EP_REMOTE_ADDRESS | ffi::EP_ERR_HANDLING_MODE | ffi::EP_ERR_HANDLER;
        self.new_endpoint(address, mask, handler).map(Endpoint)
    }

    fn new_endpoint(
        &mut self,
        address: &[u8],
        field_mask: u64,
        err_handler: ffi::ErrHandler,
    ) -> Result<Raw, FabricError> {
        let no_address = || ffi::SockAddr {
            address: null(),
            length: 0,
        };
        let parameters = ffi::EpParams {
            field_mask,
            address: address.as_ptr().cast(),
            err_mode: ffi::ERR_HANDLING_PEER,
            err_handler,
            user_data: null_mut(),
            flags: 0,
            sockaddr: no_address(),
            conn_request: null_mut(),
            name: null(),
            local_sockaddr: no_address(),
        };
        let ucx = &self.engine.ucx;
        let mut endpoint = null_mut();
        // SAFETY: the worker is alive and this thread's; the argument of a handler is kept as long
        // as the worker; the address came, with a checksum, from a worker of this library.
        let status = unsafe {
            let worker = self.worker.handle.0;
            (ucx.functions.ep_create)(worker, &raw const parameters, &raw mut endpoint)
        };
        ucx.check("ucp_ep_create", status)?;
        Ok(Raw(endpoint))
    }

    /// Sends the messages that were posted.
    pub(in crate::process) fn flush(&mut self) {
        let posted = std::mem::take(&mut *self.engine.posted.lock());
        for (endpoint, words) in posted {
            self.send(endpoint, words);
        }
    }

    /// Sends a message. That it did not arrive is known by the flag of its endpoint.
    fn send(&mut self, endpoint: Endpoint, words: Vec<u64>) {
        let parameters = ffi::RequestParam {
            op_attr_mask: ffi::OP_FLAGS,
            flags: ffi::AM_EAGER,
            ..no_parameters()
        };
        // SAFETY: the endpoint is open, the words are kept until the request is done.
        let request = unsafe {
            (self.engine.ucx.functions.am_send_nbx)(
                endpoint.0.0,
                MESSAGE,
                null(),
                0,
                words.as_ptr().cast(),
                size_of_val(&words[..]),
                &raw const parameters,
            )
        };
        self.keep(request, words);
    }

    /// Sends the messages that were posted, as far as their peers read.
    pub(in crate::process) fn drain(&mut self) {
        /// More calls than it takes.
        const CALLS: u32 = 10_000;
        self.flush();
        for _ in 0..CALLS {
            let _ = self.progress();
            if self.worker.sends.is_empty() {
                break;
            }
        }
    }

    fn keep(&mut self, request: *mut c_void, words: Vec<u64>) {
        let is_error = request.addr() >= ffi::ERR_LAST as isize as usize;
        if request.is_null() || is_error {
            return;
        }
        let request = Raw(request);
        self.worker.sends.push_back(Outgoing {
            request,
            _words: words,
        });
    }

    /// Frees requests that are done.
    fn sweep(&mut self) {
        let functions = &self.engine.ucx.functions;
        // SAFETY: the request came from UCX and was not freed; after it was, it is forgotten.
        self.worker.sends.retain(|send| unsafe {
            let request = send.request.0;
            let is_done = (functions.request_check_status)(request) != ffi::IN_PROGRESS;
            if is_done {
                (functions.request_free)(request);
            }
            !is_done
        });
    }
}

fn no_parameters() -> ffi::RequestParam {
    ffi::RequestParam {
        op_attr_mask: 0,
        flags: 0,
        request: null_mut(),
        callback: null(),
        datatype: 0,
        user_data: null_mut(),
        reply_buffer: null_mut(),
        memory_type: 0,
        recv_info: null_mut(),
        memh: null_mut(),
    }
}
