//! What plans may know about engines: the bridge from the pure core to the engines' crate.

use sqlitmus_core::case::Durability;
use sqlitmus_core::plan::Catalogue;
use sqlitmus_core::settings::{SettingSpecification, Settings, SettingsError};

/// The engines built into this program.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltInEngines;

impl Catalogue for BuiltInEngines {
    fn names(&self) -> Vec<&'static str> {
        sqlitmus_engines::all()
            .iter()
            .map(|engine| engine.name())
            .collect()
    }

    fn specifications(&self, engine: &str) -> Option<&'static [SettingSpecification]> {
        sqlitmus_engines::find(engine)
            .ok()
            .map(|engine| engine.settings())
    }

    fn check(&self, engine: &str, settings: &Settings) -> Result<(), SettingsError> {
        match sqlitmus_engines::find(engine) {
            Ok(engine) => engine.check(settings),
            Err(_) => Ok(()),
        }
    }

    fn durability(&self, engine: &str, settings: &Settings) -> Durability {
        sqlitmus_engines::find(engine)
            .map_or(Durability::None, |engine| engine.durability(settings))
    }

    fn has_rows(&self, engine: &str) -> bool {
        sqlitmus_engines::find(engine).is_ok_and(|engine| engine.rows().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites;
    use sqlitmus_core::plan::Plan;

    #[test]
    fn every_embedded_suite_resolves_at_each_of_its_scales() {
        for suite in suites::embedded() {
            for scale in suite.scales() {
                let plan = Plan::resolve(&suite, scale, 1, &BuiltInEngines);
                let plan = plan.unwrap_or_else(|error| panic!("{error}: {}", error.hint));
                assert!(plan.arms().count() > 2);
            }
        }
    }
}
