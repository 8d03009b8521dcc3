//! How urgent a file is among the files of its owner.

use serde::{Deserialize, Serialize};

use crate::names::named;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

impl Priority {
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    pub const fn rank(self) -> i64 {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }

    pub const fn from_rank(rank: i64) -> Self {
        match rank {
            0 => Self::High,
            2 => Self::Low,
            _ => Self::Normal,
        }
    }
}

named!(Priority);
