//! Lists that are returned in pages.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// The largest page that can be asked for.
pub const MAX_LIMIT: i64 = 200;
/// The largest offset that can be asked for: the database reads what it leaves out.
pub const MAX_OFFSET: i64 = 100_000;
/// The size of a page that is asked for without a limit.
pub const DEFAULT_LIMIT: i64 = 50;

/// Something that is listed in pages.
pub trait Listed {
    /// The name of the field that holds the items: each list has its own on the wire.
    const FIELD: &'static str;
    /// The name of the page in the API description.
    const SCHEMA: &'static str;
}

/// One page of a list: `{ "<FIELD>": [...], "nextCursor": "..." }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The `cursor` of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// The same page with other items, for example views of rows.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page { items: self.items.into_iter().map(convert).collect(), next_cursor: self.next_cursor }
    }
}

/// Which page of a list is asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
}

const NEXT_CURSOR: &str = "nextCursor";

impl<T: Listed + Serialize> Serialize for Page<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Page", 2)?;
        fields.serialize_field(T::FIELD, &self.items)?;
        fields.serialize_field(NEXT_CURSOR, &self.next_cursor)?;
        fields.end()
    }
}

impl<'de, T: Listed + Deserialize<'de>> Deserialize<'de> for Page<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Listed + Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Page<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with {} and {NEXT_CURSOR}", T::FIELD)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page<T>, A::Error> {
                let (mut items, mut next_cursor) = (None, None);
                while let Some(field) = map.next_key::<Cow<'_, str>>()? {
                    if field == T::FIELD {
                        items = Some(map.next_value()?);
                    } else if field == NEXT_CURSOR {
                        next_cursor = map.next_value()?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                let items = items.ok_or_else(|| A::Error::missing_field(T::FIELD))?;
                Ok(Page { items, next_cursor })
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

impl<T: Listed + ToSchema> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let item = Ref::from_schema_name(T::name());
        let cursor = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
        ObjectBuilder::new()
            .property(T::FIELD, ArrayBuilder::new().items(item))
            .required(T::FIELD)
            .property(NEXT_CURSOR, cursor)
            .into()
    }
}

impl<T: Listed + ToSchema> ToSchema for Page<T> {
    fn name() -> Cow<'static, str> {
        T::SCHEMA.into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Thing(u8);

    impl Listed for Thing {
        const FIELD: &'static str = "things";
        const SCHEMA: &'static str = "ThingList";
    }

    #[test]
    fn a_page_has_the_field_name_of_its_list() {
        let page = Page { items: vec![Thing(1)], next_cursor: None };
        assert_eq!(serde_json::to_string(&page).unwrap(), r#"{"things":[1],"nextCursor":null}"#);
        let read: Page<Thing> =
            serde_json::from_value(json!({ "things": [2], "nextCursor": "c", "more": {} })).unwrap();
        assert_eq!(read, Page { items: vec![Thing(2)], next_cursor: Some("c".to_owned()) });
    }

    #[test]
    fn a_list_of_another_name_is_refused() {
        let read = serde_json::from_value::<Page<Thing>>(json!({ "files": [], "nextCursor": null }));
        assert_eq!(read.unwrap_err().to_string(), "missing field `things`");
    }
}
