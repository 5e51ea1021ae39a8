//! Terms that no quad has any more: when does the store give their bytes back?

use jindou_engine::Database;

use crate::usage;
use crate::{config, store};

const TEXT_BYTES: usize = 20_000;
const TERM_BYTES: u64 = 256 << 10;

fn replace(database: &Database, number: usize) {
    let text = "x".repeat(TEXT_BYTES);
    let request = format!(
        "DELETE WHERE {{ <http://e/a> <http://e/text> ?o }} ; \
         INSERT DATA {{ <http://e/a> <http://e/text> '{number} {text}' }}"
    );
    database.update(&request).expect("there is room");
}

#[test]
fn a_text_replaced_again_and_again_takes_no_more_than_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 1);
    let mut config = config();
    config.merge.term_bytes = TERM_BYTES;
    let database = Database::open(&location, config).unwrap();
    // Writers wait for the merge at eight times what makes it due.
    let most = 9 * TERM_BYTES;
    for number in 0..400 {
        replace(&database, number);
        let bytes = database.statistics().change_bytes;
        assert!(bytes < most, "{bytes} bytes after {number} texts");
    }
    let (_, bytes) = usage(&location);
    assert!(bytes < 2 * most + (4 << 20), "{bytes} bytes of files");
}

#[test]
fn a_store_opened_with_a_merge_due_merges_without_another_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 1);
    let mut config = config();
    let database = Database::open(&location, config.clone()).unwrap();
    (0..40).for_each(|number| replace(&database, number));
    assert!(database.statistics().change_bytes > 40 * TEXT_BYTES as u64);
    drop(database);
    config.merge.term_bytes = TERM_BYTES;
    let database = Database::open(&location, config).unwrap();
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while database.statistics().changes > 0 {
        assert!(std::time::Instant::now() < limit, "nothing was merged");
        std::thread::yield_now();
    }
    assert!(database.statistics().change_bytes < TEXT_BYTES as u64);
    assert_eq!(database.statistics().dictionary_literals, 1);
}
