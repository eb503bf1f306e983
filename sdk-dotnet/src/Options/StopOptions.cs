using Heeler.V1;

namespace Heeler.Client;

/// <summary>The way to stop a task: the signal, then the grace, then a kill of the whole tree.</summary>
public sealed class StopOptions
{
    /// <summary>Time between the signal and the kill; the stop completes as soon as the tree is empty. Null: 5 seconds.</summary>
    public TimeSpan? Grace { get; init; }

    /// <summary>Time before the signal for a worker that listens to finish its present tool call. Null: 10 seconds.</summary>
    public TimeSpan? SoftGrace { get; init; }

    /// <summary>Name of the signal, such as <c>SIGINT</c>. Null: <c>SIGTERM</c>.</summary>
    public string? Signal { get; init; }

    internal StopPolicy ToPolicy() => new()
    {
        Grace = Time.ToProto(Grace),
        SoftGrace = Time.ToProto(SoftGrace),
        Signal = Signal ?? "",
    };
}
