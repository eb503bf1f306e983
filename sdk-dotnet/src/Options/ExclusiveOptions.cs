using Heeler.V1;

namespace Heeler.Client;

/// <summary>A key that only one live task has at a time.</summary>
public sealed class ExclusiveOptions
{
    /// <summary>The key: any text from 1 to 256 bytes.</summary>
    public required string Key { get; init; }

    /// <summary>Behaviour when another task holds the key: by default, the task is refused.</summary>
    public ExclusiveMode Mode { get; init; }

    internal ExclusivePolicy ToPolicy() => new() { Key = Key, Mode = Mode };
}
