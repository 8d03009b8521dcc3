//! Several values in one: separated by commas in a query, and in a body also as an array.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// One value or several. An empty text is refused, because it is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommaList<T>(pub Vec<T>);

impl<T> From<T> for CommaList<T> {
    fn from(value: T) -> Self {
        Self(vec![value])
    }
}

impl<T: FromStr> FromStr for CommaList<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl<T: Display> Display for CommaList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if place == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl<T: Display> Serialize for CommaList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for CommaList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);

        impl<'de, T: FromStr<Err: Display>> Visitor<'de> for Values<T> {
            type Value = CommaList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value, or several separated by commas")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(value) = values.next_element::<String>()? {
                    list.push(value.parse().map_err(A::Error::custom)?);
                }
                Ok(CommaList(list))
            }
        }

        deserializer.deserialize_any(Values(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use landfall_core::lifecycle::Status;
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_list_is_read_as_it_is_written() {
        let list: CommaList<Status> = from_value(json!("failed, ready")).expect("a list");
        assert_eq!(list.0, [Status::Failed, Status::Ready]);
        assert_eq!(json!(list), json!("failed,ready"));
        assert_eq!(from_value::<CommaList<Status>>(json!(["failed", "ready"])).expect("a list"), list);
        for wrong in [json!(""), json!("failed,"), json!("lost"), json!(["lost"]), json!(1)] {
            assert!(from_value::<CommaList<Status>>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
