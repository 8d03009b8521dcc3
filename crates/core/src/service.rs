//! The services that a stage may need and that may be down, and what a call says about one.

use serde::{Deserialize, Serialize};

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
}

/// What a call says about the service that it called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    Up,
    Down,
}
