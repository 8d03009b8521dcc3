//! Whose rows a statement is about: the condition on `tenant_id` and `user_id`, always both.

use landfall_core::caller::Reach;
use landfall_store::Arg;

/// Returns the condition, and appends the values that it compares with to `arguments`.
pub fn condition(reach: &Reach, arguments: &mut Vec<Arg>) -> String {
    let mut equals = |column: &str, value: &String| {
        arguments.push(value.into());
        format!("{column} = ${}", arguments.len())
    };
    match reach {
        Reach::User(owner) => {
            let tenant = equals("tenant_id", &owner.tenant);
            format!("{tenant} AND {}", equals("user_id", &owner.user))
        }
        Reach::Tenant(tenant) => equals("tenant_id", tenant),
        Reach::All => "1 = 1".to_owned(),
    }
}

/// The names under which the counts of these rows are kept: of a user, of a tenant without a user, of all without both. No
/// tenant and no user has an empty name.
pub fn names(reach: &Reach) -> (&str, &str) {
    match reach {
        Reach::User(owner) => (&owner.tenant, &owner.user),
        Reach::Tenant(tenant) => (tenant, ""),
        Reach::All => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use landfall_core::caller::TenantUser;

    use super::*;

    #[test]
    fn a_users_rows_are_found_by_tenant_and_user() {
        let mut arguments = vec![Arg::from(1_i64)];
        let own = Reach::User(TenantUser::new("acme", "ada"));
        assert_eq!(condition(&own, &mut arguments), "tenant_id = $2 AND user_id = $3");
        assert_eq!(condition(&Reach::Tenant("acme".to_owned()), &mut arguments), "tenant_id = $4");
        assert_eq!(condition(&Reach::All, &mut arguments), "1 = 1");
        assert_eq!(arguments.len(), 4);
    }
}
