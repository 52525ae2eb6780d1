//! The sample models pass `check` without a warning, and their JSON reads back.

use std::path::Path;

fn sample(name: &str) -> model::Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    match model::load(&path) {
        Ok(checked) => {
            assert!(checked.warnings.is_empty(), "{name}:\n{}", checked.warnings);
            checked.model
        }
        Err(error) => panic!("{name}:\n{error}"),
    }
}

#[test]
fn the_sample_models_pass() {
    for name in ["shop", "social", "blog", "chat", "metrics"] {
        let model = sample(name);
        let json = model.to_json();
        let again = model::Model::from_json(&json).expect("reads back");
        assert_eq!(again, model);
        assert_eq!(again.to_json(), json, "the JSON has one form");
        assert!(!model::show::show(&model).is_empty());
    }
}
