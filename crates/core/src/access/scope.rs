//! What a grant is for.

use std::str::FromStr;

use crate::invalid::Invalid;

/// What a grant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// To look: settings, numbers, messages with their bodies, events.
    Read,
    /// To enqueue.
    Produce,
    /// To lease and to settle.
    Consume,
    /// To create, change, pause and delete queues, and to do to messages what operators do. Reads, too.
    Manage,
    /// All of it, and to make keys that may do the same or less.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [Self::Read, Self::Produce, Self::Consume, Self::Manage, Self::Admin];

    /// The word in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Produce => "produce",
            Self::Consume => "consume",
            Self::Manage => "manage",
            Self::Admin => "admin",
        }
    }

    /// Whether whoever holds this one holds `other` as well.
    pub fn implies(self, other: Self) -> bool {
        self == other || self == Self::Admin || (self == Self::Manage && other == Self::Read)
    }
}

impl FromStr for Scope {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| Invalid::unusable("scope", "must be read, produce, consume, manage or admin"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_admin_and_manage_imply_another_scope() {
        let implied = |scope: Scope| Scope::ALL.into_iter().filter(|other| scope.implies(*other)).count();
        assert_eq!(Scope::ALL.map(implied), [1, 1, 1, 2, 5]);
        assert!(Scope::Manage.implies(Scope::Read) && !Scope::Manage.implies(Scope::Consume));
    }

    #[test]
    fn words_are_exact() {
        for scope in Scope::ALL {
            assert_eq!(scope.name().parse(), Ok(scope));
        }
        for wrong in ["", "Admin", "admin ", "admin,read", "*"] {
            assert_eq!(wrong.parse::<Scope>().unwrap_err().field, "scope");
        }
    }
}
