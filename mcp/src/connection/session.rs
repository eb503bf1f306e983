//! The name of a connection's session: the client and the directory, so that a host that starts again in
//! the same project finds its tasks.

use std::path::Path;

/// The longest session that the daemon accepts, in bytes.
const LONGEST: usize = 256;
const LONGEST_CLIENT: usize = 64;

pub(super) fn name(client: Option<&str>, directory: &Path) -> String {
    let client = client.map(str::trim).filter(|name| !name.is_empty());
    let client = client.unwrap_or("mcp");
    let client = &client[..client.floor_char_boundary(LONGEST_CLIENT)];
    let directory = directory.to_string_lossy();
    // The end of a long path tells projects apart; its beginning does not.
    let room = LONGEST - client.len() - 1;
    let start = directory.ceil_char_boundary(directory.len().saturating_sub(room));
    format!("{client}:{}", &directory[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M4
    #[test]
    fn the_session_has_the_name_of_client_and_directory() {
        let name = name(Some("claude-code"), Path::new("/srv/app"));
        assert_eq!(name, "claude-code:/srv/app");
        assert_eq!(super::name(None, Path::new("/")), "mcp:/");
    }

    /// M4
    #[test]
    fn a_long_name_is_cut_to_what_the_daemon_accepts() {
        let path = format!("/{}/é/end", "ü".repeat(300));
        let name = name(Some(&"ß".repeat(100)), Path::new(&path));
        assert!(name.len() <= LONGEST, "{}", name.len());
        assert!(name.ends_with("/é/end"), "{name}");
    }
}
