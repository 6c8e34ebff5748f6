//! What comes of all faults for one request.
//!
//! FLT-1: apart from `rate_limit` (time) and `burst` (order of arrival), whether a fault hits is a
//! function of the site's seed, the request and how often it was tried: equal tests fail equally.

use std::time::Duration;

use crate::demo_site::draw::{Draw, Purpose};
use crate::demo_site::fault::memory::FaultMemory;
use crate::demo_site::fault::spec::{
    CharsetFault, Fault, FaultSpec, PageKind, RetryForm, RobotsFault,
};

/// What faults look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The site's seed.
    pub(crate) seed: u64,
    /// The kind of page.
    pub(crate) kind: PageKind,
    /// The header `Host`.
    pub(crate) host: &'a str,
    /// The same for every try: made of host, method, address and body.
    pub(crate) key: u64,
    /// How many redirects the client has followed for this page.
    pub(crate) hop: u32,
}

/// How a page looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    /// Changed markup.
    pub(crate) second_markup: bool,
    /// Every list page has a next one.
    pub(crate) endless: bool,
    /// No content.
    pub(crate) empty: bool,
    /// A login page.
    pub(crate) login: bool,
    /// Past the last page: empty instead of 404.
    pub(crate) beyond: bool,
    /// Announced totals in percent of the truth.
    pub(crate) totals: Option<u32>,
    /// Another charset than UTF-8.
    pub(crate) charset: Option<CharsetFault>,
    /// What `/robots.txt` says.
    pub(crate) robots: Option<RobotsFault>,
}

/// How the body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Pacing {
    /// Waited before the answer begins.
    pub(crate) delay: Duration,
    /// Bytes of a piece and the wait after it.
    pub(crate) drip: Option<(u32, Duration)>,
    /// Percentage of the body after which the connection breaks.
    pub(crate) cut_percent: Option<u32>,
    /// The body is filled up to so many bytes.
    pub(crate) fill: Option<u64>,
    /// A gzip body that unpacks to so many bytes.
    pub(crate) bomb: Option<u64>,
}

/// An answer in the place of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This status.
    Status(u16),
    /// 429; how long to wait, and how that is told.
    TooMany(Duration, RetryForm),
    /// To the same page with this number of hops.
    Redirect { status: u16, hop: u32 },
}

/// No answer at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// The connection stays open.
    Hang,
    /// The connection ends.
    Close,
}

/// What comes of all faults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Verdict {
    /// How the body is sent.
    pub(crate) pacing: Pacing,
    /// No answer at all.
    pub(crate) block: Option<Block>,
    /// An answer in the place of the page; the first fault that refuses wins.
    pub(crate) refusal: Option<Refusal>,
    /// How the page looks.
    pub(crate) look: Look,
}

/// Judges a request by the faults that are ordered.
pub(crate) fn judge<'a>(
    specs: impl Iterator<Item = &'a FaultSpec>,
    request: &Request<'_>,
    memory: &FaultMemory,
) -> Verdict {
    let mut judge = Judge {
        request,
        memory,
        tries: None,
        verdict: Verdict::default(),
    };
    for spec in specs.filter(|s| s.applies_to(request.kind, request.host)) {
        judge.apply(spec);
    }
    judge.verdict
}

struct Judge<'a, 'b> {
    request: &'a Request<'b>,
    memory: &'a FaultMemory,
    tries: Option<u32>,
    verdict: Verdict,
}

impl Judge<'_, '_> {
    fn apply(&mut self, spec: &FaultSpec) {
        let ms = |ms: u32| Duration::from_millis(u64::from(ms));
        match spec.fault {
            Fault::Forbid { status } => self.refuse(|_| Some(Refusal::Status(status))),
            Fault::RateLimit {
                requests,
                seconds,
                form,
            } => self.refuse(|judge| judge.rate_limit(spec, requests, seconds, form)),
            Fault::Burst {
                every,
                length,
                status,
            } => self.refuse(|judge| {
                let at = judge.memory.count(&spec.text) % u64::from(every);
                (at >= u64::from(every - length)).then_some(Refusal::Status(status))
            }),
            Fault::Share { percent, status } => self.refuse(|judge| {
                let hit = judge.draws_try(spec, percent);
                hit.then_some(Refusal::Status(status))
            }),
            Fault::Flaky {
                percent,
                tries,
                status,
            } => self.refuse(|judge| {
                let hit = judge.draw(spec, 0).percent(percent) && judge.tries() < tries;
                hit.then_some(Refusal::Status(status))
            }),
            Fault::Redirect { hops, status } => self.refuse(|judge| {
                let hop = judge.request.hop;
                (hop < hops).then_some(Refusal::Redirect {
                    status,
                    hop: hop + 1,
                })
            }),
            Fault::RedirectLoop => self.refuse(|judge| {
                Some(Refusal::Redirect {
                    status: 302,
                    hop: 1 + judge.request.hop % 2,
                })
            }),
            Fault::Slow { ms: wait } => self.verdict.pacing.delay += ms(wait),
            Fault::Drip { bytes, ms: wait } => self.verdict.pacing.drip = Some((bytes, ms(wait))),
            Fault::Truncate { percent, sent } => {
                let hit = self.draws_try(spec, percent);
                self.verdict.pacing.cut_percent =
                    self.verdict.pacing.cut_percent.or(hit.then_some(sent));
            }
            Fault::Huge { bytes } => self.verdict.pacing.fill = Some(bytes),
            Fault::Bomb { bytes } => self.verdict.pacing.bomb = Some(bytes),
            Fault::Hang => self.verdict.block = Some(Block::Hang),
            Fault::Close => self.verdict.block = Some(Block::Close),
            Fault::Robots(robots) => self.robots(robots),
            Fault::Charset(charset) => self.verdict.look.charset = Some(charset),
            Fault::Endless => self.verdict.look.endless = true,
            Fault::Markup => self.verdict.look.second_markup = true,
            Fault::Empty => self.verdict.look.empty = true,
            Fault::Login => self.verdict.look.login = true,
            Fault::Beyond => self.verdict.look.beyond = true,
            Fault::Totals { percent } => self.verdict.look.totals = Some(percent),
        }
    }

