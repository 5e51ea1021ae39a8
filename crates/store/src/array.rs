//! Numbers in a region: what an image has of a table, without a copy of it.

use std::marker::PhantomData;
use std::ops::Deref;

use bytemuck::{AnyBitPattern, NoUninit};
use jindou_fabric::Region;

/// A region that is read as numbers of one type.
#[derive(Clone, Debug)]
pub(crate) struct Array<T> {
    region: Region,
    of: PhantomData<T>,
}

impl<T: AnyBitPattern> Array<T> {
    /// The numbers of a region; `None` if they do not fill it.
    pub(crate) fn new(region: Region) -> Option<Self> {
        let is_whole = region.len().is_multiple_of(size_of::<T>());
        is_whole.then_some(Self {
            region,
            of: PhantomData,
        })
    }

    /// Where they lie.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }
}

impl<T: AnyBitPattern + NoUninit> Array<T> {
    /// A region with a copy of these numbers.
    pub(crate) fn copy_from(numbers: &[T]) -> Self {
        Self {
            region: Region::copy_from(bytemuck::cast_slice(numbers)),
            of: PhantomData,
        }
    }
}

impl<T: AnyBitPattern> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.region.as_slice()
    }
}
