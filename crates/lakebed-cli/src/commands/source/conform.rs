//! `source test`: whether a source is ready for its days.
//!
//! Everything is really done: fixtures go through the rules, their records into a lake that is thrown away, seeds are
//! read as a crawl reads them.

use std::collections::BTreeSet;

use lakebed::Result;
use lakebed::config::{Project, Settings, SourceConfig};
use lakebed::name::SourceName;
use lakebed::spec::{CanonicalUrl, QueryOrder, RunKey};
use lakebed::time::{BusinessDate, Clock, time_zone};
use serde::Serialize;

use super::ANSWER_FORMAT;
use super::check::{Check, Verdict};
use super::fit::check_schemas;
use super::follow::check_followers;
use super::new::{MADE_UP_HOST, NO_CONTACT};
use super::private::find_private;
use crate::args::{SourceTestArgs, TextFormat};
use crate::commands::crawl_plan::{plan_of, read_plan};
use crate::commands::parse::{
    MAY_BE_EMPTY, Ruled, TestedPage, never_there, only_rejects, test_pages,
};
use crate::context::Globals;
use crate::exit::Exit;
use crate::table::count;

#[derive(Serialize)]
struct TestAnswer<'a> {
    format: u32,
    source: &'a SourceName,
    pass: bool,
    checks: &'a [Check],
}

/// `lakebed source test`
pub(crate) async fn test(args: &SourceTestArgs, globals: &Globals<'_>) -> Result<Exit> {
    let name: SourceName = args.name.parse()?;
    let project = globals.find_project()?;
    let settings = Settings::load(&project, &globals.layers())?;
    let checks = match project.load_source(&name) {
        Ok(source) => check_all(args, (&project, &settings), &source, globals).await?,
        // Without its file nothing can be asked of it.
        Err(e) if project.source_file(&name).exists() => vec![Check::failed("rules", &e)],
        Err(e) => return Err(e),
    };
    let pass = checks.iter().all(|c| c.verdict != Verdict::Fail);
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&TestAnswer {
            format: ANSWER_FORMAT,
            source: &name,
            pass,
            checks: &checks,
        })?,
        TextFormat::Text => {
            for check in &checks {
                tell(check, globals)?;
            }
        }
    }
    let is_crawled = |check: &Check| check.check == "seeds" && check.verdict == Verdict::Pass;
    if pass && checks.iter().any(is_crawled) {
        printer.hint(format!("it is ready: `lakebed run {name} --date today`"));
    }
    Ok(if pass { Exit::Done } else { Exit::No })
}

fn tell(check: &Check, globals: &Globals<'_>) -> Result<()> {
    let verdict = match check.verdict {
        Verdict::Pass => "ok    ",
        Verdict::Fail => "FAILED",
        Verdict::NotDeclared => "-     ",
    };
    let mut lines = check.found.iter();
    let first = lines.next().map_or("", String::as_str);
    globals
        .printer
        .line(format!("{verdict}  {:<9} {first}", check.check))?;
    for line in lines {
        globals.printer.line(format!("                  {line}"))?;
    }
    for hint in &check.hints {
        globals.printer.line(format!("          hint    {hint}"))?;
    }
    Ok(())
}

async fn check_all(
    args: &SourceTestArgs,
    (project, settings): (&Project, &Settings),
    source: &SourceConfig,
    globals: &Globals<'_>,
) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    if source.parse.is_none() {
        let none = "no [parse]: its pages are not parsed here";
        checks.extend(["rules", "fixtures", "schema"].map(|c| Check::not_declared(c, none)));
    } else {
        match Ruled::open(&source.name, globals) {
            Err(e) => checks.push(Check::failed("rules", &e)),
            Ok(ruled) => {
                let kinds = source.parse.iter().flat_map(|p| &p.page).count();
                checks.push(Check::pass("rules", format!("{kinds} kinds of pages")));
                let tested = test_pages(&ruled, false);
                checks.push(check_fixtures(&ruled, &tested));
                checks.push(
                    check_schemas(&ruled, tested.as_deref().unwrap_or_default(), globals).await?,
                );
            }
        }
    }
    checks.extend(check_followers(project, source, globals).await?);
    checks.push(check_seeds(args, (project, settings), source).await);
    checks.push(check_contact(source));
    checks.push(match find_private(project) {
        Err(e) => Check::failed("private", &e),
        Ok(found) if found.leaks.is_empty() => Check::pass("private", found.looked()),
        Ok(found) => Check::fail(
            "private",
            found.leaks,
            vec!["what stands in lakebed.local.toml must not be in git: take it out, and change it, since history keeps it".to_owned()],
        ),
    });
    Ok(checks)
}

