//! Does the command's allocator leave huge pages alone? In a process of its own, as other tests use
//! them.

#![cfg(all(feature = "mimalloc", target_os = "linux"))]

use std::alloc::{GlobalAlloc, Layout};
use std::fs;

use jindou_fabric::allocator::Allocator;

/// Of this process.
fn huge_page_kibibytes() -> u64 {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux has this file");
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:"));
    let size = line.and_then(|line| line.split_whitespace().next());
    size.and_then(|size| size.parse().ok())
        .expect("it tells this size")
}

#[test]
fn what_is_allocated_lies_in_small_pages() {
    let layout = Layout::from_size_align(16 << 20, 16).expect("both are sound");
    // SAFETY: the size is not 0, and the memory is used no longer than it is allocated.
    let huge = unsafe {
        let memory = Allocator.alloc(layout);
        assert!(!memory.is_null());
        memory.write_bytes(1, layout.size());
        let huge = huge_page_kibibytes();
        Allocator.dealloc(memory, layout);
        huge
    };
    assert_eq!(huge, 0);
}
