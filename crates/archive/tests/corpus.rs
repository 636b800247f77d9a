//! Replays the fuzzer's corpus, so that what it has found once is tried by every run of the tests.

use std::path::Path;

#[test]
fn the_corpus_of_the_fuzzer_finds_nothing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/read_archive");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus is there") {
        let bytes = std::fs::read(entry.expect("entry").path()).expect("readable");
        sqlitmus_archive::exercise(&bytes);
        replayed += 1;
    }
    assert!(replayed >= 20, "{replayed} files");
}
