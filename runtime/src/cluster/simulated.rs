//! A network that is not there: in virtual time, with every fault that a seed decides.
//!
//! Hosts are threads of which one runs at a time. When it waits, the simulation looks for what comes next: a host that has news
//! runs on, chosen by the seed; if none has, time jumps to the next frame that arrives or the next time-out. So a seed is
//! a run: the same choices, frames and times whenever it is repeated, told by [`Simulated::trace`].

use crate::cluster::exchange::Exchange;
use crate::cluster::time::Time;
use meshweft_net::{Event, Host, Traffic, Transport};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long the network of a host that has said goodbye goes on answering.
const GOODBYE: Duration = Duration::from_secs(10);

/// What happens to frames, out of a thousand, and how long they take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    /// The longest time on the way; the shortest is nothing, so frames overtake each other.
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
    /// Frames on their way: by time and number.
    frames: BTreeMap<(Duration, u64), (Host, Host, Vec<u8>)>,
    number: u64,
    trace: blake3::Hasher,
    traced: u64,
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
    /// When it stops answering, after it has said goodbye.
    closes: Option<Duration>,
    /// When its peer has something to do.
    timeout: Option<Duration>,
}

impl State {
    /// SplitMix64.
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
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
        let state = State {
            now: Duration::ZERO,
            random: seed,
            hosts: vec![HostState::default(); hosts as usize],
            turn: 0,
            frames: BTreeMap::new(),
            number: 0,
            trace: blake3::Hasher::new(),
            traced: 0,
        };
        let (state, turned) = (Mutex::new(state), (0..hosts).map(|_| Condvar::new()).collect());
        Arc::new(Simulated { state, turned, exchanges: OnceLock::new(), faults })
    }

    pub(crate) fn host(self: &Arc<Self>, host: Host) -> Arc<Simulation> {
        Arc::new(Simulation { world: self.clone(), host })
    }

    /// Says whom frames are for.
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
            let frame = state.frames.keys().next().map(|key| key.0);
            let sleepers = state.hosts.iter().filter(|host| !host.is_over);
            let wake = sleepers.filter_map(|host| Some(host.asleep?.1)).min();
            let alive = state.hosts.iter().filter(|host| !host.is_dead);
            let timeout = alive.flat_map(|host| [host.timeout, host.closes]).flatten().min();
            let Some(next) = [frame, wake, timeout].into_iter().flatten().min() else { return };
            state.now = state.now.max(next);
            let now = state.now;
            if let Some((crashed, _)) = self.faults.crash.filter(|(_, time)| now >= *time) {
                let host = &mut state.hosts[crashed as usize];
                (host.is_over, host.is_dead) = (true, true);
                self.turned[crashed as usize].notify_one();
            }
            for host in state.hosts.iter_mut().filter(|host| host.closes.is_some_and(|at| at <= now)) {
                host.is_dead = true;
            }
            if frame.is_some_and(|at| at <= now) {
                let (_, (from, to, bytes)) = state.frames.pop_first().expect("it was looked at");
                state.note(&[2, u64::from(from), u64::from(to), bytes.len() as u64]);
                if !state.hosts[to as usize].is_dead {
                    drop(state);
                    self.exchange(to).sink()(Event::Message { from, bytes });
                }
                continue;
            }
            for host in 0..state.hosts.len() {
                let known = &mut state.hosts[host];
                if known.asleep.is_some_and(|(_, at)| at <= now) {
                    known.asleep = None;
                }
            }
            drop(state);
            self.time_out(now);
        }
    }

    fn time_out(&self, now: Duration) {
        let due = |host: &HostState| !host.is_dead && host.timeout.is_none_or(|at| at <= now);
        let due: Vec<Host> = (0..).zip(&self.state().hosts).filter(|(_, host)| due(host)).map(|(i, _)| i).collect();
        for host in due {
            let next = self.exchange(host).pass_time();
            // Not before time has passed: or it would stand still.
            let next = next.map(|at| at.max(now + Duration::from_micros(100)));
            self.state().hosts[host as usize].timeout = next;
        }
    }

    fn exchange(&self, host: Host) -> &Arc<Exchange> {
        &self.exchanges.get().expect("the world has begun")[host as usize]
    }
}

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
        let mut state = self.world.state();
        let host = &mut state.hosts[self.host as usize];
        host.count += 1;
        host.timeout = Some(Duration::ZERO);
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
        let Faults { lost, twice, delay, cut, .. } = self.world.faults;
        let mut state = self.world.state();
        let now = state.now;
        let is_cut = cut.is_some_and(|(pair, at)| now >= at && pair.contains(&to) && pair.contains(&self.host));
        let copies = 1 + u64::from(state.below(1000) < twice);
        for _ in 0..copies {
            let (is_lost, took) = (state.below(1000) < lost, state.below(delay.as_nanos() as u64 + 1));
            if is_lost || is_cut {
                continue;
            }
            state.number += 1;
            let key = (now + Duration::from_nanos(took), state.number);
            state.frames.insert(key, (self.host, to, message.clone()));
        }
        state.hosts[self.host as usize].timeout = Some(Duration::ZERO);
    }

    fn wait_for_room(&self, _: Host, _: usize, _: Instant) -> bool {
        true
    }

    fn traffic(&self, _: Host) -> Traffic {
        Traffic::default()
    }

    fn close(&self) {
        let mut state = self.world.state();
        let until = state.now + GOODBYE;
        state.hosts[self.host as usize].closes = Some(until);
    }

    fn leave(&self) {
        let mut state = self.world.state();
        let now = state.now;
        state.hosts[self.host as usize].closes = Some(now);
    }
}
