using System.Text;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests;

/// <summary>FollowOutput, also across a crash of the daemon.</summary>
public sealed class FollowTests
{
    /// <summary>O11, O15</summary>
    [Fact]
    public async Task One_stream_follows_many_tasks_across_a_crash_and_later_ones_too()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var until = "until [ -e go ]; do sleep 0.01; done";
        var one = await SpawnAsync($"echo one; {until}; echo more");
        HeelerTask? two = null;
        var (begun, ended) = (new List<string>(), new List<int?>());
        var texts = new Dictionary<string, string>();
        var options = new FollowOptions { Filter = new TaskFilter { SessionId = "many" }, Until = FollowUntil.Finished };
        await foreach (var item in heeler.FollowOutputAsync(options, daemon.Soon))
        {
            if (item is FollowItem.Begun(var task)) begun.Add(task.Id);
            if (item is FollowItem.Ended(var finished)) ended.Add(finished.ExitCode);
            if (item is not FollowItem.Output(var id, { Count: > 0 } chunks, _)) continue;
            texts[id] = texts.GetValueOrDefault(id, "") + Text(chunks);
            if (two is null)
            {
                two = await SpawnAsync($"echo two; {until}");
            }
            else if (id == two.Id)
            {
                await daemon.KillAsync();
                await daemon.RestartAsync();
                await File.WriteAllTextAsync(daemon.Path("go"), "", daemon.Soon);
            }
        }
        Assert.Equal([one.Id, two!.Id], begun);
        Assert.Equal(("one\nmore\n", "two\n"), (texts[one.Id], texts[two.Id]));
        Assert.Equal([0, 0], ended);

        Task<HeelerTask> SpawnAsync(string shell) => heeler.SpawnAsync(
            new SpawnOptions { Shell = shell, SessionId = "many", WorkingDirectory = daemon.Path("") }, daemon.Soon);
    }

    /// <summary>O15</summary>
    [Fact]
    public async Task A_cursor_continues_at_its_offset_and_a_task_that_never_was_is_gone()
    {
        await using var daemon = await Daemon.StartAsync();
        var heeler = daemon.Client();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "printf 0123456789" }, daemon.Soon);
        await task.WaitAsync(daemon.Soon);
        var options = new FollowOptions
        {
            Filter = new TaskFilter { SessionId = "none" },
            Cursors = { new OutputCursor { TaskId = task.Id, Offset = 6 }, new OutputCursor { TaskId = "shell-aaaaaaaaaa" } },
            Until = FollowUntil.Finished,
        };
        var items = await heeler.FollowOutputAsync(options, daemon.Soon).ToListAsync(daemon.Soon);
        Assert.Equal("6789", string.Concat(items.OfType<FollowItem.Output>().Select(item => Text(item.Chunks))));
        Assert.Equal(10ul, items.OfType<FollowItem.Output>().Last().NextOffset);
        Assert.Equal("shell-aaaaaaaaaa", Assert.Single(items.OfType<FollowItem.Gone>()).TaskId);
    }

    /// <summary>O12, O15</summary>
    [Fact]
    public async Task A_bad_filter_ends_the_stream_and_names_its_option()
    {
        await using var daemon = await Daemon.StartAsync();
        var bad = daemon.Client().FollowOutputAsync(
            new FollowOptions { OutputFilter = new OutputFilter { Include = "(a" } }, daemon.Soon);
        var error = await Assert.ThrowsAsync<HeelerRefusedException>(async () => await bad.FirstAsync(daemon.Soon));
        Assert.Equal("OutputFilter.Include", Assert.Single(error.FieldViolations).Option);
    }

    private static string Text(IEnumerable<OutputChunk> chunks) =>
        string.Concat(chunks.Select(chunk => Encoding.UTF8.GetString(OutputBytes.Of(chunk).Span)));
}
