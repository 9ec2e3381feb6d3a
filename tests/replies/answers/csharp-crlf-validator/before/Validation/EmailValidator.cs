using System.Text.RegularExpressions;

namespace Acme.Validation;

/// <summary>A simple check: <c>name@host.tld</c>.</summary>
public sealed partial class EmailValidator : IValidator
{
    [GeneratedRegex(@"^[A-Za-z0-9._%-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$")]
    private static partial Regex Pattern();

    public string Name => "email";

    public bool IsValid(string? value, out string? error)
    {
        if (value is not null && Pattern().IsMatch(value.Trim()))
        {
            error = null;
            return true;
        }
        error = $"\"{value}\" ist keine E-Mail-Adresse.";
        return false;
    }
}
