"""The patterns of the policy presets: what needs approval and what is denied.

The lists are meant for a developer's machine. Approval is needed for what can't be undone, what
others see in the person's name, and what reaches beyond the workspace. Ordinary work (tests,
builds, installs into the project, commits) is not listed.
"""


def _each(start: str, ends: str) -> tuple[str, ...]:
    """Return one pattern per comma-separated ending."""
    return tuple(f"{start} {end.strip()}".strip() for end in ends.split(","))


BLOCKED_COMMANDS = (
    # Run with other privileges.
    *("sudo", "su", "doas", "pkexec", "runuser", "chroot", "nsenter", "unshare"),
    # Change the machine's disks.
    *("mount", "umount", "mkfs*", "mke2fs", "mkswap", "fdisk", "sfdisk", "gdisk", "cfdisk"),
    *("wipefs", "blkdiscard", "cryptsetup", "swapon", "swapoff", "losetup", "dmsetup", "parted"),
    # Stop the machine.
    *("shutdown", "reboot", "halt", "poweroff", "init", "telinit", "kexec"),
    *_each("systemctl", "poweroff,reboot,halt,kexec,suspend,hibernate,rescue,emergency,isolate"),
    *("insmod", "modprobe", "rmmod", "iptables", "ip6tables", "nft", "ufw", "firewall-cmd"),
    # Change its users.
    *("passwd", "chpasswd", "useradd", "userdel", "usermod", "adduser", "deluser", "visudo"),
    *("groupadd", "groupdel", "groupmod", "setenforce", "vipw", "dscl", "sysadminctl"),
)

# Destroy what can't be restored.
DESTROYING_COMMANDS = (
    *_each("rm", "-r,-R,--recursive,-f,--force"),
    *("rimraf", "npx rimraf", "del-cli", "npx del-cli", "tar --remove-files", "zip -m", "zip -rm"),
    *("find -delete", "fd --exec-batch", "shred", "srm", "wipe", "dd of=*", "truncate"),
    *("rsync --delete*", "chmod -R", "chmod --recursive", "chown -R", "chown --recursive"),
    *("chgrp -R", "rsync --del", "tmutil", "hdiutil", "killall", "pkill", "crontab", "kill -1"),
    *_each("git", "clean,restore,reset --hard,reset --merge,reset --keep,rm -f,rm --force,tag -d"),
    *_each("git", "checkout --,checkout .,checkout -f,checkout --force,switch -f,switch --force"),
    *_each("git", "switch --discard-changes,stash drop,stash clear,branch -D,branch -f"),
    *_each("git", "branch --force,tag --delete,update-ref,reflog expire,reflog delete,gc --prune"),
    *_each("git", "filter-branch,filter-repo,worktree remove,submodule deinit,checkout-index -f"),
    *_each("docker", "system prune,volume rm,volume prune,compose down -v,compose down --volumes"),
    *_each("docker", "rm -f,rm --force,image prune,container prune,compose rm"),
    *_each("podman", "system prune,system reset,volume rm,volume prune"),
    *("docker-compose down -v", "docker-compose down --volumes"),
    *("dropdb", "mysqladmin drop", "rails db:drop", "rails db:reset", "rails db:migrate:reset"),
    *_each("redis-cli", "flushall,flushdb,FLUSHALL,FLUSHDB"),
    *_each("psql", "*DROP *,*drop *,*TRUNCATE *,*truncate *"),
    *_each("mysql", "*DROP *,*drop *,*TRUNCATE *,*truncate *"),
    *("mongosh *drop*", "mongo *drop*", "django-admin flush", "supabase db reset"),
    *("prisma db push --force-reset", "alembic downgrade"),
    *("rake db:drop", "prisma migrate reset", "python* manage.py flush", "diskutil"),
)

