"""Files that other programs execute by their name: a change to one is the person's to decide.

A row is a kind: who executes these files, and their names. It holds what runs with the person's rights,
or with the project's keys, without the person starting just that: when a folder is opened or entered, at
a commit, when any tool of a kind starts. What runs only when the person runs it (a Makefile,
package.json, setup.py, Dockerfile, the configuration of a bundler) is ordinary work and not here.

A name stands for one in any folder, and for what is in a folder of that name. One with `!` first
excepts files from the names after it.
"""

from collections.abc import Mapping

_ROWS = {
    "git runs what it names": ".git .gitconfig* .config/git",
    "this program obeys it": ".codingagent",
    "another version control system runs what it names": """
        .hgrc .hg/hgrc .hg/hgrc-not-shared .sl/config .jj/repo/config.toml .bzr/branch/branch.conf
        _darcs/prefs/defaults .pijul/config .arcconfig .arclint
    """,
    "it runs at a commit or a push": """
        .husky .huskyrc* husky.config.* .githooks .git-hooks .pre-commit-config.yaml .pre-commit-config.yml
        .pre-commit-hooks.yaml prek.toml lefthook.* lefthook-local.* .lefthook .lefthook.* .lefthook-local.*
        .overcommit.yml .simple-git-hooks.* simple-git-hooks.* .lintstagedrc* lint-staged.config.*
        .nano-staged* .commitlintrc* commitlint.config.* captainhook.json grumphp.yml .rusty-hook.toml hk*.pkl
        .gitlint .trunk .qlty .moon common/git-hooks treefmt.toml .treefmt.toml
    """,
    "an editor runs what it names when the folder is opened": """
        .vscode *.code-workspace .idea .run/*.run.xml .fleet .vs/*.json .zed .nova .helix .kateproject
        *.sublime-project .exrc .nvimrc .nvim .nvim.lua .lazy.lua .vim .vimrc .vimrc.local .local.vimrc _vimrc
        .gvimrc .lvimrc .lite_project.lua .ycm_extra_conf.py .theia .dir-locals.el .dir-locals-2.el .emacs*
        .spacemacs .externalToolBuilders .factorypath .bsp .sourcekit-lsp .luarc.* .merlin hie.yaml
        rust-analyzer.toml .rust-analyzer.toml .neoconf.json .solargraph.yml ruby_lsp/*/addon.rb .phpactor.*
        .lsp/config.edn gtags.conf *.suo *.ipr *.iws .latexmkrc latexmkrc config.nims .obsidian dprint.json
        .dprint.json
    """,
    "a development container or workspace is built and started from it": """
        conductor.json .superset .emdash.json .container-use .config/wt.toml .wtp.yml .devcontainer
        .devcontainer.json devfile.yaml .devfile.yaml .gitpod* .ona .replit replit.nix .idx .codesandbox
        .stackblitzrc .openhands
    """,
    "it tells agents and editors which programs to start, and what is allowed": """
        .mcp* mcp*.json *mcp_settings.json claude_desktop_config.json .claude .claude.json .claude-plugin
        .cursor .codex .gemini gemini-extension.json .windsurf .codeium .kiro .roo .roomodes .kilo .kilocode
        .goose .agent .agents .antigravity .codebuff codebuff.json .pi .serena .lingma .comate .grok .kimi
        .auggie .hermes .openclaw gptme.toml .gptme.toml .continue .continuerc.json opencode.json
        opencode.jsonc .opencode .cline .clinerules/hooks .amazonq .junie .augment .trae .qwen .qoder
        .crush.json crush.json .factory .amp .vibe .warp .copilot .zencoder .rovodev .codebuddy .iflow
        .tabnine .aider.*.yml .ampcode .github/hooks .github/agents .github/copilot .github/mcp.json
        .gitlab/duo .lsp.json .cody .kode .neovate .pochi .bob .cortex .commandcode .forge .deepagents
        .firebender firebender.json
    """,
    "a shell, or what it starts, runs it when the folder is entered": """
        .envrc .envrc.* .direnv/*.rc mise.toml mise.*.toml .mise .mise.toml .mise.*.toml mise/config.toml
        .config/mise .config/mise.toml .rtx.toml .autoenv* flake.nix shell.nix devenv.* devbox.json .flox
        .shadowenv.d .rvmrc .rbenv-vars bin/activate* Scripts/activate* pyvenv.cfg .tool-versions
        .python-version .prototools .miserc.toml pitchfork.toml pitchfork.*.toml .tmuxinator .tmuxinator.*
        .tmuxp.* .tmux.conf .screenrc
    """,
    "it runs when a shell or a session starts": """
        .profile .bash* .zsh* .zprofile .zlog* .kshrc .mkshrc .cshrc .tcshrc .login .logout .xonshrc
        *profile.ps1 .config/fish .config/nushell .config/environment.d .config/autostart .config/systemd
        Library/LaunchAgents .xinitrc .xsession* .xprofile autorun.inf desktop.ini *.lnk *.url *.scf
        *.library-ms *.searchconnector-ms
    """,
    "it runs on machines that may hold the project's keys": """
        .github/workflows .github/actions .gitea/workflows .gitea/actions .forgejo/workflows .forgejo/actions
        *.gitlab-ci.yml *.gitlab-ci.yaml .gitlab/ci .circleci .travis.yml .drone.yml .drone.star
        .drone.jsonnet .woodpecker .woodpecker.yml .woodpecker.yaml azure-pipelines* .azure-pipelines*
        .azuredevops .pipelines bitbucket-pipelines.yml Jenkinsfile* *.jenkinsfile .jenkins .buildkite
        .cirrus.yml .cirrus.star appveyor.yml .appveyor.yml .semaphore .teamcity .build.yml .builds
        wercker.yml .wercker.yml buildspec.yml buildspec.yaml cloudbuild.yaml cloudbuild.yml bitrise.yml
        codemagic.yaml .harness .tekton .evergreen.yml .zuul.yaml .zuul.d zuul.d .taskcluster.yml
        screwdriver.yaml .prow.yaml .scrutinizer.yml .readthedocs.yml .readthedocs.yaml codefresh.yml
        .onedev-buildspec.yml .vela .vela.yml .vela.yaml bamboo-specs ci_scripts buddy.yml .space.kts *.gocd.*
        .cnb.yml .agola .workflow .ci .kokoro .cloudbees .depot .eas .packit.yaml .rultor.yml garnix.yaml
        netlify.toml amplify.yml Dangerfile dangerfile.* vercel.json render.yaml railway.toml railway.json
        heroku.yml .do .upsun .platform .platform.app.yaml .ebextensions appspec.yml .spacelift atlantis.yaml
        qodana.yaml
    """,
    "each Python that finds it runs it when it starts": """
        sitecustomize.py usercustomize.py *.pth *._pth .pythonrc* .pdbrc .pdbrc.py .ipython .jupyter
        ipython*_config.* jupyter*_config.* .pdm-python
    """,
    # Among tests it is a test's file; elsewhere editors that collect tests run it unasked.
    "pytest runs it before any test": "!*test*/**/conftest.py conftest.py",
    "a debugger or an interpreter runs it when it starts there": """
        .gdbinit .gdbearlyinit .lldbinit* .radare2rc .Rprofile .Renviron .irbrc .pryrc .rdbgrc .byebugrc .ghci
        .iex.exs .erlang .ocamlinit .utoprc .sbclrc .octaverc .sqliterc .psqlrc .proverc .replyrc .ripgreprc
        .RData .rizinrc .perldb .my.cnf .duckdbrc .mongorc.js .mongoshrc.js .guile .racketrc .lessfilter
        .psysh.php .user.ini user.clj .nrepl.edn startup.m renv/activate.R .lazygit.yml .gh-dash.yml
    """,
    "a build tool takes its options, plugins or itself from it": """
        .bazel* user.bazelrc tools/bazel .buckconfig* .cargo/config .cargo/config.toml rust-toolchain
        rust-toolchain.toml .mvn mvnw* gradlew* gradle/wrapper init.gradle* .gradle/init.d .sbtopts .jvmopts
        dotnet-tools.json global.json *.rsp .mill-jvm-opts local.properties .plzconfig* ansible.cfg
        .ansible.cfg .lein profiles.clj .config/nix
    """,
    "it decides where packages or logins come from and go to, or what loads them": """
        .npmrc .yarnrc .yarnrc.yml .yarn/releases .yarn/plugins .yarn/sdks .pnp.* *pnpmfile.*
        pnpm-workspace.yaml .corepack.env .pixi/config.toml .swiftpm/configuration vcpkg-configuration.json
        .lfsconfig .gitreview bunfig.toml .bunfig.toml .pypirc pip.conf pip.ini uv.toml
        poetry.toml pdm.toml .pdm.toml .condarc .mambarc .bundle/config .gemrc nuget.config .terraformrc
        terraform.rc .tofurc .netrc _netrc .docker/config.json .aws/config .aws/credentials .kube/config
        .gnupg .ssh .curlrc .wgetrc
    """,
}


def _pattern(name: str) -> str:
    return f"!**/{name[1:]}" if name.startswith("!") else f"**/{name}"


EXECUTED_NAMES: Mapping[str, str] = {
    _pattern(name): reason for reason, names in _ROWS.items() for name in names.split()
}
"""Who executes the files of a pattern, by the pattern; an earlier one counts first."""

TAKEN_IN = tuple(
    pattern
    for pattern in EXECUTED_NAMES
    # Weights of neural networks are often called *.pth too, are large, and nobody executes them.
    if not pattern.startswith("!") and pattern not in ("**/.git", "**/.codingagent", "**/*.pth")
)
"""Those that checkpoints cover even where git ignores them."""
