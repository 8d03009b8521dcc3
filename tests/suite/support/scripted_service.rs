//! The common part of the services that tests run: each listens on its own port, gives the scripted replies one after
//! the other, and records its calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use landfall_server::config::{Config, Variables};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Serves the router until the test ends; returns its URL.
pub async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("bound"));
    let config = Config::from_variables(Variables::default()).expect("the defaults are good");
    tokio::spawn(async move {
        landfall_server::http::serve(listener, router, &config.http, CancellationToken::new()).await;
    });
    base
}

/// The replies of a service, and the calls that it got.
pub struct ScriptedService<Reply, Call> {
    next: Arc<Mutex<VecDeque<Reply>>>,
    otherwise: Arc<Mutex<Option<Reply>>>,
    calls: Arc<Mutex<Vec<Call>>>,
    /// How many calls are open.
    pub open: watch::Sender<usize>,
}

impl<Reply, Call> Clone for ScriptedService<Reply, Call> {
    fn clone(&self) -> Self {
        let Self { next, otherwise, calls, open } = self;
        Self { next: next.clone(), otherwise: otherwise.clone(), calls: calls.clone(), open: open.clone() }
    }
}

impl<Reply, Call> Default for ScriptedService<Reply, Call> {
    fn default() -> Self {
        Self {
            next: Arc::default(),
            otherwise: Arc::default(),
            calls: Arc::default(),
            open: watch::Sender::default(),
        }
    }
}

impl<Reply: Clone, Call: Clone> ScriptedService<Reply, Call> {
    /// Adds the reply to the next call that has none yet.
    pub fn then(&self, reply: Reply) -> &Self {
        self.next.lock().expect("not poisoned").push_back(reply);
        self
    }

    /// Sets the reply to all calls without their own.
    pub fn otherwise(&self, reply: Reply) {
        *self.otherwise.lock().expect("not poisoned") = Some(reply);
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("not poisoned").clone()
    }

    pub fn forget(&self) {
        self.calls.lock().expect("not poisoned").clear();
    }

    /// Records a call. It is open until the guard is dropped.
    pub fn record(&self, call: Call) -> OpenCall {
        self.open.send_modify(|open| *open += 1);
        self.calls.lock().expect("not poisoned").push(call);
        OpenCall(self.open.clone())
    }

    /// The reply for this call alone.
    pub fn next(&self) -> Option<Reply> {
        self.next.lock().expect("not poisoned").pop_front()
    }

    /// The reply to this call. A test that did not set one fails.
    pub fn reply(&self) -> Reply {
        let reply = self.next().or_else(|| self.otherwise.lock().expect("not poisoned").clone());
        reply.expect("the test sets a reply")
    }
}

pub struct OpenCall(watch::Sender<usize>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
