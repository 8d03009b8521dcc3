//! What the tests' own services have in common: they listen on ports of their own, answer as they were told, one call after
//! the other, and remember what they were asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use landfall_server::config::{Config, Variables};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Serves it for as long as the test lasts; answers where.
pub async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    let config = Config::from_variables(Variables::default()).expect("the defaults are good");
    tokio::spawn(async move {
        landfall_server::http::serve(listener, router, &config.http, CancellationToken::new()).await;
    });
    base
}

/// What a service is to answer, and what it was asked.
pub struct Scripted<Reply, Call> {
    next: Arc<Mutex<VecDeque<Reply>>>,
    otherwise: Arc<Mutex<Option<Reply>>>,
    calls: Arc<Mutex<Vec<Call>>>,
    /// How many calls are being answered.
    pub open: watch::Sender<usize>,
}

impl<Reply, Call> Clone for Scripted<Reply, Call> {
    fn clone(&self) -> Self {
        let Self { next, otherwise, calls, open } = self;
        Self { next: next.clone(), otherwise: otherwise.clone(), calls: calls.clone(), open: open.clone() }
    }
}

impl<Reply, Call> Default for Scripted<Reply, Call> {
    fn default() -> Self {
        Self {
            next: Arc::default(),
            otherwise: Arc::default(),
            calls: Arc::default(),
            open: watch::Sender::default(),
        }
    }
}

impl<Reply: Clone, Call: Clone> Scripted<Reply, Call> {
    /// What to answer to the next call that nothing was said about yet.
    pub fn then(&self, reply: Reply) -> &Self {
        self.next.lock().expect("not poisoned").push_back(reply);
        self
    }

    /// What to answer when nothing else was said.
    pub fn otherwise(&self, reply: Reply) {
        *self.otherwise.lock().expect("not poisoned") = Some(reply);
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("not poisoned").clone()
    }

    pub fn forget(&self) {
        self.calls.lock().expect("not poisoned").clear();
    }

    /// Remembers a call. It is being answered until what comes back is dropped.
    pub fn remember(&self, call: Call) -> Open {
        self.open.send_modify(|open| *open += 1);
        self.calls.lock().expect("not poisoned").push(call);
        Open(self.open.clone())
    }

    /// What was said about this call alone.
    pub fn next(&self) -> Option<Reply> {
        self.next.lock().expect("not poisoned").pop_front()
    }

    /// What to answer to this call; it is a mistake of the test not to have said.
    pub fn reply(&self) -> Reply {
        let reply = self.next().or_else(|| self.otherwise.lock().expect("not poisoned").clone());
        reply.expect("the test said what to answer")
    }
}

pub struct Open(watch::Sender<usize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
