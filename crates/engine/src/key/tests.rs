//! Key order is BSON order, and keys read back as the values they were made from.

use super::*;
use crate::document::compare_values;
use bson::{
    Binary, Decimal128, RawArrayBuf, RawBson, RawDocumentBuf, Regex, Timestamp, oid::ObjectId, rawdoc,
    spec::BinarySubtype,
};
use proptest::prelude::*;
use std::cmp::Ordering;

fn decimal(text: &str) -> RawBson {
    RawBson::Decimal128(text.parse().unwrap())
}

fn number() -> impl Strategy<Value = RawBson> {
    let near =
        prop_oneof![Just(0i64), Just(1 << 53), Just(-(1 << 53)), Just(i64::MAX - 2), Just(i64::MIN + 2), Just(7)];
    prop_oneof![
        any::<i32>().prop_map(RawBson::Int32),
        (-3i32..4).prop_map(RawBson::Int32),
        any::<i64>().prop_map(RawBson::Int64),
        (near.clone(), -2i64..=2).prop_map(|(base, step)| RawBson::Int64(base + step)),
        any::<f64>().prop_map(RawBson::Double),
        (near.clone(), -2i64..=2).prop_map(|(base, step)| RawBson::Double((base + step) as f64)),
        prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(0.1),
            Just(2.5)
        ]
        .prop_map(RawBson::Double),
        (near, -2i64..=2, -3i32..4).prop_map(|(base, step, exponent)| decimal(&format!("{}E{exponent}", base + step))),
        (any::<i64>(), -6000i32..6000).prop_map(|(digits, exponent)| decimal(&format!("{digits}E{exponent}"))),
        (any::<i64>(), -330i32..-300).prop_map(|(digits, exponent)| decimal(&format!("{digits}E{exponent}"))),
        (-1e30..1e30).prop_map(|n| decimal(&format!("{n:.10e}"))),
        prop_oneof![
            Just("0"),
            Just("-0"),
            Just("0E+3"),
            Just("1.00"),
            Just("0.1"),
            Just("NaN"),
            Just("Infinity"),
            Just("-Infinity"),
            Just("9.999999999999999999999999999999999E+6144"),
            Just("1E-6176"),
            Just("-1E-6176"),
            Just("1E+400"),
            Just("-1E+400")
        ]
        .prop_map(decimal),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\u{0}\u{1}é]{0,4}", "\\PC{0,6}"]
}

fn leaf() -> impl Strategy<Value = RawBson> {
    prop_oneof![
        3 => number(),
        2 => text().prop_map(RawBson::String),
        1 => text().prop_map(RawBson::Symbol),
        1 => prop_oneof![Just(RawBson::Null), Just(RawBson::Undefined), Just(RawBson::MinKey), Just(RawBson::MaxKey)],
        1 => any::<bool>().prop_map(RawBson::Boolean),
        1 => any::<i64>().prop_map(|millis| RawBson::DateTime(bson::DateTime::from_millis(millis))),
        1 => any::<(u32, u32)>().prop_map(|(time, increment)| RawBson::Timestamp(Timestamp { time, increment })),
        1 => any::<[u8; 12]>().prop_map(|bytes| RawBson::ObjectId(ObjectId::from_bytes(bytes))),
        1 => (prop::collection::vec(any::<u8>(), 0..4), prop_oneof![Just(0u8), Just(5), Just(128)]).prop_map(|(bytes, subtype)| {
            RawBson::Binary(Binary { subtype: BinarySubtype::from(subtype), bytes })
        }),
        1 => ("[ab]{0,2}", "[imx]{0,1}").prop_map(|(pattern, options)| {
            RawBson::RegularExpression(Regex { pattern: pattern.try_into().unwrap(), options: options.try_into().unwrap() })
        }),
        1 => text().prop_map(RawBson::JavaScriptCode),
    ]
}

