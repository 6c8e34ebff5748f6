//! What can be ordered: `NAME[:PARAM[:PARAM...]][@SCOPE[,SCOPE...]]`.
//!
//! Parameters may be parted by `/`, too (`rate_limit:5/60`); in a path, only `:` works. A scope is a
//! kind of page or `host=NAME`; without one, a fault applies to every page but `/robots.txt`.

use lakebed::{Error, Result};

/// Kinds of pages a fault can be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PageKind {
    /// `/`, and pages that belong to no other kind.
    Other,
    /// List pages.
    List,
    /// Detail pages.
    Detail,
    /// The JSON interface.
    Api,
    /// `/robots.txt`
    Robots,
    /// The sitemaps.
    Sitemap,
    /// `/private/`, which robots.txt forbids.
    Private,
    /// Requests that steer the site; no fault applies to them.
    Control,
}

impl PageKind {
    /// As in scopes, the log and the statistics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::List => "list",
            Self::Detail => "detail",
            Self::Api => "api",
            Self::Robots => "robots",
            Self::Sitemap => "sitemap",
            Self::Private => "private",
            Self::Control => "control",
        }
    }

    /// Kinds that a scope can name.
    const SCOPES: [Self; 7] = [
        Self::Other,
        Self::List,
        Self::Detail,
        Self::Api,
        Self::Robots,
        Self::Sitemap,
        Self::Private,
    ];
}

/// How `Retry-After` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryForm {
    /// Seconds until a request is welcome.
    Seconds,
    /// The same as a date.
    Date,
    /// `-5`
    Negative,
    /// A number of seconds no program can wait.
    Absurd,
    /// A word.
    Garbage,
    /// No header.
    None,
}

/// What a page is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharsetFault {
    /// GBK, told by header and page.
    Gbk,
    /// Big5, told by header and page.
    Big5,
    /// Header and page say UTF-8, the bytes are Big5.
    Lie,
    /// Big5, told by the page alone.
    Meta,
    /// GBK, told by nothing.
    None,
}

/// What `/robots.txt` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RobotsFault {
    /// Everything is allowed.
    Allow,
    /// Everything is forbidden.
    Deny,
    /// `Crawl-delay` of so many seconds.
    Delay(u32),
    /// Answered with this status.
    Status(u16),
    /// A mebibyte; what stands last forbids everything.
    Huge,
    /// The rules stand behind so many redirects.
    Redirect(u32),
    /// No answer.
    Hang,
    /// A page of HTML and bytes that are no text.
    Garbage,
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This status for every request.
    Forbid { status: u16 },
    /// 429 for a host that asks more often than `requests` times in `seconds`.
    RateLimit {
        requests: u32,
        seconds: u32,
        form: RetryForm,
    },
    /// Of every `every` requests, the last `length` fail.
    Burst {
        every: u32,
        length: u32,
        status: u16,
    },
    /// Each try of a request fails with this likelihood.
    Share { percent: u32, status: u16 },
    /// This share of the requests fails until it was tried so often.
    Flaky {
        percent: u32,
        tries: u32,
        status: u16,
    },
    /// The answer begins so much later.
    Slow { ms: u32 },
    /// The body comes in pieces.
    Drip { bytes: u32, ms: u32 },
    /// This share of the tries breaks off after so much of the body.
    Truncate { percent: u32, sent: u32 },
    /// No answer.
    Hang,
    /// The connection ends without an answer.
    Close,
    /// The page stands behind so many redirects.
    Redirect { hops: u32, status: u16 },
    /// Two addresses point at each other.
    RedirectLoop,
    /// Another charset.
    Charset(CharsetFault),
    /// Every list page has a next one.
    Endless,
    /// The body is filled up to this size.
    Huge { bytes: u64 },
    /// A small gzip body that unpacks to this size.
    Bomb { bytes: u64 },
    /// See [`RobotsFault`].
    Robots(RobotsFault),
    /// Changed markup.
    Markup,
    /// Lists and details without content.
    Empty,
    /// A login page in the place of every page.
    Login,
    /// A list page past the last one is empty, not 404.
    Beyond,
    /// Announced totals are this percentage of the truth.
    Totals { percent: u32 },
}

