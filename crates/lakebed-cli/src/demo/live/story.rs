//! What happens, in order.

use std::fs;
use std::path::{Path, PathBuf};

use lakebed::{Error, Result};
use serde_json::Value;

use crate::args::DemoArgs;
use crate::context::Globals;
use crate::demo::live::site::Site;
use crate::demo::live::summary::{self, Summary};
use crate::demo::live::teller::{Show, Teller, expect};
use crate::demo::stage::prepare;
use crate::exit::Exit;

/// The days that are lived through.
const DAYS: [&str; 5] = [
    "2026-11-26",
    "2026-11-27",
    "2026-11-28",
    "2026-11-29",
    "2026-11-30",
];
/// Default folder.
const DEFAULT_DIR: &str = "lakebed-demo";
/// Datasets with their schema versions in this program; those of folds and queries follow from the rules.
const SCHEMAS: [(&str, &str); 2] = [
    ("rentals.list", include_str!("files/list.toml")),
    ("rentals", include_str!("files/detail.toml")),
];
const SOURCE: &str = include_str!("files/source.toml");
const LOCAL: &str = include_str!("files/local.toml");
/// Selectors of the pages of details: as the site is at first, and of both its faces.
const SELECTORS: [(&str, &str, &str); 6] = [
    (
        "@ITEM@",
        "article.listing",
        "article.listing, div.offer-page",
    ),
    ("@NAME@", "h1::text", "h1::text, .offer-name::text"),
    (
        "@PRICE@",
        ".listing__price::text",
        ".listing__price::text, .cost::text",
    ),
    (
        "@AREA@",
        ".fact--area td::text",
        ".fact--area td::text, .facts2 dd:nth-of-type(10)::text",
    ),
    (
        "@ADDRESS@",
        ".fact--address td::text",
        ".fact--address td::text, .facts2 dd:nth-of-type(7)::text",
    ),
    (
        "@FEATURES@",
        ".listing__features .on::text",
        ".listing__features .on::text, .has .yes::text",
    ),
];
/// Lines of `run` that are shown: what became of each stage.
const STAGES: Show = Show::Only(&[
    ": done",
    ": failed",
    ": blocked",
    ": STALE",
    "| ",
    "not due",
]);

/// `lakebed demo`
pub(crate) fn tell(args: &DemoArgs, globals: &Globals<'_>) -> Result<Exit> {
    let printer = globals.printer;
    let began = printer.now();
    let dir = args.dir.clone().or_else(|| globals.project.clone());
    let dir = dir.unwrap_or_else(|| PathBuf::from(DEFAULT_DIR));
    prepare(&dir)?;
    let site = Site::start(DAYS[0])?;
    let mut story = Story {
        teller: Teller::new(printer, &dir),
        site: &site,
        dir: &dir,
        notes: Vec::new(),
    };
    story.begin()?;
    story.first_day()?;
    story.day_of_refusal()?;
    story.usual_day(DAYS[2])?;
    story.day_of_new_markup()?;
    story.usual_day(DAYS[4])?;
    story.look_back()?;
    let seconds = (printer.now().micros() - began.micros()) / 1_000_000;
    printer.line(format!("\nDone in {seconds} s."))?;
    Ok(Exit::Done)
}

struct Story<'a> {
    teller: Teller<'a>,
    site: &'a Site,
    dir: &'a Path,
    /// What the page at the end tells of each day.
    notes: Vec<(String, String)>,
}

