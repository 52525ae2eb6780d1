//! A payment provider in this process, with the faults of real ones: late, repeated and reordered callbacks, refusals,
//! answers that get lost after the deed. Seeded, so that a run can be played again.

use super::{Callback, ChargeRequest, Events, Provider, ProviderError, RefundRequest, Reported, Signed};
use crate::money::Currency;
use crate::time::Time;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::BoxFuture;

/// How often what goes wrong, each of a thousand; and how late callbacks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// Charges and refunds whose answer is lost, half of them after they were done.
    pub lost_answers: u32,
    /// Charges that fail.
    pub failures: u32,
    /// Callbacks that never come.
    pub lost_callbacks: u32,
    /// Callbacks that come twice or three times.
    pub duplicates: u32,
    /// Charges after which the provider takes the money back by itself.
    pub reversals: u32,
    /// The longest delay of a callback; each has its own, so that they overtake each other.
    pub longest_delay: Duration,
}

impl Faults {
    /// Nothing goes wrong, callbacks come at once.
    pub const NONE: Faults = Faults {
        lost_answers: 0,
        failures: 0,
        lost_callbacks: 0,
        duplicates: 0,
        reversals: 0,
        longest_delay: Duration::ZERO,
    };

    /// A bad day.
    pub const MANY: Faults = Faults {
        lost_answers: 100,
        failures: 60,
        lost_callbacks: 80,
        duplicates: 150,
        reversals: 10,
        longest_delay: Duration::from_secs(20 * 60),
    };
}

/// What a provider's books say of a payment, in minor units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// What came.
    pub captured: i64,
    /// What went back by refunds.
    pub refunded: i64,
    /// What went back by itself.
    pub reversed: i64,
}

struct Account {
    currency: Currency,
    failed: bool,
    books: Books,
    refunds: BTreeMap<String, i64>,
    /// All that has been reported or would have been.
    events: Vec<Callback>,
}

/// The most events of a page.
const EVENTS_PAGE: usize = 100;

struct State {
    random: u64,
    faults: Faults,
    accounts: BTreeMap<String, Account>,
    /// The events of all accounts, the oldest first.
    events: Vec<Callback>,
    on_the_way: Vec<(Time, Callback)>,
}

/// See the module. Clones are the same provider.
#[derive(Clone)]
pub struct Simulator {
    secret: Vec<u8>,
    clock: crate::shop::Clock,
    state: Arc<Mutex<State>>,
}

impl State {
    /// The next of a seeded sequence (SplitMix64).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, of_a_thousand: u32) -> bool {
        self.next() % 1_000 < u64::from(of_a_thousand)
    }

    fn later(&mut self, now: Time) -> Time {
        let longest = self.faults.longest_delay.as_millis() as u64;
        now.plus(Duration::from_millis(if longest == 0 { 0 } else { self.next() % longest }))
    }

    fn report(&mut self, callback: Callback, now: Time) {
        self.events.push(callback.clone());
        if let Some(account) = self.accounts.get_mut(&callback.payment_id) {
            account.events.push(callback.clone());
        }
        if self.happens(self.faults.lost_callbacks) {
            return;
        }
        let copies = if self.happens(self.faults.duplicates) { 2 + self.next() % 2 } else { 1 };
        for _ in 0..copies {
            let due = self.later(now);
            self.on_the_way.push((due, callback.clone()));
        }
    }

    /// Whether an answer is lost, and if so, whether the deed was done.
    fn lost(&mut self) -> Option<bool> {
        self.happens(self.faults.lost_answers).then(|| self.happens(500))
    }

    fn charge(&mut self, charge: &ChargeRequest, now: Time) -> Result<(), ProviderError> {
        let lost = self.lost();
        if lost == Some(false) {
            return Err(ProviderError::Silent);
        }
        if !self.accounts.contains_key(&charge.payment_id) {
            let failed = self.happens(self.faults.failures);
            let account = Account {
                currency: charge.currency,
                failed,
                books: Books { captured: if failed { 0 } else { charge.amount }, ..Books::default() },
                refunds: BTreeMap::new(),
                events: Vec::new(),
            };
            self.accounts.insert(charge.payment_id.clone(), account);
            let report = if failed { Reported::Failed } else { Reported::Captured };
            self.report(event(&charge.payment_id, report, charge.amount, charge.currency, None, now), now);
            if !failed && self.happens(self.faults.reversals) {
                self.reverse(&charge.payment_id, now);
            }
        }
        match lost {
            Some(_) => Err(ProviderError::Silent),
            None => Ok(()),
        }
    }

    fn reverse(&mut self, payment: &str, now: Time) {
        let Some(account) = self.accounts.get_mut(payment) else { return };
        let left = account.books.captured - account.books.refunded - account.books.reversed;
        if left <= 0 {
            return;
        }
        account.books.reversed += left;
        let callback = event(payment, Reported::Reversed, left, account.currency, None, now);
        self.report(callback, now);
    }

    fn refund(&mut self, refund: &RefundRequest, now: Time) -> Result<(), ProviderError> {
        let lost = self.lost();
        if lost == Some(false) {
            return Err(ProviderError::Silent);
        }
        let refused = |why: &str| Err(ProviderError::Refused(why.to_owned()));
        let Some(account) = self.accounts.get_mut(&refund.payment_id) else { return refused("no such payment") };
        if let Some(amount) = account.refunds.get(&refund.key) {
            return match (*amount == refund.amount, lost) {
                (false, _) => refused("this key was used for another amount"),
                (true, Some(_)) => Err(ProviderError::Silent),
                (true, None) => Ok(()),
            };
        }
        let left = account.books.captured - account.books.refunded - account.books.reversed;
        if refund.amount > left || refund.currency != account.currency || account.failed {
            return refused("there is less left of it");
        }
        account.books.refunded += refund.amount;
        account.refunds.insert(refund.key.clone(), refund.amount);
        let key = Some(refund.key.clone());
        self.report(event(&refund.payment_id, Reported::Refunded, refund.amount, refund.currency, key, now), now);
        match lost {
            Some(_) => Err(ProviderError::Silent),
            None => Ok(()),
        }
    }
}

