//! A network that is not there: in virtual time, with every fault that a seed decides.
//!
//! Hosts are threads of which one runs at a time. When it waits, the simulation looks for what comes next: a host that has news
//! runs on, chosen by the seed; if none has, time jumps to the next message that arrives, or host that wakes up. So a seed is
//! a run: the same choices, messages and times whenever it is repeated, told by [`Simulated::trace`].

use crate::cluster::exchange::Exchange;
use crate::cluster::time::Time;
use meshweft_net::{Event, Host, Traffic, Transport};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long the network of a host that has said goodbye goes on answering.
const GOODBYE: Duration = Duration::from_secs(10);

/// A host of which nothing is heard for that long is lost.
pub(crate) const DEAD: Duration = Duration::from_secs(10);
/// After which time a network sends again what was lost.
const RESEND: Duration = Duration::from_millis(20);

/// What happens to messages. Between two hosts they arrive in order, each once, as a transport promises.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Out of a thousand, those that a network loses and sends again.
    pub(crate) lost: u64,
    /// The longest time on the way; the shortest is nothing, so those of several hosts overtake each other.
    pub(crate) delay: Duration,
    /// A host that ends without a word at some time.
    pub(crate) crash: Option<(Host, Duration)>,
    /// Two hosts between which nothing goes from some time on.
    pub(crate) cut: Option<([Host; 2], Duration)>,
}

/// The world of one run.
pub(crate) struct Simulated {
    state: Mutex<State>,
    /// For each host, that it is its turn.
    turned: Vec<Condvar>,
    exchanges: OnceLock<Vec<Arc<Exchange>>>,
    faults: Faults,
}

struct State {
    now: Duration,
    random: u64,
    hosts: Vec<HostState>,
    /// Who runs.
    turn: Host,
    /// What is to happen: by time and number.
    coming: BTreeMap<(Duration, u64), Coming>,
    number: u64,
    /// When the last message of a host to another arrives: row after row.
    last: Vec<Duration>,
    trace: blake3::Hasher,
    traced: u64,
}

enum Coming {
    Message(Host, Host, Vec<u8>),
    /// The first is told that the second is gone.
    Loss(Host, Host, &'static str),
    Crash(Host),
    /// It has said goodbye so long ago that it answers no more.
    Close(Host),
}

#[derive(Clone, Default)]
struct HostState {
    count: u64,
    /// The count at which it fell asleep, and when it wakes up by itself.
    asleep: Option<(u64, Duration)>,
    /// Its thread has ended; its network may go on answering.
    is_over: bool,
    /// It answers no more.
    is_dead: bool,
    /// It has said goodbye.
    leaves: bool,
}

impl State {
    /// SplitMix64.
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn plan(&mut self, at: Duration, what: Coming) {
        self.number += 1;
        self.coming.insert((at, self.number), what);
    }

    /// Plans that all others that are there learn that a host is gone.
    fn plan_loss(&mut self, at: Duration, host: Host, why: &'static str) {
        for other in (0..self.hosts.len() as Host).filter(|&other| other != host) {
            self.plan(at, Coming::Loss(other, host, why));
        }
    }

    fn note(&mut self, what: &[u64]) {
        self.traced += 1;
        let now = self.now.as_nanos() as u64;
        [now].iter().chain(what).for_each(|word| _ = self.trace.update(&word.to_le_bytes()));
    }
}

impl Simulated {
    /// A world of so many hosts, of which the driver runs first.
    pub(crate) fn new(hosts: u32, seed: u64, faults: Faults) -> Arc<Simulated> {
        let mut state = State {
            now: Duration::ZERO,
            random: seed,
            hosts: vec![HostState::default(); hosts as usize],
            turn: 0,
            coming: BTreeMap::new(),
            number: 0,
            last: vec![Duration::ZERO; (hosts * hosts) as usize],
            trace: blake3::Hasher::new(),
            traced: 0,
        };
        if let Some((host, at)) = faults.crash {
            state.plan(at, Coming::Crash(host));
        }
        if let Some(([a, b], at)) = faults.cut {
            state.plan(at + DEAD, Coming::Loss(a, b, SILENT));
            state.plan(at + DEAD, Coming::Loss(b, a, SILENT));
        }
        let (state, turned) = (Mutex::new(state), (0..hosts).map(|_| Condvar::new()).collect());
        Arc::new(Simulated { state, turned, exchanges: OnceLock::new(), faults })
    }

    pub(crate) fn host(self: &Arc<Self>, host: Host) -> Arc<Simulation> {
        Arc::new(Simulation { world: self.clone(), host })
    }

    /// Says whom messages are for.
    pub(crate) fn begin(&self, exchanges: Vec<Arc<Exchange>>) {
        assert!(self.exchanges.set(exchanges).is_ok(), "a world begins once");
    }

    /// What has happened so far, and how much.
    pub(crate) fn trace(&self) -> (String, u64) {
        let state = self.state();
        (state.trace.finalize().to_hex().to_string(), state.traced)
    }

