//! The services that a stage may need and that may be down, and what a call to one says about it.

use serde::{Deserialize, Serialize};

/// What Landfall needs and cannot mend.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
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

    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Gateway => "the extraction service",
            Self::Embeddings => "the embedding service",
            Self::Scanner => "the virus scanner",
            Self::Storage => "the storage",
        }
    }
}

/// What a call says about the service that it went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    Up,
    Down,
}
