using Heeler.V1;

namespace Heeler.Client;

/// <summary>
/// The task to start. One of <see cref="Shell"/> and <see cref="Argv"/> is required. A group of options that is null is not
/// wanted. The options can be used for any number of calls.
/// </summary>
/// <example>
/// <code>
/// var task = await heeler.SpawnAsync(new SpawnOptions
/// {
///     Shell = "npm run dev",
///     SessionId = "s1",
///     WorkingDirectory = "/srv/app",
///     Environment = { ["PORT"] = "3000" },
///     Timeout = TimeSpan.FromHours(1),
///     Exclusive = new() { Key = "port 3000" },
/// });
/// </code>
/// </example>
public sealed record SpawnOptions
{
    /// <summary>A script, run by a shell.</summary>
    public string? Shell { get; init; }

    /// <summary>
    /// The absolute path of the shell. Null: <c>bash</c> if the task's <c>PATH</c> has it, else <c>/bin/sh</c>.
    /// </summary>
    public string? ShellProgram { get; init; }

    /// <summary>A program and its arguments, run without a shell.</summary>
    public IReadOnlyList<string>? Argv { get; init; }

    /// <summary>The host conversation that the task belongs to: any text up to 256 bytes.</summary>
    public string? SessionId { get; init; }

    /// <summary>A name for people. It need not be unique.</summary>
    public string? Name { get; init; }

    /// <summary>The kind of work: a shell by default.</summary>
    public TaskKind Kind { get; init; }

    /// <summary>The absolute path to start in. Null: the daemon's configured directory, else the user's home.</summary>
    public string? WorkingDirectory { get; init; }

    /// <summary>Variables to set in the daemon's environment. A null value removes the variable.</summary>
    public IDictionary<string, string?> Environment { get; init; } = new Dictionary<string, string?>();

    /// <summary>Default variables: non-interactive (<c>PAGER=cat</c>, <c>NO_COLOR=1</c>, …) unless set.</summary>
    public EnvironmentDefaults EnvironmentDefaults { get; init; }

    /// <summary>Data for the client's own filters.</summary>
    public IDictionary<string, string> Labels { get; init; } = new Dictionary<string, string>();

    /// <summary>The live task that spawns this one.</summary>
    public string? ParentId { get; init; }

    /// <summary>
    /// Maximum time in the background, counted from the start or from the moment the task leaves the foreground. Null, or
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: no limit.
    /// </summary>
    public TimeSpan? Timeout { get; init; }

    /// <summary>
    /// Maximum time without output; then the task is stopped. Null, or
    /// <see cref="System.Threading.Timeout.InfiniteTimeSpan"/>: no limit.
    /// </summary>
    public TimeSpan? IdleTimeout { get; init; }

    /// <summary>The way to stop the task, whatever the cause. Null: <c>SIGTERM</c> and a grace of 5 seconds.</summary>
    public StopOptions? Stop { get; init; }

    /// <summary>
    /// Starts the task in the foreground. Null: in the background. <see cref="HeelerClient.RunAsync"/> always starts in the
    /// foreground.
    /// </summary>
    public ForegroundOptions? Foreground { get; init; }

    /// <summary>Detects a task that has stopped writing output. Null: the task is never stale.</summary>
    public SilenceOptions? Silence { get; init; }

    /// <summary>A key that only one live task has at a time. Null: none.</summary>
    public ExclusiveOptions? Exclusive { get; init; }

    /// <summary>
    /// The queue in which the task waits for a slot: any text up to 256 bytes. A queue that was never configured has one slot.
    /// </summary>
    public string? Queue { get; init; }

    /// <summary>Treatment of processes that outlive the leader: by default, the task runs until they are gone.</summary>
    public OrphanPolicy OrphanPolicy { get; init; }

    /// <summary>
    /// The calls that processes of the task may make: by default report, spawn children, and act on descendants.
    /// </summary>
    public TaskRights Rights { get; init; }

    /// <summary>
    /// The limit on the output that is kept, and patterns to look for. Null: 64 MiB, of which the oldest is dropped first.
    /// </summary>
    public OutputPolicyOptions? Output { get; init; }

    /// <summary>Gives the task a stdin to write to. Null: without a terminal, stdin is at its end from the start.</summary>
    public InputOptions? Input { get; init; }

    /// <summary>Gives the task a terminal. Null: none.</summary>
    public TerminalOptions? Terminal { get; init; }

    /// <summary>Decides when the task is ready. Null: the task has no readiness.</summary>
    public ReadyOptions? Ready { get; init; }

    /// <summary>Starts the task again when its leader fails. Null: a failure ends the task.</summary>
    public RestartOptions? Restart { get; init; }

    /// <summary>
    /// Makes the call safe to repeat, up to 128 bytes: the daemon starts one task for one id. Null: each call has a new id, so
    /// that the client can repeat it and the same options used twice start two tasks. Your own id starts one task even across
    /// crashes of your program. Empty: none, and the call is repeated only if the daemon did not process it.
    /// </summary>
    public string? RequestId { get; init; }

    /// <summary>Returns the contract's request, with a new request id unless <see cref="RequestId"/> has one.</summary>
    /// <exception cref="ArgumentException"><see cref="Shell"/> and <see cref="Argv"/> are both set.</exception>
    public SpawnRequest ToRequest()
    {
        var spec = new TaskSpec
        {
            Kind = Kind,
            Name = Name ?? "",
            SessionId = SessionId ?? "",
            ParentId = ParentId ?? "",
            Labels = { Labels },
            WorkingDirectory = WorkingDirectory ?? "",
            Environment = ToEnvironment(),
            Timeout = Time.ToLimit(Timeout),
            IdleTimeout = Time.ToLimit(IdleTimeout),
            Stop = Stop?.ToPolicy(),
            Foreground = Foreground?.ToPolicy(),
            Silence = Silence?.ToPolicy(),
            Exclusive = Exclusive?.ToPolicy(),
            Queue = Queue ?? "",
            OrphanPolicy = OrphanPolicy,
            Rights = Rights,
            Output = Output?.ToPolicy(),
            Input = Input?.ToPolicy(),
            Terminal = Terminal?.ToPolicy(),
            Ready = Ready?.ToPolicy(),
            Restart = Restart?.ToPolicy(),
        };
        SetCommand(spec);
        return new SpawnRequest { RequestId = RequestId ?? Guid.CreateVersion7().ToString(), Spec = spec };
    }

    /// <summary>The daemon refuses a task without a command.</summary>
    private void SetCommand(TaskSpec spec)
    {
        if (Shell is not null && Argv is not null)
            throw new ArgumentException($"{nameof(Shell)} and {nameof(Argv)} exclude each other");
        if (Shell is not null) spec.Shell = new ShellCommand { Script = Shell, Program = ShellProgram ?? "" };
        if (Argv is not null) spec.Argv = new ArgvCommand { Args = { Argv } };
    }

    private V1.TaskEnvironment? ToEnvironment()
    {
        if (Environment.Count == 0 && EnvironmentDefaults == EnvironmentDefaults.Unspecified) return null;
        var environment = new V1.TaskEnvironment { Defaults = EnvironmentDefaults };
        foreach (var (name, value) in Environment)
        {
            if (value is null) environment.Remove.Add(name);
            else environment.Variables.Add(name, value);
        }
        return environment;
    }
}
