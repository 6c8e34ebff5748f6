//! `parse --draft`: rules for pages that were kept, as far as the pages tell them, for people to go on with.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use lakebed::config::{Project, Settings, SourceConfig};
use lakebed::flow::list_samples;
use lakebed::name::{SourceName, StageName};
use lakebed::pack::PackReader;
use lakebed::parse::{
    Draft, DraftLine, FixturePage, PageInput, Rules, draft_fields, draft_links, put_page,
};
use lakebed::spec::RunKey;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{ParseArgs, TextFormat};
use crate::commands::parse::fixtures::fixture_names;
use crate::commands::parse::page::known_page;
use crate::commands::parse::{PARSE_ANSWER_FORMAT, Ruled, cover, write};
use crate::commands::queue::SAMPLE_FOLDER;
use crate::commands::skeleton::{is_skeleton_page, is_skeleton_rules, told_as_drafted};
use crate::context::Globals;
use crate::exit::Exit;
use crate::table::{Table, count, message_text};

/// A page that was kept.
pub(crate) type KeptPage = (FixturePage, Vec<u8>);

/// What a draft is made for.
pub(crate) struct Drafter {
    /// The source, as its file says now.
    pub(crate) source: SourceConfig,
    project: Project,
    file: PathBuf,
    text: String,
    zone: String,
}

/// A stage with its draft.
pub(crate) struct Drafted {
    pub(crate) stage: StageName,
    pub(crate) draft: Draft,
}

#[derive(Serialize)]
struct DraftAnswer<'a> {
    format: u32,
    drafts: Vec<StageAnswer<'a>>,
}

#[derive(Serialize)]
struct StageAnswer<'a> {
    stage: &'a StageName,
    /// Pages that it was drafted from.
    pages: usize,
    text: &'a str,
    lines: &'a [DraftLine],
    is_written: bool,
}

impl Drafter {
    /// Reads the source; it may have no rules yet.
    pub(crate) fn open(name: &SourceName, globals: &Globals<'_>) -> Result<Self> {
        let project = globals.find_project()?;
        let settings = Settings::load(&project, &globals.layers())?;
        let file = project.source_file(name);
        let source = project.load_source(name)?;
        let text =
            fs::read_to_string(&file).map_err(|e| Error::io("read the file", file.display(), e))?;
        let zone = source.time_zone.clone().unwrap_or(settings.time_zone.value);
        Ok(Self {
            source,
            project,
            file,
            text,
            zone,
        })
    }

    /// The stage that the crawl begins with, where others come after it: its pages are lists.
    fn list_stage(&self) -> Option<(&StageName, &StageName)> {
        let crawl = self.source.crawl.as_ref()?;
        let list = crawl
            .seed_stage
            .as_ref()
            .or_else(|| crawl.stage.keys().next())?;
        let next = crawl.stage.keys().find(|stage| *stage != list)?;
        Some((list, next))
    }

    /// The rules for the pages of that stage; `None` where they show nothing.
    pub(crate) fn draft(&self, stage: &StageName, pages: &[KeptPage]) -> Result<Option<Drafted>> {
        let run = RunKey {
            source: self.source.name.clone(),
            date: "2000-01-01".parse()?,
            run: "draft".parse()?,
        };
        let pages = pages.iter().filter(|(page, _)| page.stage == *stage);
        let captures: Vec<_> = pages
            .map(|(page, body)| (page.capture(&page.url, body), body))
            .collect();
        let inputs: Vec<PageInput<'_>> = captures
            .iter()
            .map(|(capture, body)| PageInput {
                run: &run,
                capture,
                body,
            })
            .collect();
        let draft = match self.list_stage() {
            Some((list, next)) if list == stage => draft_links(stage, next, &inputs),
            _ => draft_fields(&self.source.name, stage, &inputs, &self.zone),
        };
        let stage = stage.clone();
        Ok(draft.map(|draft| Drafted { stage, draft }))
    }

