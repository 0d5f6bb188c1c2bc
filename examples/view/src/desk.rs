//! Where the run and the pages meet: what pages want, what there is for them, and whether the run may go on.
//!
//! One lock, held for as long as it takes to look at a few numbers. Frames are handed over as they are: what they take to encode and to
//! send is the time of the thread that serves. No page holds a run up [C14]: what is asked for is a few numbers, and frames wait for
//! pages, not the run for either.

use crate::message::{Fixed, Frame, Request, Wish};
use crate::model::Model;
use axum::body::Bytes;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Time from one frame to the next: eyes see no more, and a run has better things to do.
const BETWEEN: Duration = Duration::from_millis(33);
/// The same from one frame with measures to the next: some cost as much as a sweep.
const BETWEEN_MEASURES: Duration = Duration::from_millis(100);
/// A run that goes on has so many times as long for its steps as frames take, and as measures take: large meshes are shown less often.
/// Where cores are few a frame costs three times what it takes here, as its bytes are sent and read there: docs/perf/view.md.
const STEPS_TO_FRAMES: u32 = 64;
const STEPS_TO_MEASURES: u32 = 60;
/// How long a turn waits before its run may look at something else, such as Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);
/// Pages at once: each is sent frames of its own.
pub(crate) const MOST_PAGES: usize = 8;
/// Over how long the rate of steps is measured.
const RATE_OVER: Duration = Duration::from_millis(500);

/// What a run is to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// Take the next step.
    Step,
    /// Say what there is to see, by [`View::describe`](crate::View::describe), and ask again.
    Describe,
    /// Hand over the state, by [`View::show`](crate::View::show), and ask again.
    Show(Wanted),
    /// Set numbers, as places in those of the model with their values; say what has come of it, by [`View::set`](crate::View::set), and
    /// ask again.
    Set(Vec<(usize, f64)>),
    /// Ask again: it is not time for a step. Asking has waited already.
    Wait,
}

/// What pages want of a state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Fields, as places in those of the model, ascending.
    pub fields: Vec<usize>,
    /// Whether measures are wanted.
    pub metrics: bool,
    /// The place in a series.
    pub at: usize,
}

/// What there is for a page.
#[derive(Default)]
pub(crate) struct Post {
    /// What it is told once.
    pub(crate) model: Option<Bytes>,
    /// Where the run stands.
    pub(crate) status: Option<String>,
    /// The newest frame, with what was wished of it and the rate of steps.
    pub(crate) frame: Option<(Arc<Frame>, Wish, f64)>,
    /// What encoding takes.
    pub(crate) fixed: Arc<Fixed>,
}

#[derive(Default)]
pub(crate) struct Desk {
    /// Whether there is nothing to ask the lock for: a run that nobody watches.
    is_idle: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether there are steps to take.
    steps: bool,
    model: Option<(Bytes, Arc<Fixed>)>,
    /// The numbers that can be set, what they are to be, by place, and why the last was refused.
    dials: Vec<f64>,
    wanted: BTreeMap<usize, f64>,
    refused: Option<String>,
    pages: Vec<Page>,
    next_page: u64,
    paused: bool,
    /// Steps to be taken although it is paused.
    due: u64,
    /// The most steps a second; 0 is any number.
    pace: f64,
    next_step: Option<Instant>,
    at: usize,
    /// Changes with what there is to see.
    version: u64,
    /// When the frame that is made was asked for, and whether with measures; when there may be another one, and one with measures.
    asked: Option<(Instant, bool)>,
    next_frame: Option<Instant>,
    next_measures: Option<Instant>,
    rate: f64,
    rated: Option<(Instant, u64)>,
    over: Option<String>,
}

struct Page {
    number: u64,
    wish: Wish,
    /// Whether it has drawn what it was sent.
    is_ready: bool,
    is_told: bool,
    has_model: bool,
    /// The version of what it was sent, unless it wishes something else by now.
    seen: Option<u64>,
    /// The same of the last one with measures.
    measured: Option<u64>,
    /// What it wished of the frame that the run was asked for.
    asked: Option<Wish>,
    mail: Option<(Arc<Frame>, Wish)>,
    wake: Arc<Notify>,
}

