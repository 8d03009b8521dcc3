//! Enums whose values have a name: the same one in the database, on the wire and in messages.

/// A text that is not the name of any value of the enum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not one of {allowed}")]
pub struct UnknownName {
    text: String,
    allowed: String,
}

impl UnknownName {
    pub(crate) fn new<'a>(text: &str, allowed: impl Iterator<Item = &'a str>) -> Self {
        Self { text: text.to_owned(), allowed: allowed.collect::<Vec<_>>().join(", ") }
    }
}

/// Implements `Display`, `FromStr` and `TryFrom<String>` for an enum with `ALL` and `name()`.
macro_rules! named {
    ($type:ty) => {
        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::names::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|one| one.name() == text).ok_or_else(|| {
                    $crate::names::UnknownName::new(text, Self::ALL.iter().map(|one| one.name()))
                })
            }
        }

        impl TryFrom<String> for $type {
            type Error = $crate::names::UnknownName;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    };
}

/// Declares an enum together with its names.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$of_variant:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        $(#[$meta])*
        pub enum $type {
            $($(#[$of_variant])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        // Not derived: the derive macro does not see names that come from a macro's argument.
        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::Type::String)
                    .enum_values(Some([$($name),+]))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $type {
            fn name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
        }

        $crate::names::named!($type);
    };
}

pub(crate) use {named, named_enum};
