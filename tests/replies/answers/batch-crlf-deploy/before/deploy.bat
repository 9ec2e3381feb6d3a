@echo off
setlocal EnableDelayedExpansion
rem Copies the build to the server

set SRC=%~dp0build\release
set DST=\\server\share\app
set COUNT=0

if not exist "%SRC%\app.exe" (
    echo No build in %SRC% ^(run build.bat first^) 1>&2
    exit /b 1
)

for /f "usebackq tokens=1,2 delims==" %%A in ("%~dp0deploy.ini") do (
    if "%%A"=="exclude" set EXCLUDE=!EXCLUDE! /XF "%%B"
    set /a COUNT+=1
)

echo Copying %SRC% to %DST% ...
robocopy "%SRC%" "%DST%" /MIR /R:2 /W:5 %EXCLUDE%
if errorlevel 1 echo Something happened

:done
echo %COUNT% settings, 100%% done.
endlocal
