using System.Text;

namespace Heeler.Client;

/// <summary>
/// The names of the contract's fields in this client. An option has the name of its field in C#'s spelling; the exceptions are
/// listed here.
/// </summary>
internal static class OptionNames
{
    /// <summary>Fields whose option has another name or another place.</summary>
    private static readonly (string Field, string Option)[] _exceptions =
    [
        ("spec.command", "Shell or Argv"),
        ("spec.shell.script", "Shell"),
        ("spec.shell.program", "ShellProgram"),
        ("spec.argv.args", "Argv"),
        ("spec.environment.defaults", "EnvironmentDefaults"),
        ("spec.environment.variables", "Environment"),
        ("spec.environment.remove", "Environment"),
        ("graceful", "Stop"),
        ("epoch", "AfterBookmark"),
    ];

    /// <summary>Returns the option of a field, such as <c>Stop.Grace</c> for <c>spec.stop.grace</c>.</summary>
    internal static string Of(string field)
    {
        const string register = "register.";
        if (field.StartsWith(register, StringComparison.Ordinal)) field = field[register.Length..];
        foreach (var (prefix, option) in _exceptions)
        {
            if (field.StartsWith(prefix, StringComparison.Ordinal) && IsBoundary(field, prefix.Length))
                return option + Pascal(field[prefix.Length..]);
        }
        const string spec = "spec.";
        return Pascal(field.StartsWith(spec, StringComparison.Ordinal) ? field[spec.Length..] : field);
    }

    /// <summary>Returns the daemon's message with the option before the field that it names.</summary>
    internal static string In(string message, string field)
    {
        var at = message.IndexOf(field, StringComparison.Ordinal);
        return at < 0 || field.Length == 0 || !IsBoundary(message, at + field.Length)
            ? message
            : $"{message[..at]}{Of(field)} ({field}){message[(at + field.Length)..]}";
    }

    private static bool IsBoundary(string text, int at) =>
        at == text.Length || !(char.IsLetterOrDigit(text[at]) || text[at] == '_');

    /// <summary>Spells the names of a path in C#'s way. Keys and indexes in brackets stay.</summary>
    private static string Pascal(string path)
    {
        var spelled = new StringBuilder();
        var (upper, inBrackets) = (true, false);
        foreach (var character in path)
        {
            inBrackets = character == '[' || (inBrackets && character != ']');
            if (character == '_' && !inBrackets) upper = true;
            else
            {
                spelled.Append(upper && !inBrackets ? char.ToUpperInvariant(character) : character);
                upper = character == '.';
            }
        }
        return spelled.ToString();
    }
}
