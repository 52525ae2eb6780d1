//! One column of a bucket: the values of one field in the order of the rows, and how they are made small.
//!
//! | kind | for | after the kind's byte |
//! |---|---|---|
//! | 0 | one value throughout | type, value |
//! | 1 | dates, int32, int64, timestamps | type, the first as a signed number, differences |
//! | 2 | the same, where they grow steadily | type, the first, the first difference, differences of differences |
//! | 3 | doubles with few decimals | decimals, then as kind 1 or 2 (with its byte), of the doubles as whole numbers |
//! | 4 | other doubles | bits exclusive-or the bits before, as eight planes of bytes, the highest first |
//! | 5 | ObjectIds | for each: difference of its seconds, twice, plus one if its five random bytes change (they follow); difference of its counter |
//! | 6 | anything | for each: type, length, value |
//!
//! Around it stand a byte that says whether it is packed by zstd (1) or not (0), and its length unpacked. Numbers are as
//! [`put_number`] and [`put_signed`] write them.

use super::bytes::{Reader, broken, put_number, put_signed};
use crate::error::Result;

const CONSTANT: u8 = 0;
const DELTA: u8 = 1;
const DELTA_OF_DELTA: u8 = 2;
const DECIMAL: u8 = 3;
const XOR: u8 = 4;
const OBJECT_ID: u8 = 5;
const ANY: u8 = 6;

const DOUBLE_TYPE: u8 = 0x01;
const OBJECT_ID_TYPE: u8 = 0x07;
const DATE_TYPE: u8 = 0x09;
const INT32_TYPE: u8 = 0x10;
const TIMESTAMP_TYPE: u8 = 0x11;
const INT64_TYPE: u8 = 0x12;

/// Doubles are tried as whole numbers of up to so many decimals.
const MAX_DECIMALS: i32 = 6;
/// Columns shorter than this are not packed.
const MIN_PACKED_BYTES: usize = 48;
/// How hard zstd tries.
const ZSTD_LEVEL: i32 = 3;
/// The most bytes of a column unpacked; a document has at most 16 MiB, and a bucket with more than one has less.
const MAX_COLUMN_BYTES: usize = 64 << 20;

/// A value: its type and its bytes.
pub(super) type Typed<'v> = (u8, &'v [u8]);

/// A column's values, unpacked.
pub(super) struct Column {
    layout: Layout,
    data: Vec<u8>,
}

enum Layout {
    Same(u8),
    Fixed(u8, usize),
    Any { types: Vec<u8>, ends: Vec<u32> },
}

impl Column {
    /// The value of that number.
    pub(super) fn value(&self, number: usize) -> Typed<'_> {
        match &self.layout {
            Layout::Same(kind) => (*kind, &self.data),
            Layout::Fixed(kind, width) => (*kind, &self.data[number * width..(number + 1) * width]),
            Layout::Any { types, ends } => {
                let from = number.checked_sub(1).map_or(0, |before| ends[before] as usize);
                (types[number], &self.data[from..ends[number] as usize])
            }
        }
    }
}

