//! Trigonometric and hyperbolic functions of decimals, which decNumber does not have.
//!
//! All are computed with 60 digits from series and from decNumber's `exp`, `ln` and `sqrt`, and rounded once to 34. Where a
//! function is the identity up to its cube (`sin x = x - x³/6 …`), arguments below 10^-18 are their own result, so that
//! cancellation never eats more digits than there are to spare.

use super::decimal::Decimal;
use std::cmp::Ordering;

/// Units of three digits.
const UNITS: usize = 48;
/// Digits of the computation.
const DIGITS: usize = 60;
/// Digits while an angle is brought into the first quadrant: enough for arguments up to 10^80.
const REDUCTION_DIGITS: usize = 144;
/// Arguments beyond 10 to this power have no digit left below a full turn.
const LARGEST_ANGLE_EXPONENT: i32 = 80;
/// Below 10 to this power, `x - x³/6` is `x` in 34 digits.
const TINY_EXPONENT: i32 = -18;

const PI: &str = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798\
                  214808651328230664709384460955058223172535940812848111745";

type Wide = dec::Decimal<UNITS>;
type Context = dec::Context<Wide>;

impl Decimal {
    /// The sine; NaN for infinities.
    pub fn sin(self) -> Decimal {
        if self.is_tiny() { self } else { self.angle(|_, sine, _| sine) }
    }

    /// The cosine; NaN for infinities.
    pub fn cos(self) -> Decimal {
        self.angle(|_, _, cosine| cosine)
    }

    /// The tangent; NaN for infinities.
    pub fn tan(self) -> Decimal {
        if self.is_tiny() { self } else { self.angle(|context, sine, cosine| context.quotient(sine, cosine)) }
    }

    /// The arc sine; NaN beyond one.
    pub fn asin(self) -> Decimal {
        if self.is_tiny() { self } else { self.compute(|math, x| math.asin(x)) }
    }

    /// The arc cosine; NaN beyond one.
    pub fn acos(self) -> Decimal {
        self.compute(|math, x| {
            let (above, below) = (math.sum(math.one(), x), math.difference(math.one(), x));
            if above.is_zero() {
                return math.pi();
            }
            let ratio = math.quotient(below, above);
            let root = math.root(ratio);
            let half = math.atan(root);
            math.sum(half, half)
        })
    }

    /// The arc tangent.
    pub fn atan(self) -> Decimal {
        if self.is_tiny() { self } else { self.compute(|math, x| math.atan(x)) }
    }

    /// The angle of the point `(x, self)`, from -π to π.
    pub fn atan2(self, x: Decimal) -> Decimal {
        if self.is_nan() || x.is_nan() {
            return Decimal::NAN;
        }
        let mut math = Math::new();
        let turn = match (self.is_infinite(), x.is_infinite()) {
            (true, true) => math.fraction_of_pi(if x.is_negative() { 3 } else { 1 }, 4),
            (true, false) => math.fraction_of_pi(1, 2),
            _ if x.is_zero() && !self.is_zero() => math.fraction_of_pi(1, 2),
            (false, true) => math.fraction_of_pi(i32::from(x.is_negative()), 1),
            (false, false) if self.is_zero() => math.fraction_of_pi(i32::from(x.is_negative()), 1),
            (false, false) => {
                let ratio = math.quotient(self.abs().number(), x.abs().number());
                let angle = math.atan(ratio);
                if x.is_negative() { math.difference(math.pi(), angle) } else { angle }
            }
        };
        let angle = math.finish(turn);
        if self.is_negative() { angle.negate() } else { angle }
    }

    /// The hyperbolic sine.
    pub fn sinh(self) -> Decimal {
        if self.is_tiny() {
            return self;
        }
        self.compute(|math, x| {
            let (grown, shrunk) = math.exponentials(x);
            let difference = math.difference(grown, shrunk);
            math.quotient(difference, math.integer(2))
        })
    }

    /// The hyperbolic cosine.
    pub fn cosh(self) -> Decimal {
        self.compute(|math, x| {
            let (grown, shrunk) = math.exponentials(x);
            let sum = math.sum(grown, shrunk);
            math.quotient(sum, math.integer(2))
        })
    }

    /// The hyperbolic tangent.
    pub fn tanh(self) -> Decimal {
        if self.is_tiny() {
            return self;
        }
        // Beyond this, the difference from one is below 34 digits.
        if self.abs().compare(Decimal::from(100)) == Ordering::Greater {
            return if self.is_negative() { Decimal::ONE.negate() } else { Decimal::ONE };
        }
        self.compute(|math, x| {
            let (grown, shrunk) = math.exponentials(x);
            let (difference, sum) = (math.difference(grown, shrunk), math.sum(grown, shrunk));
            math.quotient(difference, sum)
        })
    }

