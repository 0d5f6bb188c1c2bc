//! Where the workers of a run are, and how to have them again once some are lost.

use super::exchange::Exchange;
use super::message::Control;
use super::worker;
use crate::engine::Table;
use crate::error::Result;
#[cfg(all(test, feature = "gpu"))]
use crate::gpu;
use crate::number::Number;
use meshweft_net::children::Children;
use meshweft_net::quic::{Listening, Quic, Settings};
use meshweft_net::{RunKey, Transport, memory, write_secret};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a run that begins again waits for the first of its workers.
const PATIENCE: Duration = Duration::from_secs(60);

/// Workers at most: all are connected with each other.
const MOST: u32 = 256;

/// The workers of a run.
pub(super) enum Workers {
    /// Threads of this process. None of them is lost.
    Inside(Inside),
    /// Processes, here or elsewhere.
    Connected(Connected),
}

pub(super) struct Inside {
    count: u32,
    /// Those at work.
    driver: Option<Arc<Exchange>>,
    threads: Vec<JoinHandle<()>>,
}

pub(super) struct Connected {
    /// Until the run begins.
    exchange: Option<Arc<Exchange>>,
    quic: Arc<Quic>,
    /// How many more there are to be, or fewer, when they next come again.
    change: i64,
    settings: Settings,
    children: Arc<Mutex<Children>>,
    /// Secrets that are there as long as the run.
    _secrets: Vec<Secret>,
}

/// A file with a secret, which is there as long as this is.
pub(super) struct Secret {
    path: PathBuf,
    text: String,
}

impl Secret {
    /// # Errors
    /// A file, or a link, that is there already; one that cannot be written.
    pub(super) fn token(path: &Path, token: &str) -> Result<Secret> {
        write_secret(path, token)?;
        Ok(Secret { path: path.to_owned(), text: token.to_owned() })
    }

