#Requires -Version 5.1
<#
.SYNOPSIS
    Zeigt die Größe jedes Unterordners, der größte zuerst.
.EXAMPLE
    .\Get-Size.ps1 -Path C:\Temp
#>
[CmdletBinding()]
param(
	[Parameter(Mandatory)][string] $Path
)

Get-ChildItem -LiteralPath $Path -Directory -Force |
	ForEach-Object {
		$sum = (Get-ChildItem -LiteralPath $_.FullName -Recurse -File -Force -ErrorAction SilentlyContinue |
			Measure-Object -Property Length -Sum).Sum
		[pscustomobject]@{
			Name = $_.Name
			Size = [long] $sum
		}
	} |
	Sort-Object -Property Size -Descending |
	ForEach-Object { "{0,-60} {1,15:N0}" -f $_.Name, $_.Size }
