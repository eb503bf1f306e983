//! CRC-32 (the polynomial of zlib and Ethernet), to tell a record that was written whole.

/// What each value of four bits does to the rest: 64 bytes, where a table for eight would cost the
/// shim a quarter of a page.
const STEPS: [u32; 16] = {
    let mut steps = [0; 16];
    let mut value = 0;
    while value < 16 {
        let mut crc = value as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1));
            bit += 1;
        }
        steps[value] = crc;
        value += 1;
    }
    steps
};

/// The checksum of `bytes`.
pub const fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut i = 0;
    while i < bytes.len() {
        crc ^= bytes[i] as u32;
        crc = (crc >> 4) ^ STEPS[(crc & 15) as usize];
        crc = (crc >> 4) ^ STEPS[(crc & 15) as usize];
        i += 1;
    }
    !crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn matches_the_published_check_value() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
    }
}
