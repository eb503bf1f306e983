using System.Reflection;
using Google.Protobuf;
using Google.Protobuf.Reflection;
using Google.Protobuf.WellKnownTypes;
using Heeler.V1;
using Xunit;
using Type = System.Type;

namespace Heeler.Client.Tests.Contract;

/// <summary>The client has a method for every call of the contract, and an option for every field.</summary>
public sealed class ContractTests
{
    private static readonly MethodInfo[] _methods =
        typeof(HeelerClient).GetMethods(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly);

    /// <summary>Output only, or the operand of a method instead of an option.</summary>
    private static readonly string[] _withoutOption =
        ["heeler.v1.TaskEnvironment.variable_names", "heeler.v1.CancelRequest.filter", "heeler.v1.DetachRequest.filter",
         "heeler.v1.AttachRequest.task_id", "heeler.v1.UpdateQueueRequest.name",
         "heeler.v1.UpdateTaskRequest.task_id"];

    public static TheoryData<string> Calls => [.. BackgroundTasks.Descriptor.Methods.Select(call => call.Name)];

    [Theory]
    [MemberData(nameof(Calls))]
    public void Every_call_has_a_method(string name)
    {
        var call = BackgroundTasks.Descriptor.FindMethodByName(name);
        var found = _methods.Where(method => method.Name == $"{name}Async" || method.Name == $"{name}PageAsync");
        // A stream takes options and resumes by itself; any other call also exists as the contract has it.
        Assert.Contains(found, method => call.IsServerStreaming || IsUnary(method, call));
    }

    [Theory]
    [InlineData(typeof(HeelerClient))]
    [InlineData(typeof(HeelerTask))]
    [InlineData(typeof(HeelerSession))]
    [InlineData(typeof(HeelerWork))]
    public void Every_member_can_be_overridden_and_a_fake_needs_no_connection(Type type)
    {
        const BindingFlags instance = BindingFlags.Instance | BindingFlags.DeclaredOnly;
        Assert.All(
            type.GetMethods(instance | BindingFlags.Public),
            method => Assert.True(method.IsVirtual && !method.IsFinal, $"{method.Name} is not virtual"));
        Assert.True(type.GetConstructor(instance | BindingFlags.NonPublic, [])?.IsFamily);
    }

    /// <summary>A test that replaces the client can make every answer and every error itself.</summary>
    [Fact]
    public void Every_type_of_an_answer_has_a_public_constructor()
    {
        var made = _methods.Select(method => method.ReturnType).SelectMany(Parts)
            .Concat(typeof(HeelerClient).Assembly.GetExportedTypes().Where(type => type.IsAssignableTo(typeof(HeelerException))))
            .Where(type => type.Assembly == typeof(HeelerClient).Assembly && type is { IsAbstract: false, IsClass: true })
            .Distinct();
        Assert.All(made, type => Assert.True(
            type.GetConstructors().Length > 0 || type == typeof(HeelerAddress), $"{type.Name} has no public constructor"));

        static IEnumerable<Type> Parts(Type type) =>
            type.IsGenericType ? type.GetGenericArguments().SelectMany(Parts) : [type, .. type.GetNestedTypes()];
    }

    [Fact]
    public void Every_field_of_a_request_has_an_option()
    {
        foreach (var spec in Filled(TaskSpec.Descriptor))
            OptionsFromMessage.Spawn(new SpawnRequest { RequestId = "r", Spec = (TaskSpec)spec });
        foreach (var request in Filled(CancelRequest.Descriptor).Cast<CancelRequest>())
        {
            request.Filter = new TaskFilter { SessionId = "s" };
            OptionsFromMessage.Cancel(request);
        }
        foreach (var request in Filled(DetachRequest.Descriptor).Cast<DetachRequest>())
        {
            request.Filter = new TaskFilter { SessionId = "s" };
            OptionsFromMessage.Detach(request);
        }
        foreach (var request in Filled(AttachRequest.Descriptor).Cast<AttachRequest>()) OptionsFromMessage.Attach(request);
        foreach (var request in Filled(UpdateQueueRequest.Descriptor).Cast<UpdateQueueRequest>())
            OptionsFromMessage.UpdateQueue(request);
        foreach (var request in Filled(FollowOutputRequest.Descriptor).Cast<FollowOutputRequest>())
            OptionsFromMessage.Follow(request);
        OptionsFromMessage.UpdateTask((UpdateTaskRequest)Filled(UpdateTaskRequest.Descriptor).Single());
        OptionsFromMessage.Watch((WatchEventsRequest)Filled(WatchEventsRequest.Descriptor).Single());
    }

