//! What the server promises, by its own settings, read from where they are in force.

use std::collections::HashMap;

use redrive_store::{StoreError, Survives};

use crate::error::{Fault, unavailable};
use crate::greet::info;
use crate::link::Link;
use crate::options::Durability;
use crate::queue::fields;
use crate::reply;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promise {
    pub(crate) survives: Survives,
    /// Whether the server may throw away what it has no room for.
    evicts: bool,
}

impl Promise {
    /// What the settings of a server come to. One that does not tell them promises the least.
    fn of(settings: &HashMap<String, String>) -> Self {
        let is = |name: &str, value: &str| settings.get(name).is_some_and(|is| is == value);
        let survives = match (is("appendonly", "yes"), is("appendfsync", "always")) {
            (true, true) => Survives::PowerLoss,
            (true, false) => Survives::ProcessCrash,
            (false, _) => Survives::Nothing,
        };
        let bounded = settings.get("maxmemory").is_some_and(|max| max != "0");
        let evicts = bounded && !is("maxmemory-policy", "noeviction");
        Self { survives: if evicts { Survives::Nothing } else { survives }, evicts }
    }

    /// Refuses a server that promises less than is wanted, and says which setting is short.
    fn keeps(self, wanted: Durability, cluster: bool) -> Result<(), StoreError> {
        let needed = match wanted {
            Durability::Any => return Ok(()),
            Durability::Process => Survives::ProcessCrash,
            Durability::Power => Survives::PowerLoss,
        };
        let whose = if cluster { "a node of the cluster" } else { "the server" };
        if self.evicts {
            return Err(refused(format!("{whose} may evict keys (maxmemory-policy); set it to noeviction")));
        }
        if self.survives < needed {
            let setting =
                if self.survives == Survives::Nothing { "appendonly yes" } else { "appendfsync always" };
            return Err(refused(format!(
                "durability {wanted} is wanted, and {whose} is set to less: set {setting}"
            )));
        }
        Ok(())
    }
}

fn refused(told: String) -> StoreError {
    unavailable(told)
}

impl Link {
    /// What all servers promise, which is what the least of them does; refused where that is less than is wanted.
    pub(crate) async fn promise(&self, wanted: Durability) -> Result<Promise, Fault> {
        let mut least = Promise { survives: Survives::PowerLoss, evicts: false };
        for node in self.master_addresses().await? {
            let settings = self.settings_of(&node).await?;
            let promise = Promise::of(&settings);
            promise.keeps(wanted, self.cluster)?;
            least = Promise {
                survives: least.survives.min(promise.survives),
                evicts: least.evicts || promise.evicts,
            };
        }
        Ok(least)
    }

    async fn settings_of(&self, node: &str) -> Result<HashMap<String, String>, Fault> {
        let mut settings = HashMap::new();
        for name in ["appendonly", "appendfsync", "maxmemory", "maxmemory-policy"] {
            match self.ask(node, redis::cmd("CONFIG").arg("GET").arg(name)).await {
                Ok(answer) => settings.extend(fields(answer)?),
                // A server that others look after does not tell its settings; some of them are among what it tells of itself.
                Err(Fault::Undone(_)) => return self.told_settings(node).await,
                Err(fault) => return Err(fault),
            }
        }
        Ok(settings)
    }

    async fn told_settings(&self, node: &str) -> Result<HashMap<String, String>, Fault> {
        let said = reply::text(self.ask(node, &redis::cmd("INFO")).await?)?;
        let yes = |flag: &str| if flag == "1" { "yes" } else { "no" };
        let appendonly = info(&said, "aof_enabled").map_or("no", yes);
        let told = [
            ("appendonly", appendonly),
            ("maxmemory", info(&said, "maxmemory").unwrap_or("0")),
            ("maxmemory-policy", info(&said, "maxmemory_policy").unwrap_or("noeviction")),
        ];
        Ok(told.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(settings: &[(&str, &str)]) -> Promise {
        Promise::of(&settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_promise_is_what_the_settings_say() {
        let always = promise(&[("appendonly", "yes"), ("appendfsync", "always"), ("maxmemory", "0")]);
        assert_eq!(always.survives, Survives::PowerLoss);
        let everysec = promise(&[("appendonly", "yes"), ("appendfsync", "everysec")]);
        assert_eq!(everysec.survives, Survives::ProcessCrash);
        assert_eq!(promise(&[("appendonly", "no"), ("appendfsync", "always")]).survives, Survives::Nothing);
        assert_eq!(promise(&[]).survives, Survives::Nothing);
    }

    #[test]
    fn less_than_is_wanted_is_refused_with_the_setting_that_is_short() {
        let everysec = promise(&[("appendonly", "yes"), ("appendfsync", "everysec")]);
        assert!(everysec.keeps(Durability::Process, false).is_ok());
        let short = everysec.keeps(Durability::Power, false).unwrap_err().to_string();
        assert!(short.contains("appendfsync always"), "{short}");
        let none = promise(&[]);
        assert!(none.keeps(Durability::Any, false).is_ok());
        assert!(none.keeps(Durability::Process, true).unwrap_err().to_string().contains("appendonly yes"));
        let evicts =
            promise(&[("appendonly", "yes"), ("maxmemory", "100"), ("maxmemory-policy", "allkeys-lru")]);
        assert_eq!(evicts.survives, Survives::Nothing);
        assert!(evicts.keeps(Durability::Process, false).unwrap_err().to_string().contains("noeviction"));
        assert!(
            promise(&[("appendonly", "yes"), ("maxmemory", "0"), ("maxmemory-policy", "allkeys-lru")])
                .keeps(Durability::Process, false)
                .is_ok()
        );
    }
}
