//! The files of a recording, and the settings of the kernel's kdamond in one of them.

use crate::Failure;
use pageout_damon::{Action, Attrs, Filter, OpsFilter, Pattern, QuotaLimits, Range, SchemeSpec, Weights};
use std::collections::BTreeMap;
use std::path::Path;

/// The text of a file, which may be compressed.
pub(crate) fn text(folder: &Path, name: &str) -> Result<String, Failure> {
    let packed = folder.join(format!("{name}.zst"));
    let of = |path: &Path| format!("{}: cannot read it", path.display());
    if !packed.exists() {
        let path = folder.join(name);
        return std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", of(&path)).into());
    }
    let bytes = zstd::decode_all(std::fs::File::open(&packed)?);
    Ok(String::from_utf8(bytes.map_err(|error| format!("{}: {error}", of(&packed)))?)?)
}

/// The files of a context in sysfs, by name.
pub(crate) struct Files(BTreeMap<String, String>);

impl Files {
    pub(crate) fn read(folder: &Path) -> Result<Files, Failure> {
        let text = text(folder, "kdamond.txt")?;
        let pairs = text.lines().filter_map(|line| line.split_once(": "));
        Ok(Files(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }

    fn text(&self, name: &str) -> Result<&str, Failure> {
        let value = self.0.get(name).map(String::as_str);
        value.ok_or_else(|| format!("kdamond.txt: {name}: found nothing, expected a value").into())
    }

    fn number(&self, name: &str) -> Result<u64, Failure> {
        let text = self.text(name)?;
        text.parse().map_err(|_| format!("kdamond.txt: {name}: found `{text}`, expected a number").into())
    }

    /// The intervals and limits.
    pub(crate) fn attrs(&self) -> Result<Attrs, Failure> {
        let of = |name: &str| self.number(&format!("monitoring_attrs/{name}"));
        Ok(Attrs {
            sample_us: of("intervals/sample_us")?,
            aggr_us: of("intervals/aggr_us")?,
            update_us: of("intervals/update_us")?,
            min_regions: of("nr_regions/min")?,
            max_regions: of("nr_regions/max")?,
            ..Attrs::default()
        })
    }

    /// The addresses that are monitored.
    pub(crate) fn ranges(&self) -> Result<Vec<Range>, Failure> {
        let count = self.number("targets/0/regions/nr_regions")?;
        let end = |at: u64, name: &str| self.number(&format!("targets/0/regions/{at}/{name}"));
        (0..count).map(|at| Ok(end(at, "start")?..end(at, "end")?)).collect()
    }

    /// The schemes, in order.
    pub(crate) fn schemes(&self) -> Result<Vec<SchemeSpec>, Failure> {
        (0..self.number("schemes/nr_schemes")?).map(|at| self.scheme(&format!("schemes/{at}"))).collect()
    }

    fn scheme(&self, folder: &str) -> Result<SchemeSpec, Failure> {
        let of = |name: &str| self.number(&format!("{folder}/{name}"));
        let count = |name: &str| of(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let known = [Action::Stat, Action::Pageout, Action::LruPrio, Action::LruDeprio];
        let name = self.text(&format!("{folder}/action"))?;
        let action = known.into_iter().find(|action| action.name() == name);
        let action = action.ok_or_else(|| format!("{folder}/action: found `{name}`, expected {known:?}"))?;
        let others =
            of("core_filters/nr_filters")? + of("filters/nr_filters")? + of("quotas/goals/nr_goals")?;
        if others > 0 {
            return Err(format!("{folder}: found a filter by address or a goal, expected none").into());
        }
        let metric = self.text(&format!("{folder}/watermarks/metric"))?;
        if metric != "none" {
            return Err(format!("{folder}/watermarks/metric: found `{metric}`, expected `none`").into());
        }
        let filter = |at: u64| self.filter(&format!("{folder}/ops_filters/{at}"));
        let pattern = Pattern {
            size: of("access_pattern/sz/min")?..=of("access_pattern/sz/max")?,
            nr_accesses: count("access_pattern/nr_accesses/min")?..=count("access_pattern/nr_accesses/max")?,
            age: count("access_pattern/age/min")?..=count("access_pattern/age/max")?,
        };
        let weights = Weights {
            size: count("quotas/weights/sz_permil")?,
            nr_accesses: count("quotas/weights/nr_accesses_permil")?,
            age: count("quotas/weights/age_permil")?,
        };
        Ok(SchemeSpec {
            apply_interval_us: of("apply_interval_us")?,
            quota: QuotaLimits {
                ms: of("quotas/ms")?,
                bytes: of("quotas/bytes")?,
                reset_interval_ms: of("quotas/reset_interval_ms")?,
                weights,
                ..QuotaLimits::default()
            },
            ops_filters: (0..of("ops_filters/nr_filters")?).map(filter).collect::<Result<_, _>>()?,
            ..SchemeSpec::new(pattern, action)
        })
    }

    fn filter(&self, folder: &str) -> Result<Filter<OpsFilter>, Failure> {
        let is = |name: &str| self.text(&format!("{folder}/{name}")).map(|text| text == "Y");
        let kind = match self.text(&format!("{folder}/type"))? {
            "anon" => OpsFilter::Anon,
            "unmapped" => OpsFilter::Unmapped,
            "active" => OpsFilter::Active,
            "young" => OpsFilter::Young,
            other => {
                let expected = "expected anon, unmapped, active or young";
                return Err(format!("{folder}/type: found `{other}`, {expected}").into());
            }
        };
        Ok(Filter { kind, matching: is("matching")?, allow: is("allow")? })
    }
}
