"""The patterns of the policy presets: what needs approval and what is denied.

The lists are meant for a developer's machine. Approval is needed for what can't be undone, what
others see in the person's name, and what reaches beyond the workspace. Ordinary work (tests,
builds, installs into the project, commits) is not listed.
"""

import re

from codingagent.model.patterns import words


def patterns(text: str) -> tuple[str, ...]:
    """Return the patterns between the commas of a text; the words before a bracket begin each in it."""
    found: list[str] = []
    for start, inside in re.findall(r"([^,()]+)(?:\(([^)]*)\))?", " ".join(text.split())):
        found += (f"{start} {end}".strip() for end in inside.split(","))
    return tuple(" ".join(each.split()) for each in found if each.strip())


# Run with other privileges; change the machine's disks, its users; stop it.
BLOCKED_COMMANDS = patterns(
    """
    sudo, su, doas, pkexec, runuser, chroot, nsenter, unshare, mount, umount, mkfs*, mke2fs, mkswap, fdisk,
    sfdisk, gdisk, cfdisk, wipefs, blkdiscard, cryptsetup, swapon, swapoff, losetup, dmsetup, parted,
    shutdown, reboot, halt, poweroff, init, telinit, kexec, systemctl (poweroff, reboot, halt, kexec,
    suspend, hibernate, rescue, emergency, isolate), insmod, modprobe, rmmod, iptables, ip6tables, nft, ufw,
    firewall-cmd, passwd, chpasswd, useradd, userdel, usermod, adduser, deluser, visudo, groupadd, groupdel,
    groupmod, setenforce, vipw, dscl, sysadminctl
    """
)

# Destroy what can't be restored.
DESTROYING_COMMANDS = patterns(
    """
    rm (-r, -R, --recursive, -f, --force), rimraf, npx rimraf, del-cli, npx del-cli, tar --remove-files, zip
    (-m, -rm), find -delete, fd --exec-batch, shred, srm, wipe, dd of=*, truncate, rsync --delete*, chmod
    (-R, --recursive), chown (-R, --recursive), chgrp -R, rsync --del, tmutil, hdiutil, killall, pkill,
    crontab, kill -1, git (clean, restore, reset --hard, reset --merge, reset --keep, rm -f, rm --force, tag
    -d, checkout --, checkout ., checkout -f, checkout --force, switch -f, switch --force, switch
    --discard-changes, stash drop, stash clear, branch -D, branch -f, branch --force, tag --delete,
    update-ref, reflog expire, reflog delete, gc --prune, filter-branch, filter-repo, worktree remove,
    submodule deinit, checkout-index -f), docker (system prune, volume rm, volume prune, compose down -v,
    compose down --volumes, rm -f, rm --force, image prune, container prune, compose rm), podman (system
    prune, system reset, volume rm, volume prune), docker-compose down (-v, --volumes), dropdb, mysqladmin
    drop, rails (db:drop, db:reset, db:migrate:reset), redis-cli (flushall, flushdb, FLUSHALL, FLUSHDB),
    psql (*DROP *, *drop *, *TRUNCATE *, *truncate *), mysql (*DROP *, *drop *, *TRUNCATE *, *truncate *),
    mongosh *drop*, mongo *drop*, django-admin flush, supabase db reset, prisma db push --force-reset,
    alembic downgrade, rake db:drop, prisma migrate reset, python* manage.py flush, diskutil
    """
)

