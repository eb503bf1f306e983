using System.Text;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The bytes of a chunk, whatever its view.</summary>
internal static class OutputBytes
{
    /// <summary>Returns the bytes. A gap has none.</summary>
    internal static ReadOnlyMemory<byte> Of(OutputChunk chunk) =>
        chunk.HasText ? Encoding.UTF8.GetBytes(chunk.Text) : chunk.Data.Memory;
}
