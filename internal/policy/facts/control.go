// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"path"
	"slices"
	"strings"
)

// controlFiles control tools or the code host by being in the workspace.
var controlFiles = []string{
	".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnp.cjs", ".pypirc", ".netrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile",
	".zshrc", ".zshenv", ".zprofile", ".envrc", ".inputrc", ".curlrc", ".wgetrc", ".vimrc", ".exrc", ".gdbinit", ".gdbearlyinit", ".lldbinit", ".ltrace.conf", ".proverc", ".valgrindrc", ".perldb", ".byebugrc", ".rdebugrc", ".ackrc", ".pythonrc", ".pdbrc", ".rprofile",
	".renviron", ".ghci", ".irbrc", ".pryrc", ".gemrc", ".rspec", ".sqliterc", ".psqlrc", ".screenrc", ".tmux.conf", ".htaccess", ".user.ini", ".hgrc",
	".gitattributes", ".gitmodules", ".gitconfig", "sitecustomize.py", "usercustomize.py", "conftest.py", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml",
	"lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".huskyrc", ".lintstagedrc", ".lintstagedrc.json", "pip.conf", "pip.ini", "pydistutils.cfg", ".pydistutils.cfg",
	".bazelrc", ".bazelversion", ".bazeliskrc", ".buckconfig", ".mavenrc", "maven-wrapper.properties", "maven-wrapper.jar", "gradle-wrapper.properties",
	"gradle-wrapper.jar", "init.gradle", "init.gradle.kts", "rust-toolchain", "rust-toolchain.toml", "nuget.config", "directory.build.props",
	"directory.build.targets", "directory.build.rsp", "msbuild.rsp", "global.json", "auth.json", "codeowners", "jenkinsfile", ".gitlab-ci.yml", ".travis.yml", "appveyor.yml", ".appveyor.yml",
	"azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker.yml", "cloudbuild.yaml", "buildspec.yml", "renovate.json", ".renovaterc",
	".devcontainer.json", ".mise.toml", "mise.toml", ".tool-versions", ".mcp.json", "claude.md", "agents.md", ".cursorrules", ".terraformrc", "ltmain.sh", "gnumakefile",
}

// controlDirs contain only files that control tools, editors, agents or the code host.
var controlDirs = []string{
	".github", ".circleci", ".husky", ".githooks", ".vscode", ".idea", ".claude", ".cursor", ".cargo", ".mvn", ".devcontainer", ".buildkite", ".gitlab", ".yarn",
	".bundle", ".direnv", ".config", ".docker", ".codex", ".gemini", ".woodpecker", ".teamcity", ".semaphore", ".tekton", ".bazel", ".fleet", ".zed", ".mise",
}

// isControlFile reports whether rel, a path in the workspace, is a control file, here or for the organization.
func (ws Workspace) isControlFile(rel string) bool {
	return isControlFile(rel) || matchesAny(ws.Added.control, rel, rel)
}

func isControlFile(rel string) bool {
	rel = strings.ToLower(rel)
	base := path.Base(rel)
	if slices.Contains(controlFiles, base) || strings.HasSuffix(rel, ".pth") {
		return true
	}
	for part := range strings.SplitSeq(rel, "/") {
		if slices.Contains(controlDirs, part) {
			return true
		}
	}
	return false
}
