using Xunit;

namespace Heeler.Client.Tests.Recipes;

/// <summary>The recipes for input.</summary>
public sealed class InputRecipeTests : IDisposable
{
    private readonly Transcript _console = new() { NewLine = "\n" };

    public void Dispose() => _console.Dispose();

    /// <summary>I1</summary>
    [Fact]
    public async Task A_question_is_answered()
    {
        await using var daemon = await Daemon.StartAsync();
        await InputRecipe.AskAsync(daemon.Client(), _console, daemon.Soon);
        Assert.Equal("your name?\nhello, Ada\n", _console.ToString());
    }

    /// <summary>I5</summary>
    [Fact]
    public async Task A_terminal_is_typed_into()
    {
        await using var daemon = await Daemon.StartAsync();
        var task = await InputRecipe.TerminalAsync(daemon.Client(), daemon.Soon);
        Assert.NotNull(await task.WaitForLineAsync("40 120", cancellationToken: daemon.Soon));
    }
}
