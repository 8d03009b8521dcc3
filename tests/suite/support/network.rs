//! The network between a process and a service: a proxy that a test tells to cut, refuse, hold, delay and lose.
//!
//! It passes bytes of any protocol. If it recognises HTTP/1.1, a test may also choose single requests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use landfall_core::clock::Clock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub struct Network {
    pub address: SocketAddr,
    inner: Arc<Inner>,
    /// Bound and not listening: it keeps the port while connections are refused.
    _port: TcpSocket,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    service: SocketAddr,
    state: Mutex<State>,
    held: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// Cancelled to cut all connections; those that come later have another.
    open: CancellationToken,
    delay: Duration,
    faults: Vec<(Matches, usize, Fault)>,
    /// How many more bytes pass in each direction before all connections are cut.
    upwards: Option<usize>,
    downwards: Option<usize>,
    requests: Vec<Request>,
    lost: usize,
}

/// A request that came by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
}

type Matches = Box<dyn Fn(&Request) -> bool + Send>;

/// How a connection ended.
#[derive(PartialEq, Eq)]
enum End {
    Closed,
    Cut,
}

#[derive(Clone)]
enum Fault {
    /// It reaches the service, and its answer is lost with the connection.
    LoseAnswer,
    /// The connection is cut before the service gets it.
    LoseRequest,
    /// It does not reach the service; this is the answer.
    Answer(String),
}

