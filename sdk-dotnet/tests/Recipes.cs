using Heeler.V1;

namespace Heeler.Client.Tests;

/// <summary>
/// The recipes of <c>docs/sdk/dotnet.md</c>, and the beginning in the READMEs: what stands between the regions is, line by line, what stands on the page. What they print goes
/// to a parameter of the console's name.
/// </summary>
internal static class Recipes
{
    internal static async Task BeginAsync(TextWriter Console)
    {
        #region readme
        using var heeler = HeelerClient.Connect();
        var task = await heeler.SpawnAsync(new SpawnOptions { Shell = "make test", SessionId = "demo" });
        var ended = await task.WaitAsync();
        Console.WriteLine($"{ended.State}: {ended.Outcome}");
        #endregion
    }

    internal static async Task ConnectAsync(TextWriter Console)
    {
        #region connect
        using var heeler = HeelerClient.Connect();
        await foreach (var task in heeler.ListAsync())
            Console.WriteLine($"{task.Id} {task.State} {task.Name}");
        #endregion
    }

    internal static async Task<int> RunAndWaitAsync(HeelerClient heeler, CancellationToken cancellationToken)
    {
        #region wait
        var task = await heeler.SpawnAsync(
            new SpawnOptions { Shell = "echo working; exit 3", SessionId = "demo" },
            cancellationToken);
        var ended = await task.WaitAsync(cancellationToken);
        var code = ended.Outcome.ResultCase == Outcome.ResultOneofCase.ExitCode
            ? ended.Outcome.ExitCode
            : throw new InvalidOperationException($"{task} {ended.State}: {ended.Outcome}");
        #endregion
        return code;
    }

    internal static async Task CancelAsync(
        HeelerClient heeler, string taskId, TextWriter Console, CancellationToken cancellationToken)
    {
        #region cancel
        var result = await heeler.CancelBackgroundTaskAsync(
            taskId,
            new CancelOptions { Grace = TimeSpan.FromSeconds(2), Reason = "superseded" },
            cancellationToken);
        Console.WriteLine($"{result.Outcome}: {result.Task.State}, proven by {result.Proof.Method}");
        foreach (var survivor in result.Proof.Survivors)
            Console.WriteLine($"still there: {survivor.Pid} {survivor.Command}");
        #endregion
    }

    internal static async Task FollowAsync(
        HeelerTask task, Stream file, TextWriter Console, CancellationToken cancellationToken)
    {
        #region follow
        await foreach (var line in task.ReadLinesAsync(cancellationToken: cancellationToken))
            Console.WriteLine($"{line.Stream}: {line.Text}");

        // The same as bytes, from an offset on; any number of readers may do so.
        await using var output = task.OpenOutput(new OutputOptions { Offset = 0, Only = OutputStream.Stdout });
        await output.CopyToAsync(file, cancellationToken);
        #endregion
    }

    internal static async Task<Bookmark?> WatchAsync(
        HeelerClient heeler, Bookmark? kept, TextWriter Console, CancellationToken cancellationToken)
    {
        #region watch
        var options = new WatchOptions { AfterBookmark = kept, Filter = new TaskFilter { SessionId = "demo" } };
        try
        {
            await foreach (var item in heeler.WatchEventsAsync(options, cancellationToken))
            {
                switch (item)
                {
                    case WatchItem.Happened(var happened):
                        Console.WriteLine($"{happened.Revision}: {happened.Task?.Id} {happened.Type}");
                        break;
                    case WatchItem.Reached(var bookmark):
                        kept = bookmark;
                        break;
                }
            }
        }
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
            // `kept` is where the next watch begins, also after a crash of this program.
        }
        #endregion
        return kept;
    }

    internal static async Task<string> ErrorsAsync(
        HeelerClient heeler, SpawnOptions options, CancellationToken cancellationToken)
    {
        #region errors
        try
        {
            return (await heeler.SpawnAsync(options, cancellationToken)).Id;
        }
        catch (HeelerRefusedException error) when (error.Is(ErrorReason.WorkingDirectoryUnusable))
        {
            return $"make {error.Metadata["path"]} first: {error.Metadata["os_error"]}";
        }
        catch (HeelerRefusedException error) when (error.FieldViolations is [var bad, ..])
        {
            return $"{bad.Field}: {bad.Description}";
        }
        catch (DaemonNotRunningException error)
        {
            return error.Message; // ... start one with `heeler serve`
        }
        #endregion
    }

    internal static async Task RunAsync(
        HeelerClient heeler, string script, Stream file, TextWriter Console, CancellationToken cancellationToken)
    {
        #region run
        var result = await heeler.RunAsync(
            new SpawnOptions { Shell = script, SessionId = "demo", ForegroundTimeout = TimeSpan.FromMinutes(2) },
            new RunOptions { Stdout = file },
            cancellationToken);
        Console.WriteLine(result.Reason == ReleaseReason.Detached
            ? $"{result.Handle} goes on in the background"
            : $"exit code {result.ExitCode}, stderr: {result.Stderr}");
        #endregion
    }

    internal static async Task DetachAsync(HeelerClient heeler, TextWriter Console, CancellationToken cancellationToken)
    {
        #region detach
        var options = new DetachOptions { Timeout = TimeSpan.FromHours(1), Reason = "a key" };
        foreach (var result in await heeler.DetachSessionAsync("demo", options, cancellationToken))
            Console.WriteLine($"{result.Task.Id} {result.Outcome}");
        #endregion
    }
}
