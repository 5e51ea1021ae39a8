//! A sparse list whose versions share what they have in common.

use std::sync::Arc;

const PAGE: usize = 64;

/// Values by number; most numbers have none.
#[derive(Clone, Debug)]
pub(crate) struct Paged<T> {
    pages: Vec<Option<Arc<[Option<T>; PAGE]>>>,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<T: Clone> Paged<T> {
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.pages.get(number / PAGE)?.as_ref()?[number % PAGE].as_ref()
    }

    pub(crate) fn set(&mut self, number: usize, value: T) {
        if self.pages.len() <= number / PAGE {
            self.pages.resize(number / PAGE + 1, None);
        }
        let page =
            self.pages[number / PAGE].get_or_insert_with(|| Arc::new([const { None }; PAGE]));
        Arc::make_mut(page)[number % PAGE] = Some(value);
    }

    /// Numbers and values, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.pages.iter().enumerate().flat_map(|(place, page)| {
            page.iter().flat_map(move |page| {
                page.iter()
                    .enumerate()
                    .filter_map(move |(slot, value)| Some((place * PAGE + slot, value.as_ref()?)))
            })
        })
    }
}