impl Story<'_> {
    /// A project with one source.
    fn begin(&self) -> Result<()> {
        let tell = &self.teller;
        tell.say(&format!(
            "Five days of a rental market, from its pages to tables. The site is invented and runs on this machine: {}",
            self.site.url
        ))?;
        tell.title(&format!(
            "A project in `{}`; no service runs",
            self.dir.display()
        ))?;
        tell.run(
            &["init", ".", "--time-zone", "Asia/Taipei"],
            0,
            &Show::Nothing,
        )?;
        self.write("lakebed.local.toml", LOCAL)?;
        self.write(
            "sources/rentals/source.toml",
            &self.source(|(key, old, _)| (key, old)),
        )?;
        self.write(
            "sources/rentals/seeds.txt",
            &format!("{}/zh/list\n", self.site.url),
        )?;
        for (dataset, text) in SCHEMAS {
            self.write(&format!("sources/rentals/schemas/{dataset}/v1.toml"), text)?;
        }
        tell.say("   sources/rentals/source.toml says what is crawled, what its pages give, what is known of a home from day to day,")?;
        tell.say("   which details are worth fetching, and which table follows from it. Schemas that follow from rules are written, not typed:")?;
        let publish = |datasets: &[&str]| {
            let publish = |dataset: &&str| {
                let args = ["schema", "publish", *dataset, "1"];
                tell.run(&args, 0, &Show::Nothing).map(drop)
            };
            datasets.iter().try_for_each(publish)
        };
        publish(&["clean/rentals.list", "clean/rentals"])?;
        tell.run(&["fold", "rentals", "--schema"], 0, &Show::Nothing)?;
        publish(&["feature/rentals.home", "feature/rentals.home_events"])?;
        tell.run(
            &["derive", "rentals", "by_city", "--schema"],
            0,
            &Show::Nothing,
        )?;
        publish(&["feature/rentals.by_city"])?;
        Ok(())
    }

    fn source<'t>(&self, of: impl Fn((&'t str, &'t str, &'t str)) -> (&'t str, &'t str)) -> String {
        let begun = SOURCE.replace("@SITE@", &self.site.url);
        SELECTORS
            .into_iter()
            .map(of)
            .fold(begun, |text, (key, value)| text.replace(key, value))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        let folder = path.parent().unwrap_or(self.dir);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|e| Error::io("write the file", path.display(), e))
    }

    fn note(&mut self, day: &str, text: &str) {
        self.notes.push((day.to_owned(), text.to_owned()));
    }

    /// Everything is new.
    fn first_day(&mut self) -> Result<()> {
        let day = DAYS[0];
        self.teller.title(&format!("{day}: everything is new"))?;
        self.teller
            .run(&["run", "rentals", "--date", day], 0, &STAGES)?;
        self.teller
            .say("   Once more: a day that is done is done.")?;
        let before = self.site.requests()?;
        self.teller
            .run(&["run", "rentals", "--date", day], 0, &Show::Nothing)?;
        expect(
            self.site.requests()? == before,
            "a day that is done asks the site for nothing",
        )?;
        let fetched = self.count(&format!(
            "SELECT count(*) AS n FROM clean.rentals WHERE dt = DATE '{day}'"
        ))?;
        self.note(
            day,
            &format!("Everything is new: {fetched} pages of details."),
        );
        Ok(())
    }

    /// The site turns the crawler away.
    fn day_of_refusal(&mut self) -> Result<()> {
        let day = DAYS[1];
        self.teller.title(&format!(
            "{day}: the site answers 403 to every page of details"
        ))?;
        self.site.set_date(day)?;
        self.site.set_faults(&["forbid@detail"])?;
        self.teller
            .run(&["run", "rentals", "--date", day], 30, &STAGES)?;
        self.teller.say("   Red, not an empty green day; and nothing that depends on it was done. The list is safe. Later the site is calm again:")?;
        self.site.set_faults(&[])?;
        self.teller.run(
            &[
                "queue",
                "retry",
                "rentals",
                "--date",
                day,
                "--run",
                "day-detail",
                "--as",
                "day-detail-2",
            ],
            0,
            &Show::All,
        )?;
        self.teller
            .run(&["run", "rentals", "--date", day], 0, &STAGES)?;
        let retried = self.count(&format!(
            "SELECT count(*) AS n FROM clean.rentals WHERE dt = DATE '{day}'"
        ))?;
        self.note(day, &format!("403 to every page of details: the day was red until its {retried} pages were tried again."));
        Ok(())
    }

    /// Lists are seen whole; of the details, those that are worth it.
    fn usual_day(&mut self, day: &str) -> Result<()> {
        self.teller.title(&format!("{day}: a usual day"))?;
        self.site.set_date(day)?;
        self.teller.run(
            &["run", "rentals", "--date", day],
            0,
            &Show::Only(&["detail: done", "derive: done"]),
        )?;
        self.teller
            .say("   Which details were worth fetching, and why:")?;
        self.teller.run(
            &["seed", "rentals", "--date", day],
            0,
            &Show::Only(&["requests", "skipped"]),
        )?;
        let fetched = self.count(&format!(
            "SELECT count(*) AS n FROM clean.rentals WHERE dt = DATE '{day}'"
        ))?;
        let listed = self.count(&format!(
            "SELECT count(*) AS n FROM clean.\"rentals.list\" WHERE dt = DATE '{day}'"
        ))?;
        expect(fetched < listed / 2, "a usual day fetches few details")?;
        self.note(
            day,
            &format!("A usual day: {listed} homes in the list, {fetched} pages of details."),
        );
        Ok(())
    }

    /// The pages of details look otherwise.
    fn day_of_new_markup(&mut self) -> Result<()> {
        let day = DAYS[3];
        self.teller
            .title(&format!("{day}: the pages of details have another markup"))?;
        self.site.set_date(day)?;
        self.site.set_faults(&["markup@detail"])?;
        self.teller
            .run(&["run", "rentals", "--date", day], 30, &STAGES)?;
        self.teller.say("   The rules found nothing where there must be something, and said so. New rules are written into a file beside, and tried on the days before:")?;
        self.write(
            "sources/rentals/next.toml",
            &self.source(|(key, _, both)| (key, both)),
        )?;
        let days = format!("{}..{}", DAYS[0], DAYS[2]);
        self.teller.run(
            &[
                "shadow",
                "rentals",
                "--with",
                "sources/rentals/next.toml",
                "--date",
                &days,
            ],
            0,
            &Show::All,
        )?;
        self.teller.say("   They give the same as the old ones there, so they take their place; the day is parsed from its pack, and the site is not asked again:")?;
        let (next, now) = (
            self.dir.join("sources/rentals/next.toml"),
            self.dir.join("sources/rentals/source.toml"),
        );
        fs::rename(&next, &now).map_err(|e| Error::io("rename the file", next.display(), e))?;
        self.teller
            .say("   $ mv sources/rentals/next.toml sources/rentals/source.toml")?;
        let before = self.site.requests()?;
        self.teller.run(
            &[
                "run",
                "rentals",
                "--date",
                day,
                "--from-stage",
                "parse-list",
            ],
            0,
            &STAGES,
        )?;
        expect(
            self.site.requests()? == before,
            "a replay asks the site for nothing",
        )?;
        let fetched = self.count(&format!(
            "SELECT count(*) AS n FROM clean.rentals WHERE dt = DATE '{day}'"
        ))?;
        self.note(day, &format!("Another markup: red, then {fetched} pages parsed from the pack by new rules, without a request."));
        Ok(())
    }

    /// What is there now.
    fn look_back(&mut self) -> Result<()> {
        let (tell, day) = (&self.teller, DAYS[4]);
        tell.title("What is there now")?;
        let cities = "SELECT city, homes, mean_price, lowest, highest FROM feature.\"rentals.by_city\" WHERE dt = DATE '2026-11-30' ORDER BY homes DESC";
        tell.run(&["sql", cities], 0, &Show::All)?;
        let events = "SELECT dt, event, count(*) AS n FROM feature.\"rentals.home_events\" WHERE dt > DATE '2026-11-26' GROUP BY dt, event ORDER BY dt, event";
        tell.run(&["sql", events], 0, &Show::All)?;
        tell.say(
            "   The first days came by the rules of then, and say so; `run --from-stage` would bring them up:",
        )?;
        tell.run(
            &["status", "rentals", "--from", DAYS[0], "--to", day],
            1,
            &Show::Only(&["source ", "rentals  2026"]),
        )?;
        let changed = self.first("SELECT id FROM feature.\"rentals.home_events\" WHERE event = 'changed' ORDER BY dt DESC, id LIMIT 1")?;
        tell.say("   Where a row comes from, down to the page:")?;
        let lineage = tell.run(
            &[
                "lineage",
                "feature/rentals.home",
                "--date",
                day,
                "--row",
                &changed,
            ],
            0,
            &Show::All,
        )?;
        tell.run(&["audit", "--deep"], 0, &Show::All)?;
        let status = tell.json(&["status", "rentals", "--from", DAYS[0], "--to", day])?;
        let days = tell.json(&["sql", NUMBERS])?;
        let cities = tell.json(&[
            "sql",
            "SELECT dt, city, homes, mean_price FROM feature.\"rentals.by_city\" ORDER BY dt, city",
        ])?;
        let page = summary::page(&Summary {
            notes: &self.notes,
            status: &status,
            days: &days,
            cities: &cities,
            lineage: &lineage,
            requests: self.site.requests()?,
        });
        self.write("summary.html", &page)?;
        tell.say(&format!(
            "\nAll of it on one page: {}",
            self.dir.join("summary.html").display()
        ))?;
        tell.say(&format!(
            "Go on by hand: cd {}; lakebed sql",
            self.dir.display()
        ))
    }

    fn count(&self, query: &str) -> Result<u64> {
        let rows = self.teller.json(&["sql", query])?;
        Ok(rows[0]["n"].as_u64().unwrap_or_default())
    }

    /// The first value of a query, as text.
    fn first(&self, query: &str) -> Result<String> {
        let rows = self.teller.json(&["sql", query])?;
        let row = rows[0].as_object();
        let value = row.and_then(|r| r.values().next()).and_then(Value::as_str);
        value
            .map(str::to_owned)
            .ok_or_else(|| Error::internal(format!("the demo expected a row of `{query}`")))
    }
}