fn value() -> impl Strategy<Value = RawBson> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|elements| {
                let mut array = RawArrayBuf::new();
                elements.into_iter().for_each(|element| array.push(element));
                RawBson::Array(array)
            }),
            prop::collection::vec(("[ab]{0,2}", inner), 0..3).prop_map(|fields| {
                let mut document = RawDocumentBuf::new();
                fields.iter().for_each(|(name, value)| {
                    crate::document::append(&mut document, name, value.as_raw_bson_ref()).unwrap()
                });
                RawBson::Document(document)
            }),
        ]
    })
}

fn key_of(values: &[RawBson], descending: &[bool]) -> Key {
    let mut key = Key::new();
    for (value, descending) in values.iter().zip(descending) {
        key.push(value.as_raw_bson_ref(), *descending, None).unwrap();
    }
    key
}

fn order(a: &[RawBson], b: &[RawBson], descending: &[bool]) -> Ordering {
    a.iter().zip(b).zip(descending).fold(Ordering::Equal, |order, ((a, b), descending)| {
        let next = compare_values(a.as_raw_bson_ref(), b.as_raw_bson_ref(), None).unwrap();
        order.then(if *descending { next.reverse() } else { next })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_order_as_numbers(a in number(), b in number()) {
        let expected = exact(&a).cmp(&exact(&b));
        prop_assert_eq!(key_of(&[a], &[false]).bytes().cmp(key_of(&[b], &[false]).bytes()), expected);
    }

    #[test]
    fn key_order_is_bson_order(a in prop::array::uniform2(value()), b in prop::array::uniform2(value()), descending: [bool; 2]) {
        let (left, right) = (key_of(&a, &descending), key_of(&b, &descending));
        prop_assert_eq!(left.bytes().cmp(right.bytes()), order(&a, &b, &descending));
    }

    #[test]
    fn keys_read_back(values in prop::array::uniform3(value()), descending: [bool; 3]) {
        let key = key_of(&values, &descending);
        let mut rest = key.bytes();
        let mut decoder = Decoder::new(key.bytes(), key.types());
        for (value, descending) in values.iter().zip(descending) {
            let length = skip(rest, descending).unwrap();
            rest = &rest[length..];
            let read = decoder.next(descending).unwrap();
            prop_assert!(same(value, &read), "{:?} read back as {:?}", value, read);
        }
        prop_assert!(rest.is_empty() && decoder.rest().is_empty());
    }

    #[test]
    fn no_value_begins_another(a in value(), b in value()) {
        let (a, b) = (key_of(&[a], &[false]), key_of(&[b], &[false]));
        prop_assert!(a.bytes() == b.bytes() || !b.bytes().starts_with(a.bytes()));
    }

    #[test]
    fn malformed_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..40), descending: bool) {
        let _ = skip(&bytes, descending);
        let _ = Decoder::new(&bytes, &[]).next(descending);
    }
}

