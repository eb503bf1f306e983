//! Scripts that the grammar may read differently from a shell.
//!
//! The known differences are listed here. Each check errs on the safe side: a script that only
//! resembles one of them is left alone too.

use tree_sitter::{Node, Tree};

/// Reserved words. The grammar reads them as command names when they stand alone; a shell reports an
/// error.
const RESERVED: [&str; 20] = [
    "!", "[[", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "select", "then", "until", "while", "{", "}", "in",
];

/// Words that precede a command, and that the grammar reads as one.
const PREFIXES: [&str; 2] = ["coproc", "time"];

/// True if shells differ among themselves or from the grammar: where a string with an escaped quote
/// ends, and which characters are blanks.
pub(super) fn shells_disagree(script: &str) -> bool {
    let escaped_quote = script.contains("$'") && script.contains("\\'");
    let odd_blank = |c: char| (c.is_whitespace() || c.is_control()) && !" \t\n".contains(c);
    escaped_quote || script.contains(odd_blank)
}

/// True if the tree has something that a shell would read differently.
pub(super) fn is_misread(script: &str, tree: &Tree) -> bool {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let doubtful = match node.kind() {
            "command_name" => is_reserved(script, node),
            "heredoc_redirect" => !is_ended(script, node).unwrap_or(false),
            _ => false,
        };
        if doubtful {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
}

fn is_reserved(script: &str, name: Node) -> bool {
    let word = text(script, name);
    let is_alone = name.next_sibling().is_none() && name.prev_sibling().is_none();
    RESERVED.contains(&word) || (is_alone && PREFIXES.contains(&word))
}

/// True if a here-document ends where a shell would end it: at the first line that is exactly its
/// delimiter. The grammar accepts a line that begins with it, or none at all.
fn is_ended(script: &str, redirect: Node) -> Option<bool> {
    let parts: Vec<Node> = redirect.children(&mut redirect.walk()).collect();
    let find = |kind| parts.iter().find(|part| part.kind() == kind);
    let (start, end) = (find("heredoc_start")?, find("heredoc_end")?);
    let delimiter = delimiter(text(script, *start))?;
    let tabs = if find("<<-").is_some() { "\t" } else { "" };

    let mut line_start = start.end_byte() + script[start.end_byte()..].find('\n')? + 1;
    let mut is_continued = false;
    for line in script[line_start..].split('\n') {
        let bare = line.trim_start_matches(|c| tabs.contains(c));
        if bare == delimiter {
            let here = line_start + line.len() - bare.len();
            return Some(!is_continued && here == end.start_byte());
        }
        // If the text is not literal, the next line is part of this one.
        is_continued = line.ends_with('\\');
        line_start += line.len() + 1;
    }
    None
}

/// The delimiter of a here-document, if it is a plain word, possibly quoted as a whole.
fn delimiter(start: &str) -> Option<&str> {
    let word = ['\'', '"']
        .iter()
        .find_map(|quote| start.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(start);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!word.is_empty() && word.chars().all(is_plain)).then_some(word)
}

fn text<'s>(script: &'s str, node: Node) -> &'s str {
    script.get(node.byte_range()).unwrap_or_default()
}