fn event(
    payment: &str,
    report: Reported,
    amount: i64,
    currency: Currency,
    refund_key: Option<String>,
    at: Time,
) -> Callback {
    let name =
        serde_json::to_value(report).map(|name| name.as_str().unwrap_or_default().to_owned()).unwrap_or_default();
    let id = format!("{payment}:{name}:{}", refund_key.as_deref().unwrap_or_default());
    Callback { id, payment_id: payment.to_owned(), report, amount, currency, refund_key, at }
}

impl Simulator {
    /// A provider that signs with a secret and takes the time from a clock.
    pub fn new(seed: u64, faults: Faults, secret: &[u8], clock: crate::shop::Clock) -> Simulator {
        let state =
            State { random: seed, faults, accounts: BTreeMap::new(), events: Vec::new(), on_the_way: Vec::new() };
        Simulator { secret: secret.to_vec(), clock, state: Arc::new(Mutex::new(state)) }
    }

    fn now(&self) -> Time {
        Time::from_millis((self.clock)())
    }

    /// From now on so much goes wrong.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// The callbacks that are due, signed, in the order in which they arrive.
    pub fn due(&self) -> Vec<Signed> {
        let now = self.now();
        let mut state = self.state.lock();
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.on_the_way).into_iter().partition(|(at, _)| *at <= now);
        state.on_the_way = later;
        due.sort_by_key(|(at, _)| *at);
        let sign = |(_, callback): (Time, Callback)| {
            let body = serde_json::to_vec(&callback).expect("a callback is plain data");
            Signed::sign(&self.secret, &callback.id, now, body)
        };
        due.into_iter().map(sign).collect()
    }

    /// How many callbacks are on their way.
    pub fn on_the_way(&self) -> usize {
        self.state.lock().on_the_way.len()
    }

    /// The provider takes back what is left of a payment.
    pub fn reverse(&self, payment: &str) {
        let now = self.now();
        self.state.lock().reverse(payment, now);
    }

    /// What the books say of each payment.
    pub fn books(&self) -> BTreeMap<String, Books> {
        let state = self.state.lock();
        state.accounts.iter().map(|(payment, account)| (payment.clone(), account.books.clone())).collect()
    }
}

impl Provider for Simulator {
    fn charge<'a>(&'a self, charge: &'a ChargeRequest) -> BoxFuture<'a, Result<(), ProviderError>> {
        let answer = self.state.lock().charge(charge, self.now());
        Box::pin(async move { answer })
    }

    fn refund<'a>(&'a self, refund: &'a RefundRequest) -> BoxFuture<'a, Result<(), ProviderError>> {
        let answer = self.state.lock().refund(refund, self.now());
        Box::pin(async move { answer })
    }

    fn look_up<'a>(&'a self, payment: &'a str) -> BoxFuture<'a, Result<Option<Vec<Callback>>, ProviderError>> {
        let answer = self.state.lock().accounts.get(payment).map(|account| account.events.clone());
        Box::pin(async move { Ok(answer) })
    }

    fn events<'a>(&'a self, after: Option<&'a str>) -> BoxFuture<'a, Result<Events, ProviderError>> {
        let from = after.map_or(Some(0), |place| place.parse().ok()).unwrap_or(usize::MAX);
        let state = self.state.lock();
        let answer = match state.events.get(from..) {
            Some(rest) => {
                let events = rest[..rest.len().min(EVENTS_PAGE)].to_vec();
                Ok(Events { place: (from + events.len()).to_string(), events })
            }
            None => Err(ProviderError::Refused("there is no such place".to_owned())),
        };
        Box::pin(async move { answer })
    }
}
