//! Reading a file ahead: a thread of its own copies its bytes out of the kernel, some blocks ahead of the one that decodes them.
//!
//! The copy takes a fifth of the time of a trace of packed records, and a machine has more than one core. Bytes and errors come in their order.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::source::{BUFFER_BYTES, Input};

/// Blocks that wait to be taken.
const WAITING: usize = 4;

pub(super) struct BytesAhead {
    /// What was read, up to an empty block or an error.
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// Blocks that were taken, to be filled again.
    taken: Sender<Vec<u8>>,
    block: Vec<u8>,
    /// So much of the block was taken.
    at: usize,
    is_over: bool,
}

impl BytesAhead {
    /// Begins to read. The thread ends early if its output is not taken any more.
    #[allow(clippy::disallowed_methods, reason = "what is read does not depend on the thread")]
    pub(super) fn of(input: Input) -> Input {
        let (send, blocks) = sync_channel(WAITING);
        let (taken, empties) = channel();
        thread::spawn(move || read(input, &send, &empties));
        Box::new(BytesAhead { blocks, taken, block: Vec::new(), at: 0, is_over: false })
    }
}

fn read(mut input: Input, send: &SyncSender<io::Result<Vec<u8>>>, empties: &Receiver<Vec<u8>>) {
    loop {
        let mut block = empties.try_recv().unwrap_or_default();
        block.resize(BUFFER_BYTES, 0);
        let read = loop {
            match input.read(&mut block) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let is_over = !matches!(read, Ok(1..));
        let block = read.map(|count| {
            block.truncate(count);
            block
        });
        if send.send(block).is_err() || is_over {
            return;
        }
    }
}

impl Read for BytesAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() && !self.is_over {
            let next = self.blocks.recv().expect("the thread that reads a file ends with an end or an error");
            self.is_over = !next.as_ref().is_ok_and(|block| !block.is_empty());
            // After the end, no more blocks are needed.
            _ = self.taken.send(std::mem::replace(&mut self.block, next?));
            self.at = 0;
        }
        let count = (&self.block[self.at..]).read(out)?;
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many bytes in pieces, then an error if it is to fail.
    struct Pieces {
        left: usize,
        fails: bool,
    }

    impl Read for Pieces {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.left.min(out.len()).min(77_777);
            (0..count).for_each(|at| out[at] = (self.left - at) as u8);
            self.left -= count;
            match count == 0 && self.fails {
                true => Err(io::Error::other("it is torn")),
                false => Ok(count),
            }
        }
    }

    #[test]
    fn all_bytes_come_in_order_however_they_are_taken() {
        for bytes in [0, 1, BUFFER_BYTES, 3_000_001] {
            for most in [1 << 10, 77_777, 1 << 20] {
                let mut ahead = BytesAhead::of(Box::new(Pieces { left: bytes, fails: false }));
                let (mut all, mut some) = (Vec::<u8>::new(), vec![0; most]);
                loop {
                    let count = ahead.read(&mut some).unwrap();
                    all.extend(&some[..count]);
                    if count == 0 {
                        break;
                    }
                }
                assert!(
                    all.iter().copied().eq((1..=bytes).rev().map(|left| left as u8)),
                    "{bytes} by {most}"
                );
                assert_eq!(ahead.read(&mut some).unwrap(), 0, "and then no more");
            }
        }
    }

    #[test]
    fn an_error_comes_after_what_was_read_before_it() {
        let mut ahead = BytesAhead::of(Box::new(Pieces { left: 100_000, fails: true }));
        let mut all = Vec::new();
        assert_eq!(ahead.read_to_end(&mut all).unwrap_err().to_string(), "it is torn");
        assert_eq!(all.len(), 100_000);
    }
}
