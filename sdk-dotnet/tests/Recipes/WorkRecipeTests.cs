using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Recipes;

/// <summary>The recipes for workers. That of a process in its own task runs in <see cref="Work.CurrentTests"/>.</summary>
public sealed class WorkRecipeTests : IDisposable
{
    private readonly Transcript _console = new() { NewLine = "\n" };

    public void Dispose() => _console.Dispose();

    /// <summary>P2</summary>
    [Fact]
    public async Task Work_is_hosted_to_its_end()
    {
        await using var daemon = await Daemon.StartAsync();
        await WorkRecipe.HostAsync(daemon.Client(), ["a.cs", "b.cs"], (file, _) => Task.FromResult($"{file} is fine. "), _console, daemon.Soon);
        Assert.Equal("Completed: a.cs is fine. b.cs is fine. \n", _console.ToString());
    }

    /// <summary>C18, P7</summary>
    [Fact]
    public async Task A_parent_inspects_a_subagent_and_stops_it_after_its_tool_call()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        string[] files = ["a.cs", .. Enumerable.Range(1, 100).Select(number => $"{number}.cs")];
        var hosting = WorkRecipe.HostAsync(heeler, files, ReviewAsync, TextWriter.Null, daemon.Soon);
        await daemon.UntilAsync(async () => await BlocksAsync() == 1);
        var id = (await heeler.Session("demo").ListAsync(null, daemon.Soon).SingleAsync(daemon.Soon)).Id;
        await WorkRecipe.ParentAsync(heeler, id, _console, daemon.Soon);
        await hosting;
        // The event of the stop may overtake the stop itself on its way to the worker, which then reviews another file.
        Assert.StartsWith("ToolCall review: a.cs\nCancelled: a.cs is fine. ", _console.ToString());
        Assert.DoesNotContain("100.cs", _console.ToString());

        async Task<int> BlocksAsync()
        {
            var live = await heeler.Session("demo").ListAsync(null, daemon.Soon).ToListAsync(daemon.Soon);
            return (int?)live.SingleOrDefault()?.Progress?.BlockCount ?? 0;
        }

        async Task<string> ReviewAsync(string file, CancellationToken cancelled)
        {
            var stopping = new TaskFilter { SessionId = "demo", States = { TaskState.Stopping } };
            var begun = new WatchOptions { Filter = stopping, InitialState = true };
            await heeler.WatchEventsAsync(begun, cancelled).FirstAsync(item => item is not WatchItem.Reached, cancelled);
            return $"{file} is fine. ";
        }
    }

    [Fact]
    public async Task A_fake_worker_needs_no_daemon() =>
        Assert.Equal(["reads"], await WorkRecipe.RunWithFakeAsync(work => work.IntentAsync("reads")));
}
