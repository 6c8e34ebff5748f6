//! Projects in temporary folders.

use super::*;
use crate::error::ErrorKind;
use crate::spec::DatasetClass;

fn project() -> (tempfile::TempDir, Project) {
    let dir = tempfile::tempdir().unwrap();
    let project = Project::init(dir.path(), Some("Asia/Taipei"))
        .unwrap()
        .project;
    (dir, project)
}

fn all_text(dir: &Path) -> Vec<String> {
    [PROJECT_FILE, LOCAL_FILE, ".gitignore"]
        .iter()
        .map(|f| fs::read_to_string(dir.join(f)).unwrap())
        .collect()
}

#[test]
fn init_is_idempotent_and_found_from_below() {
    let (dir, project) = project();
    let before = all_text(dir.path());
    let again = Project::init(dir.path(), Some("Asia/Taipei")).unwrap();
    assert!(again.steps.iter().all(|(_, s)| *s == InitStep::Kept));
    assert!(!again.is_default_zone);
    // Without a zone the project keeps its own.
    let again = Project::init(dir.path(), None).unwrap();
    assert_eq!(
        (again.time_zone.as_str(), again.is_default_zone),
        ("Asia/Taipei", false)
    );
    assert_eq!(all_text(dir.path()), before);
    let below = dir.path().join("sources/weibo");
    fs::create_dir_all(&below).unwrap();
    assert_eq!(Project::find(&below).unwrap().root(), project.root());
    assert_eq!(Project::open(dir.path()).unwrap(), project);
    let other = Project::init(dir.path(), Some("UTC")).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::PreconditionFailed);
    assert_eq!(all_text(dir.path()), before);
}

#[test]
fn init_overwrites_nothing_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".gitignore"), "*.pyc\nlake").unwrap();
    fs::write(dir.path().join(LOCAL_FILE), "user = \"甲\"\n").unwrap();
    fs::write(dir.path().join("README.md"), "mine").unwrap();
    let made = Project::init(dir.path(), None).unwrap();
    assert_eq!(
        (made.time_zone.as_str(), made.is_default_zone),
        ("UTC", true)
    );
    let ignore = fs::read_to_string(dir.path().join(".gitignore")).unwrap();
    assert_eq!(
        ignore,
        "*.pyc\nlake\n/lakebed.local.toml\n/catalog.db*\n/queue.db*\n/crawl/\n/parse/\n/derive/\n/flow/\n/fold/\n/sample/\n/seed/\n/shadow/\n"
    );
    assert_eq!(
        fs::read_to_string(dir.path().join(LOCAL_FILE)).unwrap(),
        "user = \"甲\"\n"
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("README.md")).unwrap(),
        "mine"
    );
}

#[test]
fn a_wrong_zone_or_a_broken_file_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("new");
    assert!(Project::init(&root, Some("Asia/Taipeh")).is_err());
    assert!(!root.exists());
    fs::create_dir(&root).unwrap();
    fs::write(root.join(PROJECT_FILE), "lakee = 1\n").unwrap();
    let e = Project::init(&root, None).unwrap_err();
    assert!(e.to_string().contains("unknown key `lakee`"), "{e}");
    assert!(!root.join(LOCAL_FILE).exists());
}

#[test]
fn no_project_says_how_to_make_one() {
    let dir = tempfile::tempdir().unwrap();
    for e in [
        Project::find(dir.path()).unwrap_err(),
        Project::open(dir.path()).unwrap_err(),
    ] {
        assert_eq!(e.kind(), ErrorKind::NotFound);
        assert!(e.hints()[0].contains("lakebed init"), "{e}");
    }
}

#[test]
fn schema_files_lie_under_their_source() {
    let (dir, project) = project();
    let dataset: DatasetRef = "clean/weibo.comments".parse().unwrap();
    let path = project.write_schema_file(&dataset, 2, "x = 1\n").unwrap();
    let expected = dir
        .path()
        .join("sources/weibo/schemas/weibo.comments/v2.toml");
    assert_eq!(path, expected);
    for stranger in ["v10.toml", "v03.toml", "vx.toml", "v3.toml.bak"] {
        fs::write(expected.with_file_name(stranger), "").unwrap();
    }
    assert_eq!(project.list_schema_files(&dataset).unwrap(), [2, 10]);
    assert_eq!(project.read_schema_file(&dataset, 2).unwrap().0, "x = 1\n");
    let e = project.write_schema_file(&dataset, 2, "y").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&expected).unwrap(), "x = 1\n");
    let e = project.read_schema_file(&dataset, 3).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    let names: Vec<_> = fs::read_dir(expected.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 5, "no temporary file stays");
}

#[test]
fn the_git_commit_is_read_from_its_files() {
    let (dir, project) = project();
    assert!(!dir.path().join(".git").exists());
    let git = dir.path().join(".git");
    fs::create_dir_all(git.join("refs/heads")).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(project.find_git_commit(), None);
    let packed = "b".repeat(40);
    fs::write(
        git.join("packed-refs"),
        format!(
            "# pack\n{packed} refs/heads/main\n{} refs/heads/xmain\n",
            "c".repeat(40)
        ),
    )
    .unwrap();
    assert_eq!(project.find_git_commit(), Some(packed));
    let loose = "a".repeat(40);
    fs::write(git.join("refs/heads/main"), format!("{loose}\n")).unwrap();
    assert_eq!(project.find_git_commit(), Some(loose));
    fs::write(git.join("HEAD"), format!("{}\n", "d".repeat(40))).unwrap();
    assert_eq!(project.find_git_commit(), Some("d".repeat(40)));
}

