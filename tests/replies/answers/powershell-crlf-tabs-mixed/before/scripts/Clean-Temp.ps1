#Requires -Version 5.1
<#
.SYNOPSIS
    Löscht alte Dateien.
.EXAMPLE
    .\Clean-Temp.ps1 -Path C:\Temp -Days 7
#>
[CmdletBinding()]
param(
	[Parameter(Mandatory)][string] $Path,
	[ValidateRange(0, 365)][int] $Days = 30,
	[string[]] $Exclude = @('*.keep', "$env:USERNAME*")
)

$limit = (Get-Date).AddDays(-$Days)
$old = Get-ChildItem -LiteralPath $Path -Recurse -File -Exclude $Exclude |
	Where-Object { $_.LastWriteTime -lt $limit }

foreach ($file in $old) {
	try {
		Remove-Item -LiteralPath $file.FullName -Force -ErrorAction Stop
		"{0,-60} {1,10:N0}" -f $file.Name, $file.Length
	} catch {
		Write-Warning "Fehler bei `"$($file.FullName)`": $_"
	}
}
@"
Fertig: $($old.Count) Dateien`t(älter als $Days Tage)
"@
