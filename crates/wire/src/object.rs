//! Objects that are objects. What serde derives for a struct also reads a list of its fields in their order; from a client
//! that is a mistake, and `"filter": []` must not pass for a filter that matches everything.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::maybe::Maybe;

/// A value that is read from an object and from nothing else.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Read(PhantomData)).map(Self)
    }
}

struct Read<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

pub(crate) fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    Object::deserialize(from).map(|object| object.0)
}

pub(crate) fn option<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::<Object<T>>::deserialize(from).map(|value| value.map(|object| object.0))
}

pub(crate) fn maybe<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Maybe<T>, D::Error> {
    option(from).map(|value| value.map_or(Maybe::Nothing, Maybe::Some))
}

/// Most items of one list: a batch. Here as well as in the domain, because an item of two characters takes some hundred
/// bytes: a list must end before it is long, and not when all of it has been read.
const ITEMS_MAX: usize = 1_000;

pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(List(PhantomData))
}

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(Object(item)) = from.next_element()? {
            if items.len() == ITEMS_MAX {
                return Err(A::Error::custom(format_args!("there are more than {ITEMS_MAX} items")));
            }
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use crate::{AckRequest, Batch, EnqueueBatchRequest};

    fn read(count: usize) -> Result<EnqueueBatchRequest, serde_json::Error> {
        serde_json::from_str(&format!(r#"{{"messages":[{}]}}"#, vec!["{}"; count].join(",")))
    }

    #[test]
    fn a_list_ends_before_it_is_long() {
        assert_eq!(read(super::ITEMS_MAX).unwrap().messages.len(), super::ITEMS_MAX);
        let refused = read(100_000).unwrap_err().to_string();
        // It is refused where the item stands that is too many, and not at the end.
        assert_eq!(refused, "there are more than 1000 items at line 1 column 3016");
    }

    #[test]
    fn a_list_is_of_objects() {
        assert!(serde_json::from_str::<Batch<AckRequest>>(r#"{"items":[{"receipt":"a"}]}"#).is_ok());
        for wrong in [r#"{"items":[["a"]]}"#, r#"{"items":{}}"#, r#"{"items":["a"]}"#] {
            assert!(serde_json::from_str::<Batch<AckRequest>>(wrong).is_err(), "{wrong}");
        }
    }
}
