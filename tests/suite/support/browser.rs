//! A browser without a page: it keeps cookies, follows redirects, and says where its requests come from.

use std::collections::BTreeMap;

use reqwest::Method;
use reqwest::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use serde_json::Value;
use url::Url;

use super::client::ApiResponse;
use super::contract;

pub struct Browser {
    pub base: String,
    /// By host with port, as servers on one machine are told apart here.
    pub cookies: BTreeMap<(String, String), String>,
    pub http: reqwest::Client,
}

/// Where a browser came to rest.
pub struct Visited {
    pub url: Url,
    pub status: u16,
    pub text: String,
}

impl Browser {
    pub fn new(base: &str) -> Self {
        let http = landfall_server::outbound::client_without_redirects();
        Self { base: base.to_owned(), cookies: BTreeMap::new(), http }
    }

    fn host(url: &Url) -> String {
        format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
    }

    pub fn cookie_header(&self, url: &Url) -> String {
        let host = Self::host(url);
        let own = self.cookies.iter().filter(|((of, _), _)| *of == host);
        own.map(|((_, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, url: &Url, response: &reqwest::Response) {
        for line in response.headers().get_all(SET_COOKIE) {
            let line = line.to_str().expect("a cookie");
            let (name, value) =
                line.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie");
            let key = (Self::host(url), name.to_owned());
            let is_over = line.contains("Max-Age=0") || line.contains("01 Jan 1970");
            if value.is_empty() || is_over {
                self.cookies.remove(&key);
            } else {
                self.cookies.insert(key, value.to_owned());
            }
        }
    }

    /// One request, with the cookies of its host. Redirects are not followed.
    pub async fn send(&mut self, request: reqwest::RequestBuilder) -> reqwest::Response {
        let mut request = request.build().expect("a request");
        let url = request.url().clone();
        let cookies = self.cookie_header(&url);
        if !cookies.is_empty() {
            request.headers_mut().insert(COOKIE, cookies.parse().expect("plain text"));
        }
        let response = self.http.execute(request).await.expect("an answer");
        self.keep(&url, &response);
        response
    }

    /// A request of the page to its own server, checked against the description of the API.
    pub async fn api(&mut self, request: reqwest::RequestBuilder) -> ApiResponse {
        let built = request.try_clone().expect("a plain body").build().expect("a request");
        let (method, path) = (built.method().to_string(), built.url().path().to_owned());
        let response = self.send(request).await;
        let status = response.status().as_u16();
        let kind =
            response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).map(str::to_owned);
        let body = serde_json::from_slice(&response.bytes().await.expect("a body")).unwrap_or(Value::Null);
        contract::check(&method, &path, status, kind.as_deref(), &body);
        ApiResponse { status, body }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub async fn get(&mut self, path: &str) -> ApiResponse {
        self.api(self.request(Method::GET, path)).await
    }

    /// As the page does it: with its origin and the token against requests of other sites.
    pub async fn post(&mut self, path: &str, body: Value) -> ApiResponse {
        let csrf = self.session().await["csrfToken"].as_str().unwrap_or_default().to_owned();
        let request =
            self.request(Method::POST, path).header(ORIGIN, &self.base).header("x-csrf-token", csrf);
        self.api(request.json(&body)).await
    }

    /// Who is signed in.
    pub async fn session(&mut self) -> Value {
        self.get("/auth/session").await.ok()["session"].clone()
    }

    /// Opens an address and follows redirects, as a person does.
    pub async fn visit(&mut self, url: &str) -> Visited {
        let request = self.http.get(url).header("accept", "text/html");
        self.follow(request).await
    }

    /// Sends a form and follows redirects.
    pub async fn submit(&mut self, url: &str, fields: &[(&str, &str)]) -> Visited {
        let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request =
            self.http.post(url).header("content-type", "application/x-www-form-urlencoded").body(body);
        self.follow(request.header("accept", "text/html")).await
    }

    async fn follow(&mut self, mut request: reqwest::RequestBuilder) -> Visited {
        for _ in 0..20 {
            let response = self.send(request).await;
            let (url, status) = (response.url().clone(), response.status());
            if !status.is_redirection() {
                return Visited { url, status: status.as_u16(), text: response.text().await.expect("text") };
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).expect("a way");
            let to = url.join(to).expect("an address");
            // What is behind the # stays in the browser.
            if to.origin().ascii_serialization() == self.base && to.fragment().is_some() {
                return Visited { url: to, status: status.as_u16(), text: String::new() };
            }
            request = self.http.get(to).header("accept", "text/html");
        }
        panic!("too many redirects");
    }
}
