using Heeler.V1;

namespace Heeler.Client;

/// <summary>The rules for a task that may wait for input.</summary>
public sealed class InputOptions
{
    /// <summary>Time without output after which the task is looked at. Null: only when it becomes stale.</summary>
    public TimeSpan? NotifyAfter { get; init; }

    internal InputPolicy ToPolicy() => new() { NotifyAfter = Time.ToLimit(NotifyAfter) };
}
