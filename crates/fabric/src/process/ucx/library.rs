//! Which functions does the UCX of this machine have, and how is it kept from changing the process?

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;

use libloading::Library;

use super::ffi::{AmHandlerParam, EpParams, Handle, Params, RequestParam, Status, WorkerParams};
use crate::FabricError;

/// How to get the library.
const REMEDY: &str = "install UCX 1.13 or later: libucx0 on Debian and Ubuntu, ucx on Fedora";

/// Declares the functions of the library as fields, and how they are found.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names in C without `ucp_`.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library is UCX's.
            unsafe fn find(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: a function of that name has this type in each version of UCX whose
                    // interface is that of `ffi`.
                    $($name: unsafe {
                        *library.get(concat!("ucp_", stringify!($name), "\0").as_bytes())?
                    },)*
                })
            }
        }
    };
}

functions! {
    config_read: fn(*const c_char, *const c_char, *mut Handle) -> Status;
    config_modify: fn(Handle, *const c_char, *const c_char) -> Status;
    config_release: fn(Handle);
    init_version: fn(c_uint, c_uint, *const Params, Handle, *mut Handle) -> Status;
    cleanup: fn(Handle);
    worker_create: fn(Handle, *const WorkerParams, *mut Handle) -> Status;
    worker_destroy: fn(Handle);
    worker_get_address: fn(Handle, *mut Handle, *mut usize) -> Status;
    worker_release_address: fn(Handle, Handle);
    worker_progress: fn(Handle) -> c_uint;
    worker_get_efd: fn(Handle, *mut c_int) -> Status;
    worker_arm: fn(Handle) -> Status;
    worker_set_am_recv_handler: fn(Handle, *const AmHandlerParam) -> Status;
    ep_create: fn(Handle, *const EpParams, *mut Handle) -> Status;
    am_send_nbx: fn(
        Handle, c_uint, *const c_void, usize, *const c_void, usize, *const RequestParam
    ) -> *mut c_void;
    request_check_status: fn(*mut c_void) -> Status;
    request_free: fn(*mut c_void);
}

/// UCX, for as long as the process runs: its threads and handlers do not outlive a library that is
/// unloaded.
pub(super) struct Ucx {
    pub(super) functions: Functions,
    status_string: unsafe extern "C" fn(Status) -> *const c_char,
}

impl Ucx {
    /// Loads the library of this file name.
    pub(super) fn load(name: &str) -> Result<Self, FabricError> {
        let unavailable = |error: libloading::Error| FabricError::Unavailable {
            library: name.to_owned(),
            reason: error.to_string(),
            remedy: REMEDY,
        };
        let signals = Signals::save();
        // SAFETY: the initializers of UCX set handlers of signals, which are taken back below, and
        // do nothing else that this process could notice.
        let library = unsafe { Library::new(name) }.map_err(unavailable)?;
        signals.restore();
        // Before anything can fail: it must not be unloaded.
        let library = Box::leak(Box::new(library));
        // SAFETY: it has the name of UCX.
        let functions = unsafe { Functions::find(library) }.map_err(unavailable)?;
        // SAFETY: a function of `ucs/type/status.h`, in a library that UCX's is linked with.
        let status_string = unsafe { *library.get(b"ucs_status_string\0").map_err(unavailable)? };
        keep_quiet(library);
        Ok(Self {
            functions,
            status_string,
        })
    }

    /// An error unless the status is fine.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), FabricError> {
        if status >= 0 {
            return Ok(());
        }
        let reason = self.reason(status);
        Err(FabricError::Transport { call, reason })
    }

    fn reason(&self, status: Status) -> String {
        // SAFETY: the function takes any status, and gives a string that nothing alters before the
        // next call for an unknown status.
        let text = unsafe { CStr::from_ptr((self.status_string)(status)) };
        text.to_string_lossy().into_owned()
    }
}

/// Lost peers are errors of calls here: UCX would also print each to the standard output.
fn keep_quiet(library: &Library) {
    type SetOption = unsafe extern "C" fn(*const c_char, *const c_char) -> Status;
    // SAFETY: a function of `ucs/config/global_opts.h`; versions without it print.
    unsafe {
        if let Ok(set) = library.get::<SetOption>(b"ucs_global_opts_set_value\0") {
            set(c"LOG_LEVEL".as_ptr(), c"fatal".as_ptr());
        }
    }
}

/// What the process does with each signal: UCX sets handlers of its own for several when it is
/// loaded, SIGBUS among them, by which a mapped file that lost bytes is noticed.
struct Signals(Vec<(c_int, libc::sigaction)>);

impl Signals {
    fn save() -> Self {
        let actions = (1..32).filter_map(|signal| {
            let mut action = MaybeUninit::uninit();
            // SAFETY: asks only; the pointer is to a value of the type that is written.
            let status = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
            // SAFETY: written if the status is 0.
            (status == 0).then(|| (signal, unsafe { action.assume_init() }))
        });
        Self(actions.collect())
    }

    fn restore(self) {
        for (signal, action) in self.0 {
            if signal == libc::SIGKILL || signal == libc::SIGSTOP {
                continue;
            }
            // SAFETY: the action was this signal's before.
            unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_missing_is_an_error_that_says_how_to_get_it() {
        let error = Ucx::load("libucp-that-is-not-there.so").err().unwrap();
        let FabricError::Unavailable { library, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(library, "libucp-that-is-not-there.so");
        assert!(error.to_string().contains("libucx0"), "{error}");
    }

    #[test]
    fn loading_leaves_the_handlers_of_signals_alone() {
        let handlers = || {
            let signals = Signals::save().0;
            signals
                .iter()
                .map(|(_, action)| action.sa_sigaction)
                .collect::<Vec<_>>()
        };
        let before = handlers();
        match Ucx::load(crate::process::UCX_LIBRARY) {
            Ok(_) => assert_eq!(handlers(), before),
            Err(error) => println!("SKIPPED: {error}"),
        }
    }
}
