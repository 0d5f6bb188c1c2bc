//! A view, as a run holds it.

use crate::access::Access;
use crate::desk::{Desk, Turn};
use crate::error::{Error, Result};
use crate::message::Frame;
use crate::model::Model;
use crate::server::serve;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Where a view listens, and what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Where it listens; port 0 is a free one. Whoever can reach the address needs the token; what is sent is not encrypted.
    pub address: SocketAddr,
    /// Whether there are steps to take: a run. Otherwise states are shown that are there.
    pub steps: bool,
    /// Whether a page of this machine, that of a notebook, may have the view within it.
    pub is_framed: bool,
}

impl Default for Config {
    /// A run, on a free port of this machine alone.
    fn default() -> Config {
        Config { address: (Ipv4Addr::LOCALHOST, 0).into(), steps: true, is_framed: false }
    }
}

/// A page that is served while this lives. See the [crate](crate)'s documentation.
pub struct View {
    desk: Arc<Desk>,
    url: String,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl View {
    /// Starts to serve, on a thread of its own.
    ///
    /// # Errors
    /// An address at which it cannot listen; no thread or random number is to be had.
    pub fn start(config: &Config) -> Result<View> {
        let listen = |cause| Error::Listen { address: config.address, cause };
        let listener = TcpListener::bind(config.address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let mut address = listener.local_addr().map_err(listen)?;
        let access = Arc::new(Access::new(address)?);
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let url = format!("http://{address}/{}/", access.token());
        let desk = Arc::new(Desk::new(config.steps));
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Start)?;
        let (served, is_framed) = (desk.clone(), config.is_framed);
        let work = move || {
            runtime.block_on(async {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    serve(listener, served, (access, is_framed), stopped).await;
                }
            });
            // What still waits for a page waits no more.
            runtime.shutdown_timeout(Duration::from_millis(100));
        };
        let thread = std::thread::Builder::new().name("view".into()).spawn(work).map_err(Error::Start)?;
        Ok(View { desk, url, stop, thread: Some(thread) })
    }

    /// The address of the page, with its token.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the run is to do next. Waits a 20th of a second at most. Cost where nobody watches: an atomic load.
    pub fn turn(&mut self) -> Turn {
        self.desk.turn()
    }

    /// Says what there is to see. Cost: a copy of what is drawn of the mesh.
    pub fn describe(&mut self, model: Model) {
        self.desk.describe(model);
    }

    /// Hands over a state. It is encoded and sent by the view's own thread.
    pub fn show(&mut self, frame: Frame) {
        self.desk.show(frame);
    }

    /// Says what the numbers are that pages can set, in the order of the model, and why one was refused.
    pub fn set(&mut self, dials: Vec<f64>, refused: Option<String>) {
        self.desk.set(dials, refused);
    }

    /// Says that no step follows, and why: pages can still look at the state.
    pub fn end(&mut self, why: &str) {
        self.desk.end(why);
    }

    /// Pages that are open.
    pub fn pages(&self) -> usize {
        self.desk.pages()
    }

    /// Waits until a page is open, so long at most. Returns whether one is.
    pub fn wait_for_page(&self, patience: Duration) -> bool {
        self.desk.wait_for_page(patience)
    }
}

impl Drop for View {
    /// Takes leave of its pages: half a second at most.
    fn drop(&mut self) {
        self.desk.end("the run is over");
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