impl Desk {
    /// Of a run that takes steps, or of states that are there.
    pub(crate) fn new(steps: bool) -> Desk {
        Desk { is_idle: steps.into(), state: Mutex::new(State { steps, ..State::default() }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets all know of a change, and the run of whether to look here.
    fn settle(&self, state: MutexGuard<'_, State>) {
        self.is_idle.store(state.steps && state.pages.is_empty(), Ordering::Release);
        drop(state);
        self.changed.notify_all();
    }

    /// See [`View::turn`](crate::View::turn).
    pub(crate) fn turn(&self) -> Turn {
        if self.is_idle.load(Ordering::Acquire) {
            return Turn::Step;
        }
        let (mut state, end) = (self.lock(), Instant::now() + PATIENCE);
        loop {
            let now = Instant::now();
            if let Some(turn) = state.turn(now) {
                return turn;
            }
            if now >= end {
                return Turn::Wait;
            }
            let until = state.wakes().filter(|at| *at < end).unwrap_or(end).saturating_duration_since(now);
            let waited = self.changed.wait_timeout(state, until.max(Duration::from_micros(100)));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn describe(&self, model: Model) {
        let bytes = model.encode();
        let fixed = Fixed {
            center: model.center(),
            points: model.points.len(),
            components: model.fields.iter().map(|field| field.components).collect(),
            names: model.fields.iter().map(|field| field.name.clone()).collect(),
            shape: model.shape,
        };
        let dials = model.dials.iter().map(|dial| dial.value).collect();
        let mut state = self.lock();
        state.dials = dials;
        state.model = Some((bytes, Arc::new(fixed)));
        state.pages.iter_mut().for_each(|page| page.has_model = false);
        state.tell();
        self.settle(state);
    }

    pub(crate) fn show(&self, frame: Frame) {
        let (frame, now) = (Arc::new(frame), Instant::now());
        let mut state = self.lock();
        let version = state.version;
        let (asked, is_measured) = state.asked.take().unwrap_or((now, false));
        let cost = (now - asked).saturating_sub(frame.measuring);
        state.next_frame = Some(now + state.rest(cost, STEPS_TO_FRAMES).max(BETWEEN));
        if is_measured {
            state.next_measures = Some(now + state.rest(frame.measuring, STEPS_TO_MEASURES).max(BETWEEN_MEASURES));
        }
        match state.rated {
            Some((then, step)) if now - then >= RATE_OVER => {
                state.rate = frame.step.saturating_sub(step) as f64 / (now - then).as_secs_f64();
                state.rated = Some((now, frame.step));
            }
            Some(_) => {}
            None => state.rated = Some((now, frame.step)),
        }
        for page in &mut state.pages {
            if let Some(wish) = page.asked.take() {
                (page.is_ready, page.seen) = (false, (wish == page.wish).then_some(version));
                if is_measured {
                    page.measured = Some(version);
                }
                page.mail = Some((frame.clone(), wish));
                page.wake.notify_one();
            }
        }
        self.settle(state);
    }

    /// Numbers were set, or were refused.
    pub(crate) fn set(&self, dials: Vec<f64>, refused: Option<String>) {
        let mut state = self.lock();
        (state.dials, state.refused) = (dials, refused);
        // There is something to see, though no step was taken: measures may be others.
        state.version += 1;
        state.tell();
        self.settle(state);
    }

    /// A frame took so long to encode, on a core that the run may have missed.
    pub(crate) fn encoded(&self, cost: Duration) {
        let mut state = self.lock();
        // What the system does to send it is about as much again; the more cores there are, the less the run misses one.
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        let rest = state.rest(2 * cost / cores, STEPS_TO_FRAMES);
        state.next_frame = state.next_frame.map(|at| at + rest);
    }

    /// No step follows: the state can still be looked at.
    pub(crate) fn end(&self, why: &str) {
        let mut state = self.lock();
        state.steps = false;
        state.wanted.clear();
        state.hurry();
        state.over.get_or_insert(why.to_string());
        state.tell();
        self.settle(state);
    }

    /// Pages that are here.
    pub(crate) fn pages(&self) -> usize {
        self.lock().pages.len()
    }

    /// Waits for a page. Returns whether one is here.
    pub(crate) fn wait_for_page(&self, patience: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, |state| state.pages.is_empty());
        !waited.unwrap_or_else(PoisonError::into_inner).0.pages.is_empty()
    }

    /// A page comes. Returns its number and what wakes it; nothing if there are enough.
    pub(crate) fn come(&self) -> Option<(u64, Arc<Notify>)> {
        let mut state = self.lock();
        if state.pages.len() >= MOST_PAGES {
            return None;
        }
        let (number, wake) = (state.next_page, Arc::new(Notify::new()));
        state.next_page += 1;
        wake.notify_one();
        state.pages.push(Page {
            number,
            wish: Wish::default(),
            is_ready: false,
            is_told: false,
            has_model: false,
            seen: None,
            measured: None,
            asked: None,
            mail: None,
            wake: wake.clone(),
        });
        self.settle(state);
        Some((number, wake))
    }

    /// A page goes. With the last one goes what they have asked of the run.
    pub(crate) fn go(&self, number: u64) {
        let mut state = self.lock();
        state.pages.retain(|page| page.number != number);
        if state.pages.is_empty() {
            (state.paused, state.due, state.pace) = (false, 0, 0.0);
            (state.rate, state.rated) = (0.0, None);
            state.wanted.clear();
        }
        self.settle(state);
    }

    /// A page asks for something.
    pub(crate) fn take(&self, number: u64, request: &Request) {
        let mut state = self.lock();
        let before = (state.paused, state.pace, state.at);
        if let Some(pause) = request.pause {
            (state.paused, state.due) = (pause, 0);
        }
        if let Some(steps) = request.step {
            (state.paused, state.due) = (true, u64::from(steps));
        }
        if state.paused {
            state.hurry();
        }
        if let Some(pace) = request.pace.filter(|pace| pace.is_finite()) {
            (state.pace, state.next_step) = (pace.clamp(0.0, 1e6), None);
        }
        if let Some((dial, value)) = request.set.filter(|&(dial, _)| state.steps && dial < state.dials.len()) {
            state.wanted.insert(dial, value);
        }
        if let Some(at) = request.at.filter(|&at| at != state.at) {
            state.at = at;
            state.version += 1;
        }
        if let Some(page) = state.pages.iter_mut().find(|page| page.number == number) {
            page.is_ready |= request.ready;
            let old = page.wish.clone();
            request.apply(&mut page.wish);
            // A vertex that is picked again is told again.
            if page.wish != old || request.pick.is_some() {
                page.seen = None;
            }
        }
        if (state.paused, state.pace, state.at) != before {
            state.tell();
        }
        self.settle(state);
    }

    /// What there is for a page.
    pub(crate) fn collect(&self, number: u64) -> Post {
        let state = &mut *self.lock();
        let status = state.status();
        let Some(page) = state.pages.iter_mut().find(|page| page.number == number) else { return Post::default() };
        let status = (!std::mem::replace(&mut page.is_told, true)).then_some(status);
        let Some((model, fixed)) = &state.model else { return Post { status, ..Post::default() } };
        let model = (!std::mem::replace(&mut page.has_model, true)).then(|| model.clone());
        let frame = page.mail.take().map(|(frame, wish)| (frame, wish, state.rate));
        Post { model, status, frame, fixed: fixed.clone() }
    }
}

impl State {
    fn turn(&mut self, now: Instant) -> Option<Turn> {
        if self.pages.is_empty() {
            return self.steps.then_some(Turn::Step);
        }
        if self.model.is_none() {
            return Some(Turn::Describe);
        }
        if !self.wanted.is_empty() {
            return Some(Turn::Set(std::mem::take(&mut self.wanted).into_iter().collect()));
        }
        if self.due_frame().is_some_and(|at| at <= Some(now)) {
            return Some(Turn::Show(self.ask(now)));
        }
        let may_step = match self.paused {
            true => self.due > 0,
            false => self.pace == 0.0 || self.next_step.is_none_or(|at| now >= at),
        };
        if !(self.steps && may_step) {
            return None;
        }
        self.due = self.due.saturating_sub(1);
        if self.pace > 0.0 {
            // From when it was due: a step that comes a little late does not slow those that follow.
            let gap = Duration::from_secs_f64((1.0 / self.pace).min(60.0));
            let late = self.next_step.filter(|&at| now < at + gap);
            self.next_step = Some(late.unwrap_or(now) + gap);
        }
        self.version += 1;
        Some(Turn::Step)
    }

    /// What stands still may be shown without regard to steps.
    fn hurry(&mut self) {
        let soon = Some(Instant::now() + BETWEEN);
        (self.next_frame, self.next_measures) = (self.next_frame.min(soon), self.next_measures.min(soon));
    }

    /// The time for steps that such a cost asks for: ten seconds at most, which people wait.
    fn rest(&self, cost: Duration, share: u32) -> Duration {
        let goes_on = self.steps && !self.paused;
        if goes_on { cost.saturating_mul(share).min(Duration::from_secs(10)) } else { Duration::ZERO }
    }

    /// When something may change without a word from a page.
    fn wakes(&self) -> Option<Instant> {
        let step = self.next_step.filter(|_| self.steps && !self.paused && self.pace > 0.0);
        self.due_frame().flatten().into_iter().chain(step).min()
    }

    /// When a frame is due, if a page wants one: of another state or wish, or with the measures of this state. None within is at once.
    fn due_frame(&self) -> Option<Option<Instant>> {
        let at = |page: &Page| match page.wants(self.version, false) {
            true => self.next_frame,
            false => self.next_frame.max(self.next_measures),
        };
        self.pages.iter().filter(|page| page.wants(self.version, true)).map(at).min()
    }

    /// Notes what pages wish of the frame that the run is asked for now.
    fn ask(&mut self, now: Instant) -> Wanted {
        let fields = self.model.as_ref().map_or(0, |(_, fixed)| fixed.components.len());
        let mut wanted = Wanted { at: self.at, ..Wanted::default() };
        // What stands still may be measured whenever it is shown.
        let may_measure = self.paused || !self.steps || self.next_measures.is_none_or(|at| now >= at);
        for page in self.pages.iter_mut().filter(|page| page.wants(self.version, may_measure)) {
            wanted.metrics |= page.wish.metrics && may_measure;
            match page.wish.pick {
                Some(_) => wanted.fields.extend(0..fields),
                None => wanted.fields.extend(page.wish.field.filter(|&field| field < fields)),
            }
            page.asked = Some(page.wish.clone());
        }
        wanted.fields.sort_unstable();
        wanted.fields.dedup();
        self.asked = Some((now, wanted.metrics));
        wanted
    }

    /// Has all pages told where the run stands.
    fn tell(&mut self) {
        self.pages.iter_mut().for_each(|page| page.is_told = false);
        self.wake();
    }

    fn wake(&self) {
        self.pages.iter().for_each(|page| page.wake.notify_one());
    }

    fn status(&self) -> String {
        json!({
            "paused": self.paused, "pace": self.pace, "at": self.at, "over": self.over, "dials": self.dials, "refused": self.refused,
        })
        .to_string()
    }
}

impl Page {
    /// Whether it wants a frame of that version; for measures alone, too, where it `may` have them.
    fn wants(&self, version: u64, may: bool) -> bool {
        let lacks_measures = may && self.wish.metrics && self.measured != Some(version);
        self.is_ready && (self.seen != Some(version) || lacks_measures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Dial, Quantity};

    fn request(text: &str) -> Request {
        Request::parse(text).unwrap()
    }

    fn described(desk: &Desk) {
        let fields = vec![Quantity { components: 1, ..Quantity::default() }; 3];
        desk.describe(Model { fields, ..Model::default() });
    }

    #[test]
    fn a_run_that_nobody_watches_steps() {
        let desk = Desk::new(true);
        assert_eq!(desk.turn(), Turn::Step);
        let (page, _) = desk.come().unwrap();
        assert_eq!(desk.turn(), Turn::Describe);
        desk.go(page);
        assert_eq!(desk.turn(), Turn::Step);
    }

    #[test]
    fn a_page_that_draws_nothing_gets_nothing_and_holds_nothing_up() {
        let desk = Desk::new(true);
        let (page, _) = desk.come().unwrap();
        described(&desk);
        (0..1000).for_each(|_| assert_eq!(desk.turn(), Turn::Step));
        desk.take(page, &request(r#"{"ready":true,"field":1,"metrics":true}"#));
        assert_eq!(desk.turn(), Turn::Show(Wanted { fields: vec![1], metrics: true, at: 0 }));
        desk.show(Frame::default());
        (0..1000).for_each(|_| assert_eq!(desk.turn(), Turn::Step));
        assert!(desk.collect(page).frame.is_some() && desk.collect(page).frame.is_none());
    }

    /// What a run does until it is done, by frames, those with measures, and steps, if a frame takes so many milliseconds; and how long.
    fn watched(a_frame: u64, is_done: impl Fn([u64; 3]) -> bool) -> ([u64; 3], Duration) {
        let desk = Desk::new(true);
        let (page, _) = desk.come().unwrap();
        described(&desk);
        let (clock, mut all) = (Instant::now(), [0; 3]);
        while !is_done(all) {
            desk.take(page, &request(r#"{"ready":true,"metrics":true}"#));
            match desk.turn() {
                Turn::Show(wanted) => {
                    std::thread::sleep(Duration::from_millis(a_frame));
                    all[0] += 1;
                    all[1] += u64::from(wanted.metrics);
                    desk.show(Frame::default());
                }
                _ => all[2] += 1,
            }
        }
        (all, clock.elapsed())
    }

    #[test]
    fn measures_are_taken_ten_times_a_second_and_slow_frames_seldom() {
        // However slow the machine is: three are two times a tenth of a second apart, and all frames a 30th.
        let ([frames, _, _], time) = watched(0, |[_, measured, _]| measured == 3);
        assert!(time >= 2 * BETWEEN_MEASURES && (frames as u32 - 1) * BETWEEN <= time, "{frames} in {time:?}");
        // 10 ms are a 64th of 640.
        let ([_, _, steps], time) = watched(10, |[frames, ..]| frames == 2);
        assert!(time >= Duration::from_millis(640) && steps > 2, "{steps} in {time:?}");
    }

    #[test]
    fn a_pause_is_shown_at_once_however_long_frames_take() {
        let desk = Desk::new(true);
        let (page, _) = desk.come().unwrap();
        described(&desk);
        desk.take(page, &request(r#"{"ready":true,"metrics":true}"#));
        assert!(matches!(desk.turn(), Turn::Show(_)));
        std::thread::sleep(Duration::from_millis(100));
        desk.show(Frame::default());
        desk.take(page, &request(r#"{"ready":true}"#));
        assert_eq!(desk.turn(), Turn::Step);
        let clock = Instant::now();
        desk.take(page, &request(r#"{"pause":true}"#));
        while !matches!(desk.turn(), Turn::Show(_)) {
            assert!(clock.elapsed() < Duration::from_secs(2), "6.4 seconds are for a run that goes on");
        }
    }

    #[test]
    fn a_state_that_stands_is_measured_once() {
        let desk = Desk::new(true);
        let (page, _) = desk.come().unwrap();
        described(&desk);
        let mut shown = Vec::new();
        for text in [r#"{"metrics":true}"#, r#"{"pause":true}"#, r#"{"step":1}"#, r#"{}"#, r#"{}"#] {
            desk.take(page, &request(text));
            let clock = Instant::now();
            while clock.elapsed() < Duration::from_millis(150) {
                desk.take(page, &request(r#"{"ready":true}"#));
                if let Turn::Show(wanted) = desk.turn() {
                    shown.push(wanted.metrics);
                    desk.show(Frame::default());
                }
            }
        }
        let stands = shown.iter().rev().take_while(|measured| **measured).count();
        assert!((1..=4).contains(&stands) && shown.last() == Some(&true), "{shown:?}");
    }

    #[test]
    fn frames_are_a_30th_of_a_second_apart() {
        let desk = Desk::new(true);
        let (page, _) = desk.come().unwrap();
        described(&desk);
        let (clock, mut shown) = (Instant::now(), 0);
        while clock.elapsed() < Duration::from_millis(300) {
            desk.take(page, &request(r#"{"ready":true}"#));
            if let Turn::Show(_) = desk.turn() {
                desk.show(Frame::default());
                shown += 1;
            }
        }
        assert!((2..=11).contains(&shown), "{shown}");
    }

    #[test]
    fn a_pause_holds_until_the_last_page_goes_and_lets_single_steps_through() {
        let desk = Desk::new(true);
        let [(first, _), (second, _)] = [desk.come().unwrap(), desk.come().unwrap()];
        described(&desk);
        desk.take(first, &request(r#"{"pause":true}"#));
        assert_eq!(desk.turn(), Turn::Wait);
        desk.take(second, &request(r#"{"step":2}"#));
        assert_eq!([desk.turn(), desk.turn(), desk.turn()], [Turn::Step, Turn::Step, Turn::Wait]);
        desk.take(second, &request(r#"{"ready":true,"pick":5}"#));
        assert_eq!(desk.turn(), Turn::Show(Wanted { fields: vec![0, 1, 2], ..Wanted::default() }));
        desk.show(Frame::default());
        desk.go(first);
        assert_eq!(desk.turn(), Turn::Wait);
        desk.go(second);
        assert_eq!(desk.turn(), Turn::Step);
    }

    #[test]
    fn numbers_are_set_between_steps_and_only_those_that_there_are() {
        let desk = Desk::new(true);
        let (page, _) = desk.come().unwrap();
        desk.take(page, &request(r#"{"set":[0,7]}"#));
        desk.describe(Model { dials: vec![Dial { value: 1.5, ..Dial::default() }; 2], ..Model::default() });
        for text in
            [r#"{"set":[2,7]}"#, r#"{"set":[1,7]}"#, r#"{"set":[0,9e9]}"#, r#"{"set":[1,-8]}"#, r#"{"pause":true}"#]
        {
            desk.take(page, &request(text));
        }
        assert_eq!([desk.turn(), desk.turn()], [Turn::Set(vec![(0, 9e9), (1, -8.0)]), Turn::Wait]);
        desk.set(vec![1.5, -8.0], Some("too large".into()));
        let status = desk.collect(page).status.unwrap();
        assert!(status.contains(r#""dials":[1.5,-8.0]"#) && status.contains("too large"), "{status}");
        desk.take(page, &request(r#"{"set":[0,3]}"#));
        desk.end("over");
        desk.take(page, &request(r#"{"set":[1,3]}"#));
        assert_eq!(desk.turn(), Turn::Wait);
    }

    #[test]
    fn steps_keep_their_pace() {
        let desk = Desk::new(true);
        let (page, _) = desk.come().unwrap();
        described(&desk);
        desk.take(page, &request(r#"{"pace":50}"#));
        let (clock, mut steps) = (Instant::now(), 0);
        while clock.elapsed() < Duration::from_millis(400) {
            steps += u32::from(desk.turn() == Turn::Step);
        }
        assert!((5..=22).contains(&steps), "{steps}");
    }

    #[test]
    fn states_are_shown_where_the_slider_is_and_are_never_stepped() {
        let desk = Desk::new(false);
        assert_eq!(desk.turn(), Turn::Wait);
        let (page, _) = desk.come().unwrap();
        described(&desk);
        for at in [0, 7, 3] {
            desk.take(page, &request(&format!(r#"{{"ready":true,"at":{at}}}"#)));
            assert_eq!(desk.turn(), Turn::Show(Wanted { at, ..Wanted::default() }));
            desk.show(Frame::default());
        }
        assert_eq!(desk.turn(), Turn::Wait);
        assert!((1..MOST_PAGES).all(|_| desk.come().is_some()) && desk.come().is_none());
    }
}
