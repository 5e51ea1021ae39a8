//! Many lists in two arrays: which items has this list?

use std::marker::PhantomData;
use std::ops::Deref;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::array::Array;

/// A list of lists: in vectors while it grows, and in a region from then on.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T, O = Vec<u64>, I = Vec<T>> {
    /// Where each list begins, and one more.
    offsets: O,
    items: I,
    of: PhantomData<T>,
}

/// Lists in a region.
pub(crate) type FixedLists<T> = Lists<T, Array<u64>, Array<T>>;

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            items: Vec::new(),
            of: PhantomData,
        }
    }
}

impl<T> Lists<T> {
    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.offsets.push(self.items.len() as u64);
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut [T] {
        &mut self.items[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// As many lists, in regions of their own, of what `value_of` makes of each item.
    pub(super) fn fixed<U>(&self, value_of: impl FnMut(&T) -> U) -> FixedLists<U>
    where
        U: AnyBitPattern + NoUninit,
    {
        let items: Vec<U> = self.items.iter().map(value_of).collect();
        Lists {
            offsets: Array::copy_from(&self.offsets),
            items: Array::copy_from(&items),
            of: PhantomData,
        }
    }
}

impl<T, O: Deref<Target = [u64]>, I: Deref<Target = [T]>> Lists<T, O, I> {
    /// The lists of these parts; `None` if they contradict each other.
    pub(crate) fn from_parts(offsets: O, items: I) -> Option<Self> {
        let sound = offsets.first() == Some(&0)
            && offsets.last() == Some(&(items.len() as u64))
            && offsets.is_sorted();
        sound.then_some(Self {
            offsets,
            items,
            of: PhantomData,
        })
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[T] {
        &self.items[self.range(index)]
    }

    /// The places of a list's items among those of all.
    #[inline]
    pub(crate) fn range(&self, index: usize) -> std::ops::Range<usize> {
        let offsets: &[u64] = &self.offsets;
        offsets[index] as usize..offsets[index + 1] as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Where each list begins, and one more; and the items of all.
    pub(crate) fn parts(&self) -> (&O, &I) {
        (&self.offsets, &self.items)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.offsets.len() * size_of::<u64>() + self.items.len() * size_of::<T>()
    }

    /// Each list in turn.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Lists as long, of what `value_of` makes of each item.
    pub(super) fn map<U>(&self, value_of: impl FnMut(&T) -> U) -> Lists<U> {
        Lists {
            offsets: self.offsets.to_vec(),
            items: self.items.iter().map(value_of).collect(),
            of: PhantomData,
        }
    }

    /// For each value below `values`: the lists that hold it, in order.
    pub(super) fn inverted(&self, values: usize, value_of: impl Fn(&T) -> usize) -> Lists<u32> {
        let mut offsets = vec![0_u64; values + 1];
        for item in self.items.iter() {
            offsets[value_of(item) + 1] += 1;
        }
        for value in 0..values {
            offsets[value + 1] += offsets[value];
        }
        let mut next = offsets.clone();
        let mut items = vec![0; self.items.len()];
        for list in 0..self.len() {
            for item in self.get(list) {
                let place = &mut next[value_of(item)];
                items[*place as usize] = list as u32;
                *place += 1;
            }
        }
        Lists {
            offsets,
            items,
            of: PhantomData,
        }
    }
}