    /// Whether nobody has touched the rules of the stage since the skeleton was written, or there are none.
    pub(crate) fn is_untouched(&self, stage: &StageName) -> bool {
        let mut pages = self.source.parse.iter().flat_map(|p| &p.page);
        let is_there = pages.any(|page| page.stage.as_ref().is_none_or(|own| own == stage));
        !is_there || is_skeleton_rules(&self.text, stage)
    }

    /// Puts the draft into the file.
    ///
    /// # Errors
    /// Where the file would not be read any more, or cannot be written; it is as it was.
    pub(crate) fn write(&mut self, drafted: &Drafted) -> Result<()> {
        let shown = self.file.display().to_string();
        let text = put_page(&self.text, &drafted.stage, &drafted.draft.text)
            .map_err(|e| e.with("file", &shown))?;
        let text = told_as_drafted(&text);
        let source = SourceConfig::parse(&self.source.name, &text, &shown)?;
        Rules::read(&source, &shown)?;
        write(&self.file, text.as_bytes())?;
        (self.source, self.text) = (source, text);
        Ok(())
    }

    /// Whether the pages of the stage are lists.
    pub(crate) fn is_list(&self, stage: &StageName) -> bool {
        self.list_stage().is_some_and(|(list, _)| list == stage)
    }

    /// What a draft finds, for people.
    pub(crate) fn tell(&self, drafted: &Drafted, globals: &Globals<'_>) -> Result<()> {
        let Drafted { stage, draft } = drafted;
        let head = if self.is_list(stage) {
            "links to"
        } else {
            "field"
        };
        let mut table = Table::new([head, "pages", "sample"]);
        for line in &draft.lines {
            let pages = format!("{}/{}", line.on_pages, draft.pages);
            table.row([
                &message_text(&line.name),
                &pages,
                &message_text(&line.sample),
            ]);
        }
        globals.printer.table(&table)
    }

    /// Pages that were kept: those of samples, newest first, then the fixtures that are pages of the site.
    fn kept(&self) -> Result<Vec<KeptPage>> {
        let mut pages: Vec<KeptPage> = Vec::new();
        let mut known = BTreeSet::new();
        let samples = self.project.root().join(SAMPLE_FOLDER);
        for (_, pack) in list_samples(&samples, &self.source.name)?.iter().rev() {
            let reader = PackReader::open(pack)?;
            for row in reader.index()?.rows()? {
                let row = row?;
                if row.is_named && !row.is_erased {
                    let found = reader.read(&row)?;
                    let page = FixturePage::of(&found.capture);
                    if known.insert((page.stage.clone(), page.url.clone())) {
                        pages.push((page, found.body.to_vec()));
                    }
                }
            }
        }
        let folder = self.file.with_file_name("fixtures");
        for name in fixture_names(&folder)? {
            let path = folder.join(name);
            let Some(page) = known_page(&path)?.filter(|_| !is_skeleton_page(&path)) else {
                continue;
            };
            if known.insert((page.stage.clone(), page.url.clone())) {
                let body =
                    fs::read(&path).map_err(|e| Error::io("read the page", path.display(), e))?;
                pages.push((page, body));
            }
        }
        Ok(pages)
    }
}