# Publish where others see it.
PUBLISHING_COMMANDS = patterns(
    """
    git push, npm (publish, unpublish, deprecate, dist-tag, owner, access, token, login, adduser, run
    publish*, run deploy*, run release*, run-script publish*, run-script deploy*, run-script release*), yarn
    (publish, npm publish, deploy*, release*, run deploy*, run release*, run publish*), pnpm (publish,
    deploy*, run deploy*, run release*, run publish*), bun (publish, run deploy*, run release*, run
    publish*), npx (gh-pages, np, wrangler, vercel, netlify), corepack *publish*, yarn (workspace *publish*,
    workspaces *publish*), cargo release, git (subtree push, lfs push, send-email, svn dcommit), hg push,
    svn (commit, ci), jj git push, hub pull-request, cargo (publish, yank, owner, login), poetry publish, uv
    publish, pdm publish, hatch publish, flit publish, maturin publish, pod trunk, fastlane, altool,
    notarytool, twine upload, python* setup.py upload, gem (push, yank), dotnet nuget push, mvn deploy,
    gradle publish*, gradlew publish*, sbt publish*, vsce publish, lerna publish, changeset publish,
    semantic-release, release-it, goreleaser release, make (publish*, deploy*, release*), just (publish*,
    deploy*, release*), task (publish*, deploy*, release*), mvnw deploy, gradlew *publish*, gradle
    *publish*, docker (push, image push, compose push, login, run --privileged, manifest push, buildx
    --push, build --push), podman push, skopeo copy, helm (push, install, upgrade, uninstall, delete,
    rollback), gh (pr create, pr merge, pr close, pr reopen, pr comment, pr edit, pr review, pr ready, issue
    create, issue close, issue reopen, issue comment, issue edit, issue delete, issue transfer, release
    create, release delete, release edit, release upload, repo create, repo delete, repo edit, repo rename,
    repo archive, repo fork, repo sync, gist create, gist delete, secret, variable, auth, workflow run, run
    cancel, run rerun, api -X, api --method, api -f, api -F, api --field, api --raw-field, api --input),
    glab (mr create, mr merge, mr close, issue create, release create, repo create, repo delete)
    """
)

# Reach beyond the workspace.
REACHING_COMMANDS = patterns(
    """
    ssh, scp, sftp, ftp, tftp, lftp, telnet, nc, ncat, netcat, socat, rsync *:*, rclone, gsutil, s3cmd,
    sendmail, mail, mutt, aws, gcloud, az, kubectl (apply, create, delete, replace, patch, edit, scale,
    rollout, drain, cordon, taint, exec, cp, label, annotate, set, run, expose), terraform (apply, destroy,
    import, taint, state rm, state mv, state push), tofu (apply, destroy, import, taint, state rm, state mv,
    state push), terragrunt (apply, destroy), pulumi (up, destroy), cdk (deploy, destroy), serverless
    (deploy, remove), sls (deploy, remove), ansible, ansible-playbook, heroku, fly, flyctl, vercel, netlify
    deploy, firebase deploy, wrangler (deploy, publish), surge, doctl, git config (--global, --system),
    systemctl (start, stop, restart, enable, disable, mask, daemon-reload), service, launchctl, sysctl -w,
    osascript, security, open, softwareupdate, defaults (write, delete, import, rename), brew (install,
    uninstall, upgrade, reinstall, services, remove), apt (install, remove, purge, upgrade, autoremove),
    apt-get (install, remove, purge, upgrade, dist-upgrade, autoremove), dpkg -i, dnf (install, remove), yum
    (install, remove), pacman (-S, -R), apk (add, del), snap (install, remove), npm (install -g, i -g,
    install --global, uninstall -g), yarn global, npm install --location=global, pip* install
    --break-system-packages
    """
)

ASKED_COMMANDS = (*DESTROYING_COMMANDS, *PUBLISHING_COMMANDS, *REACHING_COMMANDS)

REASONS = {
    **dict.fromkeys(DESTROYING_COMMANDS, "may destroy what can't be restored"),
    **dict.fromkeys(PUBLISHING_COMMANDS, "may publish something in your name"),
    **dict.fromkeys(REACHING_COMMANDS, "reaches beyond the workspace"),
}
"""The reason for asking, appended to the command's name."""

# Variables that make a line load or run another program than it says. PATH is not listed: every
# virtual environment sets it, and a script in the workspace can be run by path anyway. With a list
# of allowed commands, these could make an allowed command run a disallowed one. Without such a list
# they are ordinary (PYTHONPATH=src) and need no approval.
CHOOSING_VARIABLES = words(
    "PATH HOME SHELL ENV IFS LD_LIBRARY_PATH DYLD_LIBRARY_PATH XDG_CONFIG_HOME GIT_DIR GIT_PAGER",
    "GIT_EDITOR PAGER MANPAGER EDITOR VISUAL BROWSER LESSOPEN LESSCLOSE PERL5OPT PERL5LIB NODE_OPTIONS",
    "NODE_PATH RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH PYTHONPATH PYTHONHOME",
    "PYTHONSTARTUP RUSTC_WRAPPER MAKEFLAGS GOFLAGS GCONV_PATH",
)

ASKED_VARIABLES = words(
    "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV PROMPT_COMMAND GIT_SSH GIT_SSH_COMMAND",
    "GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS GIT_EXEC_PATH GIT_TEMPLATE_DIR SSH_ASKPASS",
)