/// The faults by name, as the documentation has them.
pub(crate) const NAMES: [&str; 22] = [
    "forbid",
    "rate_limit",
    "burst",
    "share",
    "flaky",
    "slow",
    "drip",
    "truncate",
    "hang",
    "close",
    "redirect",
    "redirect_loop",
    "charset",
    "endless",
    "huge",
    "bomb",
    "robots",
    "markup",
    "empty",
    "login",
    "beyond",
    "totals",
];

/// A fault as it was ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FaultSpec {
    /// What happens.
    pub(crate) fault: Fault,
    /// The order as it was written: the faults' memory is kept by it.
    pub(crate) text: String,
    kinds: Vec<PageKind>,
    hosts: Vec<String>,
}

impl FaultSpec {
    /// Reads one order.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (body, scope) = match text.split_once('@') {
            Some((body, scope)) => (body, Some(scope)),
            None => (text, None),
        };
        let mut parts = body.split([':', '/']);
        let name = parts.next().unwrap_or_default();
        let mut params = Params {
            text,
            given: parts.collect(),
            taken: 0,
        };
        let fault = fault(name, &mut params)?;
        params.end()?;
        let mut spec = Self {
            fault,
            text: text.to_owned(),
            kinds: Vec::new(),
            hosts: Vec::new(),
        };
        for part in scope.into_iter().flat_map(|s| s.split(',')) {
            spec.add_scope(part)?;
        }
        Ok(spec)
    }

    fn add_scope(&mut self, part: &str) -> Result<()> {
        if let Some(host) = part.strip_prefix("host=").filter(|h| !h.is_empty()) {
            self.hosts.push(host.to_owned());
            return Ok(());
        }
        if part == "all" {
            self.kinds.extend(PageKind::SCOPES);
            return Ok(());
        }
        let kind = PageKind::SCOPES.into_iter().find(|k| k.name() == part);
        let names: Vec<&str> = PageKind::SCOPES.iter().map(|k| k.name()).collect();
        self.kinds.push(kind.ok_or_else(|| {
            Error::invalid(format!("`{part}` in `{}` is no scope", self.text))
                .hint(format!("one of: all, {}, host=NAME", names.join(", ")))
        })?);
        Ok(())
    }

    /// Whether it applies to a request. What is ordered for robots applies to robots.txt alone.
    pub(crate) fn applies_to(&self, kind: PageKind, host: &str) -> bool {
        let host = host.split(':').next().unwrap_or(host);
        if !self.hosts.is_empty() && !self.hosts.iter().any(|h| h == host) {
            return false;
        }
        match (self.fault, kind) {
            (_, PageKind::Control) => false,
            (Fault::Robots(_), kind) => kind == PageKind::Robots,
            (_, kind) if self.kinds.is_empty() => kind != PageKind::Robots,
            (_, kind) => self.kinds.contains(&kind),
        }
    }
}

struct Params<'a> {
    text: &'a str,
    given: Vec<&'a str>,
    taken: usize,
}

impl<'a> Params<'a> {
    fn word(&mut self) -> Option<&'a str> {
        let found = self.given.get(self.taken).copied();
        self.taken += 1;
        found
    }

    fn bad(&self, what: &str) -> Error {
        Error::invalid(format!("the fault `{}` {what}", self.text))
            .hint("docs/demo-site.md lists every fault with its parameters")
    }

    fn end(&self) -> Result<()> {
        if self.given.len() > self.taken {
            return Err(self.bad("has more parameters than it takes"));
        }
        Ok(())
    }

    fn needed(&mut self, what: &str) -> Result<u32> {
        match self.word() {
            Some(text) => self.parsed(text, what),
            None => Err(self.bad(&format!("lacks {what}"))),
        }
    }

    fn or(&mut self, what: &str, default: u32) -> Result<u32> {
        match self.word() {
            Some(text) => self.parsed(text, what),
            None => Ok(default),
        }
    }

    fn parsed(&self, text: &str, what: &str) -> Result<u32> {
        text.parse()
            .map_err(|_| self.bad(&format!("has `{text}` for {what}")))
    }

    fn percent(&mut self) -> Result<u32> {
        let percent = self.needed("a percentage")?;
        if percent > 100 {
            return Err(self.bad("has more than 100 percent"));
        }
        Ok(percent)
    }

    fn positive(&mut self, what: &str) -> Result<u32> {
        match self.needed(what)? {
            0 => Err(self.bad(&format!("has 0 for {what}"))),
            n => Ok(n),
        }
    }

    fn status(&mut self, default: u16) -> Result<u16> {
        let status = self.or("a status", u32::from(default))?;
        u16::try_from(status)
            .ok()
            .filter(|s| (200..600).contains(s))
            .ok_or_else(|| self.bad(&format!("has the status `{status}`")))
    }

    /// A number of bytes, with `k`, `m` or `g` for powers of 1024.
    fn size(&mut self, default: u64) -> Result<u64> {
        let Some(text) = self.word() else {
            return Ok(default);
        };
        let (digits, shift) = match text.char_indices().last() {
            Some((at, 'k')) => (&text[..at], 10),
            Some((at, 'm')) => (&text[..at], 20),
            Some((at, 'g')) => (&text[..at], 30),
            _ => (text, 0),
        };
        digits
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(1 << shift))
            .filter(|n| *n <= 1 << 40)
            .ok_or_else(|| self.bad(&format!("has `{text}` for a size")))
    }
}

