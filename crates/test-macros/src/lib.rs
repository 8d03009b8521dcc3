//! `#[on_each_database]`: one test body, run on SQLite and on PostgreSQL.
//!
//! It is an attribute and not a `macro_rules!` around the tests, because rustfmt leaves the inside of a macro call alone.

use proc_macro::{TokenStream, TokenTree};

/// Turns `async fn contract(db: TestDb)` into the tests `contract::sqlite` and `contract::postgres`.
///
/// The test's crate has `crate::support::TestDb` with `sqlite()`, and `postgres()` for where there is a server. A
/// `#[cfg(…)]` stands above the attribute, so that it takes the tests away with the function.
#[proc_macro_attribute]
pub fn on_each_database(_arguments: TokenStream, function: TokenStream) -> TokenStream {
    let name = name_of(&function).expect("#[on_each_database] stands above a function");
    let tests: TokenStream = format!(
        "mod {name} {{
            #[tokio::test(flavor = \"multi_thread\", worker_threads = 2)]
            async fn sqlite() {{
                super::{name}(crate::support::TestDb::sqlite()).await;
            }}

            #[tokio::test(flavor = \"multi_thread\", worker_threads = 2)]
            async fn postgres() {{
                if let Some(db) = crate::support::TestDb::postgres().await {{
                    super::{name}(db).await;
                }}
            }}
        }}"
    )
    .parse()
    .expect("the tests are valid Rust");
    [function, tests].into_iter().collect()
}

fn name_of(function: &TokenStream) -> Option<String> {
    let mut tokens = function.clone().into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    tokens.next().map(|name| name.to_string())
}
