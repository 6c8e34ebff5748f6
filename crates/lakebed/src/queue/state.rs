//! The states of a request and of a run, and their legal moves.
//!
//! ```text
//! request   pending --claim--> in_flight --finish--> done
//!              ^                  | | |
//!              |   give back      | | +--finish----> dead
//!              +------------------+ |                 ^
//!                                   +--> failed(n) ---+ deadline
//!                                           |
//!                                           +--claim--> in_flight
//!
//! run       seeding --> open --> sealed --> closed
//! ```
//!
//! In SQL a move is an `UPDATE` with the expected state in its `WHERE`, and the changed rows are counted
//! (QUE-1); the tables here say which moves there are.

use crate::error::{Error, Result};

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestState {
    /// Waits for a worker.
    Pending,
    /// Claimed by a worker under a lease.
    InFlight,
    /// Ended: answered, and its bytes are durable.
    Done,
    /// Failed and waits for its next attempt.
    Failed,
    /// Ended: given up, with a class.
    Dead,
}

impl RequestState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::InFlight,
        Self::Done,
        Self::Failed,
        Self::Dead,
    ];

    /// Its number in SQL. The ready index is over 0 and 3.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Pending => 0,
            Self::InFlight => 1,
            Self::Done => 2,
            Self::Failed => 3,
            Self::Dead => 4,
        }
    }

    /// The state of this number.
    ///
    /// # Errors
    /// `CorruptData` for any other number.
    pub fn of_code(code: i64) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|s| s.code() == code)
            .ok_or_else(|| Error::corrupt(format!("`{code}` is no state of a request")))
    }

    /// Its name in output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InFlight => "in_flight",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }

    /// Whether it has ended for good.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Dead)
    }

    /// Whether a request may go from here to `to` in one move.
    #[must_use]
    pub fn may_become(self, to: Self) -> bool {
        match (self, to) {
            // Claimed; or the deadline of the run has passed.
            (Self::Pending | Self::Failed, Self::InFlight | Self::Dead) => true,
            // Finished; given back; or the lease has ended.
            (Self::InFlight, Self::Done | Self::Failed | Self::Dead | Self::Pending) => true,
            (Self::Pending | Self::Failed, Self::Pending | Self::Failed | Self::Done)
            | (Self::InFlight, Self::InFlight)
            | (Self::Done | Self::Dead, _) => false,
        }
    }
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunState {
    /// Its seeds come in; nothing is claimed yet.
    Seeding,
    /// Its seeds are announced and counted; workers claim, requests may be added.
    Open,
    /// No request is added any more but by the finish of one in flight.
    Sealed,
    /// The books balance, or it was closed red: nothing changes any more.
    Closed,
}

impl RunState {
    /// All of them, in their order.
    pub const ALL: [Self; 4] = [Self::Seeding, Self::Open, Self::Sealed, Self::Closed];

    /// Its number in SQL.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Seeding => 0,
            Self::Open => 1,
            Self::Sealed => 2,
            Self::Closed => 3,
        }
    }

    /// The state of this number.
    ///
    /// # Errors
    /// `CorruptData` for any other number.
    pub fn of_code(code: i64) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|s| s.code() == code)
            .ok_or_else(|| Error::corrupt(format!("`{code}` is no state of a run")))
    }

    /// Its name in output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Seeding => "seeding",
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Closed => "closed",
        }
    }

    /// Whether a run may go from here to `to`: one step on, never back.
    #[must_use]
    pub fn may_become(self, to: Self) -> bool {
        to.code() == self.code() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_of_a_request_over_all_pairs() {
        use RequestState::{Dead, Done, Failed, InFlight, Pending};
        let legal = [
            (Pending, InFlight),
            (Pending, Dead),
            (Failed, InFlight),
            (Failed, Dead),
            (InFlight, Done),
            (InFlight, Failed),
            (InFlight, Dead),
            (InFlight, Pending),
        ];
        for from in RequestState::ALL {
            for to in RequestState::ALL {
                assert_eq!(
                    from.may_become(to),
                    legal.contains(&(from, to)),
                    "{from:?} {to:?}"
                );
            }
            assert_eq!(RequestState::of_code(from.code()).unwrap(), from);
            let ends = RequestState::ALL.iter().all(|to| !from.may_become(*to));
            assert_eq!(from.is_terminal(), ends);
        }
        assert!(RequestState::of_code(5).is_err());
    }

    #[test]
    fn a_run_goes_one_way() {
        for from in RunState::ALL {
            for to in RunState::ALL {
                assert_eq!(from.may_become(to), from.code() + 1 == to.code());
            }
        }
        assert!(RunState::of_code(-1).is_err());
    }
}