fn fault(name: &str, p: &mut Params<'_>) -> Result<Fault> {
    Ok(match name {
        "forbid" => Fault::Forbid {
            status: p.status(403)?,
        },
        "rate_limit" => Fault::RateLimit {
            requests: p.positive("a number of requests")?,
            seconds: p.positive("seconds")?,
            form: retry_form(p)?,
        },
        "burst" => burst(p)?,
        "share" => Fault::Share {
            percent: p.percent()?,
            status: p.status(500)?,
        },
        "flaky" => Fault::Flaky {
            percent: p.percent()?,
            tries: p.or("a number of tries", 1)?,
            status: p.status(503)?,
        },
        "slow" => Fault::Slow {
            ms: p.needed("milliseconds")?,
        },
        "drip" => Fault::Drip {
            bytes: p.positive("bytes")?,
            ms: p.needed("milliseconds")?,
        },
        "truncate" => Fault::Truncate {
            percent: p.percent()?,
            sent: p.or("a percentage", 50)?.min(99),
        },
        "hang" => Fault::Hang,
        "close" => Fault::Close,
        "redirect" => Fault::Redirect {
            hops: p.or("a number of hops", 1)?,
            status: p.status(302)?,
        },
        "redirect_loop" => Fault::RedirectLoop,
        "charset" => Fault::Charset(charset(p)?),
        "endless" => Fault::Endless,
        "huge" => Fault::Huge {
            bytes: p.size(64 << 20)?,
        },
        "bomb" => Fault::Bomb {
            bytes: p.size(1 << 30)?,
        },
        "robots" => Fault::Robots(robots(p)?),
        "markup" => match p.or("a version", 2)? {
            2 => Fault::Markup,
            _ => return Err(p.bad("has an unknown version; there is 2")),
        },
        "empty" => Fault::Empty,
        "login" => Fault::Login,
        "beyond" => Fault::Beyond,
        "totals" => Fault::Totals {
            percent: p.needed("a percentage")?,
        },
        _ => {
            return Err(Error::invalid(format!("there is no fault `{name}`"))
                .hint(format!("one of: {}", NAMES.join(", "))));
        }
    })
}

fn burst(p: &mut Params<'_>) -> Result<Fault> {
    let every = p.positive("a number of requests")?;
    let length = p.positive("a length")?;
    if length > every {
        return Err(p.bad("is longer than its period"));
    }
    Ok(Fault::Burst {
        every,
        length,
        status: p.status(503)?,
    })
}

fn retry_form(p: &mut Params<'_>) -> Result<RetryForm> {
    Ok(match p.word() {
        None | Some("seconds") => RetryForm::Seconds,
        Some("date") => RetryForm::Date,
        Some("negative") => RetryForm::Negative,
        Some("absurd") => RetryForm::Absurd,
        Some("garbage") => RetryForm::Garbage,
        Some("none") => RetryForm::None,
        Some(other) => {
            return Err(p.bad(&format!(
                "has `{other}` where seconds, date, negative, absurd, garbage or none may stand"
            )));
        }
    })
}

fn charset(p: &mut Params<'_>) -> Result<CharsetFault> {
    Ok(match p.word() {
        Some("gbk") => CharsetFault::Gbk,
        Some("big5") => CharsetFault::Big5,
        Some("lie") => CharsetFault::Lie,
        Some("meta") => CharsetFault::Meta,
        Some("none") => CharsetFault::None,
        _ => return Err(p.bad("needs one of gbk, big5, lie, meta, none")),
    })
}

