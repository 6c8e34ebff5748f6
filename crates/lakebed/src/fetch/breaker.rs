//! The circuit breaker of a run: when half of the last answers speak of trouble, the run stops red
//! instead of hammering a site that blocks it.

use std::collections::VecDeque;

use super::class::FailureClass;
use super::outcome::FetchOutcome;

/// What one outcome says to the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerSample {
    /// The site works, whatever the page.
    Sound,
    /// The site or the network is in trouble, or the site refuses us.
    Trouble,
    /// Says nothing: waiting that the host asked for, what never went out.
    Silent,
}

impl BreakerSample {
    /// What counts as trouble: 401, 403, 407, 451, 5xx and what the network does. A 404 is a page that
    /// is gone, from a site that works; a 429 or a 503 with `Retry-After` is a request for patience.
    #[must_use]
    pub fn of(outcome: &FetchOutcome) -> Self {
        match outcome {
            FetchOutcome::Answered | FetchOutcome::NotModified => Self::Sound,
            FetchOutcome::RateLimited { .. } | FetchOutcome::Deferred { .. } => Self::Silent,
            FetchOutcome::Failed(failure) => Self::of_class(failure.class),
        }
    }

    /// What a failure of this class says.
    #[must_use]
    pub fn of_class(class: FailureClass) -> Self {
        match class {
            _ if class.is_trouble() => Self::Trouble,
            _ if class.is_answer() => Self::Sound,
            _ => Self::Silent,
        }
    }
}

/// Counts trouble among the last samples.
///
/// ```text
/// closed --(share of the window is trouble)--> open, for the rest of the run
/// ```
/// It opens as soon as the trouble alone fills the share of a full window, so a run that meets nothing but
/// refusals stops after half a window.
#[derive(Debug, Clone)]
pub struct CircuitBreaker {
    window: usize,
    limit: usize,
    last: VecDeque<bool>,
    trouble: usize,
    is_open: bool,
}

impl CircuitBreaker {
    /// A breaker over the last `window` samples (at least 1) that opens at `percent` (1 to 100).
    #[must_use]
    pub fn new(window: usize, percent: usize) -> Self {
        let window = window.max(1);
        Self {
            window,
            limit: (window * percent.clamp(1, 100)).div_ceil(100),
            last: VecDeque::with_capacity(window),
            trouble: 0,
            is_open: false,
        }
    }

    /// Takes a sample; whether the breaker is open now.
    pub fn record(&mut self, sample: BreakerSample) -> bool {
        let is_trouble = match sample {
            BreakerSample::Sound => false,
            BreakerSample::Trouble => true,
            BreakerSample::Silent => return self.is_open,
        };
        if self.last.len() == self.window && self.last.pop_front() == Some(true) {
            self.trouble -= 1;
        }
        self.last.push_back(is_trouble);
        self.trouble += usize::from(is_trouble);
        self.is_open |= self.trouble >= self.limit;
        self.is_open
    }

    /// Whether the run has to stop.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Trouble, and samples, in the present window.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.trouble, self.last.len())
    }
}

impl Default for CircuitBreaker {
    /// Half of the last hundred.
    fn default() -> Self {
        Self::new(100, 50)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::outcome::Failure;
    use super::*;
    use std::time::Duration;

    fn failed(class: FailureClass) -> BreakerSample {
        BreakerSample::of(&FetchOutcome::Failed(Failure::new(class, "x")))
    }

    #[test]
    fn what_counts_as_trouble() {
        use FailureClass as C;
        for class in [
            C::Http(401),
            C::Http(403),
            C::Http(451),
            C::Http(500),
            C::Http(502),
            C::Http(503),
            C::Http(520),
            C::Dns,
            C::Refused,
            C::Unreachable,
            C::TimeoutConnect,
            C::TimeoutFirstByte,
            C::TimeoutTotal,
            C::Tls,
            C::Disconnect,
            C::BadResponse,
            C::Proxy,
        ] {
            assert_eq!(failed(class), BreakerSample::Trouble, "{class}");
        }
        for class in [
            C::Http(404),
            C::Http(410),
            C::Http(400),
            C::Http(300),
            C::BodyTooLarge,
            C::Decode,
            C::RedirectLoop,
        ] {
            assert_eq!(failed(class), BreakerSample::Sound, "{class}");
        }
        for class in [
            C::Http(429),
            C::Robots,
            C::RobotsUnreachable,
            C::PrivateAddress,
            C::BadUrl,
            C::BadRequest,
            C::RateLimited,
        ] {
            assert_eq!(failed(class), BreakerSample::Silent, "{class}");
        }
        let limited = FetchOutcome::RateLimited {
            class: C::Http(429),
            wait: Duration::ZERO,
        };
        assert_eq!(BreakerSample::of(&limited), BreakerSample::Silent);
        assert_eq!(
            BreakerSample::of(&FetchOutcome::Answered),
            BreakerSample::Sound
        );
        assert_eq!(
            BreakerSample::of(&FetchOutcome::NotModified),
            BreakerSample::Sound
        );
    }

    #[test]
    fn nothing_but_refusals_stops_after_half_a_window() {
        let mut breaker = CircuitBreaker::default();
        for n in 1..50 {
            assert!(!breaker.record(BreakerSample::Trouble), "{n}");
            assert!(!breaker.record(BreakerSample::Silent), "{n}");
        }
        assert!(breaker.record(BreakerSample::Trouble));
        assert!(breaker.record(BreakerSample::Sound), "it stays open");
    }

    #[test]
    fn just_below_half_never_stops() {
        let mut breaker = CircuitBreaker::default();
        for n in 0..10_000 {
            let sample = if n % 100 < 49 {
                BreakerSample::Trouble
            } else {
                BreakerSample::Sound
            };
            assert!(!breaker.record(sample), "{n}");
        }
        assert_eq!(breaker.counts(), (49, 100));
    }

    proptest! {
        #[test]
        fn it_opens_when_a_plain_count_says_so(
            samples in proptest::collection::vec(any::<bool>(), 0..300), window in 1_usize..40, percent in 1_usize..=100,
        ) {
            let mut breaker = CircuitBreaker::new(window, percent);
            let mut expected = false;
            for end in 1..=samples.len() {
                let last = &samples[end.saturating_sub(window)..end];
                expected |= last.iter().filter(|t| **t).count() * 100 >= window * percent;
                let sample = if samples[end - 1] { BreakerSample::Trouble } else { BreakerSample::Sound };
                prop_assert_eq!(breaker.record(sample), expected);
            }
        }
    }
}
