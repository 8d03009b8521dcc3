//! The services that a stage may need and that may be down, and what a call says about one.

use serde::{Deserialize, Serialize};

use crate::names::named;

/// An external service that Landfall depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Service {
    Gateway,
    Embeddings,
    Scanner,
    Storage,
}

impl Service {
    pub const ALL: [Self; 4] = [Self::Gateway, Self::Embeddings, Self::Scanner, Self::Storage];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Embeddings => "embeddings",
            Self::Scanner => "scanner",
            Self::Storage => "storage",
        }
    }

    /// The name in messages for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Gateway => "the extraction service",
            Self::Embeddings => "the embedding service",
            Self::Scanner => "the virus scanner",
            Self::Storage => "the storage",
        }
    }

    /// That it is down, for people who need not know what it said.
    pub const fn trouble(self) -> &'static str {
        match self {
            Self::Gateway => "The extraction service fails or cannot be reached",
            Self::Embeddings => "The embedding service fails or cannot be reached",
            Self::Scanner => "The virus scanner fails or cannot be reached",
            Self::Storage => "The storage fails or cannot be reached",
        }
    }
}

named!(Service);

/// What a call says about the service that it called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    Up,
    Down,
}
