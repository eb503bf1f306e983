//! CRC-32 with the polynomial of zlib and Ethernet: detects a record that is damaged or half-written.

/// Remainders of all values of four bits. The table takes 64 bytes; one for eight bits would take a
/// quarter of a page in every shim.
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

/// Returns the checksum of `bytes`.
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
