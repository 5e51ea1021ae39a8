//! (module header)
