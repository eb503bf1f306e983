using System.Runtime.CompilerServices;
using Heeler.V1;

namespace Heeler.Client;

/// <content>The calls about the foreground: who is held by a task, and until when.</content>
public sealed partial class HeelerClient
{
    /// <summary>
    /// Runs a command in the foreground, as if it were the caller's own: returns when it is over, with its output and its
    /// exit code, or when it goes on in the background.
    /// </summary>
    /// <remarks>
    /// Unless <see cref="SpawnOptions.ForegroundTimeout"/> says otherwise, that is after 60 seconds at the latest. A command that
    /// fails is no error: see <see cref="RunResult.ExitCode"/>. A daemon that restarts meanwhile is waited for. A caller that
    /// dies is missed by the daemon, and <see cref="SpawnOptions.OnHolderGone"/> applies; output that cannot be written ends the
    /// command as the token does.
    /// </remarks>
    /// <param name="command">What to run.</param>
    /// <param name="options">Where its output goes, and so on. None: it is collected.</param>
    /// <param name="cancellationToken">
    /// Stops the command and its whole tree, and then ends the call: when it throws an
    /// <see cref="OperationCanceledException"/>, the tree is proven gone; a daemon that could not be told is another exception.
    /// With <see cref="RunCancellation.Detach"/> the command goes on in the background, and the call returns. While the daemon is
    /// being asked to start it, its answer is waited for first.
    /// </param>
    /// <exception cref="HeelerRefusedException">The daemon said no; nothing was started.</exception>
    public async Task<RunResult> RunAsync(
        SpawnOptions command, RunOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(command);
        var request = command.ToRequest();
        request.Placement = Placement.Foreground;
        cancellationToken.ThrowIfCancellationRequested();
        // Whoever left here would not know whether there is a task to stop.
        var answer = await SpawnAsync(request, CancellationToken.None).ConfigureAwait(false);
        var task = new HeelerTask(this, Present(answer.Task).Id, answer.Notices);
        return await new Run(this, task, options ?? new RunOptions()).ToReleaseAsync(cancellationToken).ConfigureAwait(false);
    }

    /// <summary>
    /// Holds a task in the foreground: first the task, then its output as it comes, last the release, across every restart of the
    /// daemon. No byte is lost and none comes twice.
    /// </summary>
    /// <remarks>
    /// Whoever stops before the release lets go: what becomes of the task then, after its holder window, is for its
    /// <see cref="SpawnOptions.OnHolderGone"/> to say. A task that is in the background is held by nobody: its output is followed
    /// until its first process exits. It ends with an error only if reconnecting cannot cure it, e.g. for an unknown id.
    /// </remarks>
    /// <param name="taskId">Which task.</param>
    /// <param name="options">From where. None: from the first byte.</param>
    /// <param name="cancellationToken">Lets go.</param>
    public IAsyncEnumerable<AttachItem> AttachAsync(
        string taskId, AttachOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new AttachOptions()).ForTask(taskId);
        return HoldAsync(request, options?.GiveUpAfter, cancellationToken);
    }

    /// <summary>
    /// Puts a task into the background: the same processes, all of its output. Whoever holds it is released. One that is there
    /// already, or over, is no error: the result says so.
    /// </summary>
    public async Task<DetachResult> DetachAsync(
        string taskId, DetachOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new DetachOptions()).ForTask(taskId);
        return (await DetachAsync(request, cancellationToken).ConfigureAwait(false)).Results is [var result, ..]
            ? result
            : throw new IncompleteAnswerException("results");
    }

    /// <summary>Puts whatever a session holds in the foreground into the background. None there: an empty list.</summary>
    public async Task<IReadOnlyList<DetachResult>> DetachSessionAsync(
        string sessionId, DetachOptions? options = null, CancellationToken cancellationToken = default)
    {
        var request = (options ?? new DetachOptions()).ForSession(sessionId);
        return (await DetachAsync(request, cancellationToken).ConfigureAwait(false)).Results;
    }

    /// <summary>Puts what the request names into the background.</summary>
    public Task<DetachResponse> DetachAsync(DetachRequest request, CancellationToken cancellationToken = default) =>
        CallAsync(Repeat.Always, call => Raw.DetachAsync(request, call), cancellationToken);

    /// <summary>Waits until a task holds nobody: it is in the background, or over.</summary>
    public async Task<BackgroundTask> WaitReleasedAsync(string taskId, CancellationToken cancellationToken = default)
    {
        var request = new WaitRequest { TaskIds = { taskId }, Until = WaitCondition.Released };
        return (await WaitAsync(request, cancellationToken).ConfigureAwait(false)).Met is [var task, ..]
            ? task
            : throw new IncompleteAnswerException("met");
    }

    private async IAsyncEnumerable<AttachItem> HoldAsync(
        AttachRequest request, TimeSpan? giveUpAfter, [EnumeratorCancellation] CancellationToken cancellation)
    {
        var hold = new Resuming<AttachResponse, AttachItem>(this, new AttachCursor(request), giveUpAfter);
        await foreach (var item in hold.ItemsAsync(cancellation).ConfigureAwait(false)) yield return item;
    }
}