    /// The inverse hyperbolic sine.
    pub fn asinh(self) -> Decimal {
        if self.is_tiny() || self.is_infinite() {
            return self;
        }
        let magnitude = self.abs().compute(|math, x| {
            let square = math.product(x, x);
            let root = math.sum(square, math.one());
            let root = math.root(root);
            let sum = math.sum(x, root);
            math.logarithm(sum)
        });
        if self.is_negative() { magnitude.negate() } else { magnitude }
    }

    /// The inverse hyperbolic cosine; NaN below one.
    pub fn acosh(self) -> Decimal {
        self.compute(|math, x| {
            let (below, above) = (math.difference(x, math.one()), math.sum(x, math.one()));
            let root = math.product(below, above);
            let root = math.root(root);
            let sum = math.sum(x, root);
            math.logarithm(sum)
        })
    }

    /// The inverse hyperbolic tangent; infinite for ±1, NaN beyond.
    pub fn atanh(self) -> Decimal {
        if self.is_tiny() {
            return self;
        }
        self.compute(|math, x| {
            let (above, below) = (math.sum(math.one(), x), math.difference(math.one(), x));
            let ratio = math.quotient(above, below);
            let logarithm = math.logarithm(ratio);
            math.quotient(logarithm, math.integer(2))
        })
    }

    /// This many degrees in radians.
    pub fn to_radians(self) -> Decimal {
        self.compute(|math, x| {
            let turned = math.product(x, math.pi());
            math.quotient(turned, math.integer(180))
        })
    }

    /// This many radians in degrees.
    pub fn to_degrees(self) -> Decimal {
        self.compute(|math, x| {
            let turned = math.product(x, math.integer(180));
            math.quotient(turned, math.pi())
        })
    }

    fn is_tiny(self) -> bool {
        self.is_finite() && self.abs().compare(Decimal::finite(false, 1, TINY_EXPONENT)) == Ordering::Less
    }

    fn compute(self, function: impl FnOnce(&mut Math, Wide) -> Wide) -> Decimal {
        if self.is_nan() {
            return self;
        }
        let mut math = Math::new();
        let result = function(&mut math, self.number());
        math.finish(result)
    }

    /// Hands the sine and the cosine to `function`.
    fn angle(self, function: impl FnOnce(&mut Math, Wide, Wide) -> Wide) -> Decimal {
        let largest = Decimal::finite(false, 1, LARGEST_ANGLE_EXPONENT);
        if !self.is_finite() || self.abs().compare(largest) == Ordering::Greater {
            return Decimal::NAN;
        }
        self.compute(|math, x| {
            let (quarter, rest) = math.reduce(x);
            let (sine, cosine) = (math.sine_series(rest), math.cosine_series(rest));
            let (sine, cosine) = match quarter {
                0 => (sine, cosine),
                1 => (cosine, -sine),
                2 => (-sine, -cosine),
                _ => (-cosine, sine),
            };
            function(math, sine, cosine)
        })
    }
}

/// Arithmetic with 60 digits.
struct Math {
    context: Context,
}

impl Math {
    fn new() -> Math {
        let mut context = Context::default();
        context.set_precision(DIGITS).expect("the units hold that many digits");
        context.set_max_exponent(999_999).expect("the exponent is in decNumber's range");
        context.set_min_exponent(-999_999).expect("the exponent is in decNumber's range");
        Math { context }
    }

    fn finish(&mut self, value: Wide) -> Decimal {
        Decimal::rounded(value)
    }

    fn integer(&self, value: i32) -> Wide {
        Wide::from(value)
    }

    fn one(&self) -> Wide {
        self.integer(1)
    }

    fn pi(&self) -> Wide {
        PI.parse().expect("π is a number")
    }

    fn fraction_of_pi(&mut self, numerator: i32, denominator: i32) -> Wide {
        let multiple = self.product(self.pi(), self.integer(numerator));
        self.quotient(multiple, self.integer(denominator))
    }

    fn sum(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.add(&mut a, &b);
        a
    }

    fn difference(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.sub(&mut a, &b);
        a
    }

    fn product(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.mul(&mut a, &b);
        a
    }

    fn quotient(&mut self, mut a: Wide, b: Wide) -> Wide {
        self.context.div(&mut a, &b);
        a
    }

    fn root(&mut self, mut a: Wide) -> Wide {
        self.context.sqrt(&mut a);
        a
    }

    fn logarithm(&mut self, mut a: Wide) -> Wide {
        self.context.ln(&mut a);
        a
    }

    /// `e^x` and `e^-x`.
    fn exponentials(&mut self, x: Wide) -> (Wide, Wide) {
        let (mut grown, mut shrunk) = (x, -x);
        self.context.exp(&mut grown);
        self.context.exp(&mut shrunk);
        (grown, shrunk)
    }

