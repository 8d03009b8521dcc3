//! Stages that a test controls: they finish, fail, panic, or block until the test opens a gate.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::Stage;
use landfall_server::stages::{Job, Output, Work};
use tokio::sync::Semaphore;

#[derive(Clone)]
pub enum Step {
    Fail(Code),
    /// The same, and the attempt does not count: the file waits.
    Wait(Code),
    Panic,
    /// Reports that it has begun, and waits at the gate.
    Block(Gate),
}

/// Where a scripted stage waits.
#[derive(Clone, Default)]
pub struct Gate {
    inner: Arc<GateInner>,
}

struct GateInner {
    reached: Semaphore,
    open: Semaphore,
}

impl Default for GateInner {
    fn default() -> Self {
        Self { reached: Semaphore::new(0), open: Semaphore::new(0) }
    }
}

impl Gate {
    /// Resolves when a stage waits here.
    pub async fn reached(&self) {
        self.inner.reached.acquire().await.expect("never closed").forget();
    }

    /// Lets one stage continue.
    pub fn open(&self) {
        self.inner.open.add_permits(1);
    }

    pub async fn wait(&self) {
        self.inner.reached.add_permits(1);
        self.inner.open.acquire().await.expect("never closed").forget();
    }
}

/// Takes the next step of a stage for each attempt; a stage without steps finishes at once.
#[derive(Default)]
pub struct Script {
    steps: Mutex<HashMap<Stage, VecDeque<Step>>>,
    runs: Mutex<Vec<(String, Stage, i64)>>,
}

impl Script {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn then(self: &Arc<Self>, stage: Stage, step: Step) -> Arc<Self> {
        self.steps.lock().expect("not poisoned").entry(stage).or_default().push_back(step);
        self.clone()
    }

    /// In place of all steps of this stage that are left.
    pub fn replace(&self, stage: Stage, step: Step) {
        self.steps.lock().expect("not poisoned").insert(stage, VecDeque::from([step]));
    }

    /// Every attempt so far: the stage and its number.
    pub fn runs(&self) -> Vec<(Stage, i64)> {
        self.runs.lock().expect("not poisoned").iter().map(|(_, stage, attempt)| (*stage, *attempt)).collect()
    }

    /// The files in the order in which their extraction began.
    pub fn order(&self) -> Vec<String> {
        let runs = self.runs.lock().expect("not poisoned");
        runs.iter().filter(|(_, stage, _)| *stage == Stage::Extract).map(|(name, ..)| name.clone()).collect()
    }

    fn next(&self, job: &Job) -> Option<Step> {
        self.runs.lock().expect("not poisoned").push((
            job.file.file_name.clone(),
            job.stage,
            job.file.attempt,
        ));
        self.steps.lock().expect("not poisoned").get_mut(&job.stage)?.pop_front()
    }
}

impl Work for Script {
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Output, Failure>> {
        let step = self.next(job);
        async move {
            match step {
                None => Ok(Output::Nothing),
                Some(Step::Fail(code)) => Err(Failure::new(code, format!("scripted {code}"))),
                Some(Step::Wait(code)) => Err(Failure::new(code, format!("scripted {code}")).at_no_cost()),
                Some(Step::Panic) => panic!("a scripted panic"),
                Some(Step::Block(gate)) => {
                    gate.wait().await;
                    Ok(Output::Nothing)
                }
            }
        }
        .boxed()
    }
}