/// `--draft`
pub(super) fn draft(stage: &str, args: &ParseArgs, globals: &Globals<'_>) -> Result<Exit> {
    let mut drafter = Drafter::open(&args.source.parse()?, globals)?;
    let kept = drafter.kept()?;
    let name = drafter.source.name.clone();
    if kept.is_empty() {
        return Err(Error::not_found(format!("no page of `{name}` is kept"))
            .hint(format!("`lakebed source sample {name}` fetches some"))
            .hint(format!("`lakebed parse {name} --try FILE --url URL --stage STAGE --save NAME` keeps one that you have")));
    }
    let stages: BTreeSet<StageName> = kept.iter().map(|(page, _)| page.stage.clone()).collect();
    let stages = match stage {
        "" => stages,
        stage => {
            let wanted: StageName = stage.parse()?;
            if !stages.contains(&wanted) {
                let names: Vec<&str> = stages.iter().map(StageName::as_str).collect();
                return Err(
                    Error::not_found(format!("no page of stage `{wanted}` is kept"))
                        .hint(format!("there are pages of stage {}", names.join(", "))),
                );
            }
            BTreeSet::from([wanted])
        }
    };
    let mut drafts = Vec::new();
    for stage in &stages {
        match drafter.draft(stage, &kept)? {
            Some(drafted) => drafts.push((drafted, false)),
            None => globals.printer.warn(format!(
                "the pages of stage `{stage}` show nothing that a rule could be drafted for: neither links that stand out nor labels, classes or JSON"
            )),
        }
    }
    if args.write {
        put_all(&mut drafter, &mut drafts, args.force, globals)?;
    }
    tell(&drafts, &drafter, args, globals)?;
    if drafts.iter().any(|(_, is_written)| *is_written) {
        cover(&kept, &Ruled::open(&name, globals)?, globals)?;
    }
    let is_done = drafts
        .iter()
        .any(|(_, is_written)| *is_written || !args.write);
    Ok(if is_done { Exit::Done } else { Exit::No })
}

/// Writes the drafts of stages whose rules nobody has touched; with `force`, of all.
fn put_all(
    drafter: &mut Drafter,
    drafts: &mut [(Drafted, bool)],
    force: bool,
    globals: &Globals<'_>,
) -> Result<()> {
    for (drafted, is_written) in drafts {
        let stage = drafted.stage.clone();
        if !force && !drafter.is_untouched(&stage) {
            let name = &drafter.source.name;
            globals.printer.warn(format!(
                "the rules of stage `{stage}` are not those of the skeleton any more, and stay"
            ));
            globals.printer.hint(format!(
                "`lakebed parse {name} --draft {stage}` shows the draft, with `--write --force` it takes their place"
            ));
            continue;
        }
        drafter.write(drafted)?;
        *is_written = true;
    }
    Ok(())
}

fn tell(
    drafts: &[(Drafted, bool)],
    drafter: &Drafter,
    args: &ParseArgs,
    globals: &Globals<'_>,
) -> Result<()> {
    let printer = globals.printer;
    if printer.format() == TextFormat::Json {
        let drafts = drafts.iter().map(|(drafted, is_written)| StageAnswer {
            stage: &drafted.stage,
            pages: drafted.draft.pages,
            text: &drafted.draft.text,
            lines: &drafted.draft.lines,
            is_written: *is_written,
        });
        return printer.json(&DraftAnswer {
            format: PARSE_ANSWER_FORMAT,
            drafts: drafts.collect(),
        });
    }
    let name = &drafter.source.name;
    for (drafted, is_written) in drafts {
        match (args.write, is_written) {
            (true, true) => tell_written(drafter, drafted, globals)?,
            (true, false) => {}
            (false, _) => printer.line(&drafted.draft.text)?,
        }
    }
    if !args.write && !drafts.is_empty() {
        printer.hint(format!(
            "`lakebed parse {name} --draft --write` puts it in the place of the skeleton's rules"
        ));
    }
    if drafts.iter().any(|(_, is_written)| *is_written) {
        printer.hint(format!(
            "look at {}; `lakebed parse {name} --test --write` accepts what the rules give, `lakebed parse {name} --schema` writes the schema",
            drafter.file.display()
        ));
    }
    Ok(())
}

/// Tells of a draft that was written.
pub(crate) fn tell_written(
    drafter: &Drafter,
    drafted: &Drafted,
    globals: &Globals<'_>,
) -> Result<()> {
    drafter.tell(drafted, globals)?;
    globals.printer.info(format!(
        "wrote the rules of stage `{}` into {}, drafted from {}",
        drafted.stage,
        drafter.file.display(),
        count(drafted.draft.pages as u64, "page"),
    ));
    Ok(())
}
