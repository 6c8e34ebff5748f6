//! The schema versions that the demo's owner wrote by hand; later ones come from drift reports.

use crate::demo::delivery::DemoSource;

/// The first version of a source's dataset, as a TOML file.
pub(crate) const fn first_version(source: DemoSource) -> &'static str {
    match source {
        DemoSource::HotTopics => include_str!("schemas/hot_topics.v1.toml"),
        DemoSource::Rentals => include_str!("schemas/rentals.v1.toml"),
        DemoSource::Shop => include_str!("schemas/shop.v1.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_versions_are_schema_files() {
        for source in DemoSource::ALL {
            let spec: lakebed::spec::SchemaSpec = toml::from_str(first_version(source)).unwrap();
            assert_eq!(spec.dataset.to_string(), format!("clean/{}", source.name()));
            assert_eq!(spec.version, 1);
        }
    }
}