    /// A request that is refused already does not count for later faults.
    fn refuse(&mut self, refusal: impl FnOnce(&mut Self) -> Option<Refusal>) {
        if self.verdict.refusal.is_none() {
            self.verdict.refusal = refusal(self);
        }
    }

    fn rate_limit(
        &self,
        spec: &FaultSpec,
        requests: u32,
        seconds: u32,
        form: RetryForm,
    ) -> Option<Refusal> {
        let key = format!("{} {}", spec.text, self.request.host);
        let span = Duration::from_secs(u64::from(seconds));
        let wait = self.memory.take_place(key, requests, span).err()?;
        Some(Refusal::TooMany(wait, form))
    }

    fn robots(&mut self, robots: RobotsFault) {
        match robots {
            RobotsFault::Hang => self.verdict.block = Some(Block::Hang),
            RobotsFault::Status(status) => {
                self.verdict.refusal = Some(Refusal::Status(status));
            }
            RobotsFault::Redirect(hops) if self.request.hop < hops => {
                self.verdict.refusal = Some(Refusal::Redirect {
                    status: 301,
                    hop: self.request.hop + 1,
                });
            }
            RobotsFault::Redirect(_)
            | RobotsFault::Allow
            | RobotsFault::Deny
            | RobotsFault::Delay(_)
            | RobotsFault::Huge
            | RobotsFault::Garbage => self.verdict.look.robots = Some(robots),
        }
    }

    /// How often the request was tried before; counted once however many faults ask.
    fn tries(&mut self) -> u32 {
        *self
            .tries
            .get_or_insert_with(|| self.memory.count_try(self.request.key))
    }

    fn draws_try(&mut self, spec: &FaultSpec, percent: u32) -> bool {
        let tries = self.tries();
        self.draw(spec, u64::from(tries) + 1).percent(percent)
    }

    fn draw(&self, spec: &FaultSpec, tries: u64) -> Draw {
        let spec = spec.text.bytes().fold(0_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let seed = self.request.seed ^ spec;
        Draw::new(seed, Purpose::Fault, self.request.key, tries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(orders: &[&str], key: u64, memory: &FaultMemory) -> Verdict {
        let specs: Vec<FaultSpec> = orders
            .iter()
            .map(|o| FaultSpec::parse(o).unwrap())
            .collect();
        let request = Request {
            seed: 1,
            kind: PageKind::Detail,
            host: "a",
            key,
            hop: 0,
        };
        judge(specs.iter(), &request, memory)
    }

    #[test]
    fn a_flaky_request_succeeds_after_its_tries() {
        let memory = FaultMemory::default();
        let fails = |key| verdict(&["flaky:30:2"], key, &memory).refusal.is_some();
        let first: Vec<u64> = (0..1000).filter(|k| fails(*k)).collect();
        assert!((240..360).contains(&first.len()), "{}", first.len());
        let second: Vec<u64> = (0..1000).filter(|k| fails(*k)).collect();
        assert_eq!(first, second);
        assert_eq!((0..1000).filter(|k| fails(*k)).count(), 0);
    }

    /// Attacks FLT-1.
    #[test]
    fn a_share_is_drawn_anew_for_each_try_and_alike_for_each_test() {
        let run = || {
            let memory = FaultMemory::default();
            let fails = |key| verdict(&["share:50:500"], key, &memory).refusal.is_some();
            (0..3)
                .map(|_| (0..300).filter(|k| fails(*k)).collect::<Vec<u64>>())
                .collect::<Vec<_>>()
        };
        let tries = run();
        assert_eq!(tries, run());
        assert_ne!(tries[0], tries[1]);
        assert!(tries.iter().all(|t| (110..190).contains(&t.len())));
    }

    #[test]
    fn bursts_come_at_the_end_of_their_period() {
        let memory = FaultMemory::default();
        let hit: Vec<u64> = (0..12)
            .filter(|k| verdict(&["burst:5:2:502"], *k, &memory).refusal.is_some())
            .collect();
        assert_eq!(hit, [3, 4, 8, 9]);
    }

    #[test]
    fn faults_add_up_and_the_first_refusal_wins() {
        let memory = FaultMemory::default();
        let all = [
            "slow:5",
            "forbid:410",
            "slow:7",
            "forbid:403",
            "login",
            "drip:3:4",
        ];
        let verdict = verdict(&all, 0, &memory);
        assert_eq!(verdict.pacing.delay, Duration::from_millis(12));
        assert_eq!(verdict.pacing.drip, Some((3, Duration::from_millis(4))));
        assert_eq!(verdict.refusal, Some(Refusal::Status(410)));
        assert!(verdict.look.login && verdict.block.is_none());
    }
}
