using Heeler.V1;

namespace Heeler.Client;

/// <summary>The terminal of a task.</summary>
public sealed class TerminalOptions
{
    /// <summary>Columns, from 1 to 1000. 0: 80.</summary>
    public uint Columns { get; init; }

    /// <summary>Rows, from 1 to 1000. 0: 24.</summary>
    public uint Rows { get; init; }

    /// <summary>The type of the terminal, which the task gets as TERM. Null: <c>xterm-256color</c>.</summary>
    public string? Term { get; init; }

    internal TerminalPolicy ToPolicy() => new() { Columns = Columns, Rows = Rows, Term = Term ?? "" };
}
