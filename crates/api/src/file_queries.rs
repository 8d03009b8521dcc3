//! Which files a request is about: the filters that lists, counts, archives and operations share.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::comma_list::CommaList;
use landfall_core::lifecycle::Status;
use landfall_core::states::{FileSort, Scope, SortOrder};

/// The most files that one request may name by their ids.
pub const MAX_FILE_IDS: usize = 1_000;
/// The most files that one archive has.
pub const MAX_ARCHIVED: usize = 10_000;

/// Which files are meant. What is left out matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileFilter {
    /// One state, or several separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub status: Option<CommaList<Status>>,
    /// The code of the error, or several separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub code: Option<CommaList<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>)]
    pub batch_id: Option<String>,
    /// Part of the file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// The user whose files they are, with `scope=tenant` or `scope=all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The tenant whose files they are, with `scope=all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Registered at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_after: Option<DateTime<Utc>>,
    /// Registered before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_before: Option<DateTime<Utc>>,
    /// `true`: only files with warnings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<bool>,
    /// `tenant`: those of the caller's tenant, for its administrators; `all`: those of all tenants, for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

/// Declares the query of a route: the filters, and what is the route's own. (Queries cannot have a part that is a type of its
/// own, because that part would see its numbers as texts.)
macro_rules! file_query {
    ($(#[$meta:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            /// One state, or several separated by commas.
            #[param(value_type = Option<String>)]
            pub status: Option<CommaList<Status>>,
            /// The code of the error, or several separated by commas.
            #[param(value_type = Option<String>)]
            pub code: Option<CommaList<String>>,
            #[param(value_type = Option<Uuid>)]
            pub batch_id: Option<String>,
            /// Part of the file's name.
            pub q: Option<String>,
            /// Only files whose bytes have one of these MD5s: up to 100, separated by commas.
            #[param(max_length = 3300)]
            pub md5: Option<String>,
            /// The user whose files they are, with `scope=tenant` or `scope=all`.
            pub owner: Option<String>,
            /// The tenant whose files they are, with `scope=all`.
            pub tenant_id: Option<String>,
            /// Registered at this time or later.
            pub created_after: Option<DateTime<Utc>>,
            /// Registered before this time.
            pub created_before: Option<DateTime<Utc>>,
            /// `true`: only files with warnings.
            pub warnings: Option<bool>,
            /// `tenant`: those of the caller's tenant, for its administrators; `all`: those of all tenants, for operators.
            pub scope: Option<Scope>,
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl $name {
            /// The filters alone, without the MD5s.
            pub fn filter(&self) -> FileFilter {
                FileFilter {
                    status: self.status.clone(),
                    code: self.code.clone(),
                    batch_id: self.batch_id.clone(),
                    q: self.q.clone(),
                    owner: self.owner.clone(),
                    tenant_id: self.tenant_id.clone(),
                    created_after: self.created_after,
                    created_before: self.created_before,
                    warnings: self.warnings,
                    scope: self.scope,
                }
            }
        }
    };
}

file_query! {
    /// Which files to list, and in which order.
    FileQuery {
        #[param(inline)]
        sort: Option<FileSort>,
        #[param(inline)]
        order: Option<SortOrder>,
        #[param(minimum = 1, maximum = 200, default = 50)]
        limit: Option<i64>,
        /// How many files to leave out at the beginning, in place of a cursor.
        #[param(minimum = 0, maximum = 100_000)]
        offset: Option<i64>,
        /// The `nextCursor` of the page before. A page may have few files, or none, and still have one: then more files are
        /// to be compared with the filters.
        cursor: Option<String>,
    }
}

file_query! {
    /// Which files to count.
    FileCountsQuery {}
}

file_query! {
    /// Which files to put into an archive: those that match the filters, or those with these ids.
    ArchiveQuery {
        /// The ids of up to 1,000 files, separated by commas, in place of filters.
        #[param(max_length = 37_000)]
        file_ids: Option<String>,
    }
}

impl ArchiveQuery {
    /// Whether it names no filter.
    pub fn is_unfiltered(&self) -> bool {
        self.md5.is_none() && self.filter() == FileFilter::default()
    }
}

/// How many files match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCounts {
    pub total: i64,
    /// In each state that one of them is in.
    #[schema(value_type = BTreeMap<String, i64>)]
    pub by_status: BTreeMap<Status, i64>,
    /// Whether more files exist than are compared with the filters, so that more may match.
    pub is_capped: bool,
}
