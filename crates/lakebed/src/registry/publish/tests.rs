//! Publishing on a lake in a temporary folder.

use std::sync::Arc;

use super::*;
use crate::error::ErrorKind;
use crate::registry::parse;
use crate::store::{LocalStore, lake_json_path};
use crate::time::{Clock, Instant};

async fn lake(folder: &std::path::Path) -> Lake {
    let clock = Arc::new(Clock::manual(Instant::from_micros(1_700_000_000_000_000)));
    let store = Arc::new(LocalStore::new(folder));
    Lake::open_or_create(store, clock, "UTC").await.unwrap()
}

fn version(n: u32, fields: &[(u32, &str, &str)]) -> SchemaSpec {
    let base = n.checked_sub(1).filter(|b| *b > 0);
    let mut text = format!("dataset = \"clean/weibo\"\nversion = {n}\n");
    if let Some(base) = base {
        text.push_str(&format!("base = {base}\n"));
    }
    for (id, name, kind) in fields {
        text.push_str(&format!(
            "[[field]]\nid = {id}\nname = \"{name}\"\ntype = \"{kind}\"\n"
        ));
    }
    parse(&text, "v.toml").unwrap()
}

fn options(user: &str) -> PublishOptions {
    PublishOptions {
        by: By {
            program: "lakebed 0.1.0".to_owned(),
            user: Some(user.to_owned()),
            run: None,
            note: None,
        },
        git_commit: Some("abc".to_owned()),
        evolution: Evolution::Free,
    }
}

async fn published(lake: &Lake, spec: &SchemaSpec) {
    let outcome = publish(lake, spec, &options("甲")).await.unwrap();
    assert!(matches!(outcome, PublishOutcome::Published { .. }));
}

const TITLE: (u32, &str, &str) = (1, "标题", "string");

#[tokio::test]
async fn versions_are_published_listed_and_chained() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(dir.path()).await;
    let dataset = "clean/weibo".parse().unwrap();
    assert!(latest(&lake, &dataset).await.unwrap().is_none());
    assert_eq!(
        get(&lake, &dataset, 1).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let one = version(1, &[TITLE]);
    let outcome = publish(&lake, &one, &options("甲")).await.unwrap();
    let PublishOutcome::Published { published, hash } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (published.base_hash, published.git_commit.as_deref()),
        (None, Some("abc"))
    );
    let two = version(2, &[TITLE, (2, "读数", "int")]);
    assert!(matches!(
        publish(&lake, &two, &options("乙")).await.unwrap(),
        PublishOutcome::Published { .. }
    ));
    let listed = list_published(&lake, &dataset).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1].0.base_hash.as_ref(), Some(&hash));
    assert_eq!(listed[1].0.schema, two);
    assert_eq!(get(&lake, &dataset, 1).await.unwrap().0.schema, one);
    assert_eq!(
        latest(&lake, &dataset).await.unwrap(),
        Some(listed[1].clone())
    );
    let e = get(&lake, &dataset, 3).await.unwrap_err();
    assert_eq!(e.hints(), ["versions 1 to 2 are"]);
}

#[tokio::test]
async fn the_same_again_changes_nothing_and_other_content_is_told_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(dir.path()).await;
    let one = version(1, &[TITLE]);
    published(&lake, &one).await;
    let again = publish(&lake, &one, &options("乙")).await.unwrap();
    let PublishOutcome::AlreadyPublished { published, .. } = again else {
        panic!("{again:?}");
    };
    assert_eq!(published.by.user.as_deref(), Some("甲"));
    let other = version(1, &[TITLE, (2, "读数", "int")]);
    let taken = publish(&lake, &other, &options("乙")).await.unwrap();
    let PublishOutcome::Taken { other, diff } = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(other.by.user.as_deref(), Some("甲"));
    assert_eq!(diff.to_text(), "+ 读数 (int, id 2)\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_publish_one_number_exactly_one_wins() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        drop(lake(dir.path()).await);
        let tasks: Vec<_> = (0..8_u32)
            .map(|i| {
                let folder = dir.path().to_owned();
                tokio::spawn(async move {
                    let lake = lake(&folder).await;
                    let spec = version(1, &[TITLE, (i + 2, &format!("字段{i}"), "int")]);
                    (
                        i,
                        publish(&lake, &spec, &options(&i.to_string()))
                            .await
                            .unwrap(),
                    )
                })
            })
            .collect();
        let mut winners = Vec::new();
        let mut losers = Vec::new();
        for task in tasks {
            match task.await.unwrap() {
                (i, PublishOutcome::Published { .. }) => winners.push(i),
                (i, PublishOutcome::Taken { other, diff }) => losers.push((i, other, diff)),
                (i, other) => panic!("{i}: {other:?}"),
            }
        }
        assert_eq!((winners.len(), losers.len()), (1, 7));
        for (i, other, diff) in losers {
            assert_eq!(
                other.by.user.as_deref(),
                Some(winners[0].to_string().as_str())
            );
            assert_eq!(diff.added[0].path, format!("字段{i}"));
            assert_eq!(diff.removed[0].path, format!("字段{}", winners[0]));
        }
    }
}

