//! One line of trace text: which task, on which CPU, when, which event.
//!
//! ```text
//!           wl-160     [001] d..1.   207.727380: mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
//!         comm pid     CPU   flags   seconds     event                           fields
//!
//!           wl   160/160 [001]   207.727380: vmscan:mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL
//!         comm   pid/tid  CPU    seconds     group  event                          fields             as `perf script` has it
//! ```
//! A comm may hold anything, blanks and `-[]:/` too: `kworker/0:1-57` and `Web Content-812` are tasks. Only the part
//! from the pid to the time is unambiguous: 15 bytes of comm are too few to forge it. So a line is read from that part to both sides.
//! The kernel of 2010 has no flag column. A column of thread groups, `(  160)`, may stand before the CPU. `perf script` may omit
//! the CPU and the process. With an option it prints a count of the event after the time.

/// The tool that printed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The kernel, or `trace-cmd report`.
    Ftrace,
    /// `perf script`.
    Perf,
}

/// The head of a trace line: everything before the fields of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The task's name.
    pub comm: &'a [u8],
    /// The task's number.
    pub pid: u32,
    /// The CPU that it ran on; `None` if the line does not have it.
    pub cpu: Option<u32>,
    /// The time. Unit: nanoseconds of the trace's clock.
    pub time_ns: u64,
    /// The event; empty for a function.
    pub event: &'a [u8],
    /// The fields of the event.
    pub fields: &'a [u8],
    /// The program whose form the line has.
    pub form: Form,
}

/// Where a CPU may stand at the latest: behind a comm, a pid and a thread group, and wide columns fit.
const CPU_COLUMN_MAX: usize = 128;

/// Reads a line; `None` if it has not that form.
pub fn parse(line: &[u8]) -> Option<Head<'_>> {
    ftrace(line).or_else(|| perf(line))
}

fn ftrace(line: &[u8]) -> Option<Head<'_>> {
    let searched = &line[..line.len().min(CPU_COLUMN_MAX)];
    let brackets = searched.iter().enumerate().filter(|&(_, &byte)| byte == b'[');
    brackets.map(|(at, _)| at).find_map(|at| {
        let (comm, pid) = task(&line[..at])?;
        let (cpu, rest) = number(&line[at + 1..])?;
        let (time_ns, rest) = time(rest.strip_prefix(b"]")?)?;
        let (event, fields) = event(rest)?;
        let cpu = Some(u32::try_from(cpu).ok()?);
        Some(Head { comm, pid, cpu, time_ns, event, fields, form: Form::Ftrace })
    })
}

/// From the first time that a task stands before and an event behind.
fn perf(line: &[u8]) -> Option<Head<'_>> {
    let starts = (1..line.len().min(CPU_COLUMN_MAX))
        .filter(|&at| line[at].is_ascii_digit() && line[at - 1].is_ascii_whitespace());
    starts.into_iter().find_map(|at| {
        let (time_ns, rest) = seconds(&line[at..])?;
        let rest = rest.strip_prefix(b" ")?;
        let (before, cpu) = perf_cpu(line[..at].trim_ascii())?;
        let (comm, pid) = perf_task(before)?;
        let (event, fields) = perf_event(rest)?;
        Some(Head { comm, pid, cpu, time_ns, event, fields, form: Form::Perf })
    })
}

/// `comm pid [001]`, without the last if it is a CPU.
fn perf_cpu(text: &[u8]) -> Option<(&[u8], Option<u32>)> {
    let Some(before) = text.strip_suffix(b"]") else { return Some((text, None)) };
    let open = before.iter().rposition(|&byte| byte == b'[')?;
    let (cpu, nothing) = number(&before[open + 1..])?;
    nothing.is_empty().then_some((before[..open].trim_ascii_end(), Some(u32::try_from(cpu).ok()?)))
}

/// `comm pid` or `comm pid/tid`: who runs is the thread.
fn perf_task(text: &[u8]) -> Option<(&[u8], u32)> {
    let blank = text.iter().rposition(|&byte| byte == b' ')?;
    let comm = text[..blank].trim_ascii();
    let whole = |text: &[u8]| number(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number);
    let numbers = &text[blank + 1..];
    let thread = match numbers.iter().position(|&byte| byte == b'/') {
        Some(slash) => {
            whole(&numbers[..slash])?;
            &numbers[slash + 1..]
        }
        None => numbers,
    };
    let pid = u32::try_from(whole(thread)?).ok()?;
    (!comm.is_empty()).then_some((comm, pid))
}

