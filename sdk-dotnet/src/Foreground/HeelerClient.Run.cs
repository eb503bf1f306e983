using Heeler.V1;

namespace Heeler.Client;

/// <content>Run: Spawn and Attach as one call.</content>
public partial class HeelerClient
{
    /// <summary>
    /// Runs a command in the foreground. Returns when it ends, with its output and exit code, or when the task continues in
    /// the background.
    /// </summary>
    /// <remarks>
    /// By default the latter is after 60 seconds: see <see cref="ForegroundOptions.Timeout"/>. A command that fails is not an
    /// error: see <see cref="RunResult.ExitCode"/>. A daemon that restarts is waited for. If the caller dies,
    /// <see cref="ForegroundOptions.OnDisconnect"/> applies. An exception from a callback or a stream ends the run as the token
    /// does, with the exception's message as the reason.
    /// </remarks>
    /// <param name="command">The command to run.</param>
    /// <param name="options">The destination of the output, and so on. Null: the result has the output.</param>
    /// <param name="cancellationToken">
    /// Stops the task and its whole tree: when the call throws an <see cref="OperationCanceledException"/>, the tree is proven
    /// empty. If the daemon could not be told, or the tree could not be killed, the exception is another one. With
    /// <see cref="RunCancellation.Detach"/> the task continues in the background and the call returns. During the start the call
    /// first waits for the daemon's answer.
    /// </param>
    /// <exception cref="HeelerRefusedException">The daemon refused: nothing was started.</exception>
    /// <exception cref="TaskSurvivedException">The token was cancelled, and processes have outlived a kill of 10 s.</exception>
    public virtual async Task<RunResult> RunAsync(
        SpawnOptions command, RunOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(command);
        var request = command.ToRequest();
        request.Spec.Foreground ??= new ForegroundPolicy();
        if (options?.Stdin is not null && request.Spec.Terminal is null) request.Spec.Input ??= new InputPolicy();
        cancellationToken.ThrowIfCancellationRequested();
        // A caller that left here would not know if there is a task to stop.
        var answer = await SpawnAsync(request, CancellationToken.None).ConfigureAwait(false);
        var task = new HeelerTask(this, Present(answer.Task).Id, answer.Notices);
        var run = new ForegroundRun(this, task, options ?? new RunOptions());
        return await run.ToEndAsync(cancellationToken).ConfigureAwait(false);
    }
}
