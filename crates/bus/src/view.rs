//! What an instance knows of topics and subscriptions: all of them, in memory, found by topic.
//!
//! Where the store has one owner, this is the truth. Where it has several, a [`Revision`] in the registry counts every change
//! of anybody's, and whoever publishes looks at it first: a subscription that was there before an event gets it, whichever
//! instance either went through.

use std::collections::BTreeMap;
use std::sync::Arc;

use redrive_core::subscription::SubscriptionId;
use redrive_core::topic::{Topic, TopicPattern};
use redrive_store::{Entry, EntryKey, EntryKind, EntryName, Expect, Limit};
use smallvec::SmallVec;

use crate::bus::Bus;
use crate::dispatch::Pump;
use crate::error::BusError;
use crate::record::{Changed, Revision};
use crate::subscription::{State, Subscription};
use crate::topic::{self, TopicSettings};
use crate::trie::Trie;

/// No pattern has this name.
const REVISION: &str = "#revision";

/// The subscriptions that want an event, in the order of their creation.
pub(crate) type Matching = SmallVec<[Arc<Subscription>; 8]>;

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct View {
    places: BTreeMap<SubscriptionId, u32>,
    slots: Vec<Option<Arc<Subscription>>>,
    free: Vec<u32>,
    trie: Trie<u32>,
    topics: BTreeMap<u64, TopicSettings>,
    topic_trie: Trie<u64>,
    revision: Revision,
    /// The version of the entry that counts changes; 0 where there is none yet.
    revision_version: u64,
}

impl View {
    /// Who wants an event on that topic. What is disabled wants nothing.
    pub(crate) fn matching(&self, topic: &Topic) -> Matching {
        let mut matching = Matching::new();
        self.trie.matches(topic, |place| {
            if let Some(Some(subscription)) = self.slots.get(place as usize)
                && !matches!(subscription.state, State::Disabled { .. })
            {
                matching.push(Arc::clone(subscription));
            }
        });
        matching.sort_unstable_by_key(|subscription| subscription.order);
        matching
    }

    /// What is set for a topic.
    pub(crate) fn topic(&self, topic: &Topic) -> Option<&TopicSettings> {
        let mut found: SmallVec<[&TopicSettings; 4]> = SmallVec::new();
        self.topic_trie.matches(topic, |number| found.extend(self.topics.get(&number)));
        topic::of_topic(found.into_iter(), topic)
    }

    pub(crate) fn subscription(&self, id: &SubscriptionId) -> Option<Arc<Subscription>> {
        self.slots.get(*self.places.get(id)? as usize)?.clone()
    }

    /// Subscriptions by name, after the one given.
    pub(crate) fn after(&self, after: Option<&SubscriptionId>) -> impl Iterator<Item = &Arc<Subscription>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let range = self.places.range::<SubscriptionId, _>((from, Unbounded));
        range.filter_map(|(_, place)| self.slots.get(*place as usize)?.as_ref())
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn topics(&self) -> impl Iterator<Item = &TopicSettings> {
        self.topics.values()
    }

    pub(crate) fn topic_of(&self, pattern: &TopicPattern) -> Option<&TopicSettings> {
        self.topics.values().find(|settings| settings.config.pattern == *pattern)
    }

    pub(crate) fn revision(&self) -> &Revision {
        &self.revision
    }

    pub(crate) fn revision_expect(&self) -> Expect {
        if self.revision_version == 0 { Expect::Absent } else { Expect::Version(self.revision_version) }
    }

    pub(crate) fn set_revision(&mut self, revision: Revision, version: u64) {
        self.revision = revision;
        self.revision_version = version;
    }

