//! Results as Parquet: in a build with the feature, and what a build without it says.

use std::path::Path;

use super::pageout;

fn replay(directory: &Path, more: &[&str]) -> std::process::Output {
    std::fs::write(directory.join("p.pages"), "1\n2\n3\n1\n4\n2\n").unwrap();
    let asked = ["replay", "p.pages", "--policy", "lru,opt", "--memory", "2pages,3pages"];
    pageout(directory, &[&asked[..], more].concat())
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_names_the_feature_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let output = replay(directory.path(), &["--out", "all.parquet"]);
    super::check_failure(&output, 2, &["cargo build --release --features parquet", "--out FILE.csv"]);
    assert!(!directory.path().join("all.parquet").exists());
}

#[cfg(feature = "parquet")]
mod with_it {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, Row};

    use super::super::{check_failure, check_success, text};
    use super::*;

    fn rows(path: &Path) -> Vec<Row> {
        let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    }

    fn field(row: &Row, name: &str) -> Field {
        let found = row.get_column_iter().find(|(column, _)| *column == name);
        found.unwrap_or_else(|| panic!("{name} in {row}")).1.clone()
    }

    #[test]
    fn a_replay_comes_back_as_it_was_printed() {
        let directory = tempfile::tempdir().unwrap();
        let output = replay(directory.path(), &["--out", "all.parquet"]);
        assert_eq!(check_success(&output), "");
        assert!(text(&output.stderr).contains("result written to all.parquet"));
        let rows = rows(&directory.path().join("all.parquet"));
        let misses: Vec<Field> = rows.iter().map(|row| field(row, "misses")).collect();
        assert_eq!(misses, [6, 5, 5, 4].map(Field::Long));
        assert_eq!(field(&rows[2], "policy"), Field::Str("opt".into()));
        assert_eq!(field(&rows[2], "is_bound"), Field::Bool(true));
        assert_eq!(field(&rows[0], "miss_ratio"), Field::Double(1.0));
        check_failure(
            &replay(directory.path(), &["--format", "parquet"]),
            2,
            &["help: add --out FILE.parquet"],
        );
    }

    #[test]
    fn a_sweep_is_collected_with_its_errors_as_text_and_what_is_missing_as_null() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("p.pages"), "1\n2\n3\n1\n4\n2\n").unwrap();
        let plan = "traces = ['p.pages', 'none.pgt']\npolicy = ['lru']\nmemory = ['50%']\n";
        std::fs::write(directory.path().join("plan.toml"), plan).unwrap();
        let swept = pageout(directory.path(), &["sweep", "plan.toml", "--into", "results"]);
        assert_eq!(swept.status.code(), Some(1));
        check_success(&pageout(directory.path(), &["sweep", "--collect", "results", "--out", "all.parquet"]));
        let rows = rows(&directory.path().join("all.parquet"));
        assert_eq!(rows.len(), 2);
        assert_eq!([field(&rows[0], "misses"), field(&rows[1], "misses")], [Field::Null, Field::Long(6)]);
        assert!(matches!(field(&rows[0], "error"), Field::Str(_)));
    }
}
