using System.Text.RegularExpressions;

namespace Acme.Validation;

/// <summary>Checks the form and the mod-97 checksum of an IBAN (ISO 13616); spaces are allowed.</summary>
public sealed partial class IbanValidator : IValidator
{
    [GeneratedRegex(@"^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$")]
    private static partial Regex Pattern();

    public string Name => "iban";

    public bool IsValid(string? value, out string? error)
    {
        var iban = value?.Replace(" ", "").Trim().ToUpperInvariant();
        if (iban is not null && Pattern().IsMatch(iban) && Mod97(iban) == 1)
        {
            error = null;
            return true;
        }
        error = $"\"{value}\" ist keine gültige IBAN.";
        return false;
    }

    /// <summary>The first four characters go to the end, letters count as A = 10 … Z = 35.</summary>
    private static int Mod97(string iban)
    {
        var rest = 0;
        foreach (var c in iban[4..] + iban[..4])
        {
            rest = char.IsAsciiDigit(c)
                ? (rest * 10 + (c - '0')) % 97
                : (rest * 100 + (c - 'A' + 10)) % 97;
        }
        return rest;
    }
}