    /// Takes a subscription in, in the place of what was known of it.
    pub(crate) fn put(&mut self, subscription: Arc<Subscription>) {
        if let Some(known) = self.subscription(&subscription.id)
            && known.version >= subscription.version
        {
            return;
        }
        self.remove(&subscription.id);
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("fewer subscriptions than that")
        });
        self.trie.insert(&subscription.settings.pattern, place);
        self.places.insert(subscription.id.clone(), place);
        if let Some(slot) = self.slots.get_mut(place as usize) {
            *slot = Some(subscription);
        }
    }

    pub(crate) fn remove(&mut self, id: &SubscriptionId) {
        let Some(place) = self.places.remove(id) else { return };
        if let Some(Some(known)) = self.slots.get_mut(place as usize).map(Option::take) {
            self.trie.remove(&known.settings.pattern, place);
        }
        self.free.push(place);
    }

    pub(crate) fn put_topic(&mut self, settings: TopicSettings) {
        if self.topics.get(&settings.number).is_none_or(|known| known.version < settings.version) {
            self.remove_topic(&settings.config.pattern);
            self.topic_trie.insert(&settings.config.pattern, settings.number);
            self.topics.insert(settings.number, settings);
        }
    }

    pub(crate) fn remove_topic(&mut self, pattern: &TopicPattern) {
        if let Some(number) = self.topic_of(pattern).map(|settings| settings.number) {
            self.topics.remove(&number);
            self.topic_trie.remove(pattern, number);
        }
    }

    fn put_entry(&mut self, entry: &Entry) {
        let (name, version) = (entry.key.name.as_str(), entry.version);
        match entry.key.kind {
            EntryKind::Subscription => {
                if let Some(subscription) = Subscription::decode(name, version, &entry.value) {
                    self.put(Arc::new(subscription));
                } else {
                    tracing::error!(subscription = name, "a subscription cannot be read, and gets nothing");
                }
            }
            EntryKind::Topic if name == REVISION => {}
            EntryKind::Topic => {
                if let Some(settings) = TopicSettings::decode(name, version, &entry.value) {
                    self.put_topic(settings);
                } else {
                    tracing::error!(topic = name, "the settings of a topic cannot be read");
                }
            }
            _ => {}
        }
    }

    fn forget(&mut self, changed: &Changed) {
        match changed {
            Changed::Subscription(id) => {
                if let Ok(id) = SubscriptionId::new(id) {
                    self.remove(&id);
                }
            }
            Changed::Topic(pattern) => {
                if let Ok(pattern) = pattern.parse() {
                    self.remove_topic(&pattern);
                }
            }
        }
    }
}

impl Changed {
    fn subscription(&self) -> Option<SubscriptionId> {
        match self {
            Self::Subscription(id) => SubscriptionId::new(id).ok(),
            Self::Topic(_) => None,
        }
    }

    fn pattern(&self) -> Option<TopicPattern> {
        match self {
            Self::Topic(pattern) => pattern.parse().ok(),
            Self::Subscription(_) => None,
        }
    }

    pub(crate) fn key(&self) -> Result<EntryKey, BusError> {
        let (kind, name) = match self {
            Self::Subscription(id) => (EntryKind::Subscription, id),
            Self::Topic(pattern) => (EntryKind::Topic, pattern),
        };
        Ok(EntryKey { kind, name: EntryName::new(name.as_str())? })
    }
}

pub(crate) fn revision_key() -> EntryKey {
    EntryKey { kind: EntryKind::Topic, name: EntryName::new(REVISION).expect("a name") }
}

impl Bus {
    /// Brings what is known up to date where other instances may have changed it.
    pub(crate) async fn keep_up(&self) -> Result<(), BusError> {
        if self.broker.has_peers() { self.refresh().await } else { Ok(()) }
    }

    /// Reads what was changed since this was last looked at.
    pub(crate) async fn refresh(&self) -> Result<(), BusError> {
        let store = self.broker.store();
        let entry = store.registry_get(&revision_key()).await?;
        let version = entry.as_ref().map_or(0, |entry| entry.version);
        if self.view().revision_version == version {
            return Ok(());
        }
        let _one = self.refreshing.lock().await;
        let known = self.view().revision.number;
        let revision = entry.and_then(|entry| Revision::decode(&entry.value)).unwrap_or_default();
        // Somebody here knew more before it was our turn.
        if revision.number <= known {
            return Ok(());
        }
        let missed = revision.since(known).map(<[Changed]>::to_vec);
        let everything = missed.is_none();
        match missed {
            Some(missed) => {
                for changed in missed {
                    let found = store.registry_get(&changed.key()?).await?;
                    let mut view = self.view_mut();
                    let number = changed.pattern().and_then(|pattern| Some(view.topic_of(&pattern)?.number));
                    match found {
                        Some(entry) => view.put_entry(&entry),
                        None => view.forget(&changed),
                    }
                    let number = changed
                        .pattern()
                        .and_then(|pattern| Some(view.topic_of(&pattern)?.number))
                        .or(number);
                    drop(view);
                    let subscription = changed.subscription().map(Pump::Subscription);
                    subscription
                        .into_iter()
                        .chain(number.map(Pump::Sequence))
                        .for_each(|pump| self.sync_pump(pump));
                }
            }
            None => self.load().await?,
        }
        {
            let mut view = self.view_mut();
            if view.revision.number <= revision.number {
                view.set_revision(revision, version);
            }
        }
        if everything {
            self.sync_pumps();
        }
        Ok(())
    }

    /// Reads everything.
    async fn load(&self) -> Result<(), BusError> {
        let mut view = View::default();
        for kind in [EntryKind::Subscription, EntryKind::Topic] {
            let mut after = None;
            loop {
                let page = self.broker.store().registry_list(kind, after.as_ref(), Limit::MAX).await?;
                for entry in &page {
                    view.put_entry(entry);
                }
                after = page.into_iter().next_back().map(|entry| entry.key.name);
                if after.is_none() {
                    break;
                }
            }
        }
        *self.view_mut() = view;
        Ok(())
    }
}