# Publish where others see it.
PUBLISHING_COMMANDS = (
    "git push",
    *_each("npm", "publish,unpublish,deprecate,dist-tag,owner,access,token,login,adduser"),
    *_each("npm run", "publish*,deploy*,release*"),
    *_each("npm run-script", "publish*,deploy*,release*"),
    *_each("yarn", "publish,npm publish,deploy*,release*,run deploy*,run release*,run publish*"),
    *_each("pnpm", "publish,deploy*,run deploy*,run release*,run publish*"),
    *_each("bun", "publish,run deploy*,run release*,run publish*"),
    *("npx gh-pages", "npx np", "npx wrangler", "npx vercel", "npx netlify", "corepack *publish*"),
    *("yarn workspace *publish*", "yarn workspaces *publish*", "cargo release"),
    *_each("git", "subtree push,lfs push,send-email,svn dcommit"),
    *("hg push", "svn commit", "svn ci", "jj git push", "hub pull-request"),
    *_each("cargo", "publish,yank,owner,login"),
    *("poetry publish", "uv publish", "pdm publish", "hatch publish", "flit publish"),
    *("maturin publish", "pod trunk", "fastlane", "altool", "notarytool"),
    *("twine upload", "python* setup.py upload", "gem push", "gem yank", "dotnet nuget push"),
    *("mvn deploy", "gradle publish*", "gradlew publish*", "sbt publish*", "vsce publish"),
    *("lerna publish", "changeset publish", "semantic-release", "release-it", "goreleaser release"),
    *_each("make", "publish*,deploy*,release*"),
    *_each("just", "publish*,deploy*,release*"),
    *_each("task", "publish*,deploy*,release*"),
    *("mvnw deploy", "gradlew *publish*", "gradle *publish*"),
    *_each("docker", "push,image push,compose push,login,run --privileged,manifest push"),
    *("docker buildx --push", "docker build --push", "podman push", "skopeo copy"),
    *_each("helm", "push,install,upgrade,uninstall,delete,rollback"),
    *_each("gh pr", "create,merge,close,reopen,comment,edit,review,ready"),
    *_each("gh issue", "create,close,reopen,comment,edit,delete,transfer"),
    *_each("gh release", "create,delete,edit,upload"),
    *_each("gh repo", "create,delete,edit,rename,archive,fork,sync"),
    *_each("gh", "gist create,gist delete,secret,variable,auth,workflow run,run cancel,run rerun"),
    *_each("gh api", "-X,--method,-f,-F,--field,--raw-field,--input"),
    *_each(
        "glab", "mr create,mr merge,mr close,issue create,release create,repo create,repo delete"
    ),
)

# Reach beyond the workspace.
REACHING_COMMANDS = (
    *("ssh", "scp", "sftp", "ftp", "tftp", "lftp", "telnet", "nc", "ncat", "netcat", "socat"),
    *("rsync *:*", "rclone", "gsutil", "s3cmd", "sendmail", "mail", "mutt", "aws", "gcloud", "az"),
    *_each("kubectl", "apply,create,delete,replace,patch,edit,scale,rollout,drain,cordon,taint"),
    *_each("kubectl", "exec,cp,label,annotate,set,run,expose"),
    *_each("terraform", "apply,destroy,import,taint,state rm,state mv,state push"),
    *_each("tofu", "apply,destroy,import,taint,state rm,state mv,state push"),
    *("terragrunt apply", "terragrunt destroy", "pulumi up", "pulumi destroy", "cdk deploy"),
    *("cdk destroy", "serverless deploy", "serverless remove", "sls deploy", "sls remove"),
    *("ansible", "ansible-playbook", "heroku", "fly", "flyctl", "vercel", "netlify deploy"),
    *("firebase deploy", "wrangler deploy", "wrangler publish", "surge", "doctl"),
    *_each("git config", "--global,--system"),
    *_each("systemctl", "start,stop,restart,enable,disable,mask,daemon-reload"),
    *("service", "launchctl", "sysctl -w", "osascript", "security", "open", "softwareupdate"),
    *_each("defaults", "write,delete,import,rename"),
    *_each("brew", "install,uninstall,upgrade,reinstall,services,remove"),
    *_each("apt", "install,remove,purge,upgrade,autoremove"),
    *_each("apt-get", "install,remove,purge,upgrade,dist-upgrade,autoremove"),
    *("dpkg -i", "dnf install", "dnf remove", "yum install", "yum remove", "pacman -S"),
    *("pacman -R", "apk add", "apk del", "snap install", "snap remove"),
    *("npm install -g", "npm i -g", "npm install --global", "npm uninstall -g", "yarn global"),
    *("npm install --location=global", "pip* install --break-system-packages"),
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
CHOOSING_VARIABLES = frozenset(
    {
        *("PATH", "HOME", "SHELL", "ENV", "IFS", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        *("XDG_CONFIG_HOME", "GIT_DIR", "GIT_PAGER", "GIT_EDITOR", "PAGER", "MANPAGER", "EDITOR"),
        *("VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "PERL5OPT", "PERL5LIB", "NODE_OPTIONS"),
        *("NODE_PATH", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "RUSTC_WRAPPER", "MAKEFLAGS", "GOFLAGS"),
        "GCONV_PATH",
    }
)

ASKED_VARIABLES = frozenset(
    {
        *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "PROMPT_COMMAND"),
        *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"),
        *("GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "SSH_ASKPASS"),
    }
)
