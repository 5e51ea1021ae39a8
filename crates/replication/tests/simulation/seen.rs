//! What did readers see, and clients hear, and can that be so?

/// What is known of the one order of transactions that all see.
#[derive(Default)]
pub(crate) struct Seen {
    /// The longest prefix that was seen anywhere.
    order: Vec<u64>,
    /// Transactions that clients were told of: the length of the prefix that has all of them.
    acknowledged: usize,
}

impl Seen {
    /// Readers can see this prefix somewhere: it must go on to be so.
    pub(crate) fn show(&mut self, prefix: &[u64]) {
        let common = prefix.len().min(self.order.len());
        assert_eq!(
            prefix[..common],
            self.order[..common],
            "readers see another order"
        );
        self.order.extend_from_slice(&prefix[common..]);
    }

    /// A client is told of the transaction at this place of the order.
    pub(crate) fn acknowledge(&mut self, place: usize, value: u64) {
        assert_eq!(
            self.order.get(place),
            Some(&value),
            "nobody sees what a client is told of"
        );
        self.acknowledged = self.acknowledged.max(place + 1);
    }

    /// A reader is shown this prefix as what is current.
    pub(crate) fn read(&mut self, prefix: &[u64]) {
        self.show(prefix);
        assert!(
            prefix.len() >= self.acknowledged,
            "a reader sees {} transactions after a client was told of {}",
            prefix.len(),
            self.acknowledged
        );
    }

    /// A log that is whole has all that clients were told of.
    pub(crate) fn check_whole(&self, log: &[u64]) {
        assert!(
            log.len() >= self.acknowledged,
            "what was acknowledged is lost"
        );
        let common = log.len().min(self.order.len());
        assert_eq!(log[..common], self.order[..common]);
    }

    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged
    }
}
