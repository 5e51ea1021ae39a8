//! What of UCX's interface is used, as its headers of version 1.13 declare it?
//!
//! Later versions add fields to the ends of structures only, and read those that the mask of a
//! structure names. A test below compares sizes, places and numbers with the headers where
//! these are installed.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version whose interface this is.
pub(super) const API_MAJOR: c_uint = 1;
/// See [`API_MAJOR`].
pub(super) const API_MINOR: c_uint = 13;

/// `ucs_status_t`: an enumeration that UCX has packed into one byte.
pub(super) type Status = i8;
/// `UCS_OK`.
pub(super) const OK: Status = 0;
/// `UCS_INPROGRESS`.
pub(super) const IN_PROGRESS: Status = 1;
/// `UCS_ERR_BUSY`.
pub(super) const ERR_BUSY: Status = -15;
/// `UCS_ERR_LAST`: pointers from here on are statuses.
pub(super) const ERR_LAST: Status = -100;

/// `ucp_config_t *` and other handles, of which only the address matters.
pub(super) type Handle = *mut c_void;

/// `ucp_params_t`.
#[repr(C)]
pub(super) struct Params {
    /// Which fields count.
    pub(super) field_mask: u64,
    /// What the context is to be able to.
    pub(super) features: u64,
    /// Not used.
    pub(super) request_size: usize,
    /// Not used.
    pub(super) request_init: *const c_void,
    /// Not used.
    pub(super) request_cleanup: *const c_void,
    /// Not used.
    pub(super) tag_sender_mask: u64,
    /// Not used.
    pub(super) mt_workers_shared: c_int,
    /// Not used.
    pub(super) estimated_num_eps: usize,
    /// Not used.
    pub(super) estimated_num_ppn: usize,
    /// Not used.
    pub(super) name: *const c_char,
}

/// `UCP_PARAM_FIELD_FEATURES`.
pub(super) const PARAM_FEATURES: u64 = 1;
/// `UCP_FEATURE_WAKEUP`.
pub(super) const FEATURE_WAKEUP: u64 = 1 << 4;
/// `UCP_FEATURE_AM`.
pub(super) const FEATURE_AM: u64 = 1 << 6;

/// `ucp_worker_params_t`.
#[repr(C)]
pub(super) struct WorkerParams {
    /// Which fields count.
    pub(super) field_mask: u64,
    /// Who may call.
    pub(super) thread_mode: c_uint,
    /// Not used.
    pub(super) cpu_mask: [u64; 16],
    /// Not used.
    pub(super) events: c_uint,
    /// Not used.
    pub(super) user_data: *mut c_void,
    /// Not used.
    pub(super) event_fd: c_int,
    /// Not used.
    pub(super) flags: u64,
    /// Not used.
    pub(super) name: *const c_char,
    /// Not used.
    pub(super) am_alignment: usize,
    /// Not used.
    pub(super) client_id: u64,
}

/// `UCP_WORKER_PARAM_FIELD_THREAD_MODE`.
pub(super) const WORKER_THREAD_MODE: u64 = 1;
/// `UCS_THREAD_MODE_SERIALIZED`: any thread, one at a time.
pub(super) const THREAD_MODE_SERIALIZED: c_uint = 1;

/// `ucs_sock_addr_t`.
#[repr(C)]
pub(super) struct SockAddr {
    /// Not used.
    pub(super) address: *const c_void,
    /// Not used.
    pub(super) length: c_uint,
}

/// `ucp_ep_params_t`.
#[repr(C)]
pub(super) struct EpParams {
    /// Which fields count.
    pub(super) field_mask: u64,
    /// The peer's worker.
    pub(super) address: *const c_void,
    /// What happens when the peer fails.
    pub(super) err_mode: c_uint,
    /// Who is called then.
    pub(super) err_handler: ErrHandler,
    /// Not used.
    pub(super) user_data: *mut c_void,
    /// Not used.
    pub(super) flags: c_uint,
    /// Not used.
    pub(super) sockaddr: SockAddr,
    /// Not used.
    pub(super) conn_request: *mut c_void,
    /// Not used.
    pub(super) name: *const c_char,
    /// Not used.
    pub(super) local_sockaddr: SockAddr,
}

/// `ucp_err_handler_t`.
#[repr(C)]
pub(super) struct ErrHandler {
    /// Called with the argument.
    pub(super) callback: Option<unsafe extern "C" fn(*mut c_void, Handle, Status)>,
    /// The argument.
    pub(super) argument: *mut c_void,
}

/// `UCP_EP_PARAM_FIELD_REMOTE_ADDRESS`.
pub(super) const EP_REMOTE_ADDRESS: u64 = 1;
/// `UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE`.
pub(super) const EP_ERR_HANDLING_MODE: u64 = 1 << 1;
/// `UCP_EP_PARAM_FIELD_ERR_HANDLER`.
pub(super) const EP_ERR_HANDLER: u64 = 1 << 2;
/// `UCP_ERR_HANDLING_MODE_PEER`.
pub(super) const ERR_HANDLING_PEER: c_uint = 1;

/// `ucp_request_param_t`.
#[repr(C)]
pub(super) struct RequestParam {
    /// Which fields count.
    pub(super) op_attr_mask: u32,
    /// Of the operation.
    pub(super) flags: u32,
    /// Not used.
    pub(super) request: *mut c_void,
    /// Not used.
    pub(super) callback: *const c_void,
    /// Not used.
    pub(super) datatype: u64,
    /// Not used.
    pub(super) user_data: *mut c_void,
    /// Not used.
    pub(super) reply_buffer: *mut c_void,
    /// Not used.
    pub(super) memory_type: c_uint,
    /// Not used.
    pub(super) recv_info: *mut c_void,
    /// Not used.
    pub(super) memh: Handle,
}

/// `UCP_OP_ATTR_FIELD_FLAGS`.
pub(super) const OP_FLAGS: u32 = 1 << 4;
/// `UCP_AM_SEND_FLAG_EAGER`.
pub(super) const AM_EAGER: u32 = 1 << 1;

/// `ucp_am_handler_param_t`.
#[repr(C)]
pub(super) struct AmHandlerParam {
    /// Which fields count.
    pub(super) field_mask: u64,
    /// The kind of messages.
    pub(super) id: c_uint,
    /// How they are to come.
    pub(super) flags: u32,
    /// Called with each.
    pub(super) callback: Option<AmCallback>,
    /// Its first argument.
    pub(super) argument: *mut c_void,
}

/// `ucp_am_recv_callback_t`.
pub(super) type AmCallback = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    usize,
    *mut c_void,
    usize,
    *const AmRecvParam,
) -> Status;

/// `UCP_AM_HANDLER_PARAM_FIELD_ID`, `_FLAGS`, `_CB` and `_ARG`.
pub(super) const AM_ALL_FIELDS: u64 = 15;
/// `UCP_AM_FLAG_WHOLE_MSG`.
pub(super) const AM_WHOLE_MESSAGE: u32 = 1;

/// `ucp_am_recv_param_t`.
#[repr(C)]
pub(super) struct AmRecvParam {
    /// What came.
    pub(super) recv_attr: u64,
    /// Not used.
    pub(super) reply_ep: Handle,
}

/// `UCP_AM_RECV_ATTR_FLAG_RNDV`.
pub(super) const AM_RECV_RNDV: u64 = 1 << 17;
