//! API keys, and the trail of what was done with them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object;
use crate::schema;
use crate::time::Time;

/// A scope over some queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// What for.
    #[schema(value_type = schema::Scope)]
    pub scope: String,
    /// Over which queues: a name in which `*` stands for any run of characters.
    #[schema(value_type = schema::QueuePattern)]
    pub queues: String,
}

/// Make a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKeyRequest {
    /// What people call it.
    #[schema(value_type = schema::KeyName)]
    pub name: String,
    /// What it may do: no more than the key that makes it.
    #[serde(deserialize_with = "object::list")]
    #[schema(min_items = 1, max_items = 64)]
    pub grants: Vec<Grant>,
    /// When it ends; where nothing is said, with the key that makes it.
    #[serde(default)]
    pub expires_at: Option<Time>,
    /// How many queues there may be among those it manages for it to create another.
    #[serde(default)]
    pub queues_max: Option<u32>,
    /// How many keys that it made may work at a time.
    #[serde(default)]
    pub keys_max: Option<u32>,
    /// How many of its polls and streams may wait for work at a time.
    #[serde(default)]
    pub consumers_max: Option<u32>,
}

/// Give a key another secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RotateKeyRequest {
    /// For how long the secret before works, too; not at all where nothing is said.
    #[schema(value_type = Option<schema::OverlapMs>)]
    pub overlap_ms: Option<u64>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    /// Its public name.
    #[schema(value_type = schema::KeyId)]
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// `active`, `expired` or `revoked`.
    #[schema(value_type = schema::KeyState)]
    pub state: String,
    /// When it was made.
    pub created_at: Time,
    /// By which key; left out where it was the one from the server's environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// When it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Time>,
    /// Until when the secret before the newest works, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlaps_until: Option<Time>,
    /// How many queues there may be among those it manages for it to create another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues_max: Option<u32>,
    /// How many keys that it made may work at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys_max: Option<u32>,
    /// How many of its polls and streams may wait for work at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumers_max: Option<u32>,
}

/// A key with its secret, which is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewKeyView {
    /// The key.
    pub key: KeyView,
    /// What a caller shows: `Authorization: Bearer …`. It cannot be had again.
    pub token: String,
}

impl std::fmt::Debug for NewKeyView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewKeyView").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Some keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyPage {
    /// The keys, by id.
    pub keys: Vec<KeyView>,
    /// Where the next page begins; left out on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Who the server takes the caller for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhoAmI {
    /// Whether the server wants a key.
    pub keys_needed: bool,
    /// The key that was shown; left out where none is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyView>,
}

/// Something that was done, or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditView {
    /// Its number.
    pub sequence: u64,
    /// When it was written down.
    pub at: Time,
    /// The id of the key that was shown; left out where none was, or none is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What people call that key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address that it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What was done.
    pub what: String,
    /// To which queue, or to which key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// `ok`, or the code of the error.
    pub result: String,
    /// How often, where several refusals were alike.
    pub count: u64,
}

/// Some entries of the trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The entries, the oldest first.
    pub entries: Vec<AuditView>,
    /// Where the next page begins; left out on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
