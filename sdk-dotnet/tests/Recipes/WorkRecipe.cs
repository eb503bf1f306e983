using Heeler.V1;

namespace Heeler.Client.Tests.Recipes;

/// <summary>The recipes of <c>docs/sdk/dotnet.md</c> for workers: each region is, line by line, a code block there.</summary>
internal static class WorkRecipe
{
    internal static async Task HostAsync(
        HeelerClient heeler,
        string[] files,
        Func<string, CancellationToken, Task<string>> ReviewAsync,
        TextWriter Console,
        CancellationToken cancellationToken)
    {
        #region host
        var review = new HostOptions { SessionId = "demo", Name = "review", Silence = new() { StaleAfter = TimeSpan.FromMinutes(2) } };
        var ended = await heeler.HostAsync(
            review,
            async (work, cancelled) =>
            {
                var findings = "";
                foreach (var file in files)
                {
                    if (work.Stopping.IsCancellationRequested) return WorkResult.Cancelled(findings);
                    await work.ReportAsync(new WorkProgress { Intent = $"reads {file}" }.ToolCall("review", file), cancelled);
                    findings += await ReviewAsync(file, cancelled);
                }
                return findings;
            },
            cancellationToken);
        Console.WriteLine($"{ended.State}: {ended.Result?.Text}");
        #endregion
    }

    internal static async Task CurrentAsync(HeelerClient heeler, CancellationToken cancellationToken)
    {
        #region current
        await using var work = await heeler.CurrentAsync(cancellationToken)
            ?? throw new InvalidOperationException("start me with `heeler spawn --kind agent`");
        await work.IntentAsync("waits for questions", cancellationToken);
        try
        {
            await foreach (var question in work.MessagesAsync(work.Stopping))
                await work.TextAsync($"You ask: {question.Text}", cancellationToken);
        }
        catch (OperationCanceledException) when (work.Stopping.IsCancellationRequested)
        {
            await work.DeliverAsync(WorkResult.Cancelled($"stopped: {work.CancelRequest?.Reason}"), cancellationToken);
        }
        #endregion
    }

    internal static async Task ParentAsync(
        HeelerClient heeler, string agentId, TextWriter Console, CancellationToken cancellationToken)
    {
        #region parent
        await heeler.SendMessageAsync(agentId, "only the tests, please", cancellationToken);
        var seen = await heeler.InspectAsync(agentId, cancellationToken);
        foreach (var block in seen.Blocks)
            Console.WriteLine($"{block.Kind} {block.Name}: {block.Text}");

        // Let it finish its present tool call, for up to a minute.
        var softly = new CancelOptions { Stop = new() { SoftGrace = TimeSpan.FromMinutes(1) }, Reason = "off the track" };
        var result = await heeler.CancelBackgroundTaskAsync(agentId, softly, cancellationToken);
        Console.WriteLine($"{result.Task.State}: {result.Task.Result?.Text}");
        #endregion
    }

    #region fakework
    private sealed class FakeWork : HeelerWork
    {
        public List<string?> Intents { get; } = [];

        public override Task ReportAsync(WorkProgress progress, CancellationToken cancellationToken = default)
        {
            Intents.Add(progress.Intent);
            return Task.CompletedTask;
        }
    }
    #endregion

    internal static async Task<IReadOnlyList<string?>> RunWithFakeAsync(Func<HeelerWork, Task> body)
    {
        await using var work = new FakeWork();
        await body(work);
        return work.Intents;
    }
}
