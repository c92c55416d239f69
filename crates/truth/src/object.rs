//! The objects that a recorded run accesses, written as `kind:pages[:path[:request]]`.

use anyhow::{Context, anyhow};
use pageout_engine::{Advice, PAGE_SIZE};

/// How an object is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// pread of whole pages, advised random.
    Read,
    /// pread of whole pages of a file on tmpfs, advised random.
    Tmpfs,
    /// A shared mapping.
    Mapped,
    /// A shared mapping, advised random.
    MappedRandom,
    /// Private anonymous memory.
    Anon,
    /// pread of a file that is read ahead.
    Readahead,
    /// pread of half pages of a file that is read ahead.
    Half,
    /// pread of a file that is read ahead, advised sequential.
    ReadaheadSequential,
    /// Readahead is asked for, and nothing is read.
    WillNeed,
    /// A mapping whose faults read ahead, and the advice that it was given.
    MappedReadahead(Advice),
}

/// Kinds by their names; a `read` below `/tmpfs/` is [`Kind::Tmpfs`].
const KINDS: &[(&str, Kind)] = &[
    ("read", Kind::Read),
    ("mmap", Kind::Mapped),
    ("mrand", Kind::MappedRandom),
    ("anon", Kind::Anon),
    ("ra", Kind::Readahead),
    ("ras", Kind::ReadaheadSequential),
    ("half", Kind::Half),
    ("will", Kind::WillNeed),
    ("ram", Kind::MappedReadahead(Advice::Normal)),
    ("rams", Kind::MappedReadahead(Advice::Sequential)),
    ("ramr", Kind::MappedReadahead(Advice::Random)),
];

/// As many as a word of a sequence can name.
const PAGES_MAX: u64 = 1 << 28;

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) kind: Kind,
    pub(super) pages: u64,
    /// The path of the object's file.
    pub(super) path: String,
    /// The object whose open file it shares.
    pub(super) shares: Option<u32>,
    /// Pages, or half pages, of one access.
    pub(super) request: u64,
    /// As the recording has it.
    pub(super) text: String,
}

impl Object {
    pub(super) fn parse(text: &str) -> anyhow::Result<Object> {
        let what = || format!("object `{text}`: expected `kind:pages[:path[:request]]`");
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let (_, kind) = KINDS.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
            anyhow!("object `{text}`: unknown kind `{name}`; known: {}", known.join(", "))
        })?;
        let count = |part: &str| part.parse().ok().filter(|count| (1..=PAGES_MAX).contains(count));
        let pages = parts.next().and_then(count).with_context(what)?;
        let path = parts.next().unwrap_or_default();
        let kind = if *kind == Kind::Read && path.starts_with("/tmpfs/") { Kind::Tmpfs } else { *kind };
        let shares =
            path.strip_prefix('=').map(|number| number.parse().ok().with_context(what)).transpose()?;
        let request = parts.next().map_or(Some(1), count).with_context(what)?;
        match parts.next() {
            None => {
                Ok(Object { kind, pages, path: path.to_string(), shares, request, text: text.to_string() })
            }
            Some(_) => Err(anyhow!(what())),
        }
    }

    /// A file with blocks of its own, to which what is written goes back.
    pub(super) fn is_regular_file(&self) -> bool {
        !matches!(self.kind, Kind::Tmpfs | Kind::Anon)
    }

    pub(super) fn is_mapped_file(&self) -> bool {
        matches!(self.kind, Kind::Mapped | Kind::MappedRandom | Kind::MappedReadahead(_))
    }

    /// Words of a sequence count in units of so many bytes.
    pub(super) fn unit(&self) -> u64 {
        if self.kind == Kind::Half { PAGE_SIZE / 2 } else { PAGE_SIZE }
    }

    /// As many as a word of the sequence can name.
    pub(super) fn units(&self) -> u64 {
        self.pages * (PAGE_SIZE / self.unit())
    }

    /// Returns true if the object must be simulated call by call: readahead uses the remaining length of a call.
    pub(super) fn is_read_ahead(&self) -> bool {
        use Kind::{Half, MappedReadahead, Readahead, ReadaheadSequential, WillNeed};
        let is_of_kind =
            matches!(self.kind, Half | MappedReadahead(_) | Readahead | ReadaheadSequential | WillNeed);
        is_of_kind || self.request > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_a_kind_pages_a_path_and_the_pages_of_a_request() {
        let object = Object::parse("read:16384:/mnt/f").expect("it is one");
        assert_eq!((object.kind, object.pages, object.request), (Kind::Read, 16384, 1));
        assert_eq!(Object::parse("read:8192:/tmpfs/f").expect("it is one").kind, Kind::Tmpfs);
        assert_eq!(Object::parse("anon:8192").expect("it is one").kind, Kind::Anon);
        assert_eq!(Object::parse("half:65536:/mnt/f:5").expect("it is one").request, 5);
    }

    #[test]
    fn what_is_no_object_is_refused_with_what_is() {
        let refusal = |text| Object::parse(text).expect_err("it is none").to_string();
        assert!(refusal("raed:10:/mnt/f").contains("unknown kind `raed`; known: read, mmap"));
        for text in ["read", "read:x", "read:0", "anon:268435457", "read:10:/mnt/f:0", "read:10:/mnt/f:1:2"] {
            assert!(refusal(text).contains("expected `kind:pages[:path[:request]]`"), "{text}");
        }
    }
}
