//! A database in memory that the processes of a simulation share.
//!
//! It is one SQLite connection, called on the thread of the simulation. Its processes take turns: a transaction of one keeps
//! the others waiting, and a statement outside of a transaction is over before another begins. A process has a [`Db`] of its own,
//! with its own writer, signals and faults. When the process is killed, its writer is dropped, and what it has not committed is
//! rolled back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use landfall_core::clock::Ahead;
use uuid::Uuid;

use crate::beginning::Beginning;
use crate::faults::Faults;
use crate::joint::Queues;
use crate::sqlite::{self, Pool};
use crate::wake::Wake;
use crate::writer::Writer;
use crate::{Backend, Db, Error, FaultInjector, load_vector_functions, migrate};

#[derive(Clone)]
pub struct SimulatedDatabase {
    pool: Pool,
    /// The lock of each worker, and the process that holds it.
    locks: Arc<Mutex<BTreeMap<Uuid, u32>>>,
    beginning: Arc<Mutex<Beginning>>,
}

impl SimulatedDatabase {
    /// A new database with the schema.
    pub fn create() -> Result<Self, Error> {
        load_vector_functions();
        let mut connection = sqlite::connect_in_memory()?;
        migrate::run_on_sqlite(&mut connection)?;
        Ok(Self { pool: Pool::of_database(connection), locks: Arc::default(), beginning: Arc::default() })
    }

    /// What is in the tables now is what [`Self::begin_again`] comes back to.
    pub fn begin_here(&self) -> Result<(), Error> {
        let beginning = self.pool.on_idle(Beginning::of)?;
        *self.beginning() = beginning;
        // Its statements are prepared now.
        self.begin_again()
    }

    /// Makes the rows of all tables again what they were. The schema must be the same, and so the statements stay prepared. No
    /// process may be connected.
    pub fn begin_again(&self) -> Result<(), Error> {
        self.locks().clear();
        self.pool.on_idle(|connection| self.beginning().restore(connection))
    }

    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.locks, &other.locks)
    }

    fn beginning(&self) -> MutexGuard<'_, Beginning> {
        self.beginning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parses and plans these statements before the first process connects. Those that do not belong to this database are left out.
    pub fn prepare<'a>(&self, statements: impl Iterator<Item = &'a str>) {
        self.pool.prepare(statements);
    }

    /// Connects a process, within its runtime. Its machine's clock is ahead of the database's by this much.
    pub fn connect(&self, process: u32, ahead: Ahead, faults: Option<Arc<dyn FaultInjector>>) -> Db {
        let (faults, wake) = (Faults(faults), Wake::default());
        let writer = Writer::start_simulated(self.pool.clone(), faults.clone(), wake.clone());
        let process = SimulatedProcess { database: self.clone(), number: process, ahead };
        Db { backend: Backend::Simulated { writer, process }, wake, faults, queues: Queues::default() }
    }

    /// Whether no process is in a transaction.
    pub fn is_free(&self) -> bool {
        self.pool.is_free()
    }

    /// Releases the locks of a process that was killed, or whose connection was lost.
    pub fn release_locks(&self, process: u32) {
        self.locks().retain(|_, holder| *holder != process);
    }

    fn locks(&self) -> MutexGuard<'_, BTreeMap<Uuid, u32>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One process of the simulation.
#[derive(Clone)]
pub struct SimulatedProcess {
    database: SimulatedDatabase,
    number: u32,
    ahead: Ahead,
}

impl SimulatedProcess {
    pub fn pool(&self) -> &Pool {
        &self.database.pool
    }

    /// By how much the clock of its machine is ahead of the database's.
    pub fn ahead(&self) -> TimeDelta {
        self.ahead.delta()
    }

    pub fn lock(&self, worker: Uuid) {
        self.database.locks().insert(worker, self.number);
    }

    pub fn unlock(&self, worker: Uuid) {
        self.database.locks().remove(&worker);
    }

    pub fn is_locked(&self, worker: Uuid) -> bool {
        self.database.locks().contains_key(&worker)
    }
}
