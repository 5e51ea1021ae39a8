//! How long do a read, a ring of a bell and a message take between two nodes?
//!
//! `cargo run --release -p jindou-fabric --example measure_fabric`

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("processes reach each other on Linux only");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::hint::black_box;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::time::Instant;

    use jindou_fabric::local::LocalNetwork;
    use jindou_fabric::process::{ProcessFabric, ProcessOptions, UcxOptions};
    use jindou_fabric::remote::{Batch, Fabric, Interrupt, NodeId};
    use jindou_fabric::ring::{Receiver, RingError, RingOptions, Sender};

    type Pair = [Arc<dyn Fabric>; 2];
    type Outcome<T> = Result<T, Box<dyn Error>>;

    /// Two nodes with contexts of their own, as two processes have them.
    fn processes(maps_memory: bool, has_ucx: bool) -> Outcome<Pair> {
        let new = |node| {
            ProcessFabric::new(&ProcessOptions {
                maps_memory,
                ucx: has_ucx.then(UcxOptions::default),
                ..ProcessOptions::new(NodeId(node))
            })
        };
        let (one, other) = (new(0)?, new(1)?);
        if has_ucx {
            one.connect_by_ucx(NodeId(1), &other.address())?;
            other.connect_by_ucx(NodeId(0), &one.address())?;
        } else {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let connection = TcpStream::connect(listener.local_addr()?)?;
            one.connect(NodeId(1), &other.address(), connection)?;
            other.connect(NodeId(0), &one.address(), listener.accept()?.0)?;
        }
        Ok([one, other])
    }

    /// Nanoseconds of a call, the median of many.
    fn time(mut call: impl FnMut() -> Outcome<()>) -> Outcome<u128> {
        let mut times = Vec::new();
        for _ in 0..2000 {
            let start = Instant::now();
            call()?;
            times.push(start.elapsed().as_nanos());
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }

    fn measure(name: &str, [here, there]: &Pair) -> Outcome<()> {
        let never = Interrupt::never();
        let mut builder = there.allocate(1 << 20)?;
        builder.as_mut_slice::<u64>().fill(7);
        let region = there.register(&builder.finish())?;
        let memory = here.open(region.key())?;
        let mut spare = Some(Batch::new());
        let mut read = |count: u64, length: usize| {
            time(|| {
                let mut batch = spare.take().unwrap_or_default();
                for i in 0..count {
                    let _ = black_box(batch.read(&memory, i * 4096, length)?);
                }
                let completed = here.complete(batch, &never)?;
                spare = Some(black_box(completed).reuse());
                Ok(())
            })
        };
        let (one, many, large) = (read(1, 8)?, read(100, 8)?, read(1, 1 << 16)?);
        let mut word = [0; 8];
        // One is shorter than the clock's step.
        let direct = time(|| {
            for _ in 0..100 {
                black_box(here.try_read(&memory, 64, black_box(&mut word))?);
            }
            Ok(())
        })?;
        let is_direct = here.try_read(&memory, 0, &mut word)?;
        let direct = if is_direct { direct / 100 } else { one };
        let echo = echo(here, there)?;
        println!(
            "{name}: 8 bytes {direct} ns, in a batch {one} ns; 100 times 8 bytes {many} ns; 64 KiB {large} ns; \
             message there and back {echo} ns"
        );
        Ok(())
    }

    fn echo(here: &Arc<dyn Fabric>, there: &Arc<dyn Fabric>) -> Outcome<u128> {
        let never = Interrupt::never();
        let (mine, yours) = (Arc::new(here.doorbell()?), Arc::new(there.doorbell()?));
        let options = RingOptions::default();
        let mut requests = Receiver::new(Arc::clone(there), Arc::clone(&yours), &options)?;
        let mut answers = Receiver::new(Arc::clone(here), Arc::clone(&mine), &options)?;
        let mut ask = Sender::new(Arc::clone(here), mine, requests.invitation(), &never)?;
        let mut answer = Sender::new(Arc::clone(there), yours, answers.invitation(), &never)?;
        std::thread::scope(|scope| {
            let echo = scope.spawn(move || -> Result<(), RingError> {
                let never = Interrupt::never();
                loop {
                    match requests.receive(&never) {
                        Ok(message) => answer.send(&message, &never)?,
                        Err(RingError::Closed) => return Ok(()),
                        Err(error) => return Err(error),
                    }
                }
            });
            let median = time(|| {
                ask.send(&[1; 100], &never)?;
                black_box(answers.receive(&never)?);
                Ok(())
            })?;
            ask.close(&never)?;
            echo.join().map_err(|_| "the echo panicked")??;
            Ok(median)
        })
    }

    pub(super) fn main() -> Outcome<()> {
        let network = LocalNetwork::new(2);
        measure("logical nodes", &[network.fabric(0), network.fabric(1)])?;
        measure("neighbours", &processes(true, false)?)?;
        measure("by TCP", &processes(false, false)?)?;
        match processes(false, true) {
            Ok(pair) => measure("by UCX over TCP", &pair)?,
            Err(error) => println!("SKIPPED: {error}"),
        }
        Ok(())
    }
}
