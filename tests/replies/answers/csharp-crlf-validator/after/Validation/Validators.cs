using System;
using System.Collections.Generic;
using System.Linq;

namespace Acme.Validation;

public interface IValidator
{
    string Name { get; }
    bool IsValid(string? value, out string? error);
}

public static class Validators
{
    public static readonly IReadOnlyList<IValidator> All = new IValidator[]
    {
        new EmailValidator(),
        new IbanValidator(),
        new RequiredValidator(),
    };

    public static IValidator ByName(string name) =>
        All.FirstOrDefault(v => string.Equals(v.Name, name, StringComparison.OrdinalIgnoreCase))
        ?? throw new ArgumentException($"no validator \"{name}\"", nameof(name));
}

public sealed class RequiredValidator : IValidator
{
    public string Name => "required";

    public bool IsValid(string? value, out string? error)
    {
        error = string.IsNullOrWhiteSpace(value) ? "Bitte ausfüllen." : null;
        return error is null;
    }
}
