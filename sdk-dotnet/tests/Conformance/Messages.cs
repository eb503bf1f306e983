using System.Text.Json.Nodes;
using Google.Protobuf;
using Google.Protobuf.Reflection;

namespace Heeler.Client.Tests.Conformance;

/// <summary>Messages in protobuf's JSON mapping.</summary>
internal static class Messages
{
    /// <summary>Fails on an unknown field.</summary>
    internal static T Read<T>(JsonObject with)
        where T : IMessage<T>, new() =>
        JsonParser.Default.Parse<T>(with.ToJsonString());

    /// <summary>Fails on an unknown field.</summary>
    internal static IMessage Read(MessageDescriptor type, JsonObject with) =>
        JsonParser.Default.Parse(with.ToJsonString(), type);

    internal static JsonObject Write(IMessage message) => JsonNode.Parse(JsonFormatter.Default.Format(message))!.AsObject();
}