    /// The quadrant of an angle and the rest, at most π/4 from it.
    fn reduce(&mut self, x: Wide) -> (u8, Wide) {
        self.context.set_precision(REDUCTION_DIGITS).expect("the units hold that many digits");
        let quarter_turn = self.fraction_of_pi(1, 2);
        let mut turns = self.quotient(x, quarter_turn);
        self.context.round(&mut turns);
        let whole = self.product(turns, quarter_turn);
        let rest = self.difference(x, whole);
        self.context.rem(&mut turns, &Wide::from(4));
        self.context.set_precision(DIGITS).expect("the units hold that many digits");
        // The conversion looks at the flags that the roundings before have left.
        self.context.clear_status();
        let quadrant = self.context.try_into_i32(turns).unwrap_or_default().rem_euclid(4);
        (quadrant as u8, rest)
    }

    fn sine_series(&mut self, x: Wide) -> Wide {
        self.alternating_series(x, x, 1)
    }

    fn cosine_series(&mut self, x: Wide) -> Wide {
        self.alternating_series(self.one(), x, 0)
    }

    /// `term - term·x²/((n+1)(n+2)) + …`
    fn alternating_series(&mut self, first: Wide, x: Wide, mut n: i32) -> Wide {
        let square = self.product(x, x);
        let (mut term, mut sum) = (first, first);
        loop {
            term = self.product(term, square);
            term = -self.quotient(term, self.integer((n + 1) * (n + 2)));
            n += 2;
            let next = self.sum(sum, term);
            if next == sum || n > 200 {
                return next;
            }
            sum = next;
        }
    }

    fn asin(&mut self, x: Wide) -> Wide {
        let (above, below) = (self.sum(self.one(), x), self.difference(self.one(), x));
        let root = self.product(above, below);
        let root = self.root(root);
        if root.is_zero() {
            let quarter_turn = self.fraction_of_pi(1, 2);
            return if x.is_negative() { -quarter_turn } else { quarter_turn };
        }
        let ratio = self.quotient(x, root);
        self.atan(ratio)
    }

    fn atan(&mut self, x: Wide) -> Wide {
        let negative = x.is_negative();
        let magnitude = if negative { -x } else { x };
        let angle = if magnitude > self.one() {
            let inverse = self.quotient(self.one(), magnitude);
            let complement = self.small_atan(inverse);
            let quarter_turn = self.fraction_of_pi(1, 2);
            self.difference(quarter_turn, complement)
        } else {
            self.small_atan(magnitude)
        };
        if negative { -angle } else { angle }
    }

    /// The arc tangent from 0 to 1: the angle is halved four times, then the series runs.
    fn small_atan(&mut self, mut x: Wide) -> Wide {
        for _ in 0..4 {
            let square = self.product(x, x);
            let root = self.sum(square, self.one());
            let root = self.root(root);
            let denominator = self.sum(root, self.one());
            x = self.quotient(x, denominator);
        }
        let square = -self.product(x, x);
        let (mut power, mut sum, mut n) = (x, x, 1);
        loop {
            power = self.product(power, square);
            n += 2;
            let term = self.quotient(power, self.integer(n));
            let next = self.sum(sum, term);
            if next == sum || n > 400 {
                break;
            }
            sum = next;
        }
        self.product(sum, self.integer(16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    /// Values with 34 digits from published tables of constants.
    #[test]
    fn known_values() {
        let pi = "3.141592653589793238462643383279503";
        for (given, expected) in [
            (decimal("1").sin(), "0.8414709848078965066525023216302990"),
            (decimal("1").cos(), "0.5403023058681397174009366074429766"),
            (decimal("1").tan(), "1.557407724654902230506974807458360"),
            (decimal("1").atan(), "0.7853981633974483096156608458198757"),
            (decimal("-1").acos(), pi),
            (decimal("0").atan2(decimal("-1")), pi),
            (decimal("0.5").asin(), "0.5235987755982988730771072305465838"),
            (decimal("1").sinh(), "1.175201193643801456882381850595601"),
            (decimal("1").cosh(), "1.543080634815243778477905620757062"),
            (decimal("1").tanh(), "0.7615941559557648881194582826047936"),
            (decimal("1").asinh(), "0.8813735870195430252326093249797923"),
            (decimal("2").acosh(), "1.316957896924816708625046347307968"),
            (decimal("0.5").atanh(), "0.5493061443340548456976226184612629"),
            (decimal("180").to_radians(), pi),
            (decimal("1").atanh(), "Infinity"),
            (decimal("1E+30").sin(), "-0.09011690191213805803038642895298733"),
        ] {
            assert_eq!(given.to_string(), expected);
        }
    }

    #[test]
    fn tiny_and_extreme_arguments() {
        assert_eq!(decimal("1E-30").sinh().to_string(), "1E-30");
        assert_eq!(decimal("-1E+3000").tanh().to_string(), "-1");
        assert_eq!(decimal("Infinity").atan().to_string(), "1.570796326794896619231321691639751");
        assert_eq!(decimal("Infinity").cosh().to_string(), "Infinity");
        assert!(decimal("Infinity").sin().is_nan());
    }
}
