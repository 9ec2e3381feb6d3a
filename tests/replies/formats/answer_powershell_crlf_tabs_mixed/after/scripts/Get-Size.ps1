#Requires -Version 5.1
<#
.SYNOPSIS
    Zeigt die Größe aller Unterordner, sortiert.
.EXAMPLE
    .\Get-Size.ps1 -Path C:\Temp
#>
[CmdletBinding()]
param(
	[Parameter(Mandatory)][string] $Path
)

$sizes = foreach ($dir in Get-ChildItem -LiteralPath $Path -Directory) {
	$files = Get-ChildItem -LiteralPath $dir.FullName -Recurse -File -Force -ErrorAction SilentlyContinue
	[pscustomobject]@{
		Name  = $dir.Name
		Bytes = [long]($files | Measure-Object -Property Length -Sum).Sum
	}
}

$sizes | Sort-Object -Property Bytes -Descending | ForEach-Object {
	"{0,-60} {1,15:N0}" -f $_.Name, $_.Bytes
}