/// ` group:event: fields`, perhaps with a count before it; also `cycles:`, which has no group.
fn perf_event(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut text = text.trim_ascii();
    if let Some((_, rest)) = number(text)
        && rest.starts_with(b" ")
    {
        text = rest.trim_ascii_start();
    }
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    let names = text[..end].strip_suffix(b":")?;
    let event = match names.iter().position(|&byte| byte == b':') {
        Some(colon) => &names[colon + 1..],
        None => names,
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(byte);
    (!event.is_empty() && names.iter().all(is_name)).then_some((event, text[end..].trim_ascii()))
}

/// `   comm-pid   ` or `   comm-pid   (  tgid) `.
fn task(text: &[u8]) -> Option<(&[u8], u32)> {
    let mut text = text.trim_ascii();
    if let Some(before) = text.strip_suffix(b")") {
        let open = before.iter().rposition(|&byte| byte == b'(')?;
        before[open + 1..].iter().all(|byte| b" -0123456789".contains(byte)).then_some(())?;
        text = before[..open].trim_ascii_end();
    }
    let dash = text.iter().rposition(|&byte| byte == b'-')?;
    let (pid, nothing) = number(&text[dash + 1..])?;
    let comm = &text[..dash];
    (nothing.is_empty() && !comm.is_empty()).then_some((comm, u32::try_from(pid).ok()?))
}

/// `d..1.   207.727380: `, with or without flags; what is left begins behind the colon.
fn time(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    seconds(text).or_else(|| {
        let end = text.iter().take(FLAGS_MAX + 1).position(|&byte| byte == b' ')?;
        let is_flags =
            text[..end].iter().all(|&byte| byte == b'.' || byte == b'#' || byte.is_ascii_alphanumeric());
        is_flags.then(|| seconds(text[end..].trim_ascii_start()))?
    })
}

/// Characters of the flag column, twice today's five.
const FLAGS_MAX: usize = 10;

/// Limit of seconds, 136 years: a larger number is damaged.
const SECONDS_MAX: u64 = u32::MAX as u64;

/// `207.727380:` in nanoseconds. Nine digits behind the point are nanoseconds already.
fn seconds(text: &[u8]) -> Option<(u64, &[u8])> {
    let (whole, rest) = number(text)?;
    let rest = rest.strip_prefix(b".").filter(|_| whole <= SECONDS_MAX)?;
    let (fraction, after) = number(rest)?;
    let unit_ns = match rest.len() - after.len() {
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    Some((whole * 1_000_000_000 + fraction * unit_ns, after.strip_prefix(b":")?))
}

/// ` event: fields`. Functions of the function tracer, `shrink_node <-do_try_to_free_pages`, are events without a name.
fn event(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    if text.split(|&byte| byte == b' ').nth(1).is_some_and(|caller| caller.starts_with(b"<-")) {
        return Some((b"", text));
    }
    let fields = text[end..].strip_prefix(b":")?;
    (end > 0).then_some((&text[..end], fields.trim_ascii()))
}

/// The decimal number at the beginning, and what follows it.
pub(super) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let mut digits = text[..end].iter();
    let value =
        digits.try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    (end > 0).then_some((value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, comm: &str, pid: u32, cpu: u32, time_ns: u64, event: &str, fields: &str) {
        let head = Head {
            comm: comm.as_bytes(),
            pid,
            cpu: Some(cpu),
            time_ns,
            event: event.as_bytes(),
            fields: fields.as_bytes(),
            form: Form::Ftrace,
        };
        assert_eq!(parse(line.as_bytes()), Some(head), "{line}");
    }

    #[test]
    fn both_dialects_of_a_line_are_read() {
        check(
            "              wl-160     [001] d..1.   207.727072: mm_vmscan_kswapd_sleep: nid=0",
            "wl",
            160,
            1,
            207_727_072_000,
            "mm_vmscan_kswapd_sleep",
            "nid=0",
        );
        check("  dd-7 [000]   1.000001: e: a=1", "dd", 7, 0, 1_000_001_000, "e", "a=1");
        check("  dd-7     (  9) [000] ....  1.000000001:   e:   a=1 ", "dd", 7, 0, 1_000_000_001, "e", "a=1");
        check("  dd-7     (-----) [000] ....  1.000000: e:", "dd", 7, 0, 1_000_000_000, "e", "");
        check("  dd-7 [000] ....  1.000000: f.isra.0 <-g", "dd", 7, 0, 1_000_000_000, "", "f.isra.0 <-g");
    }

    #[track_caller]
    fn check_perf(
        line: &str,
        comm: &str,
        pid: u32,
        cpu: Option<u32>,
        time_ns: u64,
        event: &str,
        fields: &str,
    ) {
        let (comm, event, fields) = (comm.as_bytes(), event.as_bytes(), fields.as_bytes());
        let head = Head { comm, pid, cpu, time_ns, event, fields, form: Form::Perf };
        assert_eq!(parse(line.as_bytes()), Some(head), "{line}");
    }

    #[test]
    fn lines_of_perf_script_are_read() {
        const NS: u64 = 100_000_000_000;
        check_perf(
            "              dd  2001 [001]   100.000000: vmscan:mm_x: order=0 a=b",
            "dd",
            2001,
            Some(1),
            NS,
            "mm_x",
            "order=0 a=b",
        );
        check_perf(
            "              dd  2001 [001]   100.000000000:   vmscan:mm_x: a=1",
            "dd",
            2001,
            Some(1),
            NS,
            "mm_x",
            "a=1",
        );
        check_perf("dd  2001   100.000000: vmscan:mm_x: a=1", "dd", 2001, None, NS, "mm_x", "a=1");
        check_perf("dd  1999/2001  [001]   100.000000: vmscan:mm_x:", "dd", 2001, Some(1), NS, "mm_x", "");
        check_perf(
            "dd  1999/2001    100.000000:          1 vmscan:mm_x: a=1",
            "dd",
            2001,
            None,
            NS,
            "mm_x",
            "a=1",
        );
        check_perf(
            "dd  2001 [001]   100.000000:     250000 cycles:ppp:  ffff f+0x1 (k)",
            "dd",
            2001,
            Some(1),
            NS,
            "ppp",
            "ffff f+0x1 (k)",
        );
        check_perf("dd  2001 [001]   100.000000: mm_x: a=1", "dd", 2001, Some(1), NS, "mm_x", "a=1");
        for comm in ["kworker/0:1", "Web Content", "a-b-1", "x 1.0: y", "[k] z", "1", "a 7", ":-1"] {
            let line = format!("{comm:>16}    57 [002]   100.000000: g:e: f");
            check_perf(&line, comm, 57, Some(2), NS, "e", "f");
            let line = format!("{comm:>16}    57   100.000000: g:e: f");
            check_perf(&line, comm, 57, None, NS, "e", "f");
        }
    }

    #[test]
    fn line_that_ends_as_on_windows_is_read() {
        const NS: u64 = 1_000_000_000;
        for fields in ["", "a=1"] {
            check(&format!("dd-7 [000] ....  1.000000: e: {fields}\r"), "dd", 7, 0, NS, "e", fields);
            let line = format!("dd  7 [001]   1.000000: g:e: {fields}").trim_end().to_string() + "\r";
            check_perf(&line, "dd", 7, Some(1), NS, "e", fields);
        }
    }

    #[test]
    fn a_name_may_hold_anything() {
        for comm in
            ["kworker/0:1", "Web Content", "a-b-1", "x [000] 1.0:", "<...>", "migration_0", "(sd-pam)", "-"]
        {
            let line = format!("{comm:>16}-57      [002] .....     9.000000: e: f");
            check(&line, comm.trim(), 57, 2, 9_000_000_000, "e", "f");
        }
    }

    #[test]
    fn what_has_another_form_is_no_line_of_a_trace() {
        for line in [
            "",
            "# tracer: nop",
            "dd-7 [000] 1.000000: no event",
            "dd-7 [000] 1.00000: five: digits",
            "dd-7 [000] 12345: counter: clock",
            "dd [000] 1.000000: no: pid",
            "-7 [000] 1.000000: no: comm",
            "dd-99999999999 [000] 1.000000: e: pid",
            "dd-7 [000] 99999999999.000000: e: time",
            "dd-7 [] 1.000000: no: cpu",
            " => shrink_node",
        ] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
    }
}
