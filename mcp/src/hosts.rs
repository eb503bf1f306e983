//! The configuration by which known hosts start `heeler mcp`: the file, and what to add to it.

use serde_json::{Value, json};

/// A program that speaks the protocol as a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    ClaudeCode,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    Goose,
    Opencode,
    Vscode,
    Windsurf,
    Zed,
}

impl Host {
    pub const ALL: [Self; 10] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Copilot,
        Self::Cursor,
        Self::Gemini,
        Self::Goose,
        Self::Opencode,
        Self::Vscode,
        Self::Windsurf,
        Self::Zed,
    ];

    /// The name by which the command knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
            Self::Vscode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// The file that the configuration belongs into: in the project, or in the user's home.
    pub fn file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".mcp.json",
            Self::Codex => "~/.codex/config.toml",
            Self::Copilot => "~/.copilot/mcp-config.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Gemini => "~/.gemini/settings.json",
            Self::Goose => "~/.config/goose/config.yaml",
            Self::Opencode => "opencode.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Windsurf => "~/.codeium/windsurf/mcp_config.json",
            Self::Zed => "~/.config/zed/settings.json",
        }
    }

    /// The text to add to the file, for a server that is started by this program with these arguments.
    pub fn config(self, program: &str, args: &[String]) -> String {
        let server = json!({ "command": program, "args": args });
        match self {
            Self::ClaudeCode | Self::Cursor | Self::Gemini | Self::Windsurf => {
                pretty(&json!({ "mcpServers": { "heeler": server } }))
            }
            Self::Copilot => pretty(&json!({ "mcpServers": { "heeler": {
                "type": "local", "command": program, "args": args, "tools": ["*"],
            } } })),
            Self::Vscode => pretty(&json!({ "servers": { "heeler": {
                "type": "stdio", "command": program, "args": args,
            } } })),
            Self::Opencode => {
                let command: Vec<&str> = [program]
                    .into_iter()
                    .chain(args.iter().map(|arg| &**arg))
                    .collect();
                pretty(&json!({ "mcp": { "heeler": {
                    "type": "local", "command": command, "enabled": true,
                } } }))
            }
            Self::Zed => pretty(&json!({ "context_servers": { "heeler": server } })),
            Self::Codex => format!(
                "[mcp_servers.heeler]\ncommand = {}\nargs = {}\n",
                Value::from(program),
                Value::from(args)
            ),
            Self::Goose => format!(
                "extensions:\n  heeler:\n    name: heeler\n    type: stdio\n    enabled: true\n    timeout: 60\n    cmd: {}\n    args: {}\n",
                Value::from(program),
                Value::from(args)
            ),
        }
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M1
    #[test]
    fn every_host_has_a_name_a_file_and_a_configuration() {
        for host in Host::ALL {
            assert_eq!(Host::from_name(host.name()), Some(host));
            let config = host.config("/opt/a \"b\"/heeler", &["mcp".to_owned()]);
            assert!(config.contains(r#"/opt/a \"b\"/heeler"#), "{config}");
            if host.file().ends_with("json") {
                serde_json::from_str::<Value>(&config).unwrap();
            }
        }
        let codex = Host::Codex.config("heeler", &["mcp".to_owned()]);
        assert_eq!(
            codex,
            "[mcp_servers.heeler]\ncommand = \"heeler\"\nargs = [\"mcp\"]\n"
        );
    }
}
