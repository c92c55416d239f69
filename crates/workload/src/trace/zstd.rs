//! zstd, behind the few calls that traces need. The library is C, which is not built for WebAssembly: there a compressed trace is an error.

#[cfg(not(target_family = "wasm"))]
pub(super) use linked::{Compressor, Decompressor, decoder};
#[cfg(target_family = "wasm")]
pub(super) use missing::{Compressor, Decompressor, decoder};

#[cfg(not(target_family = "wasm"))]
mod linked {
    use std::io::{self, Read};

    pub(in crate::trace) type Compressor = zstd::bulk::Compressor<'static>;
    pub(in crate::trace) type Decompressor = zstd::bulk::Decompressor<'static>;

    /// The decompressed bytes of a stream. Errors: there is no memory for a decompressor.
    pub(in crate::trace) fn decoder(whole: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(zstd::stream::read::Decoder::new(whole)?))
    }
}

#[cfg(target_family = "wasm")]
mod missing {
    use std::io::{self, Read};

    fn unsupported<T>() -> io::Result<T> {
        let why = "zstd: found compressed data, expected none: a WebAssembly build has no zstd\nhelp: decompress it first";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// No value of it exists.
    pub(in crate::trace) enum Compressor {}

    impl Compressor {
        pub(in crate::trace) fn new(_: i32) -> io::Result<Compressor> {
            unsupported()
        }

        pub(in crate::trace) fn compress(&mut self, _: &[u8]) -> io::Result<Vec<u8>> {
            match *self {}
        }
    }

    /// No value of it exists.
    pub(in crate::trace) enum Decompressor {}

    impl Decompressor {
        pub(in crate::trace) fn new() -> io::Result<Decompressor> {
            unsupported()
        }

        pub(in crate::trace) fn decompress_to_buffer(
            &mut self,
            _: &[u8],
            _: &mut Vec<u8>,
        ) -> io::Result<usize> {
            match *self {}
        }
    }

    pub(in crate::trace) fn decoder(_: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        unsupported()
    }
}
