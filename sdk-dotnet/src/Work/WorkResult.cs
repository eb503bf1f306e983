using System.Text;
using Google.Protobuf;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The result of a worker. Text is a success: it converts to a result.</summary>
/// <example><code>return WorkResult.Ok("three findings", data: json);</code></example>
public sealed class WorkResult
{
    /// <summary>Creates a result.</summary>
    /// <param name="status">The status.</param>
    /// <param name="text">The result for people and models, up to 64 KiB.</param>
    /// <param name="data">The result for programs, up to 64 KiB; never interpreted.</param>
    /// <exception cref="ArgumentException">The text or the data is too long, or the status is not one.</exception>
    public WorkResult(WorkerStatus status, string text, ReadOnlyMemory<byte> data = default)
    {
        ArgumentNullException.ThrowIfNull(text);
        if (status is not (WorkerStatus.Ok or WorkerStatus.Failed or WorkerStatus.Cancelled))
            throw new ArgumentException($"{status} is no status of a result", nameof(status));
        Text = LimitedText.Cut(text, int.MaxValue);
        CheckLength(Encoding.UTF8.GetByteCount(Text), nameof(text));
        CheckLength(data.Length, nameof(data));
        (Status, Data) = (status, data);
    }

    /// <summary>The status.</summary>
    public WorkerStatus Status { get; }

    /// <summary>The result for people and models.</summary>
    public string Text { get; }

    /// <summary>The result for programs.</summary>
    public ReadOnlyMemory<byte> Data { get; }

    /// <summary>The work is done.</summary>
    public static WorkResult Ok(string text = "", ReadOnlyMemory<byte> data = default) => new(WorkerStatus.Ok, text, data);

    /// <summary>The work failed.</summary>
    public static WorkResult Failed(string text, ReadOnlyMemory<byte> data = default) => new(WorkerStatus.Failed, text, data);

    /// <summary>The work was stopped before it was done; the text is what there was by then.</summary>
    public static WorkResult Cancelled(string text = "", ReadOnlyMemory<byte> data = default) =>
        new(WorkerStatus.Cancelled, text, data);

    /// <summary>Returns a success with this text.</summary>
    public static WorkResult FromString(string text) => Ok(text);

    /// <summary>Returns a success with this text.</summary>
    public static implicit operator WorkResult(string text) => Ok(text);

    /// <summary>Returns the failure of a body that threw. The message is cut if it is too long.</summary>
    internal static WorkResult Failed(Exception error) => Failed(LimitedText.Cut(error.Message, LimitedText.Result));

    /// <summary>Returns the contract's message.</summary>
    internal WorkerResult ToMessage() =>
        new() { Status = Status, Text = Text, Data = ByteString.CopyFrom(Data.Span) };

    private static void CheckLength(int bytes, string name)
    {
        if (bytes > LimitedText.Result)
            throw new ArgumentException($"the result has {bytes} bytes: up to {LimitedText.Result} are allowed", name);
    }
}
