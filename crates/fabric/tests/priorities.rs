//! What a process does to its threads before it ends. Apart from other tests: it changes the threads of all.
#![cfg(target_os = "linux")]

use std::sync::mpsc::channel;

use jindou_fabric::schedule::{ThreadId, all_run_as_usual, run_when_idle};

fn policy() -> libc::c_int {
    // SAFETY: the call takes no pointers; 0 is this thread.
    unsafe { libc::sched_getscheduler(0) }
}

#[test]
fn threads_that_run_when_idle_run_as_usual_before_the_process_ends_where_that_is_allowed() {
    let before = policy();
    // It asks for a privilege or a limit.
    let ended = std::thread::spawn(|| {
        run_when_idle().expect("any thread may");
        ThreadId::own().run_as_usual().is_ok()
    });
    let may_be_ended = ended.join().expect("no panic");
    let threads = [(); 3].map(|()| {
        let (begun, begins) = channel();
        let (go_on, goes_on) = channel();
        let thread = std::thread::spawn(move || {
            run_when_idle().expect("any thread may");
            begun.send(()).expect("it is awaited");
            goes_on.recv().expect("it is sent");
            policy()
        });
        begins.recv().expect("it is sent");
        (thread, go_on)
    });
    all_run_as_usual();
    let policies = threads.map(|(thread, go_on)| {
        go_on.send(()).expect("it waits");
        thread.join().expect("no panic")
    });
    let expected = match may_be_ended {
        true => libc::SCHED_OTHER,
        false => libc::SCHED_IDLE,
    };
    assert_eq!(policies, [expected; 3]);
    assert_eq!(policy(), before);
}
