//! Layers, origins, masking.

use super::*;
use crate::config::Project;

fn project(main: &str, local: Option<&str>) -> (tempfile::TempDir, Project) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(PROJECT_FILE), main).unwrap();
    if let Some(local) = local {
        fs::write(dir.path().join(LOCAL_FILE), local).unwrap();
    }
    let project = Project::open(dir.path()).unwrap();
    (dir, project)
}

fn layers(flags: &[(SettingKey, &str)], env: &[(&str, &str)]) -> Layers {
    Layers {
        flags: flags.iter().map(|(k, v)| (*k, (*v).to_owned())).collect(),
        env: env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    }
}

#[test]
fn every_key_goes_through_all_layers() {
    let value = |key: SettingKey, layer: usize| match key {
        SettingKey::Lake | SettingKey::Catalog | SettingKey::Queue | SettingKey::User => {
            format!("x{layer}")
        }
        SettingKey::TimeZone => {
            ["UTC", "Asia/Taipei", "Asia/Tokyo", "Europe/Rome"][layer].to_owned()
        }
        SettingKey::IngestOnMismatch => {
            ["extra", "quarantine", "extra", "quarantine"][layer].to_owned()
        }
        SettingKey::IngestChunkMib | SettingKey::IngestThreads => (layer + 1).to_string(),
    };
    let number = |key| matches!(key, SettingKey::IngestChunkMib | SettingKey::IngestThreads);
    for key in SettingKey::ALL {
        let toml = |layer: usize| {
            let text = value(key, layer);
            let text = if number(key) {
                text
            } else {
                format!("\"{text}\"")
            };
            match key.name().split_once('.') {
                Some((table, name)) => format!("\n[{table}]\n{name} = {text}\n"),
                None => format!("\n\n{} = {text}\n", key.name()),
            }
        };
        let env = value(key, 1);
        let flag = value(key, 0);
        for layer in 0..5_usize {
            let main = if layer < 4 { toml(3) } else { String::new() };
            let local = (layer < 3).then(|| toml(2));
            let (dir, project) = project(&main, local.as_deref());
            let env: &[(&str, &str)] = if layer < 2 {
                &[(key.env(), env.as_str())]
            } else {
                &[(key.env(), "")]
            };
            let flags: &[(SettingKey, &str)] = if layer < 1 {
                &[(key, flag.as_str())]
            } else {
                &[]
            };
            let settings = Settings::load(&project, &layers(flags, env)).unwrap();
            let shown = settings
                .show()
                .into_iter()
                .find(|s| s.key == key.name())
                .unwrap();
            let origin = match layer {
                0 => key.flag().to_owned(),
                1 => key.env().to_owned(),
                2 => format!("{}:3", dir.path().join(LOCAL_FILE).display()),
                3 => format!("{}:3", dir.path().join(PROJECT_FILE).display()),
                _ => "default".to_owned(),
            };
            assert_eq!(shown.origin.to_string(), origin, "{key:?} {layer}");
            if layer < 4 {
                assert!(
                    shown.value.unwrap().ends_with(&value(key, layer)),
                    "{key:?} {layer}"
                );
            }
        }
    }
}

#[test]
fn paths_are_relative_to_the_project() {
    let (dir, project) = project("lake = \"../湖\"\ncatalog = \"sqlite:///var/c.db\"\n", None);
    let settings = Settings::load(&project, &Layers::default()).unwrap();
    assert_eq!(settings.lake.value, dir.path().join("../湖"));
    assert_eq!(settings.catalog.value, Path::new("/var/c.db"));
    let (dir, project) = self::project("", None);
    let settings = Settings::load(&project, &Layers::default()).unwrap();
    assert_eq!(settings.lake.value, dir.path().join("lake"));
    assert_eq!(settings.catalog.value, dir.path().join("catalog.db"));
    assert_eq!(settings.on_mismatch.value, MismatchPolicy::Fail);
    assert_eq!((settings.user.value, settings.threads.value), (None, None));
}

#[test]
fn wrong_files_are_named_with_line_and_key() {
    for (main, local, words) in [
        (
            "\nlaek = \"x\"\n",
            None,
            vec!["unknown key `laek`", "lakebed.toml", "line `2`"],
        ),
        (
            "",
            Some("[ingest]\nthread = 2\n"),
            vec![
                "unknown key `ingest.thread`",
                "lakebed.local.toml",
                "line `2`",
            ],
        ),
        (
            "[ingest]\nthreads = \"2\"\n",
            None,
            vec!["key `ingest.threads`", "line `2`"],
        ),
        (
            "[ingest]\nthreads = 0\n",
            None,
            vec!["`0`", "ingest.threads", "lakebed.toml:2"],
        ),
        (
            "[ingest]\non_mismatch = \"ignore\"\n",
            None,
            vec!["`ignore`", "lakebed.toml:2"],
        ),
        (
            "time_zone = \"Mars\"\n",
            None,
            vec!["`Mars`", "lakebed.toml:1"],
        ),
        ("lake = \"\"\n", None, vec!["not the place of a lake"]),
        (
            "[secrets]\nkey = \"x\"\n",
            None,
            vec!["kept in git", "line `1`"],
        ),
    ] {
        let (_dir, project) = project(main, local);
        let e = Settings::load(&project, &Layers::default()).unwrap_err();
        for word in words {
            assert!(e.to_string().contains(word), "`{word}` in {e}");
        }
    }
}

#[test]
fn wrong_values_of_the_environment_name_the_variable() {
    let (_dir, project) = project("", None);
    let env = layers(&[], &[("LAKEBED_INGEST_THREADS", "many")]);
    let e = Settings::load(&project, &env).unwrap_err();
    assert!(e.to_string().contains("LAKEBED_INGEST_THREADS"), "{e}");
}

#[test]
fn stores_of_later_releases_are_refused_without_their_secrets() {
    for (key, url) in [
        (SettingKey::Lake, "s3://key:hunter2@bucket/lake"),
        (
            SettingKey::Catalog,
            "postgres://me:hunter2@db/lakebed?password=hunter2",
        ),
        (SettingKey::Catalog, "mysql://me:hun/ter2@db/x"),
        (SettingKey::Lake, "ftp://me:hunter2@x"),
    ] {
        let (_dir, project) = project("", None);
        let e = Settings::load(&project, &layers(&[(key, url)], &[])).unwrap_err();
        assert!(
            !e.to_string().contains("hunter2") && !e.to_string().contains("ter2"),
            "{e}"
        );
        if !url.starts_with("ftp") {
            assert!(e.message().contains("later release"), "{e}");
        }
    }
}

#[test]
fn secrets_are_masked() {
    assert_eq!(mask_credentials("plain/path@x"), "plain/path@x");
    assert_eq!(mask_credentials("s3://bucket/a@b"), "s3://***@b");
    assert_eq!(mask_credentials("http://host/a?b=c"), "http://host/a?***");
    assert_eq!(mask_credentials("http://u:p@host/a"), "http://***@host/a");
    let (_dir, project) = project("", Some("[secrets]\nproxy = \"http://u:p@h\"\n"));
    let settings = Settings::load(&project, &Layers::default()).unwrap();
    assert_eq!(settings.secrets["proxy"].value, "http://u:p@h");
    let shown = settings.show();
    let secret = shown.iter().find(|s| s.key == "secrets.proxy").unwrap();
    assert_eq!(secret.value.as_deref(), Some("***"));
    assert!(secret.origin.to_string().ends_with(":2"));
    let json = serde_json::to_string(&shown).unwrap();
    assert!(!json.contains("u:p"), "{json}");
}
