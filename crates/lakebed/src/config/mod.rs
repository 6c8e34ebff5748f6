//! What the user wrote: the project folder, its settings, its sources.
//!
//! | file | what |
//! | --- | --- |
//! | `project` | the folder: found, made, its paths |
//! | `settings` | lakebed.toml, lakebed.local.toml, environment and options, each value with its origin |
//! | `environment` | its variables: settings, others that are known, and an error for the rest |
//! | `crawl` | how a source is crawled, and the limits of this machine |
//! | `flow`, `derive` | how its stages follow each other; datasets that a query makes |
//! | `parse` | what the pages of a source give |
//! | `fold` | what is known of each object, from day to day |
//! | `seed` | which objects are fetched in detail |
//! | `source` | sources/<source>/source.toml |
//! | `toml_text` | TOML with errors that name file, line and the nearest key |
//!
//! Unknown keys are errors everywhere. The meaning of schema files is `registry`'s.

mod crawl;
mod derive;
mod environment;
mod flow;
mod fold;
mod makers;
mod parse;
mod project;
mod seed;
mod settings;
mod source;
mod toml_text;

pub use crawl::{
    CoverageConfig, CrawlConfig, CrawlLimits, CrawlLocal, FollowConfig, HostLimits, ScopeConfig,
    StageConfig,
};
pub use derive::{DeriveConfig, ParentConfig, ParentDates, ParentTable, derived_dataset};
pub use environment::OTHER_VARIABLES;
pub use flow::{FlowConfig, FlowStageConfig, StageDay, StageKind, StagePeriod};
pub use fold::{
    CellTestConfig, FoldConfig, FoldDropConfig, FoldFieldConfig, FoldFieldTable, FoldFields,
    FoldInputConfig, FoldRule, MoveConfig, Scalars, WhenConfig,
};
pub use parse::{
    CommandConfig, FieldConfig, FieldMap, FieldTable, ItemConfig, NumberMarks, PageConfig,
    PageValue, ParseConfig, ParseFollowConfig, ScalarConfig, ScalarMap, StepConfig, Texts,
    TimestampConfig,
};
pub use project::{InitOutcome, InitStep, Project};
pub use seed::{SeedConfig, SeedMode, SeedUrl, SeedUrlField, UrlPart};
pub use settings::{
    LOCAL_FILE, Layers, MismatchPolicy, Origin, PROJECT_FILE, Setting, SettingKey, Settings,
    ShownSetting, mask_credentials,
};
pub use source::{DatasetConfig, Dedup, Evolution, SourceConfig};
pub(crate) use toml_text::list_keys;
pub use toml_text::{line_at, nearest, nearest_hint, parse_toml};
