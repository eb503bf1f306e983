using System.Text.Json.Nodes;
using Google.Protobuf;
using Google.Protobuf.WellKnownTypes;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Conformance;

/// <summary>
/// Between the messages of the cases and what this client takes. Each option is made of the message's field, and makes the same
/// message again: a field that this client has no option for fails.
/// </summary>
internal static class Messages
{
    /// <summary>Fails on an unknown field.</summary>
    internal static T Read<T>(JsonObject with)
        where T : IMessage<T>, new() =>
        JsonParser.Default.Parse<T>(with.ToJsonString());

    internal static JsonObject Write(IMessage message) => JsonNode.Parse(JsonFormatter.Default.Format(message))!.AsObject();

    internal static SpawnOptions Spawn(SpawnRequest request)
    {
        // Nobody spawns without: then a call is safe to repeat.
        if (request.RequestId.Length == 0) request.RequestId = new SpawnOptions().RequestId;
        var options = new SpawnOptions
        {
            RequestId = request.RequestId,
            SessionId = request.SessionId,
            Name = request.Name,
            Kind = request.Kind,
            Argv = request.Argv?.Args,
            Shell = request.Shell?.Script,
            ShellProgram = request.Shell?.Program,
            WorkingDirectory = request.WorkingDirectory,
            Env = request.Env,
            EnvRemove = request.EnvRemove,
            EnvDefaults = request.EnvDefaults,
            Labels = request.Labels,
            ParentId = request.ParentId,
            Timeout = Span(request.Timeout),
            Grace = Span(request.StopPolicy?.Grace),
            StopSignal = request.StopPolicy is { Signal.Length: > 0 } policy ? policy.Signal : null,
            Placement = request.Placement,
            ForegroundTimeout = Span(request.ForegroundTimeout),
            OnForegroundTimeout = request.OnForegroundTimeout,
            OnHolderGone = request.OnHolderGone,
            HolderWindow = Span(request.HolderWindow),
            Lingering = request.Lingering,
            IdleTimeout = Span(request.IdleTimeout),
            StaleAfter = Span(request.StaleAfter),
            StaleAction = request.StaleAction,
            ExclusiveKey = request.ExclusiveKey,
            ExclusiveMode = request.ExclusiveMode,
            Queue = request.Queue,
        };
        Assert.Equal(request, options.ToRequest());
        return options;
    }

    internal static CancelOptions Cancel(CancelRequest request)
    {
        var options = new CancelOptions
        {
            Mode = request.Mode,
            Grace = Span(request.Grace),
            Signal = request.Signal,
            Reason = request.Reason,
            Actor = request.Actor,
            Wait = request.Wait,
            Cascade = request.Cascade,
        };
        Assert.Equal(request, request.TargetCase switch
        {
            CancelRequest.TargetOneofCase.SessionId => options.ForSession(request.SessionId),
            CancelRequest.TargetOneofCase.Filter => options.ForMatching(request.Filter),
            _ => options.ForTask(request.TaskId),
        });
        return options;
    }

    internal static DetachOptions Detach(DetachRequest request)
    {
        var options = new DetachOptions
        {
            Timeout = Span(request.Timeout),
            Reason = request.Reason,
            Actor = request.Actor,
        };
        var made = request.HasSessionId ? options.ForSession(request.SessionId) : options.ForTask(request.TaskId);
        Assert.Equal(request, made);
        return options;
    }

    internal static AttachOptions Attach(AttachRequest request)
    {
        var options = new AttachOptions
        {
            Offset = request.Offset,
            TailBytes = request.HasTailBytes ? request.TailBytes : null,
            View = request.View,
            ForegroundOnly = request.ForegroundOnly,
        };
        if (request.StartCase == AttachRequest.StartOneofCase.None) request.Offset = 0;
        Assert.Equal(request, options.ForTask(request.TaskId));
        return options;
    }

    internal static WatchOptions Watch(WatchEventsRequest request)
    {
        var kept = new Bookmark { Revision = request.AfterRevision, StateId = request.StateId };
        var options = new WatchOptions
        {
            AfterRevision = request.HasAfterRevision ? request.AfterRevision : null,
            AfterBookmark = request.HasAfterRevision && request.StateId.Length > 0 ? kept : null,
            InitialState = request.InitialState,
            Filter = request.Filter,
            Types = request.Types_,
            BookmarkInterval = Span(request.BookmarkInterval),
        };
        Assert.Equal(request, options.ToRequest());
        return options;
    }

    internal static QueueChange Queue(UpdateQueueRequest request)
    {
        var change = new QueueChange
        {
            Slots = request.HasSlots ? request.Slots : null,
            Paused = request.HasPaused ? request.Paused : null,
        };
        Assert.Equal(request, change.For(request.Name));
        return change;
    }

    private static TimeSpan? Span(Duration? duration) => duration?.ToTimeSpan();
}
