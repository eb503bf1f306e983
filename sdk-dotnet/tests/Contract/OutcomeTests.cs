using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Contract;

/// <summary>The end of a task as users read it.</summary>
public sealed class OutcomeTests
{
    [Fact]
    public void Only_an_exit_has_an_exit_code()
    {
        Assert.Equal(0, Task(new Outcome { ExitCode = 0 }).ExitCode);
        Assert.Null(Task(new Outcome { Signal = new SignalOutcome { Number = 9 } }).ExitCode);
        Assert.Null(Task(null).ExitCode);
    }

    [Fact]
    public void An_outcome_prints_in_words()
    {
        var failed = new SpawnError { Path = "/no/such", Message = "No such file or directory" };
        Assert.Equal("exit code 3", $"{new Outcome { ExitCode = 3 }}");
        Assert.Equal("signal SIGKILL", $"{new Outcome { Signal = new SignalOutcome { Number = 9, Name = "SIGKILL" } }}");
        Assert.Equal("start failed: /no/such: No such file or directory", $"{new Outcome { SpawnError = failed }}");
        Assert.Equal("unknown: the machine restarted", $"{new Outcome { Unknown = new() { Detail = "the machine restarted" } }}");
        Assert.Equal("worker's result: Failed", $"{new Outcome { Worker = WorkerStatus.Failed }}");
    }

    [Fact]
    public void Only_a_kill_that_failed_has_survivors()
    {
        Assert.Empty(Task(null).Survivors);
        var proven = new StopRecord { Proof = new Proof { Proven = ProofMethod.NoChildren } };
        Assert.Empty(new BackgroundTask { Stop = proven }.Survivors);
        var survivors = new Survivors { Processes = { new ProcessInfo { Pid = 7 } } };
        var stopping = new BackgroundTask { Stop = new StopRecord { Proof = new Proof { Survivors = survivors } } };
        Assert.Equal(7, Assert.Single(stopping.Survivors).Pid);
    }

    private static BackgroundTask Task(Outcome? outcome) => new() { Outcome = outcome };
}
