//! Costs are measured on this engine, and designs against what the costs predict.

use model::advise::calibrate::calibrate;
use model::advise::collect::relations;
use model::advise::measure::{Measurement, measure};
use model::advise::thresholds::Thresholds;
use std::path::Path;
use store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn designs_are_built_and_ranked_with_this_machines_costs() {
    let costs = calibrate(&Store::in_memory().expect("opens")).await.expect("measures");
    let all = [costs.index_seek, costs.index_entry, costs.document_fetch, costs.kilobyte_read, costs.request];
    let written = [costs.document_write, costs.kilobyte_written, costs.index_entry_written];
    assert!(all.iter().chain(&written).all(|cost| *cost > 0.0 && *cost < 100_000.0), "{costs:?}");
    // A seek goes down a tree: it can't be told from nothing only if something else was measured.
    assert!(costs.index_seek >= 0.1 && costs.index_seek > costs.index_entry / 10.0, "{costs:?}");
    let table = Thresholds { costs, ..Thresholds::default() };
    assert_eq!(Thresholds::with(&table.to_toml()).expect("reads its own text"), table);
    let store = Store::in_memory().expect("opens");
    let mut measured: Vec<Measurement> = Vec::new();
    for name in ["blog", "shop"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
        let model = model::load(&folder).expect("the sample model").model;
        for relation in relations(&model).iter().filter(|relation| !relation.many_to_many).take(6) {
            measured.push(measure(&store, relation, &table).await.expect("measures"));
        }
    }
    assert!(measured.len() >= 4);
    for measurement in &measured {
        assert!(measurement.designs.len() >= 2 && measurement.tau.abs() <= 1.0, "{measurement:?}");
        assert!(measurement.designs.iter().all(|(_, predicted, _)| predicted.is_finite()), "{measurement:?}");
    }
    // Times waver on a busy machine; the rankings agree on the whole all the same.
    let mean = measured.iter().map(|measurement| measurement.tau).sum::<f64>() / measured.len() as f64;
    assert!(mean > 0.0, "mean Kendall's tau {mean:.2}: {measured:#?}");
    if std::env::var_os("SHEAF_SHOW").is_some() {
        panic!("mean Kendall's tau {mean:.2} over {}; {table:#?} {measured:#?}", measured.len());
    }
}
