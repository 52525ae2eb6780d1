//! Whose turn it is to write.
//!
//! The writer lock is held for some microseconds by most and for longer by the steps of large statements, often with
//! fewer cores than threads that want something. A waiting thread that gives its time slice away between attempts (as mutexes
//! that spin do) gets it back when the holder's slice ends, some milliseconds later. So here it looks a few times and
//! then sleeps until it is woken; and a holder that will come back at once can pass the turn on to a sleeper.

use parking_lot::{Condvar, Mutex};

/// How often a thread looks whether it is free before it sleeps: some microseconds, about as long as a small commit.
const LOOKS: u32 = 40;

/// A lock that can be passed on.
#[derive(Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    taken: bool,
    /// Threads that sleep, or have been woken and not looked yet.
    sleeping: usize,
    /// It is taken in the name of a sleeper that has been woken.
    passed_on: bool,
}

/// The turn; it ends when this is dropped.
pub(super) struct Turn<'t>(&'t Turns);

impl Turns {
    /// Waits for the turn.
    pub(super) fn take(&self) -> Turn<'_> {
        for _ in 0..LOOKS {
            if let Some(mut state) = self.state.try_lock()
                && !state.taken
            {
                state.taken = true;
                return Turn(self);
            }
            std::hint::spin_loop();
        }
        let mut state = self.state.lock();
        // Only a sleeper may take what is passed on, or the one who passes it on would be back before it has woken up.
        let mut slept = false;
        loop {
            if slept && state.passed_on {
                state.passed_on = false;
                break;
            }
            if !state.taken {
                state.taken = true;
                break;
            }
            state.sleeping += 1;
            self.changed.wait(&mut state);
            state.sleeping -= 1;
            slept = true;
        }
        Turn(self)
    }
}

impl Turn<'_> {
    /// Ends the turn in favour of the one who has slept longest, if anybody sleeps.
    pub(super) fn pass_on(self) {
        let mut state = self.0.state.lock();
        if state.sleeping > 0 {
            state.passed_on = true;
            drop(state);
            self.0.changed.notify_one();
            std::mem::forget(self);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.taken = false;
        let wakes = state.sleeping > 0;
        drop(state);
        if wakes {
            self.0.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn one_at_a_time_has_the_turn_however_it_is_given_up() {
        let (turns, inside, total) = (Turns::default(), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for thread in 0..8 {
                let (turns, inside, total) = (&turns, &inside, &total);
                scope.spawn(move || {
                    for round in 0..5_000 {
                        let turn = turns.take();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        total.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        match (round + thread) % 3 {
                            0 => turn.pass_on(),
                            _ => drop(turn),
                        }
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 40_000);
    }

    #[test]
    fn who_passes_the_turn_on_comes_after_the_sleeper() {
        let turns = Arc::new(Turns::default());
        let turn = turns.take();
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let sleeper = {
            let (turns, order) = (turns.clone(), order.clone());
            thread::spawn(move || {
                let turn = turns.take();
                order.lock().push("sleeper");
                thread::sleep(Duration::from_millis(5));
                drop(turn);
            })
        };
        while turns.state.lock().sleeping == 0 {
            thread::yield_now();
        }
        turn.pass_on();
        let turn = turns.take();
        order.lock().push("holder");
        drop(turn);
        sleeper.join().expect("the sleeper ends");
        assert_eq!(*order.lock(), ["sleeper", "holder"]);
    }
}