    /// In the place of what is there.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn key(path: &Path, key: &RunKey) -> Result<Secret> {
        key.replace(path)?;
        Ok(Secret { path: path.to_owned(), text: key.reveal() })
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        // Another run may have put its own there, or somebody what is no file.
        let is_file = std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_file());
        if is_file && std::fs::read_to_string(&self.path).is_ok_and(|text| text.trim_end() == self.text.trim_end()) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Workers {
    /// So many threads.
    pub(super) fn inside(count: u32) -> Workers {
        Workers::Inside(Inside { count, driver: None, threads: Vec::new() })
    }

    /// Those that have joined; `children`: of them, those that this process has started.
    pub(super) fn connected(
        quic: Quic,
        exchange: Arc<Exchange>,
        settings: Settings,
        children: Children,
        secrets: Vec<Secret>,
    ) -> Workers {
        let (quic, children) = (Arc::new(quic), Arc::new(Mutex::new(children)));
        exchange.connect(quic.clone());
        Workers::Connected(Connected {
            exchange: Some(exchange),
            quic,
            change: 0,
            settings,
            children,
            _secrets: secrets,
        })
    }

    /// Whether they can be lost, and come again.
    pub(super) fn come_again(&self) -> bool {
        matches!(self, Workers::Connected(_))
    }

    /// Whether they have, so that those that come next come again.
    pub(super) fn have_worked(&self) -> bool {
        matches!(self, Workers::Connected(connected) if connected.exchange.is_none())
    }

    /// Returns the driver's end: of those that are here or, once these have worked, of those that come again.
    ///
    /// # Errors
    /// None comes.
    pub(super) fn muster<T: Number>(&mut self, table: &Arc<Table<T>>) -> Result<Arc<Exchange>> {
        match self {
            Workers::Inside(inside) => Ok(inside.begin(table)),
            Workers::Connected(connected) => match connected.exchange.take() {
                Some(exchange) => Ok(exchange),
                None => connected.again(),
            },
        }
    }

    /// Workers that wait until the run begins again with them.
    pub(super) fn waiting(&self) -> u32 {
        match self {
            Workers::Inside(_) => 0,
            Workers::Connected(connected) => connected.quic.waiting(),
        }
    }

    /// When they next come again there will be as many more, or fewer. Returns whether that can be: one must be left, and a run has no
    /// more than it can have.
    pub(super) fn expect(&mut self, change: i64) -> bool {
        let Workers::Connected(connected) = self else { return false };
        let possible = possible(i64::from(connected.quic.hosts()) - 1, change);
        connected.change = possible.unwrap_or(0);
        possible.is_some()
    }

    /// Ends threads, which then hold nothing any more.
    pub(super) fn dismiss(&mut self) {
        if let Workers::Inside(Inside { driver, threads, .. }) = self {
            driver.take().into_iter().for_each(|driver| driver.transport().leave());
            threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }

    /// Those that this process has started.
    pub(super) fn children(&self) -> Option<Arc<Mutex<Children>>> {
        match self {
            Workers::Inside(_) => None,
            Workers::Connected(connected) => Some(connected.children.clone()),
        }
    }

    /// Tells people what becomes of them.
    pub(super) fn said(&self, what: &str) {
        // Tests lose workers by the hundred. Nothing can be done if it cannot be written.
        let _ = if cfg!(test) { Ok(()) } else { writeln!(std::io::stderr(), "{what}") };
    }
}

/// What can become of a change of the number of workers; none if nothing can. As many may come as go.
fn possible(now: i64, change: i64) -> Option<i64> {
    let then = (now + change).min(i64::from(MOST));
    (then > 0 && (then != now || change == 0)).then_some(then - now)
}

impl Connected {
    fn again(&mut self) -> Result<Arc<Exchange>> {
        let children = || self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children().revive()?;
        let exchange = Exchange::new();
        let expected = i64::from(self.quic.hosts()) - 1 + std::mem::take(&mut self.change);
        let expected = expected.clamp(1, i64::from(MOST)) as u32;
        let listening = Listening::again(&self.quic, expected, self.settings.clone(), exchange.sink())?;
        let quic = listening.wait_for_workers(Instant::now() + PATIENCE, |_| {}, || children().revive_killed())?;
        children().have_come();
        self.quic = Arc::new(quic);
        exchange.connect(self.quic.clone());
        Ok(exchange)
    }
}

impl Drop for Connected {
    /// A run that never began has failed before: workers are told so, or they would take it for lost.
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        exchange.finish();
        let end = Control::End { has_failed: true }.encode();
        (1..self.quic.hosts()).for_each(|to| exchange.send(to, end.clone()));
        self.quic.close();
    }
}

impl Inside {
    /// Starts threads. Returns the driver's end.
    fn begin<T: Number>(&mut self, table: &Arc<Table<T>>) -> Arc<Exchange> {
        let exchanges: Vec<Arc<Exchange>> = (0..=self.count).map(|_| Exchange::new()).collect();
        let transports = memory::hosts(exchanges.iter().map(Exchange::sink).collect());
        for (exchange, transport) in exchanges.iter().zip(transports) {
            exchange.connect(Arc::new(transport));
        }
        #[cfg(test)]
        if let Some((host, hurt)) = super::hurt::Hurt::next() {
            exchanges[host].patient.is(hurt);
        }
        #[cfg(all(test, feature = "gpu"))]
        let memory = gpu::MEMORY.get();
        let start = |exchange: &Arc<Exchange>| {
            let (exchange, table) = (exchange.clone(), Table::clone(table));
            std::thread::spawn(move || {
                #[cfg(all(test, feature = "gpu"))]
                gpu::MEMORY.set(memory);
                // The driver hears of what goes wrong.
                let _ = worker::begin(&exchange).and_then(|begin| worker::work(&exchange, &begin, table, None));
                exchange.transport().close();
            })
        };
        self.threads = exchanges[1..].iter().map(start).collect();
        self.driver = Some(exchanges[0].clone());
        exchanges[0].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_change_as_far_as_one_is_left_and_there_is_room() {
        for (now, change, expected) in [
            (2, 1, Some(1)),
            (2, -1, Some(-1)),
            // One comes and one leaves.
            (2, 0, Some(0)),
            (1, -1, None),
            (2, -3, None),
            (255, 3, Some(1)),
            (256, 1, None),
            (256, 0, Some(0)),
        ] {
            assert_eq!(possible(now, change), expected, "{now} {change}");
        }
    }
}
