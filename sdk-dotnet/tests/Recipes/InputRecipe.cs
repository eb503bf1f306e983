namespace Heeler.Client.Tests.Recipes;

/// <summary>The recipes of <c>docs/sdk/dotnet.md</c> for input: each region is, line by line, a code block there.</summary>
internal static class InputRecipe
{
    internal static async Task AskAsync(HeelerClient heeler, TextWriter Console, CancellationToken cancellationToken)
    {
        #region input
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "echo 'your name?'; read name; echo hello, $name", Input = new() },
            cancellationToken);
        await task.WaitForLineAsync("name\\?$", cancellationToken: cancellationToken);
        await using (var input = task.OpenInput())
        {
            await input.WriteAsync("Ada\n"u8.ToArray(), cancellationToken);
        }
        await foreach (var line in task.ReadLinesAsync(cancellationToken: cancellationToken))
            Console.WriteLine(line.Text);
        #endregion
    }

    internal static async Task<HeelerTask> TerminalAsync(HeelerClient heeler, CancellationToken cancellationToken)
    {
        #region terminal
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "exec sh", Terminal = new() { Columns = 80, Rows = 24 } },
            cancellationToken);
        await task.ResizeTerminalAsync(120, 40, cancellationToken);
        await using var keyboard = task.OpenInput(new OpenInputOptions { LeaveOpen = true });
        await keyboard.WriteAsync("stty size\r"u8.ToArray(), cancellationToken);
        #endregion
        return task;
    }
}
