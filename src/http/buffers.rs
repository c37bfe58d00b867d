//! The memory between ureq and a connection.
//!
//! In place of ureq's own, which writes zeros all over it before the first byte is sent: 200 KiB of each run, though
//! most of them use a few. The kernel's pages are zero anyway, and one that is not touched is not there.

use ureq::unversioned::transport::Buffers;

/// With less room a body is read in needlessly small pieces; with none it would look like its end.
const LEAST_SCRATCH_BYTES: usize = 10 * 1024;

/// Input and output of one connection.
#[derive(Debug)]
pub struct FreshBuffers {
    /// Input, then output. None until they are needed.
    bytes: Vec<u8>,
    input_bytes: usize,
    output_bytes: usize,
    /// What of the input is there and not used up yet.
    start: usize,
    end: usize,
    /// Whether something was used up the last time, so that what is left may be of use.
    progress: bool,
    /// The scratch memory where the input leaves too little.
    scratch: Vec<u8>,
}

impl FreshBuffers {
    /// Buffers of these sizes, which are not there yet.
    pub fn new(input_bytes: usize, output_bytes: usize) -> FreshBuffers {
        let (bytes, scratch) = (Vec::new(), Vec::new());
        FreshBuffers { bytes, input_bytes, output_bytes, start: 0, end: 0, progress: false, scratch }
    }

    fn make(&mut self) {
        if self.bytes.is_empty() {
            // At once, since what is as large as both comes from the kernel and not from memory that was used before.
            self.bytes = vec![0; self.input_bytes + self.output_bytes];
        }
    }

    /// Moves what is left of the input to its beginning if it has come far.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.end > self.input_bytes / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }
}

impl Buffers for FreshBuffers {
    fn output(&mut self) -> &mut [u8] {
        self.make();
        &mut self.bytes[self.input_bytes..]
    }

    fn input(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn input_append_buf(&mut self) -> &mut [u8] {
        self.make();
        self.make_room();
        &mut self.bytes[self.end..self.input_bytes]
    }

    fn tmp_and_output(&mut self) -> (&mut [u8], &mut [u8]) {
        self.make();
        self.make_room();
        let (input, output) = self.bytes.split_at_mut(self.input_bytes);
        match &mut input[self.end..] {
            room if room.len() >= LEAST_SCRATCH_BYTES => (room, output),
            _ => {
                self.scratch.resize(LEAST_SCRATCH_BYTES, 0);
                (&mut self.scratch, output)
            }
        }
    }

    fn input_appended(&mut self, amount: usize) {
        self.end += amount;
        assert!(self.end <= self.input_bytes, "no more was read than there was room for");
    }

    fn input_consume(&mut self, amount: usize) {
        self.progress = amount > 0;
        self.start += amount;
        assert!(self.start <= self.end, "no more is used up than was there");
    }

    fn can_use_input(&self) -> bool {
        self.progress && self.start < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(buffers: &mut FreshBuffers, bytes: &[u8]) {
        buffers.input_append_buf()[..bytes.len()].copy_from_slice(bytes);
        buffers.input_appended(bytes.len());
    }

    #[test]
    fn input_is_used_up_in_order_and_makes_room() {
        let mut buffers = FreshBuffers::new(8, 4);
        assert_eq!(buffers.input(), b"");
        put(&mut buffers, b"abcdef");
        assert!(!buffers.can_use_input());
        buffers.input_consume(4);
        assert!(buffers.can_use_input());
        assert_eq!(buffers.input(), b"ef");
        assert_eq!(buffers.input_append_buf().len(), 6);
        put(&mut buffers, b"ghijkl");
        assert_eq!(buffers.input(), b"efghijkl");
        assert_eq!(buffers.input_append_buf().len(), 0);
        buffers.input_consume(0);
        assert!(!buffers.can_use_input());
        buffers.input_consume(8);
        assert!(!buffers.can_use_input());
        assert_eq!(buffers.input_append_buf().len(), 8);
    }

    #[test]
    fn there_is_scratch_memory_though_the_input_is_full() {
        let mut buffers = FreshBuffers::new(4, 3);
        put(&mut buffers, b"full");
        let (scratch, output) = buffers.tmp_and_output();
        assert_eq!((scratch.len(), output.len()), (LEAST_SCRATCH_BYTES, 3));
        scratch.fill(b'x');
        output.fill(b'y');
        assert_eq!(buffers.input(), b"full");
        assert_eq!(buffers.output(), b"yyy");
        let mut buffers = FreshBuffers::new(LEAST_SCRATCH_BYTES + 1, 3);
        put(&mut buffers, b"a");
        assert_eq!(buffers.tmp_and_output().0.len(), LEAST_SCRATCH_BYTES);
    }
}