#[tokio::test]
async fn an_unsound_version_is_refused_with_everything_that_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let lake = lake(dir.path()).await;
    let bad = version(1, &[(1, "dt", "date"), (1, "x", "int")]);
    let e = publish(&lake, &bad, &options("甲")).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    let all = format!("{e} {:?}", e.hints());
    assert!(
        all.contains("id `1` is also") && all.contains("`dt` is reserved"),
        "{all}"
    );
    let gap = version(2, &[TITLE]);
    assert!(publish(&lake, &gap, &options("甲")).await.is_err());
    assert!(
        list_published(&lake, &gap.dataset)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn two_versions(folder: &std::path::Path) -> (Lake, std::path::PathBuf) {
    let lake = lake(folder).await;
    for n in 1..=3 {
        let fields: Vec<_> = (1..=n).map(|i| (i, format!("字段{i}"), "int")).collect();
        let fields: Vec<_> = fields
            .iter()
            .map(|(i, f, t)| (*i, f.as_str(), *t))
            .collect();
        published(&lake, &version(n, &fields)).await;
    }
    (lake, folder.join("_lake/schema/clean/weibo"))
}

#[track_caller]
fn names(result: Result<Vec<(PublishedSchema, ContentHash)>>, kind: ErrorKind, words: &[&str]) {
    let e = result.unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    for word in words {
        assert!(e.to_string().contains(word), "`{word}` in {e}");
    }
}

#[tokio::test]
async fn damage_is_refused_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (lake, folder) = two_versions(dir.path()).await;
    let dataset: DatasetRef = "clean/weibo".parse().unwrap();
    let two = folder.join("v2.json");
    let good = std::fs::read_to_string(&two).unwrap();
    std::fs::write(folder.join("notes.txt"), "a stranger").unwrap();
    std::fs::write(folder.join("v02.json"), "{}").unwrap();
    assert_eq!(list_published(&lake, &dataset).await.unwrap().len(), 3);

    std::fs::remove_file(&two).unwrap();
    let hole = list_published(&lake, &dataset).await;
    names(
        hole,
        ErrorKind::CorruptData,
        &["version 2", "v2.json", "REG-2"],
    );
    let other_lake = good.replace(lake.id().as_str(), "0123456789abcdef0123456789abcdef");
    let damages = [
        ("{".to_owned(), ErrorKind::CorruptData, "not JSON"),
        (other_lake, ErrorKind::CorruptData, "another lake"),
        (
            good.replace("clean/weibo", "clean/wechat"),
            ErrorKind::CorruptData,
            "another dataset",
        ),
        (
            good.replace("\"version\": 2", "\"version\": 7"),
            ErrorKind::CorruptData,
            "another version",
        ),
        (
            good.replace("\"format\": 1", "\"format\": 3"),
            ErrorKind::Unavailable,
            "newer Lakebed",
        ),
        (
            good.replace("\"git_commit\"", "\"gut_commit\""),
            ErrorKind::CorruptData,
            "gut_commit",
        ),
        (
            good.replace("\"abc\"", "\"abd\""),
            ErrorKind::CorruptData,
            "version 3",
        ),
    ];
    for (text, kind, words) in damages {
        assert_ne!(text, good);
        std::fs::write(&two, text).unwrap();
        names(
            list_published(&lake, &dataset).await,
            kind,
            &[words, ".json"],
        );
    }
    std::fs::write(&two, good).unwrap();
    assert_eq!(list_published(&lake, &dataset).await.unwrap().len(), 3);
    assert!(dir.path().join(lake_json_path().as_str()).exists());
}
