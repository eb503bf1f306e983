using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.RegularExpressions;
using Grpc.Core;
using Heeler.V1;

namespace Heeler.Client.Tests.Conformance;

/// <summary>A result differs from the case.</summary>
public sealed class MismatchException(string message) : Exception(message);

/// <summary>Compares an expectation with a result. Pure.</summary>
internal static partial class Expectation
{
    /// <summary>Compares by the rules of the set's README: named fields, whole lists, absence, patterns, text.</summary>
    internal static void Check(JsonNode? expected, JsonNode? found, string path)
    {
        switch (expected, found)
        {
            case (null, null):
                return;
            case (JsonObject fields, JsonObject):
                foreach (var (name, field) in fields) Check(field, found[name], $"{path}.{name}");
                return;
            case (JsonArray items, JsonArray others) when items.Count == others.Count:
                for (var i = 0; i < items.Count; i++) Check(items[i], others[i], $"{path}[{i}]");
                return;
            case (JsonValue, JsonValue) when IsText(Text(expected), Text(found)):
                return;
            default:
                throw new MismatchException($"{path} is {Shown(found)}, expected {Shown(expected)}");
        }
    }

    /// <summary>Compares a refusal's code, reason, field and metadata.</summary>
    internal static void CheckRefusal(JsonObject expected, HeelerRefusedException refused, string path)
    {
        OnlyKnows(expected, "code", "reason", "field", "metadata");
        var fields = refused.FieldViolations.Select(bad => bad.Field);
        var found = new JsonObject
        {
            ["code"] = UpperCase(refused.StatusCode),
            // By the enum, so that a reason that this client does not know fails.
            ["reason"] = refused.Reason == ErrorReason.Unspecified ? null : refused.ReasonName,
            ["field"] = fields.Contains((string?)expected["field"]) ? expected["field"]?.DeepClone() : string.Join(' ', fields),
            ["metadata"] = new JsonObject(refused.Metadata.Select(item => KeyValuePair.Create(item.Key, (JsonNode?)item.Value))),
        };
        Check(expected, found, path);
    }

    /// <summary>Fails on any other key.</summary>
    internal static void OnlyKnows(JsonObject written, params string[] keys)
    {
        foreach (var (key, _) in written)
        {
            if (!keys.Contains(key)) throw new MismatchException($"unknown key `{key}`");
        }
    }

    private static bool IsText(string expected, string found) =>
        expected is ['~', .. var pattern] ? Regex.IsMatch(found, $@"\A(?:{pattern})\z") : expected == found;

    private static string Text(JsonNode value) =>
        value.GetValueKind() == JsonValueKind.String ? (string)value! : value.ToJsonString();

    private static string Shown(JsonNode? node)
    {
        const int enough = 400;
        var text = node?.ToJsonString() ?? "absent";
        return text.Length > enough ? text[..enough] + "…" : text;
    }

    /// <summary><c>NotFound</c> as <c>NOT_FOUND</c>.</summary>
    private static string UpperCase(StatusCode code) => WordStart().Replace(code.ToString(), "_").ToUpperInvariant();

    [GeneratedRegex("(?<=[a-z])(?=[A-Z])")]
    private static partial Regex WordStart();
}