#[test]
fn sources_are_added_listed_and_read() {
    let (dir, project) = project();
    let weibo: SourceName = "weibo".parse().unwrap();
    let made = project
        .add_source(&weibo, DatasetClass::Snapshot, Some("微博 \"热搜\""))
        .unwrap();
    assert_eq!(made.title.as_deref(), Some("微博 \"热搜\""));
    assert_eq!(project.load_source(&weibo).unwrap(), made);
    assert!(dir.path().join("sources/weibo/schemas/weibo").is_dir());
    let e = project
        .add_source(&weibo, DatasetClass::Log, None)
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    project
        .add_source(&"a1".parse().unwrap(), DatasetClass::Log, None)
        .unwrap();
    fs::create_dir_all(dir.path().join("sources/Not a source")).unwrap();
    let names: Vec<_> = project
        .list_sources()
        .unwrap()
        .into_iter()
        .map(|s| s.name.to_string())
        .collect();
    assert_eq!(names, ["a1", "weibo"]);
    let e = project.load_source(&"webo".parse().unwrap()).unwrap_err();
    assert_eq!(
        (e.kind(), e.hints()[0].as_str()),
        (ErrorKind::NotFound, "did you mean `weibo`?")
    );
    fs::write(
        dir.path().join("sources/Not a source/source.toml"),
        "class = \"log\"\n",
    )
    .unwrap();
    assert!(
        project
            .list_sources()
            .unwrap_err()
            .to_string()
            .contains("Not a source")
    );
}

#[test]
fn a_source_file_is_checked() {
    use crate::config::{Evolution, SourceConfig};
    let weibo: SourceName = "weibo".parse().unwrap();
    let parse = |text: &str| SourceConfig::parse(&weibo, text, "source.toml");
    assert_eq!(parse("class = \"log\"\n").unwrap().class, DatasetClass::Log);
    let full = parse(
        "class = \"reference\"\ntitle = \"微博\"\nold_names = [\"wb\"]\ntime_zone = \"Asia/Shanghai\"\n\
         [dataset.weibo]\nevolution = \"add_only\"\nkey = [\"编号\"]\n[dataset.\"weibo.comments\"]\nprune = [\"t\"]\n",
    )
    .unwrap();
    let dataset = full.dataset(&"clean/weibo".parse().unwrap());
    assert_eq!(
        (dataset.evolution, dataset.key),
        (Evolution::AddOnly, vec!["编号".to_owned()])
    );
    let other = full.dataset(&"clean/weibo.other".parse().unwrap());
    assert_eq!(other.evolution, Evolution::Free);
    for (bad, words) in [
        ("", "missing field `class`"),
        ("class = \"logs\"\n", "class"),
        (
            "class = \"log\"\ncadence = \"daily\"\n",
            "unknown key `cadence`",
        ),
        (
            "class = \"log\"\n[dataset.weibo]\nkeys = [\"a\"]\n",
            "unknown key `dataset.weibo.keys`",
        ),
        ("class = \"log\"\ntime_zone = \"Mars\"\n", "`Mars`"),
        ("class = \"log\"\nold_names = [\"Wei Bo\"]\n", "Wei Bo"),
        ("class = \"log\"\n[dataset.wechat]\n", "does not belong"),
        (
            "class = \"log\"\n[dataset.weibo]\nevolution = \"none\"\n",
            "evolution",
        ),
    ] {
        let e = parse(bad).unwrap_err();
        assert!(e.to_string().contains(words), "{bad}: {e}");
        assert!(e.to_string().contains("source.toml"), "{bad}: {e}");
    }
    let e = parse("class = \"logs\"\n").unwrap_err();
    assert_eq!(e.hints(), ["did you mean `log`?"]);
}

#[test]
fn of_many_that_make_one_project_all_are_told_that_it_is_there() {
    for round in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let zone = (round % 2 == 0).then_some("Asia/Taipei");
        let start = std::sync::Barrier::new(8);
        let made: Vec<InitOutcome> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        Project::init(dir.path(), zone)
                    })
                })
                .collect();
            calls
                .into_iter()
                .map(|c| c.join().unwrap().unwrap())
                .collect()
        });
        let main = dir.path().join(PROJECT_FILE);
        let wrote = |m: &InitOutcome| m.steps.contains(&(main.clone(), InitStep::Written));
        assert_eq!(made.iter().filter(|m| wrote(m)).count(), 1);
        let told = made.iter().filter(|m| m.is_default_zone).count();
        assert_eq!(
            told,
            usize::from(zone.is_none()),
            "the one that chose says so"
        );
        assert!(made.iter().all(|m| m.time_zone == zone.unwrap_or("UTC")));
        let ignore = fs::read_to_string(dir.path().join(".gitignore")).unwrap();
        assert_eq!(ignore.lines().count(), IGNORED.len(), "{ignore}");
        let files = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files, 4, "no temporary file is left");
    }
}

#[test]
fn of_two_that_want_different_zones_one_is_refused() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(2);
        let made = std::thread::scope(|scope| {
            let call = |zone| {
                start.wait();
                Project::init(dir.path(), Some(zone))
            };
            let other = scope.spawn(move || call("Asia/Taipei"));
            [call("Asia/Tokyo"), other.join().unwrap()]
        });
        let refused: Vec<_> = made.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].kind(), ErrorKind::PreconditionFailed);
    }
}
