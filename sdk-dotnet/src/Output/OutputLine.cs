using Heeler.V1;

namespace Heeler.Client;

/// <summary>A line of a task's output.</summary>
/// <param name="Stream">The stream that it was written to.</param>
/// <param name="Text">The line without its end. Invalid UTF-8 is replaced by U+FFFD.</param>
public sealed record OutputLine(OutputStream Stream, string Text)
{
    /// <summary>Returns the text.</summary>
    public override string ToString() => Text;
}
