//! A connection on which everything has arrived.

/// Stands for the shim's socket.
pub(super) struct Connection<'a>(pub(super) &'a [u8]);

impl Connection<'_> {
    pub(super) fn receive_all(&mut self, room: &mut [u8]) -> Option<()> {
        let (now, later) = self.0.split_at_checked(room.len())?;
        room.copy_from_slice(now);
        self.0 = later;
        Some(())
    }
}
