//! Registrations without end: of one query again and again, of queries that differ in constants, and of queries
//! that are all different; and then all of them are dropped.

use std::sync::Mutex;

use super::{Ground, line, made};
use crate::BenchError;
use crate::hostile::streams::client::{Client, Told};

/// Clients that register at once.
const CLIENTS: usize = 4;
/// Batches that come once all are there, and then again once they are gone.
const BATCHES: u64 = 3;

/// Some queries that are registered.
struct Kind {
    name: &'static str,
    /// The text of the so manieth one.
    text: fn(usize) -> String,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "equal",
        text: |_| text("?x <http://e/p> ?y"),
    },
    Kind {
        name: "of one shape",
        text: |number| text(&format!("?x <http://e/p> <http://e/o{number}>")),
    },
    Kind {
        name: "all different",
        text: |number| {
            text(&format!(
                "?x <http://e/p{number}> ?y{number} FILTER(?y{number} > {number})"
            ))
        },
    },
];

fn text(pattern: &str) -> String {
    format!("SELECT ?x FROM STREAM <http://e/many> [RANGE 1s STEP 100ms] WHERE {{ {pattern} }}")
}

fn name_of(kind: &Kind, number: usize) -> String {
    format!("{}{number}", kind.name.replace(' ', "_"))
}

pub(super) fn run(ground: &Ground) -> Result<Told, BenchError> {
    let mut client = Client::new(ground.address);
    let mut told = Told::default();
    made(&mut client, "many", "")?;
    let each = ground.registrations / KINDS.len();
    told.add(in_parts(ground, each, &|client, told, number| {
        for kind in &KINDS {
            let answer = client.register(&name_of(kind, number), &(kind.text)(number))?;
            told.expect(&format!("registering, {}", kind.name), &[201, 503], &answer);
        }
        Ok(())
    })?);
    let mut time_ms = 0;
    let mut batches = |client: &mut Client, told: &mut Told| {
        for _ in 0..BATCHES {
            time_ms += 100;
            let lines: String = (0..100).map(|tuple| line(time_ms, tuple)).collect();
            told.expect("a push", &[200], &client.push("many", &lines)?);
        }
        Ok::<_, BenchError>(())
    };
    batches(&mut client, &mut told)?;
    told.add(in_parts(ground, each, &|client, told, number| {
        for kind in &KINDS {
            let answer = client.delete(&format!("/continuous/{}", name_of(kind, number)))?;
            // One that was refused is not there.
            told.expect("dropping", &[204, 404], &answer);
        }
        Ok(())
    })?);
    told.said.remove("dropping: 404");
    batches(&mut client, &mut told)?;
    told.expect(
        "dropping the stream",
        &[204],
        &client.delete("/streams/many")?,
    );
    Ok(told)
}

/// Sends a request for each number below `count`, from several clients at once.
fn in_parts(
    ground: &Ground,
    count: usize,
    each: &(dyn Fn(&mut Client, &mut Told, usize) -> Result<(), BenchError> + Sync),
) -> Result<Told, BenchError> {
    let all = Mutex::new(Told::default());
    let work = |part: usize| {
        let mut client = Client::new(ground.address);
        let mut told = Told::default();
        for number in (part..count).step_by(CLIENTS) {
            each(&mut client, &mut told, number)?;
        }
        all.lock().map_err(|_| BenchError::Thread)?.add(told);
        Ok::<_, BenchError>(())
    };
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        let mut joined = threads.into_iter();
        joined.try_for_each(|thread| thread.join().map_err(|_| BenchError::Thread)?)
    })?;
    all.into_inner().map_err(|_| BenchError::Thread)
}
