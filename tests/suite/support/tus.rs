//! A client of resumable uploads, one request at a time.

use base64::Engine;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Client, contract};

pub const PATH: &str = "/api/v2/uploads/tus";
pub const PIECE: &str = "application/offset+octet-stream";

/// A response with its headers.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    pub fn offset(&self) -> Option<u64> {
        self.header("upload-offset").map(|offset| offset.parse().expect("a number"))
    }

    pub fn file(&self) -> String {
        self.header("x-file-id").expect("it names the file").to_owned()
    }

    /// The path of the upload.
    pub fn location(&self) -> String {
        let location = self.header("location").expect("it says where the upload is");
        location[location.find("/api").expect("a path of the API")..].to_owned()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("tus-resumable"), Some("1.0.0"));
        self
    }

    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.body["error"]["code"].as_str()), (status, Some(code)), "{self:?}");
        self
    }
}

/// `filename` and so on, in the form of the header.
pub fn metadata(pairs: &[(&str, &str)]) -> String {
    let encode = |(name, value): &(&str, &str)| {
        format!("{name} {}", base64::engine::general_purpose::STANDARD.encode(value))
    };
    pairs.iter().map(encode).collect::<Vec<_>>().join(",")
}

impl Client {
    pub fn tus(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).header("Tus-Resumable", "1.0.0")
    }

    /// Sends a request, and checks that the API description has its response.
    pub async fn answer(&self, request: RequestBuilder) -> Answer {
        let request = request.build().expect("a request");
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let response = self.http.execute(request).await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = serde_json::from_slice(&response.bytes().await.expect("a body")).unwrap_or(Value::Null);
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
        contract::check(&method, &path, status, kind, &body);
        Answer { status, headers, body }
    }

    /// Begins an upload with this name.
    pub async fn create_upload(&self, name: &str, length: usize) -> Answer {
        let request = self.tus(Method::POST, PATH).header("Upload-Length", length);
        self.answer(request.header("Upload-Metadata", metadata(&[("filename", name)]))).await
    }

    pub async fn head_upload(&self, path: &str) -> Answer {
        self.answer(self.tus(Method::HEAD, path)).await
    }

    pub async fn append(&self, path: &str, offset: u64, bytes: &[u8]) -> Answer {
        self.answer(self.piece(path, offset).body(bytes.to_vec())).await
    }

    pub fn piece(&self, path: &str, offset: u64) -> RequestBuilder {
        let request = self.tus(Method::PATCH, path).header("Upload-Offset", offset);
        request.header("Content-Type", PIECE)
    }

    pub async fn terminate(&self, path: &str) -> Answer {
        self.answer(self.tus(Method::DELETE, path)).await
    }

    /// A request that sends a part of its bytes and goes on later, or never.
    pub async fn begin_append(&self, path: &str, offset: u64, length: usize, extra: &str) -> HalfOpen {
        let host = self.base.strip_prefix("http://").expect("a plain server");
        let mut socket = TcpStream::connect(host).await.expect("it is open");
        let head = format!(
            "PATCH {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nTus-Resumable: 1.0.0\r\n\
             Content-Type: {PIECE}\r\nUpload-Offset: {offset}\r\nContent-Length: {length}\r\n{extra}\r\n",
            self.token
        );
        socket.write_all(head.as_bytes()).await.expect("it is sent");
        HalfOpen { socket }
    }

    /// The whole content of a file.
    pub async fn download(&self, file: &str) -> Vec<u8> {
        let path = format!("/api/v2/uploads/files/{file}/download");
        let response = self.request(Method::GET, &path).send().await.expect("an answer");
        assert_eq!(response.status().as_u16(), 200);
        response.bytes().await.expect("bytes").to_vec()
    }
}

pub struct HalfOpen {
    socket: TcpStream,
}

impl HalfOpen {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.expect("it is sent");
    }

    /// The first line of the response.
    pub async fn answer(&mut self) -> String {
        let mut read = vec![0; 4_096];
        let length = self.socket.read(&mut read).await.unwrap_or(0);
        String::from_utf8_lossy(&read[..length]).lines().next().unwrap_or_default().to_owned()
    }
}