    [Fact]
    public void Every_option_of_a_hosted_task_reaches_the_request()
    {
        var spec = new TaskSpec { Kind = TaskKind.Hosted };
        foreach (var field in TaskSpec.Descriptor.Fields.InFieldNumberOrder())
        {
            var isOption = typeof(HostOptions).GetProperty(field.PropertyName) is not null;
            if (isOption) Fill(spec, field);
        }
        var register = new WorkRegister { RequestId = "r", Spec = spec, Lease = new Duration { Seconds = 7 } };
        Assert.Equal(spec.Stop, OptionsFromMessage.Host(register).ToRequest().Spec.Stop);
    }

    [Fact]
    public void Options_that_exclude_each_other_are_refused()
    {
        var filter = new TaskFilter { SessionId = "s" };
        Assert.Throws<ArgumentException>(() => new CancelOptions { Force = true, Stop = new() }.ToRequest(filter));
        Assert.Throws<ArgumentException>(() => new FollowOptions { TailBytes = 1, TailLines = 1 }.ToRequest());
        Assert.Throws<ArgumentException>(() => new SpawnOptions { Shell = "true", Argv = ["true"] }.ToRequest());
        var two = new SpawnOptions { Shell = "true", Ready = new() { Port = 0, Command = ["true"] } };
        Assert.Throws<ArgumentException>(two.ToRequest);
        two = new() { Shell = "true", Ready = new() { Port = 0, Pattern = "up" } };
        Assert.Throws<ArgumentException>(two.ToRequest);
    }

    private static bool IsUnary(MethodInfo method, MethodDescriptor call) =>
        method.GetParameters() is [var request, var token]
        && request.ParameterType == call.InputType.ClrType
        && token.ParameterType == typeof(CancellationToken)
        && method.ReturnType == typeof(Task<>).MakeGenericType(call.OutputType.ClrType);

    /// <summary>Returns messages with a value in every field: one message for each member of a oneof.</summary>
    private static IEnumerable<IMessage> Filled(MessageDescriptor type)
    {
        var most = type.RealOneofCount == 0 ? 1 : type.Oneofs.Take(type.RealOneofCount).Max(oneof => oneof.Fields.Count);
        for (var member = 0; member < most; member++)
        {
            var message = (IMessage)Activator.CreateInstance(type.ClrType)!;
            foreach (var field in type.Fields.InFieldNumberOrder())
            {
                if (_withoutOption.Contains(field.FullName)) continue;
                if (field.RealContainingOneof is { } oneof && oneof.Fields[member % oneof.Fields.Count] != field) continue;
                Fill(message, field);
            }
            yield return message;
        }
    }

    private static void Fill(IMessage message, FieldDescriptor field)
    {
        if (field.IsMap) ((System.Collections.IDictionary)field.Accessor.GetValue(message)).Add("key", "value");
        else if (field.IsRepeated) ((System.Collections.IList)field.Accessor.GetValue(message)).Add(Sample(field));
        else field.Accessor.SetValue(message, Sample(field));
    }

    private static object Sample(FieldDescriptor field) => field.FieldType switch
    {
        FieldType.String => field.Name,
        FieldType.Bool => true,
        FieldType.UInt32 => 7u,
        FieldType.UInt64 => 7ul,
        FieldType.Enum => System.Enum.ToObject(field.EnumType.ClrType, 1),
        FieldType.Message when field.MessageType.ClrType == typeof(Duration) => new Duration { Seconds = 7 },
        FieldType.Message when field.MessageType.ClrType == typeof(Timestamp) => new Timestamp { Seconds = 7 },
        FieldType.Message => Filled(field.MessageType).First(),
        _ => throw new NotSupportedException($"no sample for {field.FullName}"),
    };
}
