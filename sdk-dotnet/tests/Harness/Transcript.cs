namespace Heeler.Client.Tests;

/// <summary>The output of a recipe, in place of the console.</summary>
internal sealed class Transcript : StringWriter
{
    private readonly Lock _lock = new();

    public override void WriteLine(string? value)
    {
        lock (_lock) base.WriteLine(value);
    }

    public override string ToString()
    {
        lock (_lock) return base.ToString();
    }

    internal bool Has(string text) => ToString().Contains(text, StringComparison.Ordinal);
}
