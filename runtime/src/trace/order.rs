//! The order in which the values of a tape are computed.

use super::tape::{Id, Input, Node, Tape};

/// What happens, in order.
pub(crate) enum Event {
    Value(Id),
    Fold(usize, Vec<Event>),
}

/// The order of all that has to be done.
pub(crate) struct Order<'a> {
    pub(crate) tape: &'a Tape,
    pub(crate) is_wanted: Vec<bool>,
    /// Whether a value depends on no vertex.
    pub(crate) is_uniform: Vec<bool>,
    pub(crate) once: Vec<Id>,
    pub(crate) body: Vec<Event>,
    /// At which event a value, or what a fold has gathered, is used for the last time.
    pub(crate) last: Vec<usize>,
    pub(crate) last_of_fold: Vec<usize>,
}

impl<'a> Order<'a> {
    pub(crate) fn of(tape: &'a Tape, outputs: &[Id]) -> Order<'a> {
        let count = tape.len() as usize;
        let mut is_wanted = vec![false; count];
        let mut folds = vec![false; tape.folds.len()];
        let mut open = outputs.to_vec();
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut is_wanted[id as usize], true) {
                continue;
            }
            match tape.node(id) {
                Node::Gathered { fold, .. } | Node::Result { fold, .. } => {
                    if !std::mem::replace(&mut folds[fold], true) {
                        // All that it gathers: a loop is run as a whole.
                        open.extend(tape.folds[fold].init.iter().chain(&tape.folds[fold].next));
                    }
                }
                node => open.extend(node.operands()),
            }
        }
        let mut is_uniform = vec![false; count];
        for id in 0..count {
            let node = tape.node(id as Id);
            is_uniform[id] = match node {
                Node::Input(input, _) => {
                    matches!(input, Input::Parameters | Input::Globals | Input::Settings | Input::Step | Input::Draw)
                }
                Node::Gathered { .. } | Node::Result { .. } => false,
                node => node.operands().all(|operand| is_uniform[operand as usize]),
            };
        }
        let once = (0..tape.len()).filter(|&id| is_wanted[id as usize] && is_uniform[id as usize]).collect();
        let last_of_fold = vec![0; tape.folds.len()];
        let mut order =
            Order { tape, is_wanted, is_uniform, once, body: Vec::new(), last: vec![0; count], last_of_fold };
        order.body = order.scope(None, &folds);
        order
    }

    /// What happens in a scope: its values in the order of the tape, and each loop where it was closed.
    fn scope(&self, scope: Option<usize>, folds: &[bool]) -> Vec<Event> {
        let tape = self.tape;
        let inner: Vec<usize> = (0..folds.len()).filter(|&f| folds[f] && tape.folds[f].parent == scope).collect();
        let mut inner = inner.into_iter().peekable();
        let mut events = Vec::new();
        for id in 0..tape.len() {
            while let Some(fold) = inner.next_if(|&fold| tape.folds[fold].end <= id) {
                events.push(Event::Fold(fold, self.scope(Some(fold), folds)));
            }
            let is_of_scope = self.is_wanted[id as usize] && !self.is_uniform[id as usize] && tape.scope(id) == scope;
            let is_loops = matches!(tape.node(id), Node::Gathered { .. } | Node::Result { .. });
            if is_of_scope && !is_loops {
                events.push(Event::Value(id));
            }
        }
        events.extend(inner.map(|fold| Event::Fold(fold, self.scope(Some(fold), folds))));
        events
    }

    /// Notes at which event each value is used for the last time. One that is used inside of a loop it does not come from is used until
    /// that loop ends.
    pub(crate) fn find_last_uses(&mut self, outputs: &[Id]) {
        let body = std::mem::take(&mut self.body);
        let mut at = 0;
        self.visit(&body, &mut at);
        self.body = body;
        for &id in outputs {
            self.used(id, usize::MAX);
        }
    }

    /// Counts events. Returns the values and loops that were used and come from outside, which the loop around uses to its end.
    fn visit(&mut self, events: &[Event], at: &mut usize) {
        for event in events {
            *at += 1;
            match event {
                &Event::Value(id) => {
                    let operands: Vec<Id> = self.tape.node(id).operands().collect();
                    operands.into_iter().for_each(|operand| self.used(operand, *at));
                    self.last[id as usize] = self.last[id as usize].max(*at);
                }
                Event::Fold(fold, inner) => {
                    let fold = *fold;
                    let begun = *at;
                    let tape = self.tape;
                    tape.folds[fold].init.iter().for_each(|&id| self.used(id, begun));
                    self.visit(inner, at);
                    *at += 1;
                    let ended = *at;
                    tape.folds[fold].next.iter().for_each(|&id| self.used(id, ended));
                    self.last_of_fold[fold] = self.last_of_fold[fold].max(ended);
                    // Whatever was used inside and is older than the loop is used again by its next element.
                    let mut uses = Vec::new();
                    collect(tape, inner, &mut uses);
                    uses.extend(tape.folds[fold].next.iter().copied());
                    for id in uses {
                        if !self.is_inside(id, fold) {
                            self.used(id, ended);
                        }
                    }
                }
            }
        }
    }

    /// Whether a value is made anew for each element of a fold.
    fn is_inside(&self, id: Id, fold: usize) -> bool {
        let scopes = std::iter::successors(self.tape.scope(id), |&scope| self.tape.folds[scope].parent);
        let is_gathered = matches!(self.tape.node(id), Node::Gathered { fold: own, .. } if own == fold);
        scopes.into_iter().any(|scope| scope == fold) && !is_gathered
    }

    fn used(&mut self, id: Id, at: usize) {
        match self.tape.node(id) {
            Node::Gathered { fold, .. } | Node::Result { fold, .. } => {
                self.last_of_fold[fold] = self.last_of_fold[fold].max(at);
            }
            _ => self.last[id as usize] = self.last[id as usize].max(at),
        }
    }
}

/// All values that some events use.
fn collect(tape: &Tape, events: &[Event], uses: &mut Vec<Id>) {
    for event in events {
        match event {
            &Event::Value(id) => uses.extend(tape.node(id).operands()),
            Event::Fold(fold, inner) => {
                uses.extend(tape.folds[*fold].init.iter().chain(&tape.folds[*fold].next));
                collect(tape, inner, uses);
            }
        }
    }
}