/// A number as its class, its sign's order, and its exponent and digits, both turned round when it is negative.
fn exact(number: &RawBson) -> (i32, i32, Vec<i32>) {
    let text = match number {
        RawBson::Int32(number) => number.to_string(),
        RawBson::Int64(number) => number.to_string(),
        RawBson::Double(number) => format!("{number:.767e}"),
        RawBson::Decimal128(number) => number.to_string(),
        other => panic!("{other:?} is no number"),
    };
    let (sign, text) = text.strip_prefix('-').map_or((1, text.as_str()), |rest| (-1, rest));
    match text {
        "NaN" => return (0, 0, vec![]),
        "inf" | "Infinity" => return (if sign > 0 { 3 } else { 1 }, 0, vec![]),
        _ => {}
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let exponent = exponent.parse::<i32>().unwrap() + whole.len() as i32 - leading as i32;
    let digits = digits.trim_matches('0').bytes();
    if digits.len() == 0 {
        return (2, 0, vec![]);
    }
    // The end is below every digit, and above every digit of a negative number.
    let parts = std::iter::once(exponent).chain(digits.map(|digit| i32::from(digit - b'0') + 1)).chain([0]);
    (2, sign, parts.map(|part| part * sign).collect())
}

/// Equality of bytes, but for the many NaNs.
fn same(a: &RawBson, b: &RawBson) -> bool {
    match (a, b) {
        (RawBson::Double(a), RawBson::Double(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (RawBson::Document(a), RawBson::Document(b)) => {
            a.as_bytes() == b.as_bytes() || format!("{a:?}").contains("NaN") || has_nan(a.as_bytes())
        }
        (RawBson::Array(a), RawBson::Array(b)) => a.as_bytes() == b.as_bytes() || has_nan(a.as_bytes()),
        _ => a == b,
    }
}

fn has_nan(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|window| f64::from_le_bytes(window.try_into().unwrap()).is_nan())
}

#[test]
fn equal_numbers_are_one_key() {
    let ones = [RawBson::Int32(1), RawBson::Int64(1), RawBson::Double(1.0), decimal("1"), decimal("1.000")];
    let keys: Vec<Key> = ones.iter().map(|one| key_of(std::slice::from_ref(one), &[false])).collect();
    assert!(keys.iter().all(|key| key.bytes() == keys[0].bytes()));
    assert_eq!(keys[0].types(), b"");
    let big = [RawBson::Int64(9_007_199_254_740_993), decimal("9007199254740993"), decimal("9007199254740993.0")];
    let keys: Vec<Key> = big.iter().map(|one| key_of(std::slice::from_ref(one), &[false])).collect();
    assert!(keys.iter().all(|key| key.bytes() == keys[0].bytes()));
}

#[test]
fn thirty_four_digits_are_told_apart() {
    let ordered = [
        "-1E+6144",
        "-1.000000000000000000000000000000001",
        "-1",
        "1.000000000000000000000000000000000",
        "1.000000000000000000000000000000001",
        "1.000000000000000000000000000000002",
        "9.999999999999999999999999999999999E+6144",
    ];
    let keys: Vec<Key> = ordered.iter().map(|text| key_of(&[decimal(text)], &[false])).collect();
    assert!(keys.windows(2).all(|pair| pair[0].bytes() < pair[1].bytes()));
}

#[test]
fn code_with_scope_and_db_pointers_survive() {
    let scope = RawBson::JavaScriptCodeWithScope(bson::RawJavaScriptCodeWithScope {
        code: "f()".into(),
        scope: rawdoc! { "a": 1 },
    });
    let key = key_of(std::slice::from_ref(&scope), &[true]);
    assert_eq!(Decoder::new(key.bytes(), key.types()).next(true).unwrap(), scope);
    let mut bytes = vec![0x1A, 0, 0, 0, 0x0C, b'p', 0, 4, 0, 0, 0, b'a', b'.', b'b', 0];
    bytes.extend_from_slice(&[7; 12]);
    bytes.push(0);
    bytes[0] = bytes.len() as u8;
    let document = RawDocumentBuf::from_bytes(bytes).unwrap();
    let pointer: RawBson = crate::document::get(&document, "p").unwrap().unwrap().into();
    let key = key_of(std::slice::from_ref(&pointer), &[false]);
    assert_eq!(Decoder::new(key.bytes(), key.types()).next(false).unwrap(), pointer);
}

#[test]
fn a_decimal_keeps_its_exponent() {
    for text in ["1.00", "100", "1E+2", "0.0", "-0.000", "19.99", "NaN", "-Infinity"] {
        let value: Decimal128 = text.parse().unwrap();
        let key = key_of(&[RawBson::Decimal128(value)], &[true]);
        assert_eq!(
            Decoder::new(key.bytes(), key.types()).next(true).unwrap().to_string_or_debug(),
            value.to_string(),
            "{text}"
        );
    }
}

trait ToStringOrDebug {
    fn to_string_or_debug(&self) -> String;
}

impl ToStringOrDebug for RawBson {
    fn to_string_or_debug(&self) -> String {
        match self {
            RawBson::Decimal128(number) => number.to_string(),
            other => format!("{other:?}"),
        }
    }
}