/// Makes values small.
///
/// # Errors
/// A failing zstd.
pub(super) fn pack(values: &[Typed<'_>]) -> Result<Vec<u8>> {
    let plain = plain(values);
    let mut packed = Vec::with_capacity(plain.len() + 4);
    if plain.len() >= MIN_PACKED_BYTES {
        let squeezed = zstd::bulk::compress(&plain, ZSTD_LEVEL).map_err(|error| broken(&error.to_string()))?;
        if squeezed.len() < plain.len() {
            packed.push(1);
            put_number(&mut packed, plain.len() as u64);
            packed.extend_from_slice(&squeezed);
            return Ok(packed);
        }
    }
    packed.push(0);
    put_number(&mut packed, plain.len() as u64);
    packed.extend_from_slice(&plain);
    Ok(packed)
}

/// Makes `count` values of what [`pack`] made.
///
/// # Errors
/// `ManualInterventionRequired` when the bytes are damaged.
pub(super) fn unpack(packed: &[u8], count: usize) -> Result<Column> {
    let mut reader = Reader::new(packed);
    let codec = reader.byte()?;
    let length = reader.length(MAX_COLUMN_BYTES)?;
    let rest = reader.take(packed.len() - 1 - number_bytes(length as u64))?;
    let column = match codec {
        0 => read_plain(rest, count),
        1 => {
            let plain = zstd::bulk::decompress(rest, length).map_err(|error| broken(&error.to_string()))?;
            read_plain(&plain, count)
        }
        _ => Err(broken("a column is packed in an unknown way")),
    }?;
    Ok(column)
}

fn number_bytes(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

fn plain(values: &[Typed<'_>]) -> Vec<u8> {
    let Some((first, rest)) = values.split_first() else { return vec![ANY] };
    if rest.iter().all(|value| value == first) {
        return [&[CONSTANT, first.0], first.1].concat();
    }
    let same = rest.iter().all(|value| value.0 == first.0).then_some(first.0);
    match same {
        Some(kind @ (DATE_TYPE | INT64_TYPE | TIMESTAMP_TYPE | INT32_TYPE)) => {
            let numbers: Vec<i64> = values.iter().map(|value| whole(value.1)).collect();
            differences(&numbers, kind, Vec::with_capacity(values.len() * 2))
        }
        Some(DOUBLE_TYPE) => doubles(values),
        Some(OBJECT_ID_TYPE) => object_ids(values),
        _ => {
            let mut out = vec![ANY];
            for (kind, bytes) in values {
                out.push(*kind);
                put_number(&mut out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
            out
        }
    }
}

/// Four or eight bytes as a number.
fn whole(bytes: &[u8]) -> i64 {
    match bytes.try_into() {
        Ok(eight) => i64::from_le_bytes(eight),
        Err(_) => bytes.try_into().map_or(0, |four| i64::from(i32::from_le_bytes(four))),
    }
}

/// Appends whole numbers by their differences, or the differences of these, whichever is shorter.
fn differences(numbers: &[i64], kind: u8, mut out: Vec<u8>) -> Vec<u8> {
    let (mut once, mut twice) = (vec![DELTA, kind], vec![DELTA_OF_DELTA, kind]);
    let (mut last, mut last_difference) = (0_i64, 0_i64);
    for (at, number) in numbers.iter().enumerate() {
        let difference = number.wrapping_sub(last);
        put_signed(&mut once, difference);
        // The first number is no step: it says nothing about the next one.
        put_signed(&mut twice, if at < 2 { difference } else { difference.wrapping_sub(last_difference) });
        (last, last_difference) = (*number, difference);
    }
    let repeats = |bytes: &[u8]| bytes.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let better = once.len() < twice.len() || once.len() == twice.len() && repeats(&once) >= repeats(&twice);
    out.extend_from_slice(if better { &once } else { &twice });
    out
}

fn doubles(values: &[Typed<'_>]) -> Vec<u8> {
    let numbers: Vec<f64> = values.iter().map(|value| f64::from_bits(whole(value.1) as u64)).collect();
    for decimals in 0..=MAX_DECIMALS {
        let factor = 10_f64.powi(decimals);
        let as_whole = |number: &f64| {
            let whole = (number * factor).round();
            // A negative zero does not come back from a whole number.
            let back = whole as i64 as f64 / factor;
            (whole.abs() < 9e15 && back.to_bits() == number.to_bits()).then_some(whole as i64)
        };
        if let Some(whole) = numbers.iter().map(as_whole).collect::<Option<Vec<i64>>>() {
            return differences(&whole, DOUBLE_TYPE, vec![DECIMAL, decimals as u8]);
        }
    }
    let mut out = vec![XOR; 1 + 8 * numbers.len()];
    let mut before = 0;
    for (at, number) in numbers.iter().enumerate() {
        let bits = number.to_bits();
        for (plane, byte) in (bits ^ before).to_be_bytes().into_iter().enumerate() {
            out[1 + plane * numbers.len() + at] = byte;
        }
        before = bits;
    }
    out
}

fn object_ids(values: &[Typed<'_>]) -> Vec<u8> {
    let mut out = vec![OBJECT_ID];
    let mut before = [0_u8; 12];
    for (_, id) in values {
        let seconds = i64::from(seconds_of(id)) - i64::from(seconds_of(&before));
        let changed = id[4..9] != before[4..9];
        let zigzag = ((seconds << 1) ^ (seconds >> 63)) as u64;
        put_number(&mut out, zigzag << 1 | u64::from(changed));
        if changed {
            out.extend_from_slice(&id[4..9]);
        }
        put_signed(&mut out, i64::from(counter_of(id)) - i64::from(counter_of(&before)));
        before.copy_from_slice(id);
    }
    out
}

fn seconds_of(id: &[u8]) -> u32 {
    u32::from_be_bytes([id[0], id[1], id[2], id[3]])
}

fn counter_of(id: &[u8]) -> u32 {
    u32::from_be_bytes([0, id[9], id[10], id[11]])
}

fn read_plain(plain: &[u8], count: usize) -> Result<Column> {
    let mut reader = Reader::new(plain);
    match reader.byte()? {
        CONSTANT => Ok(Column { layout: Layout::Same(reader.byte()?), data: reader.take(plain.len() - 2)?.to_vec() }),
        kind @ (DELTA | DELTA_OF_DELTA) => read_differences(&mut reader, kind, count),
        DECIMAL => read_decimals(&mut reader, count),
        XOR => read_planes(&mut reader, count),
        OBJECT_ID => read_object_ids(&mut reader, count),
        ANY => read_any(&mut reader, count),
        _ => Err(broken("a column is of an unknown kind")),
    }
}

fn read_numbers(reader: &mut Reader<'_>, kind: u8, count: usize) -> Result<Vec<i64>> {
    let mut numbers = Vec::with_capacity(count);
    let (mut last, mut last_difference) = (0_i64, 0_i64);
    for at in 0..count {
        let read = reader.signed()?;
        let difference = if kind == DELTA || at < 2 { read } else { last_difference.wrapping_add(read) };
        last = last.wrapping_add(difference);
        last_difference = difference;
        numbers.push(last);
    }
    Ok(numbers)
}

fn read_differences(reader: &mut Reader<'_>, kind: u8, count: usize) -> Result<Column> {
    let type_byte = reader.byte()?;
    let numbers = read_numbers(reader, kind, count)?;
    if type_byte == INT32_TYPE {
        let data = numbers.iter().flat_map(|number| (*number as i32).to_le_bytes()).collect();
        return Ok(Column { layout: Layout::Fixed(type_byte, 4), data });
    }
    let data = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Ok(Column { layout: Layout::Fixed(type_byte, 8), data })
}

fn read_decimals(reader: &mut Reader<'_>, count: usize) -> Result<Column> {
    let factor = 10_f64.powi(i32::from(reader.byte()?));
    let kind = reader.byte()?;
    reader.byte()?;
    let numbers = read_numbers(reader, kind, count)?;
    let data = numbers.iter().flat_map(|number| (*number as f64 / factor).to_le_bytes()).collect();
    Ok(Column { layout: Layout::Fixed(DOUBLE_TYPE, 8), data })
}

fn read_planes(reader: &mut Reader<'_>, count: usize) -> Result<Column> {
    let planes = reader.take(8 * count)?;
    let mut data = Vec::with_capacity(8 * count);
    let mut before = 0;
    for at in 0..count {
        let difference = (0..8).fold(0_u64, |bits, plane| bits << 8 | u64::from(planes[plane * count + at]));
        before ^= difference;
        data.extend_from_slice(&before.to_le_bytes());
    }
    Ok(Column { layout: Layout::Fixed(DOUBLE_TYPE, 8), data })
}

fn read_object_ids(reader: &mut Reader<'_>, count: usize) -> Result<Column> {
    let mut data = Vec::with_capacity(12 * count);
    let (mut seconds, mut random, mut counter) = (0_i64, [0_u8; 5], 0_i64);
    for _ in 0..count {
        let first = reader.number()?;
        let zigzag = first >> 1;
        seconds += (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        if first & 1 == 1 {
            random.copy_from_slice(reader.take(5)?);
        }
        counter += reader.signed()?;
        data.extend_from_slice(&(seconds as u32).to_be_bytes());
        data.extend_from_slice(&random);
        data.extend_from_slice(&(counter as u32).to_be_bytes()[1..]);
    }
    Ok(Column { layout: Layout::Fixed(OBJECT_ID_TYPE, 12), data })
}

fn read_any(reader: &mut Reader<'_>, count: usize) -> Result<Column> {
    let (mut types, mut ends, mut data) = (Vec::with_capacity(count), Vec::with_capacity(count), Vec::new());
    for _ in 0..count {
        types.push(reader.byte()?);
        let length = reader.length(MAX_COLUMN_BYTES)?;
        data.extend_from_slice(reader.take(length)?);
        ends.push(data.len() as u32);
    }
    Ok(Column { layout: Layout::Any { types, ends }, data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[(u8, Vec<u8>)]) -> usize {
        let typed: Vec<Typed<'_>> = values.iter().map(|(kind, bytes)| (*kind, &bytes[..])).collect();
        let packed = pack(&typed).unwrap();
        let column = unpack(&packed, values.len()).unwrap();
        for (number, value) in typed.iter().enumerate() {
            assert_eq!(column.value(number), *value, "value {number}");
        }
        packed.len()
    }

    #[test]
    fn steady_times_take_almost_nothing() {
        let times: Vec<_> =
            (0..1000_i64).map(|n| (DATE_TYPE, (1_700_000_000_000 + n * 5000).to_le_bytes().to_vec())).collect();
        assert!(round_trip(&times) < 40);
    }

    #[test]
    fn temperatures_with_one_decimal_take_a_byte_or_less() {
        let value = |n: i32| f64::from(200 + (n * 37) % 11) / 10.0;
        let values: Vec<_> = (0..1000).map(|n| (DOUBLE_TYPE, value(n).to_le_bytes().to_vec())).collect();
        assert!(round_trip(&values) < 1000);
    }

    #[test]
    fn odd_doubles_come_back_bit_by_bit() {
        let odd = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::MIN_POSITIVE, 0.1 + 0.2, -1e300];
        round_trip(&odd.map(|number| (DOUBLE_TYPE, number.to_le_bytes().to_vec())));
        round_trip(&[-0.0, 1.5].map(|number: f64| (DOUBLE_TYPE, number.to_le_bytes().to_vec())));
    }

    #[test]
    fn whole_numbers_at_the_ends_of_their_range_come_back() {
        let ends = [i64::MIN, i64::MAX, 0, -1, i64::MAX, i64::MIN];
        round_trip(&ends.map(|number| (INT64_TYPE, number.to_le_bytes().to_vec())));
        round_trip(&[i32::MIN, i32::MAX, 3].map(|number| (INT32_TYPE, number.to_le_bytes().to_vec())));
    }

    proptest! {
        #[test]
        fn whatever_is_packed_comes_back(values in proptest::collection::vec(
            (0_u8..4, proptest::collection::vec(any::<u8>(), 12)), 0..60), same in any::<bool>())
        {
            let of = |(kind, bytes): &(u8, Vec<u8>)| match if same { values[0].0 } else { *kind } {
                0 => (DOUBLE_TYPE, bytes[..8].to_vec()),
                1 => (OBJECT_ID_TYPE, bytes.clone()),
                2 => (INT32_TYPE, bytes[..4].to_vec()),
                _ => (DATE_TYPE, bytes[..8].to_vec()),
            };
            let values: Vec<_> = values.iter().map(of).collect();
            round_trip(&values);
        }
    }
}
