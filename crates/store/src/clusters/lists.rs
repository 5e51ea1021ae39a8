//! Many lists in two arrays: which items has this list?

/// A list of lists.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T> {
    offsets: Vec<usize>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            items: Vec::new(),
        }
    }
}

impl<T> Lists<T> {
    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.offsets.push(self.items.len());
    }

    pub(crate) fn get(&self, index: usize) -> &[T] {
        &self.items[self.offsets[index]..self.offsets[index + 1]]
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut [T] {
        &mut self.items[self.offsets[index]..self.offsets[index + 1]]
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Where each list begins, and one more; and the items of all.
    pub(crate) fn parts(&self) -> (&[usize], &[T]) {
        (&self.offsets, &self.items)
    }

    /// The lists of these parts; `None` if they contradict each other.
    pub(crate) fn from_parts(offsets: Vec<u64>, items: Vec<T>) -> Option<Self> {
        let offsets: Vec<usize> = offsets.iter().map(|offset| *offset as usize).collect();
        let sound = offsets.first() == Some(&0)
            && offsets.last() == Some(&items.len())
            && offsets.is_sorted();
        sound.then_some(Self { offsets, items })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.offsets.len() * size_of::<usize>() + self.items.len() * size_of::<T>()
    }

    /// Each list in turn.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Lists as long, of what `value_of` makes of each item.
    pub(super) fn map<U>(&self, value_of: impl FnMut(&T) -> U) -> Lists<U> {
        Lists {
            offsets: self.offsets.clone(),
            items: self.items.iter().map(value_of).collect(),
        }
    }

    /// For each value below `values`: the lists that hold it, in order.
    pub(super) fn inverted(&self, values: usize, value_of: impl Fn(&T) -> usize) -> Lists<u32> {
        let mut offsets = vec![0; values + 1];
        for item in &self.items {
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
                items[*place] = list as u32;
                *place += 1;
            }
        }
        Lists { offsets, items }
    }
}