    /// How long it has lasted.
    pub(crate) fn now(&self) -> Duration {
        self.state().now
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A host's thread begins: it waits for its turn.
    pub(crate) fn enter(&self, host: Host) {
        let mut state = self.state();
        while state.turn != host {
            if state.hosts[host as usize].is_dead {
                drop(state);
                std::panic::panic_any(Crash);
            }
            state = self.turned[host as usize].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A host's thread ends.
    pub(crate) fn leave(&self, host: Host) {
        self.state().hosts[host as usize].is_over = true;
        self.pass_on();
    }

    /// Decides who runs next, and lets time pass until some host can.
    fn pass_on(&self) {
        loop {
            let mut state = self.state();
            let is_awake = |host: &HostState| !host.is_over && host.asleep.is_none_or(|(count, _)| count != host.count);
            let awake: Vec<Host> = (0..).zip(&state.hosts).filter(|(_, host)| is_awake(host)).map(|(i, _)| i).collect();
            if !awake.is_empty() {
                let chosen = awake[state.below(awake.len() as u64) as usize];
                state.note(&[1, u64::from(chosen)]);
                state.turn = chosen;
                drop(state);
                self.turned[chosen as usize].notify_one();
                return;
            }
            if state.hosts.iter().all(|host| host.is_over) {
                return;
            }
            let first = state.coming.keys().next().map(|key| key.0);
            let sleepers = state.hosts.iter().filter(|host| !host.is_over);
            let wake = sleepers.filter_map(|host| Some(host.asleep?.1)).min();
            let Some(next) = [first, wake].into_iter().flatten().min() else { return };
            state.now = state.now.max(next);
            let now = state.now;
            if first.is_some_and(|at| at <= now) {
                let (_, what) = state.coming.pop_first().expect("it was looked at");
                self.happen(state, what);
                continue;
            }
            for host in state.hosts.iter_mut().filter(|host| host.asleep.is_some_and(|(_, at)| at <= now)) {
                host.asleep = None;
            }
        }
    }

    fn happen(&self, mut state: MutexGuard<'_, State>, what: Coming) {
        let now = state.now;
        let (to, event) = match what {
            Coming::Message(from, to, bytes) => {
                state.note(&[2, u64::from(from), u64::from(to), bytes.len() as u64]);
                (to, Event::Message { from, bytes })
            }
            Coming::Loss(to, host, why) => {
                state.note(&[3, u64::from(host), u64::from(to)]);
                (to, Event::Lost { host, why: why.into() })
            }
            Coming::Crash(host) => {
                let crashed = &mut state.hosts[host as usize];
                if crashed.is_over {
                    return;
                }
                (crashed.is_over, crashed.is_dead) = (true, true);
                state.plan_loss(now + DEAD, host, SILENT);
                return self.turned[host as usize].notify_one();
            }
            Coming::Close(host) => {
                state.hosts[host as usize].is_dead = true;
                for other in 0..state.hosts.len() as Host {
                    if other != host && !state.hosts[other as usize].leaves {
                        state.plan(now, Coming::Loss(other, host, "it left without waiting for a goodbye"));
                    }
                }
                return;
            }
        };
        if !state.hosts[to as usize].is_dead {
            drop(state);
            self.exchange(to).sink()(event);
        }
    }

    fn exchange(&self, host: Host) -> &Arc<Exchange> {
        &self.exchanges.get().expect("the world has begun")[host as usize]
    }
}

/// Why a host is lost that was cut off.
const SILENT: &str = "nothing was heard of it for too long";

/// How the thread of a host ends that crashes.
pub(crate) struct Crash;

/// Goes on with a panic that is a crash, which nobody outlives.
pub(crate) fn pass_on(panic: Box<dyn Any + Send>) -> Box<dyn Any + Send> {
    if panic.is::<Crash>() { std::panic::resume_unwind(panic) } else { panic }
}

/// One host's end.
pub(crate) struct Simulation {
    world: Arc<Simulated>,
    host: Host,
}

impl Time for Simulation {
    fn now(&self) -> Duration {
        self.world.state().now
    }

    fn news(&self) {
        self.world.state().hosts[self.host as usize].count += 1;
    }

    fn count(&self) -> u64 {
        self.world.state().hosts[self.host as usize].count
    }

    fn rest(&self, count: u64, nap: Duration) {
        let mut state = self.world.state();
        // Whatever it may wait for is news, so it need not look as often as on a real machine.
        let until = state.now + nap.max(Duration::from_millis(500));
        state.hosts[self.host as usize].asleep = Some((count, until));
        drop(state);
        self.world.pass_on();
        self.world.enter(self.host);
        self.world.state().hosts[self.host as usize].asleep = None;
    }
}

impl Transport for Simulation {
    fn host(&self) -> Host {
        self.host
    }

    fn hosts(&self) -> u32 {
        self.world.state().hosts.len() as u32
    }

    fn send(&self, to: Host, message: Vec<u8>) {
        let Faults { lost, delay, cut, .. } = self.world.faults;
        let mut state = self.world.state();
        let now = state.now;
        if cut.is_some_and(|(pair, at)| now >= at && pair.contains(&to) && pair.contains(&self.host)) {
            return;
        }
        let mut at = now + Duration::from_nanos(state.below(delay.as_nanos() as u64 + 1));
        while state.below(1000) < lost {
            at += RESEND;
        }
        let pair = self.host as usize * state.hosts.len() + to as usize;
        state.last[pair] = state.last[pair].max(at);
        let at = state.last[pair];
        state.plan(at, Coming::Message(self.host, to, message));
    }

    fn wait_for_room(&self, _: Host, _: usize, _: Instant) -> bool {
        true
    }

    fn traffic(&self, _: Host) -> Traffic {
        Traffic::default()
    }

    fn close(&self) {
        let mut state = self.world.state();
        state.hosts[self.host as usize].leaves = true;
        let at = state.now + GOODBYE;
        state.plan(at, Coming::Close(self.host));
    }

    fn leave(&self) {
        let mut state = self.world.state();
        let at = state.now;
        state.hosts[self.host as usize].is_dead = true;
        state.plan_loss(at, self.host, "it left");
    }
}