impl Network {
    /// In front of the service at this address or URL.
    #[expect(clippy::unused_async, reason = "it starts a task, which needs the runtime of an async caller")]
    pub async fn before(service: &str) -> Self {
        let service = service.strip_prefix("http://").unwrap_or(service);
        let service = service.split('/').next().expect("a first part").parse().expect("an address");
        let port = socket("127.0.0.1:0".parse().expect("an address"));
        let address = port.local_addr().expect("bound");
        let inner = Inner { service, state: Mutex::default(), held: watch::Sender::new(false) };
        let network = Self { address, inner: Arc::new(inner), _port: port, accepting: Mutex::default() };
        network.accept();
        network
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts all connections. New ones are accepted.
    pub fn cut(&self) {
        self.inner.state().cut();
    }

    /// Cuts all connections and refuses new ones.
    pub fn refuse(&self) {
        if let Some(accepting) = self.accepting.lock().expect("not poisoned").take() {
            accepting.abort();
        }
        self.cut();
    }

    /// Keeps all connections and accepts new ones, but passes nothing until [`Self::restore`].
    pub fn hold(&self) {
        self.inner.held.send_replace(true);
    }

    /// Passes everything later by this much.
    pub fn delay(&self, delay: Duration) {
        self.inner.state().delay = delay;
    }

    /// Passes the n-th such request from now on to the service, the first being 1, and loses its answer.
    pub fn lose_answer(&self, n: usize, matches: impl Fn(&Request) -> bool + Send + 'static) {
        self.fault(n, matches, Fault::LoseAnswer);
    }

    /// Loses the n-th such request from now on before the service gets it.
    pub fn lose_request(&self, n: usize, matches: impl Fn(&Request) -> bool + Send + 'static) {
        self.fault(n, matches, Fault::LoseRequest);
    }

    /// Answers the n-th such request from now on itself.
    pub fn answer(
        &self,
        n: usize,
        status: u16,
        body: &str,
        matches: impl Fn(&Request) -> bool + Send + 'static,
    ) {
        self.answer_with(n, status, "", body, matches);
    }

    /// The same with further headers, each with its end of line.
    pub fn answer_with(
        &self,
        n: usize,
        status: u16,
        headers: &str,
        body: &str,
        matches: impl Fn(&Request) -> bool + Send + 'static,
    ) {
        let head = format!("HTTP/1.1 {status} Scripted\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        self.fault(n, matches, Fault::Answer(head + body));
    }

    fn fault(&self, n: usize, matches: impl Fn(&Request) -> bool + Send + 'static, fault: Fault) {
        self.inner.state().faults.push((Box::new(matches), n, fault));
    }

    /// Cuts all connections when this many more bytes have gone to the service.
    pub fn cut_after_sending(&self, bytes: usize) {
        self.inner.state().upwards = Some(bytes);
    }

    /// Cuts all connections when this many more bytes have come from the service.
    pub fn cut_after_receiving(&self, bytes: usize) {
        self.inner.state().downwards = Some(bytes);
    }

    /// Everything passes again, and nothing is planned any more.
    pub fn restore(&self) {
        let mut state = self.inner.state();
        state.delay = Duration::ZERO;
        state.faults.clear();
        (state.upwards, state.downwards) = (None, None);
        drop(state);
        self.inner.held.send_replace(false);
        self.accept();
    }

    /// How many planned faults have happened.
    pub fn lost(&self) -> usize {
        self.inner.state().lost
    }

    /// The requests that came by, in their order.
    pub fn requests(&self) -> Vec<Request> {
        self.inner.state().requests.clone()
    }

    fn accept(&self) {
        let mut accepting = self.accepting.lock().expect("not poisoned");
        if accepting.is_none() {
            let listener = socket(self.address).listen(1024).expect("the port is ours");
            *accepting = Some(tokio::spawn(self.inner.clone().accept(listener)));
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.refuse();
    }
}

/// A socket that may share the port with another of this account.
fn socket(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseport(true).expect("Linux has it");
    socket.bind(address).expect("the port is free or ours");
    socket
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (mut client, _) = listener.accept().await.expect("a listener accepts");
            let open = self.state().open.clone();
            let inner = self.clone();
            tokio::spawn(async move {
                let Ok(mut service) = TcpStream::connect(inner.service).await else { return };
                for stream in [&client, &service] {
                    stream.set_nodelay(true).expect("an open socket");
                }
                let passed = open.run_until_cancelled(inner.pass(&mut client, &mut service)).await;
                if passed != Some(End::Closed) {
                    for stream in [&client, &service] {
                        // Cut means reset: nothing that is on its way arrives any more.
                        stream.set_zero_linger().expect("an open socket");
                    }
                }
            });
        }
    }

    async fn pass(&self, client: &mut TcpStream, service: &mut TcpStream) -> End {
        let (mut from_client, to_client) = client.split();
        let (mut from_service, mut to_service) = service.split();
        let to_client = tokio::sync::Mutex::new(to_client);
        // Whether the service's next bytes are an answer that gets lost.
        let losing = AtomicBool::new(false);
        let up = async {
            let mut requests = Requests::default();
            while let Some(piece) = read(&mut from_client).await {
                for part in requests.split(&piece) {
                    let fault = part.begins.and_then(|request| self.state().begin(request));
                    match fault {
                        Some(Fault::LoseAnswer) => losing.store(true, Ordering::SeqCst),
                        Some(Fault::LoseRequest) => return End::Cut,
                        Some(Fault::Answer(answer)) => {
                            requests.swallowing = true;
                            requests.answer = Some(answer);
                        }
                        None => {}
                    }
                    if !requests.swallowing {
                        self.forward(&mut to_service, &part.bytes, |state| &mut state.upwards).await;
                    }
                    if part.ends {
                        requests.swallowing = false;
                        if let Some(answer) = requests.answer.take()
                            && to_client.lock().await.write_all(answer.as_bytes()).await.is_err()
                        {
                            return End::Closed;
                        }
                    }
                }
            }
            // The client sends nothing more; it may still read.
            drop(to_service.shutdown().await);
            std::future::pending().await
        };
        let down = async {
            while let Some(piece) = read(&mut from_service).await {
                if losing.load(Ordering::SeqCst) {
                    return End::Cut;
                }
                self.forward(&mut *to_client.lock().await, &piece, |state| &mut state.downwards).await;
            }
            End::Closed
        };
        tokio::select! {
            end = up => end,
            end = down => end,
        }
    }

    /// Writes what may pass. What the other side does not take any more is dropped.
    async fn forward(
        &self,
        to: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
        limit: fn(&mut State) -> &mut Option<usize>,
    ) {
        let delay = self.state().delay;
        if !delay.is_zero() {
            Clock::System.sleep(delay).await;
        }
        drop(self.held.subscribe().wait_for(|held| !held).await);
        let (passing, is_last) = {
            let mut state = self.state();
            let limit = limit(&mut state);
            let is_over = *limit == Some(0);
            let passing = limit.map_or(bytes.len(), |left| left.min(bytes.len()));
            *limit = limit.map(|left| left - passing);
            (passing, *limit == Some(0) && !is_over)
        };
        drop(to.write_all(&bytes[..passing]).await);
        if is_last {
            let mut state = self.state();
            *limit(&mut state) = None;
            state.lost += 1;
            state.cut();
        }
        if is_last || passing < bytes.len() {
            // The connection is being cut. What comes behind bytes that did not pass must not pass either.
            std::future::pending::<()>().await;
        }
    }
}

impl State {
    fn cut(&mut self) {
        std::mem::take(&mut self.open).cancel();
    }

