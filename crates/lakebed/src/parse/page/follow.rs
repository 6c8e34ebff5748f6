//! The links of a page that are followed, and what it announces of them.

use std::collections::BTreeSet;

use crate::parse::budget::PageError;
use crate::parse::field::{Field, Shape};
use crate::parse::page::{Look, Page, Way, WayStep, fault};
use crate::parse::rules::FollowRule;
use crate::parse::steps::sample;
use crate::spec::{
    CanonicalUrl, Datum, FollowUp, PageExpectation, PageReject, ParsedPage, QueryOrder,
};

impl Page<'_> {
    /// The requests of a rule, and what the page announces of them.
    pub(super) fn follow(
        &self,
        rule: &FollowRule,
        parsed: &mut ParsedPage,
    ) -> Result<(), PageError> {
        let way = Way {
            above: None,
            step: WayStep::Name("total"),
        };
        let mut faults = Vec::new();
        let total = match &rule.total {
            None => None,
            Some(total) => match self.field(total, Look::Page, &way, &mut faults)? {
                Datum::Null => None,
                value => {
                    let number = value.scalar_text().and_then(|t| t.parse::<u64>().ok());
                    if number.is_none() && faults.is_empty() {
                        let what = format!("{} is no number of links", sample(&value.to_json()));
                        faults.push(fault("no_number", &way, what));
                    }
                    number
                }
            },
        };
        if !faults.is_empty() {
            parsed.rejects.push(PageReject {
                dataset: None,
                item: None,
                faults,
                record: Datum::Null,
            });
        }
        let group = (rule.total.is_some() || rule.group.is_some()).then(|| self.group_of(rule));
        let before = parsed.follow_ups.len();
        let mut seen = BTreeSet::new();
        let mut number = 0;
        self.for_each(&rule.each, |look| {
            self.links(rule, look, (&mut seen, group.as_ref(), number), parsed)?;
            number += 1;
            Ok(())
        })?;
        if let (Some(expected), Some(group)) = (total, group) {
            parsed.expectations.push(PageExpectation {
                group,
                stage: rule.stage.clone(),
                expected,
                at_least: rule.min_share.map(|share| share_of(expected, share)),
                found: (parsed.follow_ups.len() - before) as u64,
            });
        }
        Ok(())
    }

    /// The links of a rule within one place.
    fn links(
        &self,
        rule: &FollowRule,
        look: Look<'_>,
        (seen, group, item): (&mut BTreeSet<String>, Option<&String>, u64),
        parsed: &mut ParsedPage,
    ) -> Result<(), PageError> {
        let mut faults = Vec::new();
        let way = Way {
            above: None,
            step: WayStep::Name("url"),
        };
        let all = Field {
            shape: Shape::All,
            ..rule.url.clone()
        };
        let Datum::List(links) = self.field(&all, look, &way, &mut faults)? else {
            return Ok(());
        };
        let payload = match rule.payload.is_empty() {
            true => None,
            false => Some(self.object(&rule.payload, look, None, &mut faults)?),
        };
        if !faults.is_empty() {
            parsed.rejects.push(PageReject {
                dataset: None,
                item: Some(item),
                faults,
                record: payload.unwrap_or(Datum::Null),
            });
            return Ok(());
        }
        for link in &links {
            let link = link.scalar_text().unwrap_or_default().trim();
            if link.is_empty() || link.starts_with('#') {
                continue;
            }
            let url = self.base.join(link).ok();
            let url = url.and_then(|u| CanonicalUrl::parse(u.as_str(), QueryOrder::Kept).ok());
            let Some(url) = url else {
                parsed.other_links += 1;
                continue;
            };
            if seen.insert(url.as_str().to_owned()) {
                parsed.follow_ups.push(FollowUp {
                    stage: rule.stage.clone(),
                    url: url.as_str().to_owned(),
                    priority: rule.priority,
                    payload: payload.clone(),
                    group: group.cloned(),
                });
            }
        }
        Ok(())
    }

    fn group_of(&self, rule: &FollowRule) -> String {
        let url = self
            .canonical
            .as_str()
            .split('?')
            .next()
            .unwrap_or_default();
        match &rule.group {
            Some(name) => name.replace("{url}", url),
            None => format!("{} {url}", rule.stage),
        }
    }
}

/// The whole part of a share of a count.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 of a count; beyond 2^53 the last digits are no matter"
)]
fn share_of(count: u64, share: f64) -> u64 {
    (count as f64 * share) as u64
}
