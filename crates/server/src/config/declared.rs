//! One declaration for each setting, in groups. `landfall config`, `docs/configuration.md` and `.env.example` show these.

use super::{
    alerts, documents, embeddings, events, identity_provider, rate_limits, recovery, retention, retries,
    server, services, sign_in, storage, telemetry, uploads, workers,
};

/// A setting as it is documented.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    pub name: &'static str,
    /// The default of a server without any settings. Some defaults depend on other settings. Empty means not set.
    pub default: &'static str,
    /// One sentence, in Markdown.
    pub description: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub title: &'static str,
    pub settings: &'static [Declaration],
}

/// Every group, in the order in which they are shown.
pub static GROUPS: [Group; 16] = [
    server::GROUP,
    storage::GROUP,
    sign_in::GROUP,
    identity_provider::GROUP,
    uploads::GROUP,
    workers::GROUP,
    retries::GROUP,
    rate_limits::GROUP,
    documents::GROUP,
    services::GROUP,
    embeddings::GROUP,
    recovery::GROUP,
    retention::GROUP,
    events::GROUP,
    alerts::GROUP,
    telemetry::GROUP,
];

/// Declares the settings of a module's group: a constant for each, by which the module reads it, and `GROUP`.
macro_rules! group {
    ($title:literal { $($name:ident = $default:literal: $description:literal)* }) => {
        pub(super) const GROUP: crate::config::declared::Group =
            crate::config::declared::Group { title: $title, settings: &[$($name),*] };
        $(
            pub(super) const $name: crate::config::declared::Declaration =
                crate::config::declared::Declaration {
                    name: stringify!($name),
                    default: $default,
                    description: $description,
                };
        )*
    };
}
pub(super) use group;