fn robots(p: &mut Params<'_>) -> Result<RobotsFault> {
    Ok(match p.word() {
        Some("allow") => RobotsFault::Allow,
        Some("deny") => RobotsFault::Deny,
        Some("delay") => RobotsFault::Delay(p.needed("seconds")?),
        Some("5xx") => RobotsFault::Status(503),
        Some("4xx") => RobotsFault::Status(404),
        Some("429") => RobotsFault::Status(429),
        Some("huge") => RobotsFault::Huge,
        Some("redirect") => RobotsFault::Redirect(p.or("a number of hops", 1)?),
        Some("hang") => RobotsFault::Hang,
        Some("garbage") => RobotsFault::Garbage,
        _ => {
            return Err(p.bad(
                "needs one of allow, deny, delay:SECONDS, 5xx, 4xx, 429, huge, redirect, hang, garbage",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_of(text: &str) -> Fault {
        FaultSpec::parse(text).unwrap().fault
    }

    #[test]
    fn every_fault_can_be_ordered() {
        let orders = [
            "forbid",
            "rate_limit:5/60",
            "burst:20:5",
            "share:30:500",
            "flaky:30:2",
            "slow:200",
            "drip:10/5",
            "truncate:100",
            "hang",
            "close",
            "redirect:3",
            "redirect_loop",
            "charset:gbk",
            "endless",
            "huge:10m",
            "bomb",
            "robots:deny",
            "markup:2",
            "empty",
            "login",
            "beyond",
            "totals:90",
        ];
        for (order, name) in orders.iter().zip(NAMES) {
            assert!(order.starts_with(name), "{order} {name}");
            assert_eq!(FaultSpec::parse(order).unwrap().text, *order);
        }
    }

    #[test]
    fn parameters_are_read() {
        let limit = Fault::RateLimit {
            requests: 5,
            seconds: 60,
            form: RetryForm::Absurd,
        };
        assert_eq!(fault_of("rate_limit:5/60/absurd"), limit);
        assert_eq!(fault_of("rate_limit:5:60:absurd"), limit);
        assert_eq!(fault_of("huge:3k"), Fault::Huge { bytes: 3072 });
        assert_eq!(fault_of("forbid:451"), Fault::Forbid { status: 451 });
        assert_eq!(
            fault_of("robots:redirect:6"),
            Fault::Robots(RobotsFault::Redirect(6))
        );
    }

    #[test]
    fn bad_orders_are_refused_by_name() {
        for bad in [
            "",
            "Forbid",
            "forbid:99",
            "forbid:700",
            "forbid:403:1",
            "share",
            "share:101:500",
            "rate_limit:0/5",
            "rate_limit:5",
            "rate_limit:5/6/later",
            "burst:3:4",
            "drip:0:1",
            "huge:1t",
            "huge:99999999999g",
            "huge:k",
            "bomb:é",
            "markup:3",
            "charset:latin1",
            "robots",
            "slow:-1",
            "hang@",
            "hang@pages",
            "hang@host=",
        ] {
            assert!(FaultSpec::parse(bad).is_err(), "{bad}");
        }
        let error = FaultSpec::parse("slow:soon").unwrap_err();
        assert!(error.message().contains("`soon`"), "{error}");
    }

    #[test]
    fn scopes_choose_pages_and_hosts() {
        let applies =
            |text: &str, kind, host| FaultSpec::parse(text).unwrap().applies_to(kind, host);
        assert!(applies("hang", PageKind::Detail, "a"));
        assert!(!applies("hang", PageKind::Robots, "a"));
        assert!(!applies("hang@all", PageKind::Control, "a"));
        assert!(applies("hang@all", PageKind::Robots, "a"));
        assert!(applies("hang@list,api", PageKind::Api, "a"));
        assert!(!applies("hang@list,api", PageKind::Detail, "a"));
        assert!(applies(
            "hang@host=a.localhost",
            PageKind::Detail,
            "a.localhost:80"
        ));
        assert!(!applies(
            "hang@host=a.localhost",
            PageKind::Detail,
            "b.localhost"
        ));
        assert!(!applies("hang@list,host=a", PageKind::Detail, "a"));
        assert!(applies("robots:deny", PageKind::Robots, "a"));
        assert!(!applies("robots:deny", PageKind::List, "a"));
    }
}
