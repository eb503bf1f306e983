using Google.Protobuf;
using Google.Protobuf.Reflection;
using Grpc.Core;
using Heeler.Client.Details;
using Heeler.V1;

namespace Heeler.Client;

/// <summary>The content of a refusal, read from the details of its status.</summary>
internal sealed record Refusal(
    string Message,
    string ReasonName,
    ErrorReason Reason,
    IReadOnlyDictionary<string, string> Metadata,
    IReadOnlyList<FieldViolation> FieldViolations)
{
    /// <summary>The domain of Heeler's own reasons.</summary>
    private const string Domain = "heeler.dev";
    private const string ReasonPrefix = "ERROR_REASON_";
    private const string Trailer = "grpc-status-details-bin";
    private const string ReasonType = "type.googleapis.com/google.rpc.ErrorInfo";
    private const string FieldsType = "type.googleapis.com/google.rpc.BadRequest";

    internal static Refusal From(RpcException error)
    {
        var (reason, fields) = Details(error.Trailers);
        if (reason.Domain != Domain) reason = new ReasonDetail();
        var violations = fields.FieldViolations.Select(bad => new FieldViolation(bad.Field, bad.Description)).ToList();
        return new Refusal(
            Words(error, violations),
            reason.Reason,
            Known(reason.Reason),
            reason.Metadata.ToDictionary(StringComparer.Ordinal),
            violations);
    }

    private static string Words(RpcException error, List<FieldViolation> fields) =>
        (error.Status.Detail, fields) switch
        {
            ({ Length: > 0 } detail, [var bad, ..]) => OptionNames.In(detail, bad.Field),
            ({ Length: > 0 } detail, _) => detail,
            (_, [var bad, ..]) => OptionNames.In($"{bad.Field}: {bad.Description}", bad.Field),
            _ => error.StatusCode.ToString(),
        };

    private static ErrorReason Known(string reason)
    {
        var values = ErrorReflection.Descriptor.FindTypeByName<EnumDescriptor>(nameof(ErrorReason));
        return (ErrorReason)(values.FindValueByName(ReasonPrefix + reason)?.Number ?? 0);
    }

    private static (ReasonDetail Reason, FieldsDetail Fields) Details(Metadata trailers)
    {
        var (reason, fields) = (new ReasonDetail(), new FieldsDetail());
        try
        {
            foreach (var detail in StatusDetails.Parser.ParseFrom(trailers.GetValueBytes(Trailer) ?? []).Details)
            {
                if (detail.TypeUrl == ReasonType) reason = ReasonDetail.Parser.ParseFrom(detail.Value);
                if (detail.TypeUrl == FieldsType) fields = FieldsDetail.Parser.ParseFrom(detail.Value);
            }
        }
        catch (InvalidProtocolBufferException)
        {
            // Without details, the code and the message remain.
        }
        return (reason, fields);
    }
}
