//! How long may a node answer after it was last heard?

use crate::Time;

/// How long nodes wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Between two beats to a node.
    pub beat: Time,
    /// How long a lease lasts, from when the beat was sent that it was granted for; a node that was not heard for so long is silent.
    pub lease: Time,
    /// After so long a lease that was granted has ended, however fast the clocks go.
    pub grace: Time,
    /// How much longer than the leader another node waits before it acts on silence, so that one of two is first.
    pub patience: Time,
    /// How long a committed transaction is waited for at a node that is heard, and is slow.
    pub wait: Time,
}

impl Default for Timing {
    /// A node that is lost is noticed after a second, and replaced a quarter of one later.
    fn default() -> Self {
        Self {
            beat: Time::from_millis(100),
            lease: Time::from_millis(1000),
            grace: Time::from_millis(1250),
            patience: Time::from_millis(200),
            wait: Time::from_secs(10),
        }
    }
}

/// What two nodes know of the leases between them, at one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases {
    /// Until when the other one has granted.
    until: Option<Time>,
    /// When the other one was last granted a lease, or may have been.
    granted: Time,
    /// When it was last heard, by the link that there is.
    heard: Option<Time>,
    /// When it had sent that, by its own clock.
    sent: Option<Time>,
}

impl Leases {
    /// Those of a node that has just begun: before, it may have granted any.
    pub(crate) fn begun(now: Time) -> Self {
        Self {
            granted: now,
            ..Self::default()
        }
    }

    /// A link has begun or ended: what came by the one before is nothing to be granted for.
    pub(crate) fn relink(&mut self) {
        (self.heard, self.sent) = (None, None);
    }

    /// The other one was heard.
    pub(crate) fn hear(&mut self, now: Time, sent: Time) {
        (self.heard, self.sent) = (Some(now), Some(sent));
    }

    /// It grants for what was sent to it at `sent`.
    pub(crate) fn extend(&mut self, sent: Time, timing: &Timing) {
        self.until = self.until.max(Some(sent + timing.lease));
    }

    /// Others lead: what was granted before is nothing now.
    pub(crate) fn renounce(&mut self) {
        self.until = None;
    }

    /// Until when the other one has granted.
    pub(crate) fn until(&self) -> Option<Time> {
        self.until
    }

    /// What it is granted now, if it is granted anything: when it sent what was heard last.
    pub(crate) fn grant(&mut self, now: Time) -> Option<Time> {
        if self.sent.is_some() {
            self.granted = now;
        }
        self.sent
    }

    /// The other one may have had a lease until now of somebody else.
    pub(crate) fn assume_granted(&mut self, now: Time) {
        self.granted = self.granted.max(now);
    }

    pub(crate) fn is_silent(&self, now: Time, timing: &Timing) -> bool {
        self.heard.is_none_or(|heard| now >= heard + timing.lease)
    }

    /// Whether what was granted has certainly ended.
    pub(crate) fn has_ended(&self, now: Time, timing: &Timing) -> bool {
        now >= self.granted + timing.grace
    }

    pub(crate) fn ends(&self, timing: &Timing) -> Time {
        self.granted + timing.grace
    }
}
