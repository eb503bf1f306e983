using Google.Protobuf.WellKnownTypes;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>Parts of output, patterns that are looked for in it, and the summary of an end.</summary>
public sealed class PatternTests
{
    /// <summary>O1, O5, O12, O13</summary>
    [Fact]
    public async Task Output_is_read_from_the_last_lines_from_a_time_filtered_and_plain()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = @"seq 1 9; printf '\033[31mred\033[0m\n' >&2" }, daemon.Soon);
        var ended = await task.WaitAsync(daemon.Soon);
        Assert.Equal(["red"], await LinesAsync(new() { TailLines = 1, View = OutputView.Plain }));
        Assert.Equal(["red"], await LinesAsync(new() { Only = OutputStream.Stderr, View = OutputView.Plain }));
        var some = new OutputFilter { Include = "^[37]$", LinesAfter = 1 };
        Assert.Equal(["3", "4", "7", "8"], await LinesAsync(new() { Filter = some }));
        Assert.Empty(await LinesAsync(new() { Filter = some, Only = OutputStream.Stderr }));
        Assert.Empty(await LinesAsync(new() { Since = DateTimeOffset.UtcNow.AddHours(1) }));
        Assert.Equal(10, (await LinesAsync(new() { Since = ended.StartTime.ToDateTimeOffset() })).Count);
        Assert.Throws<ArgumentException>(() => task.OpenOutput(new() { TailLines = 1, TailBytes = 1 }));
        using var plain = new StreamReader(task.OpenOutput(new() { TailLines = 1, View = OutputView.Plain }));
        Assert.Equal("red\n", await plain.ReadToEndAsync(daemon.Soon));
        var ends = new ReadOutputRequest { TaskId = task.Id, HeadAndTail = new HeadAndTail { HeadLines = 1, TailLines = 1 } };
        var gap = Assert.Single((await heeler.ReadOutputAsync(ends, daemon.Soon)).Chunks, chunk => chunk.Gap is not null).Gap;
        Assert.Equal((OutputGapCause.Omitted, 8ul), (gap.Cause, gap.Lines));

        async Task<List<string>> LinesAsync(OutputOptions options) =>
            await task.ReadLinesAsync(options, daemon.Soon).Select(line => line.Text).ToListAsync(daemon.Soon);
    }

    /// <summary>O16</summary>
    [Fact]
    public async Task A_pattern_is_given_at_the_spawn_or_later_and_its_lines_are_told()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var errors = new OutputPattern { Name = "errors", Regex = "^error", Cooldown = new Duration() };
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "echo error: no; exec sleep 600", Output = new() { Patterns = { errors } } }, daemon.Soon);
        var any = new OutputPattern { Name = "any", Regex = "no", Stream = OutputStream.Stdout };
        var updated = await task.UpdateAsync(new() { SetPatterns = { any } }, daemon.Soon);
        Assert.Equal(["errors", "any"], updated.Spec.Output.Patterns.Select(pattern => pattern.Name));

        var options = new WatchOptions { AfterRevision = 0, Types = [TaskEventType.Matched] };
        var told = await heeler.WatchEventsAsync(options, daemon.Soon).OfType<WatchItem.Happened>().Take(2)
            .Select(item => item.Event.Match).ToListAsync(daemon.Soon);
        Assert.Equal(["any", "errors"], told.Select(match => match.Pattern).Order());
        Assert.All(told, match => Assert.Equal("error: no", Assert.Single(match.Lines).Text));

        var left = await heeler.UpdateTaskAsync(task.Id, new() { RemovePatterns = { "errors" } }, daemon.Soon);
        Assert.Equal(("any", 1ul), (Assert.Single(left.Matches).Name, left.Matches[0].Count));
        var bad = new UpdateTaskOptions { SetPatterns = { new OutputPattern { Name = "bad", Regex = "(a" } } };
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(() => task.UpdateAsync(bad, daemon.Soon));
        Assert.Equal("SetPatterns[0].Regex", Assert.Single(error.FieldViolations).Option);
    }

    /// <summary>L4, O16</summary>
    [Fact]
    public async Task A_wait_for_a_line_returns_it_or_null_if_the_task_ends_without_it()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "echo up; echo listening on 80; exec sleep 600" }, daemon.Soon);
        var line = await task.WaitForLineAsync("^listening", cancellationToken: daemon.Soon);
        Assert.Equal(("listening on 80", 3ul), (line?.Text, line?.Offset));
        Assert.Null(await task.WaitForLineAsync("never", TimeSpan.FromMilliseconds(20), daemon.Soon));
        var brief = await heeler.SpawnAsync(new SpawnOptions { Argv = ["true"] }, daemon.Soon);
        Assert.Null(await brief.WaitForLineAsync("never", cancellationToken: daemon.Soon));
    }

    /// <summary>E5</summary>
    [Fact]
    public async Task An_end_has_a_summary_the_same_in_the_event_and_in_inspect()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "echo it broke >&2; exit 3" }, daemon.Soon);
        await task.WaitAsync(daemon.Soon);
        var summary = (await task.InspectAsync(daemon.Soon)).Summary;
        Assert.Matches("(?s)exit code 3.*it broke", summary);
        var options = new WatchOptions { AfterRevision = 0, Types = [TaskEventType.Ended], Summaries = true };
        var ended = await heeler.WatchEventsAsync(options, daemon.Soon).OfType<WatchItem.Happened>().FirstAsync(daemon.Soon);
        Assert.Equal(summary, ended.Event.Summary);
    }
}
