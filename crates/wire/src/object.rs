//! Objects that are objects. What serde derives for a struct also reads a list of its fields in their order; from a client
//! that is a mistake, and `"filter": []` must not pass for a filter that matches everything.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
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

pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Vec::<Object<T>>::deserialize(from).map(|objects| objects.into_iter().map(|object| object.0).collect())
}
