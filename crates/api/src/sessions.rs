//! Signing in on the page.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use landfall_core::caller::Role;

/// Who is signed in in this browser, and how people sign in.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Null if no person is signed in.
    pub session: Option<SessionDetails>,
    pub ways: SignInWays,
}

/// A session of the page.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDetails {
    pub tenant_id: String,
    pub user_id: String,
    pub role: Role,
    /// When it ends, whatever the person does.
    pub expires_at: DateTime<Utc>,
    /// When it ends if the person does nothing.
    pub idle_until: DateTime<Utc>,
    /// To be sent as `X-CSRF-Token` with every request that changes something.
    pub csrf_token: String,
}

/// How people can sign in on this server.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignInWays {
    /// With the identity provider, at `/auth/login`.
    pub provider: bool,
    /// With a link that `landfall open` prints.
    pub link: bool,
    /// With a token.
    pub token: bool,
}

/// Where to go on after the sign-in.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LoginQuery {
    /// A path of this server.
    pub return_to: Option<String>,
}

/// What an identity provider sends back with the browser. It may send more, which is ignored.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CallbackQuery {
    pub code: Option<String>,
    pub state: Option<String>,
    pub error: Option<String>,
    /// The name of the provider.
    pub iss: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = LogoutRequest)]
pub struct Logout {
    /// Also ends the person's sessions in all other browsers.
    #[serde(default)]
    pub everywhere: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedOut {
    /// How many sessions ended.
    pub ended: u64,
    /// Where the browser can sign out of the identity provider too.
    pub provider_url: Option<String>,
}

/// Whom a link signs in.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewSignInLink)]
pub struct IssueLink {
    #[schema(min_length = 1, max_length = 255)]
    pub tenant_id: String,
    #[schema(min_length = 1, max_length = 255)]
    pub user_id: String,
    #[serde(default)]
    pub role: Role,
}

/// A link that signs a person in once.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignInLink {
    pub url: String,
    pub expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = OpenLinkRequest)]
pub struct OpenLink {
    /// The code in the link.
    #[schema(min_length = 1, max_length = 255)]
    pub code: String,
    /// Whether to sign in. Without it the response only says whom the link signs in.
    #[serde(default)]
    pub confirm: bool,
}

/// Whom a link signs in, and the session if it did.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenedLink {
    pub tenant_id: String,
    pub user_id: String,
    pub role: Role,
    pub session: Option<SessionDetails>,
}
