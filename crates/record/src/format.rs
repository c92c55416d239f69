//! The kernel's description of its events and of the pages they are in: `format`, `header_page` and `header_event`.
//!
//! Places and widths differ between kernels and machines, so each is read from these files. A line of theirs:
//! ```text
//!   field:unsigned long index;  offset:24;  size:8;  signed:0;
//! ```

use crate::error::Error;

/// Where a number is among the bytes of an event or page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

impl Field {
    /// The number, if the bytes reach that far and its width is one of a number.
    #[inline]
    pub(crate) fn of(self, bytes: &[u8]) -> Option<u64> {
        let bytes = bytes.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        })
    }
}

/// The fields of an event, or of a page, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Format {
    /// The number by which pages name the event; 0 for a page.
    pub(crate) id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Reads the text of a `format` or `header_page` file; `what` is what errors call it.
    pub(crate) fn parse(what: &str, text: &str) -> Result<Format, Error> {
        let bad =
            |line: &str| Error::Form(format!("{what}: invalid field of an event format: `{}`", line.trim()));
        let mut format = Format::default();
        for line in text.lines() {
            if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().map_err(|_| bad(line))?;
            }
            if let Some(field) = line.trim().strip_prefix("field:") {
                format.fields.push(field_of(field).ok_or_else(|| bad(line))?);
            }
        }
        Ok(format)
    }

    /// Where `name` is.
    pub(crate) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|&(_, field)| field)
    }

    /// Where `name` is, which has to be there.
    pub(crate) fn need(&self, what: &str, name: &str) -> Result<Field, Error> {
        self.field(name).ok_or_else(|| Error::Form(format!("{what} has no field `{name}` on this kernel")))
    }
}

fn field_of(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    // The name is the last word of the declaration, without the length of an array.
    let name = parts.next()?.rsplit([' ', '*']).next()?.split('[').next()?.to_string();
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    Some((name, Field { offset: offset?, size: size? }))
}

/// The head of an event in a page, as `header_event` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventHead {
    pub(crate) type_len_bits: u32,
    pub(crate) time_delta_bits: u32,
    pub(crate) padding: u32,
    pub(crate) time_extend: u32,
    pub(crate) time_stamp: u32,
    pub(crate) data_max: u32,
}

impl EventHead {
    /// Reads the text of `header_event`.
    pub(crate) fn parse(text: &str) -> Result<EventHead, Error> {
        let number = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name));
            let digits = line.and_then(|line| {
                let rest = line.rsplit_once([':', '='])?.1;
                let rest = rest.trim().trim_start_matches(|c: char| !c.is_ascii_digit());
                rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
            });
            digits.ok_or_else(|| Error::Form(format!("events/header_event: missing `{name}`")))
        };
        let head = EventHead {
            type_len_bits: number("type_len")?,
            time_delta_bits: number("time_delta")?,
            padding: number("padding")?,
            time_extend: number("time_extend")?,
            time_stamp: number("time_stamp")?,
            data_max: number("data max type_len")?,
        };
        if head.type_len_bits + head.time_delta_bits != 32 {
            return Err(Error::Form(
                "events/header_event: found an event header of another size, expected 32 bits".to_string(),
            ));
        }
        Ok(head)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\
        \tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
        \tdata max type_len  == 28\n";
    pub(crate) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    #[test]
    fn fields_are_where_the_file_says_in_any_order() {
        let text = "name: x\nID: 599\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                    \tfield:dev_t s_dev;\toffset:16;\tsize:4;\tsigned:0;\n\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n\
                    \nprint fmt: \"dev=%d\"\n";
        let format = Format::parse("x", text).unwrap();
        assert_eq!(format.id, 599);
        assert_eq!(format.field("s_dev"), Some(Field { offset: 16, size: 4 }));
        assert_eq!(format.field("comm"), Some(Field { offset: 24, size: 16 }));
        assert!(format.need("x", "index").unwrap_err().to_string().contains("`index`"));
        assert!(Format::parse("x", "\tfield:int a;\tsize:x;").is_err());
    }

    #[test]
    fn the_head_of_an_event_is_as_the_kernel_says() {
        let head = EventHead::parse(HEADER_EVENT).unwrap();
        let expected = EventHead {
            type_len_bits: 5,
            time_delta_bits: 27,
            padding: 29,
            time_extend: 30,
            time_stamp: 31,
            data_max: 28,
        };
        assert_eq!(head, expected);
        assert!(EventHead::parse("type_len: 5 bits").is_err());
        assert!(Format::parse("header_page", HEADER_PAGE).unwrap().field("data").is_some());
    }

    #[test]
    fn a_field_beyond_the_bytes_is_none() {
        assert_eq!(Field { offset: 4, size: 4 }.of(&[0; 7]), None);
        assert_eq!(Field { offset: usize::MAX, size: 4 }.of(&[0; 7]), None);
        assert_eq!(Field { offset: 0, size: 3 }.of(&[0; 7]), None);
        assert_eq!(Field { offset: 0, size: 2 }.of(&7u16.to_ne_bytes()), Some(7));
    }
}
