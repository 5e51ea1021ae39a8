//! What becomes of a read from a mapped file whose bytes cannot be had, because the file was
//! shortened or its device failed?
//!
//! The system answers such a read with the signal SIGBUS, which ends the process. Here a handler
//! puts a page of zeros in the place of the one that is missing and notes that the mapping is
//! damaged, so that whoever read from it ends with an error, and all others go on. What was read
//! is not to be believed before [`Watch::is_damaged`] was asked.
//!
//! The handler must not wait or allocate: mappings are in a list that only grows, of entries that
//! are used again, and whose numbers are atomic.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

/// An entry of the list of mappings.
struct Entry {
    /// Somebody has it.
    is_taken: AtomicBool,
    /// The mapping's first byte.
    start: AtomicUsize,
    /// Behind its last one; 0 while there is no mapping.
    end: AtomicUsize,
    is_damaged: AtomicBool,
    /// Never altered once the entry is in the list.
    next: AtomicPtr<Entry>,
}

/// The first of all entries; none is ever freed.
static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(null_mut());
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// What handled the signal before.
static FORMER: OnceLock<libc::sigaction> = OnceLock::new();

fn entries() -> impl Iterator<Item = &'static Entry> {
    let mut next = &ENTRIES;
    std::iter::from_fn(move || {
        // SAFETY: the pointers in the list are null or come from `Box::leak`.
        let entry: &'static Entry = unsafe { next.load(Ordering::Acquire).as_ref() }?;
        next = &entry.next;
        Some(entry)
    })
}

/// Watches over a mapped file for as long as it is mapped.
pub(crate) struct Watch(&'static Entry);

impl Watch {
    /// Begins to watch over the bytes at these addresses.
    pub(crate) fn begin(addresses: Range<usize>) -> Self {
        install();
        let free = |entry: &&Entry| !entry.is_taken.swap(true, Ordering::AcqRel);
        let entry = entries().find(free).unwrap_or_else(add);
        entry.is_damaged.store(false, Ordering::Relaxed);
        entry.start.store(addresses.start, Ordering::Release);
        entry.end.store(addresses.end, Ordering::Release);
        Self(entry)
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.0.is_damaged.load(Ordering::Acquire)
    }

    pub(crate) fn set_damaged(&self) {
        self.0.is_damaged.store(true, Ordering::Release);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.end.store(0, Ordering::Release);
        self.0.is_taken.store(false, Ordering::Release);
    }
}

/// A new entry at the head of the list.
fn add() -> &'static Entry {
    let entry: &'static Entry = Box::leak(Box::new(Entry {
        is_taken: AtomicBool::new(true),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_damaged: AtomicBool::new(false),
        next: AtomicPtr::new(null_mut()),
    }));
    let mut head = ENTRIES.load(Ordering::Acquire);
    loop {
        entry.next.store(head, Ordering::Relaxed);
        let own = std::ptr::from_ref(entry).cast_mut();
        match ENTRIES.compare_exchange_weak(head, own, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return entry,
            Err(other) => head = other,
        }
    }
}

/// The entry of the mapping that an address lies in.
fn entry_of(address: usize) -> Option<&'static Entry> {
    entries().find(|entry| {
        let end = entry.end.load(Ordering::Acquire);
        let start = entry.start.load(Ordering::Acquire);
        // An entry that another thread alters meanwhile is not the one: its mapping is in use here.
        (start..end).contains(&address) && entry.end.load(Ordering::Acquire) == end
    })
}

/// Puts the handler in place, once.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the calls are given memory of their own, all zeros of which are sound values of
        // these structures of the C library. The handler has the type that SA_SIGINFO asks for.
        // Where a call fails, which none is known to, faults go on to end the process.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE);
            PAGE_BYTES.store(usize::try_from(page).unwrap_or(0), Ordering::Release);
            let mut former: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut former) != 0 {
                return;
            }
            let _ = FORMER.set(former);
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            // On the stack that threads have for signals, as a stack may be what has overflowed.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, null_mut());
        }
    });
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a signal's handler its information.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Other signals of this kind were sent by a process, and have no address.
    if code > 0
        && let Some(entry) = entry_of(address)
        && put_zeros(address)
    {
        entry.is_damaged.store(true, Ordering::Release);
        return;
    }
    pass_on(signal, info, context);
}

/// Maps zeros over the page of an address, which lies in a mapping of ours.
fn put_zeros(address: usize) -> bool {
    let page = PAGE_BYTES.load(Ordering::Acquire);
    if !page.is_power_of_two() {
        return false;
    }
    let errno = errno();
    // SAFETY: the page belongs to a mapping that its owner has not yet ended, since it is being
    // read, and that is only ever read; it goes when that mapping does. `mmap` takes no lock of
    // this process. The number of the last error is that of whoever was interrupted.
    unsafe {
        let before = *errno;
        let start = (address & !(page - 1)) as *mut c_void;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let mapped = libc::mmap(start, page, libc::PROT_READ, flags, -1, 0);
        *errno = before;
        mapped == start
    }
}

/// Where this thread has the number of the last error.
fn errno() -> *mut c_int {
    // SAFETY: the calls take nothing and may be made at any time.
    #[cfg(any(target_os = "linux", target_os = "emscripten"))]
    unsafe {
        libc::__errno_location()
    }
    #[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
    // SAFETY: as above.
    unsafe {
        libc::__error()
    }
    #[cfg(any(target_os = "android", target_os = "netbsd", target_os = "openbsd"))]
    // SAFETY: as above.
    unsafe {
        libc::__errno()
    }
}

/// Does with a signal what would have been done without this handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let former = FORMER.get();
    let handler = former.map_or(libc::SIG_DFL, |former| former.sa_sigaction);
    let has_info = former.is_some_and(|former| former.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: a handler that is neither of the two constants is a function of the type that its
    // flags tell, as whoever set it promised the system. Without one, the signal ends the process
    // once this handler has returned.
    unsafe {
        match handler {
            libc::SIG_IGN if (*info).si_code <= 0 => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, null_mut());
                libc::raise(signal);
            }
            function if has_info => {
                let function: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(function);
                function(signal, info, context);
            }
            function => {
                let function: extern "C" fn(c_int) = std::mem::transmute(function);
                function(signal);
            }
        }
    }
}
