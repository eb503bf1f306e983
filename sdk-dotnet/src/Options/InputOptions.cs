using Heeler.V1;

namespace Heeler.Client;

/// <summary>Gives a task a stdin to write to. It stays open until it is closed.</summary>
public sealed class InputOptions
{
    /// <summary>Time without output after which the task is looked at. Null: only when it becomes stale.</summary>
    public TimeSpan? NotifyAfter { get; init; }

    internal InputPolicy ToPolicy() => new() { NotifyAfter = Time.ToLimit(NotifyAfter) };
}