    /// Notes a request, and returns what happens to it.
    fn begin(&mut self, request: Request) -> Option<Fault> {
        let mut found = None;
        self.faults.retain_mut(|(matches, n, fault)| {
            if found.is_some() || !matches(&request) {
                return true;
            }
            *n -= 1;
            if *n == 0 {
                found = Some(fault.clone());
            }
            *n > 0
        });
        self.requests.push(request);
        self.lost += usize::from(found.is_some());
        found
    }
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut piece = vec![0; 64 << 10];
    let count = from.read(&mut piece).await.ok().filter(|count| *count > 0)?;
    piece.truncate(count);
    Some(piece)
}

/// Finds the requests in what a client sends.
#[derive(Default)]
struct Requests {
    place: Place,
    swallowing: bool,
    answer: Option<String>,
}

#[derive(Default)]
enum Place {
    /// In the head of a request, of which this was read.
    #[default]
    Head,
    HeadSoFar(Vec<u8>),
    /// In a body with this many bytes left.
    Body(usize),
    /// In a chunked body: the end of what was read, until it is the last chunk's.
    Chunks(Vec<u8>),
    /// Not HTTP/1.1.
    Unknown,
}

/// Bytes that belong to one request.
struct Part {
    begins: Option<Request>,
    bytes: Vec<u8>,
    ends: bool,
}

const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

impl Requests {
    fn split(&mut self, piece: &[u8]) -> VecDeque<Part> {
        let mut parts = VecDeque::new();
        let mut rest = piece;
        while !rest.is_empty() {
            let (part, taken) = self.next(rest);
            rest = &rest[taken..];
            parts.extend(part);
        }
        parts
    }

    /// The next part, if the bytes complete one, and how many of the bytes were taken.
    fn next(&mut self, bytes: &[u8]) -> (Option<Part>, usize) {
        let part = |begins, bytes: &[u8], ends| Some(Part { begins, bytes: bytes.to_vec(), ends });
        match std::mem::take(&mut self.place) {
            Place::Head => {
                self.place =
                    if bytes[0].is_ascii_uppercase() { Place::HeadSoFar(Vec::new()) } else { Place::Unknown };
                (None, 0)
            }
            Place::HeadSoFar(mut head) => {
                let before = head.len();
                head.extend(bytes);
                let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n").map(|end| end + 4) else {
                    self.place = Place::HeadSoFar(head);
                    return (None, bytes.len());
                };
                head.truncate(end);
                let (request, body) = parse(&String::from_utf8_lossy(&head));
                let ends = matches!(body, Place::Head);
                self.place = body;
                (part(Some(request), &head, ends), end - before)
            }
            Place::Body(left) => {
                let taken = left.min(bytes.len());
                let ends = taken == left;
                self.place = if ends { Place::Head } else { Place::Body(left - taken) };
                (part(None, &bytes[..taken], ends), taken)
            }
            Place::Chunks(mut tail) => {
                // Good enough for a test: a chunk whose content looks like the last one would end the request too early.
                tail.extend(bytes);
                let ends = tail.ends_with(LAST_CHUNK);
                tail.drain(..tail.len().saturating_sub(LAST_CHUNK.len()));
                self.place = if ends { Place::Head } else { Place::Chunks(tail) };
                (part(None, bytes, ends), bytes.len())
            }
            Place::Unknown => {
                self.place = Place::Unknown;
                (part(None, bytes, false), bytes.len())
            }
        }
    }
}

/// The request, and what its body is.
fn parse(head: &str) -> (Request, Place) {
    let mut first = head.lines().next().unwrap_or_default().split(' ').map(str::to_owned);
    let request =
        Request { method: first.next().unwrap_or_default(), target: first.next().unwrap_or_default() };
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let body = match header("content-length").and_then(|length| length.parse().ok()) {
        Some(0) => Place::Head,
        Some(length) => Place::Body(length),
        // As if a chunk ended here, so that an empty body ends too.
        None if header("transfer-encoding").is_some() => Place::Chunks(b"\r\n".to_vec()),
        None => Place::Head,
    };
    (request, body)
}
