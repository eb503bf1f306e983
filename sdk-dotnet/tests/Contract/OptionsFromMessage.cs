using System.Reflection;
using Google.Protobuf;
using Google.Protobuf.WellKnownTypes;
using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Contract;

/// <summary>
/// Converts requests of the contract to this client's options by convention: an option has the name of its field, and a group of
/// options is the message of that name. Options of another shape are listed here. Every conversion is checked by converting back,
/// so that a field without an option fails.
/// </summary>
internal static class OptionsFromMessage
{
    internal static SpawnOptions Spawn(SpawnRequest request)
    {
        // The client always sends a request id, so that the call is safe to repeat.
        if (request.RequestId.Length == 0) request.RequestId = new SpawnOptions().ToRequest().RequestId;
        request.Spec ??= new TaskSpec();
        var spec = request.Spec;
        var environment = new Dictionary<string, string?>();
        foreach (var (name, value) in spec.Environment?.Variables ?? []) environment[name] = value;
        foreach (var name in spec.Environment?.Remove ?? []) environment[name] = null;
        var options = Make<SpawnOptions>(spec, new()
        {
            [nameof(SpawnOptions.RequestId)] = request.RequestId,
            [nameof(SpawnOptions.Shell)] = spec.Shell?.Script,
            [nameof(SpawnOptions.ShellProgram)] = spec.Shell?.Program,
            [nameof(SpawnOptions.Argv)] = spec.Argv?.Args,
            [nameof(SpawnOptions.Environment)] = environment,
            [nameof(SpawnOptions.EnvironmentDefaults)] = spec.Environment?.Defaults ?? EnvironmentDefaults.Unspecified,
        });
        Assert.Equal(request, options.ToRequest());
        return options;
    }

    internal static HostOptions Host(WorkRegister request)
    {
        var options = Make<HostOptions>(request.Spec, new()
        {
            [nameof(HostOptions.RequestId)] = request.RequestId,
            [nameof(HostOptions.Lease)] = request.Lease?.ToTimeSpan(),
            // It is in the Cancel that the token of the caller causes.
            [nameof(HostOptions.Reason)] = null,
        });
        Assert.Equal(request, options.ToRequest());
        return options;
    }

    internal static CancelOptions Cancel(CancelRequest request)
    {
        var options = Make<CancelOptions>(request, new()
        {
            [nameof(CancelOptions.Stop)] = request.Graceful is null ? null : Make<StopOptions>(request.Graceful, []),
            [nameof(CancelOptions.Force)] = request.Force is not null,
        });
        if (request.Filter is not null) Assert.Equal(request, options.ToRequest(request.Filter));
        return options;
    }

    internal static DetachOptions Detach(DetachRequest request)
    {
        var options = Make<DetachOptions>(request, []);
        if (request.Filter is not null) Assert.Equal(request, options.ToRequest(request.Filter));
        return options;
    }

    internal static AttachOptions Attach(AttachRequest request)
    {
        var options = Make<AttachOptions>(request, new() { [nameof(AttachOptions.GiveUpAfter)] = null });
        // The default of the contract, which the client sends.
        if (request.StartCase == AttachRequest.StartOneofCase.None) request.Offset = 0;
        Assert.Equal(request, options.ToRequest(request.TaskId));
        return options;
    }

    internal static WatchOptions Watch(WatchEventsRequest request)
    {
        var options = Make<WatchOptions>(request, new()
        {
            [nameof(WatchOptions.AfterBookmark)] = Bookmark(request.HasAfterRevision, request.AfterRevision, request.Epoch),
            [nameof(WatchOptions.Types)] = request.Types_,
            [nameof(WatchOptions.GiveUpAfter)] = null,
        });
        Assert.Equal(request, options.ToRequest());
        return options;
    }

    internal static FollowOptions Follow(FollowOutputRequest request)
    {
        var options = Make<FollowOptions>(request, new()
        {
            [nameof(FollowOptions.AfterBookmark)] = Bookmark(request.HasAfterRevision, request.AfterRevision, request.Epoch),
            [nameof(FollowOptions.GiveUpAfter)] = null,
        });
        Assert.Equal(request, options.ToRequest());
        return options;
    }

    internal static UpdateTaskOptions UpdateTask(UpdateTaskRequest request)
    {
        var options = Make<UpdateTaskOptions>(request, []);
        Assert.Equal(request, options.ToRequest(request.TaskId));
        return options;
    }

    internal static UpdateQueueOptions UpdateQueue(UpdateQueueRequest request)
    {
        var options = Make<UpdateQueueOptions>(request, []);
        Assert.Equal(request, options.ToRequest(request.Name));
        return options;
    }

    private static Bookmark? Bookmark(bool hasRevision, ulong revision, string epoch) =>
        hasRevision && epoch.Length > 0 ? new Bookmark { Revision = revision, Epoch = epoch } : null;

    private static T Make<T>(IMessage message, Dictionary<string, object?> others) => (T)Make(typeof(T), message, others);

    /// <summary>Sets each option from <paramref name="others"/>, else from the field of its name.</summary>
    private static object Make(System.Type type, IMessage message, Dictionary<string, object?> others)
    {
        var options = Activator.CreateInstance(type)!;
        foreach (var option in type.GetProperties())
        {
            option.SetValue(options, others.TryGetValue(option.Name, out var other) ? other : Value(option, message));
        }
        return options;
    }

    private static object? Value(PropertyInfo option, IMessage message)
    {
        var field = message.Descriptor.Fields.InFieldNumberOrder().SingleOrDefault(field => field.PropertyName == option.Name);
        Assert.True(field is not null, $"{message.Descriptor.Name} has no field for the option {option.Name}");
        if (field.HasPresence && !field.Accessor.HasValue(message)) return Default(option);
        return field.Accessor.GetValue(message) switch
        {
            Duration duration => duration.ToTimeSpan(),
            ArgvCommand command => command.Args,
            Timestamp moment => moment.ToDateTimeOffset(),
            IMessage part when !option.PropertyType.IsInstanceOfType(part) => Make(option.PropertyType, part, []),
            var same => same,
        };
    }

    private static object? Default(PropertyInfo option) =>
        option.GetValue(Activator.CreateInstance(option.DeclaringType!));
}
