//! How a short string from outside becomes a type: one macro, so that every name is checked the same way.

/// Defines a newtype over `Arc<str>` whose only way in is a check that names the field and the limit.
macro_rules! text_type {
    (
        $(#[$doc:meta])*
        $name:ident, field = $field:literal, max = $max:expr, empty = $empty:literal,
        allowed = $allowed:literal, $check:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Checks length and characters.
            pub fn new(text: impl AsRef<str>) -> Result<Self, $crate::invalid::Invalid> {
                let text = text.as_ref();
                if text.is_empty() && !$empty {
                    return Err($crate::invalid::Invalid::new($field, $crate::invalid::Problem::Empty));
                }
                $crate::invalid::Invalid::check_length($field, text.len(), $max, "bytes")?;
                let allowed: fn(char) -> bool = $check;
                match text.char_indices().find(|(_, c)| !allowed(*c)) {
                    Some((at, _)) => Err($crate::invalid::Invalid::new(
                        $field,
                        $crate::invalid::Problem::BadCharacter { at, allowed: $allowed },
                    )),
                    None => Ok(Self(text.into())),
                }
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::invalid::Invalid;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }
    };
}

/// The same for texts that may be empty, with the empty text as their default.
macro_rules! optional_text_type {
    ($(#[$doc:meta])* $name:ident, field = $field:literal, max = $max:expr) => {
        $crate::text::text_type! {
            $(#[$doc])*
            $name, field = $field, max = $max, empty = true,
            allowed = "text without control characters", |c| !c.is_control()
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new("").expect("the empty text is allowed here")
            }
        }
    };
}

pub(crate) use {optional_text_type, text_type};

/// Cuts `text` to at most `max` bytes without splitting a character.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
