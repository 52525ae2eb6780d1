//! Series of preferred numbers, to which `$bucketAuto` rounds its boundaries.
//!
//! Renard series (R), the series of resistors (E, IEC 60063), 1-2-5, and powers of two. Rounding goes to the next number of the
//! series above or below, never to the number itself.

use crate::document::{Number, RawBson, RawBsonRef};

/// A series.
#[derive(Clone, Debug)]
pub(super) enum Granularity {
    /// Numbers of one decade, from 10 or 100 on; all decades repeat them.
    Decade(Vec<u32>),
    /// 2 to the power of whole numbers.
    PowersOfTwo,
}

impl Granularity {
    /// The series of that name.
    pub(super) fn named(name: &str) -> Option<Granularity> {
        let series: Vec<u32> = match name {
            "POWERSOF2" => return Some(Granularity::PowersOfTwo),
            "1-2-5" => vec![10, 20, 50],
            "R5" => vec![10, 16, 25, 40, 63],
            "R10" => vec![100, 125, 160, 200, 250, 315, 400, 500, 630, 800],
            "R20" => {
                vec![100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900]
            }
            "R40" => vec![
                100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300,
                315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950,
            ],
            "R80" => vec![
                103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218, 230, 243, 258, 272, 290, 307,
                325, 345, 365, 387, 412, 437, 462, 487, 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975,
            ],
            "E6" => vec![10, 15, 22, 33, 47, 68],
            "E12" => vec![10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82],
            "E24" => {
                vec![10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91]
            }
            "E48" => resistors(48),
            "E96" => resistors(96),
            "E192" => resistors(192),
            _ => return None,
        };
        Some(Granularity::Decade(series))
    }

    /// The next number of the series above a value that is not negative.
    fn up(&self, value: f64) -> f64 {
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        match self {
            Granularity::PowersOfTwo => value.log2().floor().exp2() * 2.0,
            Granularity::Decade(series) => self.near(value, series).find(|number| *number > value).unwrap_or(value),
        }
    }

    /// The next number of the series below a value that is not negative.
    fn down(&self, value: f64) -> f64 {
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        match self {
            Granularity::PowersOfTwo => {
                let power = value.log2().ceil().exp2();
                power / 2.0
            }
            Granularity::Decade(series) => {
                self.near(value, series).filter(|number| *number < value).last().unwrap_or(value)
            }
        }
    }

    /// The numbers of the decades around a value, ascending.
    fn near<'s>(&self, value: f64, series: &'s [u32]) -> impl Iterator<Item = f64> + 's {
        #[allow(clippy::cast_possible_truncation)]
        let decade = value.log10().floor() as i32;
        let digits = if series.first().is_some_and(|first| *first >= 100) { 2 } else { 1 };
        (decade - 1..=decade + 1).flat_map(move |decade| {
            series.iter().map(move |number| {
                let exponent = decade - digits;
                let number = f64::from(*number);
                if exponent >= 0 { number * 10_f64.powi(exponent) } else { number / 10_f64.powi(-exponent) }
            })
        })
    }

    /// A value rounded up.
    pub(super) fn up_value(&self, value: &RawBson) -> RawBson {
        rounded(value.as_raw_bson_ref(), matches!(self, Granularity::PowersOfTwo), |value| self.up(value))
    }

    fn down_value(&self, value: &RawBson) -> RawBson {
        rounded(value.as_raw_bson_ref(), matches!(self, Granularity::PowersOfTwo), |value| self.down(value))
    }

    /// The rounded bounds of a bucket from its first and last value, the next bucket's first and the previous one's bound.
    pub(super) fn bounds(
        &self,
        first: &RawBson,
        last: &RawBson,
        next: Option<&RawBson>,
        previous: Option<RawBson>,
    ) -> (RawBson, RawBson) {
        let min = previous.unwrap_or_else(|| self.down_value(first));
        let is_zero = Number::of(last.as_raw_bson_ref()).is_some_and(Number::is_zero);
        let max = match next {
            Some(next) if is_zero => self.down_value(next),
            _ => self.up_value(last),
        };
        (min, max)
    }
}

fn rounded(value: RawBsonRef<'_>, whole: bool, round: impl Fn(f64) -> f64) -> RawBson {
    match Number::of(value) {
        Some(number) if number.is_zero() => value.into(),
        Some(number) if number.is_decimal() => {
            RawBson::from(Number::Decimal(Number::Double(round(number.to_f64())).to_decimal()))
        }
        Some(number) => {
            let double = Number::Double(round(number.to_f64()));
            match double.to_i64_exact().filter(|_| whole) {
                Some(number) => RawBson::from(Number::int_or_long(number)),
                None => RawBson::from(double),
            }
        }
        None => value.into(),
    }
}

/// The E series of three digits.
fn resistors(count: u32) -> Vec<u32> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let number = |step: u32| {
        let exact = 100.0 * 10_f64.powf(f64::from(step) / f64::from(count));
        // The standard has 9.20 where the formula gives 9.19.
        if count == 192 && step == 185 { 920 } else { exact.round() as u32 }
    };
    (0..count).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_leaves_the_number_itself() {
        for (name, value, down, up) in [
            ("R5", 1.0, 0.63, 1.6),
            ("R5", 10.0, 6.3, 16.0),
            ("R5", 1000.0, 630.0, 1600.0),
            ("E6", 1.0, 0.68, 1.5),
            ("1-2-5", 100.0, 50.0, 200.0),
            ("POWERSOF2", 1.0, 0.5, 2.0),
            ("POWERSOF2", 10.0, 8.0, 16.0),
            ("E192", 1.0, 0.988, 1.01),
        ] {
            let series = Granularity::named(name).unwrap();
            assert_eq!((series.down(value), series.up(value)), (down, up), "{name} {value}");
        }
        assert_eq!(resistors(48)[..5], [100, 105, 110, 115, 121]);
    }
}