/// A line for each day: what was fetched, what is known, what happened.
const NUMBERS: &str = "SELECT l.dt AS day, l.n AS in_the_list, d.n AS details_fetched, h.n AS homes_open, \
    coalesce(e.appeared, 0) AS appeared, coalesce(e.changed, 0) AS changed, coalesce(e.vanished, 0) AS vanished, coalesce(e.returned, 0) AS returned \
    FROM (SELECT dt, count(*) AS n FROM clean.\"rentals.list\" GROUP BY dt) l \
    LEFT JOIN (SELECT dt, count(*) AS n FROM clean.rentals GROUP BY dt) d ON d.dt = l.dt \
    LEFT JOIN (SELECT dt, count(*) AS n FROM feature.\"rentals.home\" WHERE status = 'open' GROUP BY dt) h ON h.dt = l.dt \
    LEFT JOIN (SELECT dt, sum(CASE WHEN event = 'appeared' THEN 1 ELSE 0 END) AS appeared, sum(CASE WHEN event = 'changed' THEN 1 ELSE 0 END) AS changed, \
    sum(CASE WHEN event = 'vanished' THEN 1 ELSE 0 END) AS vanished, sum(CASE WHEN event = 'returned' THEN 1 ELSE 0 END) AS returned \
    FROM feature.\"rentals.home_events\" GROUP BY dt) e ON e.dt = l.dt ORDER BY l.dt";