/// Whether each fixture gives what is expected, and each kind of page has one.
fn check_fixtures(ruled: &Ruled, tested: &Result<Vec<TestedPage>>) -> Check {
    let (pages, source) = match tested {
        Ok(pages) => (pages, &ruled.source.name),
        Err(e) => return Check::failed("fixtures", e),
    };
    let mut found = Vec::new();
    for page in pages {
        match (page.expected, page.differences.first()) {
            (false, _) => found.push(format!("{}: nothing to compare with", page.name)),
            (true, Some(first)) => found.push(format!(
                "{}: {} places differ from what is expected, the first at {}",
                page.name,
                page.differences.len(),
                first.path
            )),
            (true, None) => {}
        }
    }
    found.extend(only_rejects(ruled, pages));
    let seen: BTreeSet<&str> = pages
        .iter()
        .filter_map(|p| p.parsed.as_ref()?.page.as_deref())
        .collect();
    let kinds = ruled.rules.page_names();
    let missing = kinds.iter().filter(|kind| !seen.contains(kind.as_str()));
    found.extend(missing.map(|kind| format!("no fixture is a page of the kind `{kind}`")));
    let doubts = never_there(ruled, pages);
    if found.is_empty() && doubts.is_empty() {
        let as_expected = format!("{} as expected", count(pages.len() as u64, "page"));
        return Check::pass("fixtures", as_expected);
    }
    let mut hints = Vec::new();
    if !found.is_empty() {
        hints.push(format!(
            "`lakebed parse {source} --try PAGE --save NAME` keeps a page; `lakebed parse {source} --test` shows differences"
        ));
    }
    if !doubts.is_empty() {
        hints.push(MAY_BE_EMPTY.to_owned());
    }
    found.extend(doubts);
    Check::fail("fixtures", found, hints)
}

/// Whether a crawl would have something to ask for.
async fn check_seeds(
    args: &SourceTestArgs,
    (project, settings): (&Project, &Settings),
    source: &SourceConfig,
) -> Check {
    if source.crawl.is_none() {
        return Check::not_declared("seeds", "no [crawl]: it is crawled elsewhere");
    }
    let seeds = async {
        let zone = source
            .time_zone
            .as_deref()
            .unwrap_or(&settings.time_zone.value);
        let date = match &args.date {
            Some(date) => date.parse()?,
            None => BusinessDate::of(Clock::System.now(), &time_zone(zone)?),
        };
        let run = RunKey {
            source: source.name.clone(),
            date,
            run: "test".parse()?,
        };
        let plan = plan_of(project, settings, &run, None)?;
        let folder = project.sources_dir().join(source.name.as_str());
        read_plan(&plan, None, &folder).await
    };
    match seeds.await {
        Err(e) => Check::failed("seeds", &e),
        Ok(plan) if plan.seeds.is_empty() => Check::fail(
            "seeds",
            vec![format!(
                "nothing to ask for; {} lead out of `hosts`",
                plan.out_of_scope
            )],
            vec![
                "a crawl without a seed is red; write the first pages into the file of seeds"
                    .to_owned(),
            ],
        ),
        Ok(plan) if plan.out_of_scope > 0 => Check::fail(
            "seeds",
            vec![format!(
                "{}, and {} that lead out of `hosts`",
                count(plan.seeds.len() as u64, "seed"),
                plan.out_of_scope
            )],
            vec!["add their hosts to `hosts`, or leave the seeds out".to_owned()],
        ),
        Ok(plan) => match plan.seeds.iter().find(|seed| is_made_up(&seed.url)) {
            Some(seed) => Check::fail(
                "seeds",
                vec![format!("the address {} is made up", seed.url)],
                vec![
                    "write yours into seeds.txt, and its host into `hosts` of source.toml"
                        .to_owned(),
                ],
            ),
            None => Check::pass("seeds", count(plan.seeds.len() as u64, "seed")),
        },
    }
}

/// Whether an address is of a name that no site can have.
fn is_made_up(url: &str) -> bool {
    let url = CanonicalUrl::parse(url, QueryOrder::Kept);
    url.is_ok_and(|url| url.host().ends_with(MADE_UP_HOST))
}

/// Whether those who run the site can reach those who crawl it.
fn check_contact(source: &SourceConfig) -> Check {
    let Some(crawl) = &source.crawl else {
        return Check::not_declared("contact", "no [crawl]: it is crawled elsewhere");
    };
    let agent = &crawl.user_agent;
    let can_be_reached =
        (agent.contains('@') || agent.contains("://")) && !agent.contains(NO_CONTACT);
    match can_be_reached {
        true => Check::pass("contact", agent.clone()),
        false => Check::fail(
            "contact",
            vec![format!("`{agent}` names nobody who can be reached")],
            vec![
                "user_agent = \"acme-research/1.2 (+https://acme.example/bot)\", or a mail address"
                    .to_owned(),
            ],
        ),
    }
}
