@echo off
setlocal EnableDelayedExpansion
rem Copies the build to the server
rem Usage: deploy.bat [target]

set SRC=%~dp0build\release
set "DST=%~1"
if not defined DST set "DST=\\server\share\app"
set "LOG=%TEMP%\deploy.log"
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
robocopy "%SRC%" "%DST%" /MIR /R:2 /W:5 /TEE /LOG:"%LOG%" %EXCLUDE%
set RC=%ERRORLEVEL%
rem robocopy: 0 to 7 are kinds of success, 8 and up are failures
if %RC% GEQ 8 (
    echo robocopy failed with code %RC%, see %LOG% 1>&2
    exit /b %RC%
)

:done
echo %COUNT% settings, 100%% done. Log: %LOG%
endlocal
exit /b 0
