//! What the texts of requests take is counted in the memory that all share.

use std::sync::Arc;

use jindou_engine::{Config, Database, EngineError, MemoryPool, QueryResults};

fn database(pool: &Arc<MemoryPool>) -> Database {
    let mut config = Config::default();
    config.memory_pool = Some(Arc::clone(pool));
    Database::with_config(config)
}

fn is_exhausted<T>(result: Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::PoolExhausted { .. }))
}

#[test]
fn the_tree_of_a_long_query_is_reserved_and_given_back() {
    let list = format!("ASK {{ ?s ?p ({}) }}", "10000000 ".repeat(1000));
    let pool = Arc::new(MemoryPool::new(1 << 16));
    assert!(is_exhausted(database(&pool).query(&list)));
    assert_eq!(pool.held_bytes(), 0);
    let pool = Arc::new(MemoryPool::new(64 << 20));
    let database = database(&pool);
    let answer = database.query(&list);
    assert!(
        matches!(answer, Ok(QueryResults::Boolean(false))),
        "{:?}",
        answer.err()
    );
    assert_eq!(pool.held_bytes(), 0);
}

#[test]
fn a_short_query_asks_no_pool() {
    let pool = Arc::new(MemoryPool::new(0));
    let list = format!("ASK {{ ?s ?p ({}) }}", "1 ".repeat(1000));
    assert!(database(&pool).query(&list).is_ok());
}

#[test]
fn the_tree_of_a_long_update_is_reserved_and_given_back() {
    let update = format!(
        "INSERT {{ <a:s> <a:p> ({}) }} WHERE {{}}",
        "1 ".repeat(3000)
    );
    let pool = Arc::new(MemoryPool::new(1 << 20));
    assert!(is_exhausted(database(&pool).update(&update)));
    let pool = Arc::new(MemoryPool::new(64 << 20));
    assert!(database(&pool).update(&update).is_ok());
    assert_eq!(pool.held_bytes(), 0);
}

#[test]
fn long_data_takes_the_memory_of_its_quads_alone() {
    let data = format!("<a:s> <a:p> {}0", "1,".repeat(100_000));
    let insert = format!("INSERT DATA {{ {data} }}");
    let delete = format!("DELETE DATA {{ {data} }}");
    // 32 bytes for a quad, and room for more.
    let pool = Arc::new(MemoryPool::new(4 << 20));
    let database = database(&pool);
    assert_eq!(
        database.update(&insert).expect("there is memory").inserted,
        2
    );
    assert_eq!(
        database.update(&delete).expect("there is memory").deleted,
        2
    );
    assert_eq!(pool.held_bytes(), 0);
}

#[test]
fn data_for_which_there_is_no_memory_leaves_nothing() {
    let pool = Arc::new(MemoryPool::new(1 << 20));
    let database = database(&pool);
    let data = format!("<a:s> <a:p> {}0", "1,".repeat(100_000));
    assert!(is_exhausted(
        database.update(&format!("INSERT DATA {{ {data} }}"))
    ));
    assert_eq!(pool.held_bytes(), 0);
    assert!(matches!(
        database.query("ASK { ?s ?p ?o }"),
        Ok(QueryResults::Boolean(false))
    ));
}
