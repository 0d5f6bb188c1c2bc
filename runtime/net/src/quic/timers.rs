//! When tasks of the network want to go on.

use quinn::AsyncTimer;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Timers that somebody waits for, by when they are due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    waiting: Mutex<BTreeMap<(Instant, u64), Waker>>,
    made: AtomicU64,
}

impl Timers {
    /// Makes a timer that is due at `at`.
    pub(super) fn at(self: &Arc<Self>, at: Instant) -> Timer {
        Timer { timers: self.clone(), at, number: self.made.fetch_add(1, Ordering::Relaxed) }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<(Instant, u64), Waker>> {
        self.waiting.lock().expect("no holder of the lock panics")
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting().first_key_value().map(|((at, _), _)| *at)
    }

    /// Wakes those that are due.
    pub(super) fn fire(&self, now: Instant) {
        let mut due = Vec::new();
        let mut waiting = self.waiting();
        while let Some(first) = waiting.first_entry().filter(|first| first.key().0 <= now) {
            due.push(first.remove());
        }
        drop(waiting);
        due.into_iter().for_each(Waker::wake);
    }
}

/// Ends at a time.
#[derive(Debug)]
pub(super) struct Timer {
    timers: Arc<Timers>,
    at: Instant,
    number: u64,
}

impl Future for Timer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        if self.at <= Instant::now() {
            return Poll::Ready(());
        }
        self.timers.waiting().insert((self.at, self.number), context.waker().clone());
        Poll::Pending
    }
}

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.timers.waiting().remove(&(self.at, self.number));
        self.at = at;
    }

    fn poll(self: Pin<&mut Self>, context: &mut Context) -> Poll<()> {
        Future::poll(self, context)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.timers.waiting().remove(&(self.at, self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;
    use std::time::Duration;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_timer_wakes_its_task_once_when_it_is_due_and_not_after_it_was_set_anew_or_dropped() {
        let (timers, woken) = (Arc::<Timers>::default(), Arc::<Woken>::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let [mut soon, mut late] = [after(100), after(200)].map(|at| timers.at(at));
        for timer in [&mut soon, &mut late] {
            assert!(Future::poll(Pin::new(timer), &mut context).is_pending());
        }
        assert_eq!(timers.next(), Some(after(100)));
        timers.fire(after(99));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        Pin::new(&mut soon).reset(after(300));
        timers.fire(after(100));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0, "it was set anew");
        timers.fire(after(200));
        timers.fire(after(200));
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(Future::poll(Pin::new(&mut late), &mut context).is_pending());
        drop(late);
        assert_eq!(timers.next(), None);
        assert!(Future::poll(Pin::new(&mut timers.at(now)), &mut context).is_ready());
    }
}
