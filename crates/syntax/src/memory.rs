//! Is there memory for what the tree needs next, and does anybody still want it?

use std::mem::size_of;

use rustc_hash::FxHashMap;

use crate::error::Error;

/// An error as it is handed up: results stay small.
pub(crate) type Failure = Box<Error>;
pub(crate) type Parsed<T> = Result<T, Failure>;

/// Least and most bytes that are asked for at a time.
const LEAST_BYTES: usize = 256;
const MOST_BYTES: usize = 1 << 20;

/// Memory that is asked for before it is held.
pub(crate) struct Memory<'o> {
    reserve: Option<&'o mut dyn FnMut(usize) -> bool>,
    /// What was granted and is not used yet.
    left: usize,
    granted: usize,
    /// Bytes of the largest vector or table that was copied to a larger one.
    copied: usize,
}

impl<'o> Memory<'o> {
    pub(crate) fn new(reserve: Option<&'o mut dyn FnMut(usize) -> bool>) -> Self {
        Self {
            reserve,
            left: 0,
            granted: 0,
            copied: 0,
        }
    }

    /// Takes memory that is about to be held.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Parsed<()> {
        if bytes > self.left {
            self.ask(bytes)?;
        }
        self.left -= bytes;
        Ok(())
    }

    #[cold]
    fn ask(&mut self, bytes: usize) -> Parsed<()> {
        let Some(reserve) = &mut self.reserve else {
            self.left = usize::MAX;
            return Ok(());
        };
        // A quarter more than is needed, so that few are asked for.
        let more = (self.granted / 4).clamp(LEAST_BYTES, MOST_BYTES);
        let asked = (bytes - self.left).saturating_add(more);
        if !reserve(asked) {
            return Err(Box::new(Error::MemoryRefused));
        }
        self.left += asked;
        self.granted += asked;
        Ok(())
    }

    /// Takes the memory of something that grows, and is copied.
    fn grow(&mut self, old: usize, new: usize) -> Parsed<()> {
        // While it is copied, both are held.
        let copied = old.saturating_sub(self.copied);
        self.take((new - old).saturating_add(copied))?;
        self.copied += copied;
        Ok(())
    }

    /// Appends to a vector.
    #[inline]
    pub(crate) fn push<T>(&mut self, vector: &mut Vec<T>, item: T) -> Parsed<()> {
        if vector.len() == vector.capacity() {
            self.grow_vector(vector)?;
        }
        vector.push(item);
        Ok(())
    }

    fn grow_vector<T>(&mut self, vector: &mut Vec<T>) -> Parsed<()> {
        let old = vector.capacity();
        // Most lists are short, and the small ones should not be copied often.
        let least = match size_of::<T>() {
            0..=32 => 8,
            33..=96 => 4,
            97..=288 => 2,
            _ => 1,
        };
        let new = (old * 2).max(least);
        self.grow(old * size_of::<T>(), new * size_of::<T>())?;
        vector.reserve_exact(new - old);
        Ok(())
    }

    /// A box.
    #[inline]
    pub(crate) fn boxed<T>(&mut self, item: T) -> Parsed<Box<T>> {
        self.take(size_of::<T>())?;
        Ok(Box::new(item))
    }

    /// Notes that a vector is held no more.
    pub(crate) fn release<T>(&mut self, vector: Vec<T>) {
        let bytes = vector.capacity() * size_of::<T>();
        drop(vector);
        self.left = self.left.saturating_add(bytes);
    }

    /// Appends to a string.
    pub(crate) fn push_str(&mut self, string: &mut String, part: &str) -> Parsed<()> {
        let old = string.capacity();
        let needed = string.len() + part.len();
        if needed > old {
            let new = if old == 0 {
                needed
            } else {
                needed.max(old * 2)
            };
            self.grow(old, new)?;
            string.reserve_exact(new - string.len());
        }
        string.push_str(part);
        Ok(())
    }

    /// Empties a string and makes place for a number of bytes in it.
    pub(crate) fn reserve(&mut self, string: &mut String, bytes: usize) -> Parsed<()> {
        let old = string.capacity();
        string.clear();
        if bytes > old {
            self.grow(old, bytes)?;
            string.reserve_exact(bytes);
        }
        Ok(())
    }

    /// Makes place for one more in a table.
    #[inline]
    pub(crate) fn place<K: Eq + std::hash::Hash, V>(
        &mut self,
        table: &mut FxHashMap<K, V>,
    ) -> Parsed<()> {
        if table.len() < table.capacity() {
            return Ok(());
        }
        // A table is seven eighths full at most, and has a power of two of places.
        let bytes = |capacity: usize| match capacity {
            0 => 0,
            capacity => {
                let places = (capacity * 8 / 7).next_power_of_two().max(4);
                places * (size_of::<(K, V)>() + 1) + 32
            }
        };
        let old = table.capacity();
        let new = if old == 0 { 14 } else { old * 2 };
        self.grow(bytes(old), bytes(new))?;
        table.reserve(new - table.len());
        Ok(())
    }
}
