//! Whether an answer is what the description says: the status, and the body by its schema. Members that the schema does
//! not know are refused, so that the description can't fall behind.

use serde_json::Value;

/// The operation that a call is, by its path's template.
pub(crate) fn operation<'d>(description: &'d Value, method: &str, path: &str) -> Option<&'d Value> {
    let path = path.split('?').next().unwrap();
    let method = if method == "HEAD" { "get".to_owned() } else { method.to_lowercase() };
    let paths = description["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let (wanted, given): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        let mut pairs = wanted.iter().zip(&given);
        wanted.len() == given.len() && pairs.all(|(wanted, given)| wanted == given || wanted.starts_with('{'))
    };
    // A literal segment goes before a parameter.
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    fitting.iter().find_map(|(_, item)| item.get(&method))
}

/// Checks an answer.
pub(crate) fn check(description: &Value, operation: &Value, status: u16, media_type: &str, body: &[u8]) {
    let response = &operation["responses"][status.to_string()];
    assert!(response.is_object(), "status {status} is not described: {}", String::from_utf8_lossy(body));
    let Some(content) = response["content"].as_object() else {
        return assert!(body.is_empty(), "status {status} has a body that is not described");
    };
    let media_type = media_type.split(';').next().unwrap();
    if media_type == "text/event-stream" {
        return;
    }
    let described = content
        .get(media_type)
        .or(content.get("*/*"))
        .unwrap_or_else(|| panic!("{media_type} is not described for {status}"));
    if media_type.ends_with("json") && !described["schema"].is_null() && content.get("*/*").is_none() {
        let value: Value = serde_json::from_slice(body).expect("the body is JSON");
        if let Err(why) = conforms(description, &described["schema"], &value) {
            panic!("{why}\nin {value:#}");
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn conforms(description: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = description.pointer(reference.trim_start_matches('#')).ok_or(format!("{reference} is missing"))?;
        return conforms(description, target, value);
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[word].as_array() {
            let refused: Vec<_> = choices.iter().map(|choice| conforms(description, choice, value)).collect();
            return if refused.iter().any(Result::is_ok) { Ok(()) } else { Err(format!("{word}: {refused:?}")) };
        }
    }
    if let Some(known) = schema["enum"].as_array() {
        return if known.contains(value) { Ok(()) } else { Err(format!("{value} is not one of {known:?}")) };
    }
    let allowed: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    if !allowed.contains(&type_of(value)) {
        return Err(format!("{value} is not {allowed:?}"));
    }
    match value {
        Value::Object(members) => object(description, schema, members),
        Value::Array(items) => items.iter().try_for_each(|item| conforms(description, &schema["items"], item)),
        Value::String(text) if schema["format"] == "date-time" => {
            let plain = text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
            if plain { Ok(()) } else { Err(format!("{text} is not a time of RFC 3339 in UTC")) }
        }
        _ => Ok(()),
    }
}

fn object(description: &Value, schema: &Value, members: &serde_json::Map<String, Value>) -> Result<(), String> {
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(required) {
            return Err(format!("{required} is missing"));
        }
    }
    let Some(properties) = schema["properties"].as_object() else {
        let others = &schema["additionalProperties"];
        return members.values().try_for_each(|member| conforms(description, others, member));
    };
    let problem = properties.contains_key("detail");
    for (name, member) in members {
        match properties.get(name) {
            Some(schema) => conforms(description, schema, member).map_err(|why| format!("{name}: {why}"))?,
            None if problem => {}
            None => return Err(format!("{name} is not described")),
        }
    }
    Ok(())
}
