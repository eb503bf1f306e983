using Heeler.V1;
using Xunit;

namespace Heeler.Client.Tests.Work;

/// <summary>The knowledge of a worker about its task.</summary>
public sealed class WorkStateTests
{
    /// <summary>X1</summary>
    [Fact]
    public void Only_a_live_task_that_has_left_its_queue_is_admitted()
    {
        TaskState[] admitted = [TaskState.Starting, TaskState.Running, TaskState.Stopping];
        foreach (var state in Enum.GetValues<TaskState>())
        {
            using var work = new WorkState();
            work.Joined(new WorkJoined { Task = new BackgroundTask { Id = "hosted-a", State = state } });
            Assert.Equal((state, admitted.Contains(state)), (state, work.Admitted.IsCompleted));
        }
    }
}
