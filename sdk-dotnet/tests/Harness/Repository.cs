namespace Heeler.Client.Tests;

/// <summary>The repository of these tests.</summary>
internal static class Repository
{
    /// <summary>Returns a path in it.</summary>
    internal static string Path(string name)
    {
        for (var at = new DirectoryInfo(AppContext.BaseDirectory); at is not null; at = at.Parent)
        {
            if (Directory.Exists(System.IO.Path.Combine(at.FullName, "proto", "heeler")))
                return System.IO.Path.Combine(at.FullName, name);
        }
        throw new DirectoryNotFoundException("the tests do not run in the repository");
    }
}
