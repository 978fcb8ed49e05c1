// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

var (
	cargoSource  = pattern.New(`(?m)^\s*\[(source|registries|registry)[.\]]`)
	cargoGit     = pattern.New(`(?m)\bgit\s*=\s*"|^source = "git\+`)
	cargoMembers = pattern.New(`(?ms)^\s*members\s*=\s*\[([^\]]*)\]`)
	quotedWord   = pattern.New(`"([^"\n]{1,255})"`)
	gemSource    = pattern.New(`(?m)^\s*(?:source|remote:?)[ (]+["']?(https?://[^"'\s]+)`)
)

// rust detects a Cargo project.
func (s *scan) rust(dir string) (covered []string) {
	manifest, ok := s.read(dir, "Cargo.toml")
	if !ok {
		return nil
	}
	if m := cargoMembers.FindStringSubmatch(manifest); m != nil {
		for _, word := range quotedWord.FindAllStringSubmatch(m[1], 64) {
			covered = append(covered, word[1])
		}
	}
	file, argv := "Cargo.toml", []string{"cargo", "fetch"}
	if s.has(dir, "Cargo.lock") {
		file, argv = "Cargo.lock", append(argv, "--locked")
	}
	if !s.tool(dir, file, "cargo") {
		return covered
	}
	lock, _ := s.read(dir, "Cargo.lock")
	if cargoGit.MatchString(manifest) || cargoGit.MatchString(lock) {
		s.note(dirFile(dir, file), "has git dependencies, which are not in a registry: they may not be reachable")
	}
	for _, config := range []string{".cargo/config.toml", ".cargo/config"} {
		if text, _ := s.read(dir, config); cargoSource.MatchString(text) {
			s.note(dirFile(dir, config), "names registries of its own: only the host's crates registry can be read")
		}
	}
	s.add(dir, step{id: "cargo", file: file, why: "download the crates", argv: argv, registry: "crates"})
	return covered
}

// ruby detects a Gemfile. Gems go into the workspace: the system's directory is read-only.
func (s *scan) ruby(dir string) {
	gemfile, ok := s.read(dir, "Gemfile")
	if !ok {
		return
	}
	file := "Gemfile"
	if s.has(dir, "Gemfile.lock") {
		file = "Gemfile.lock"
	}
	if !s.tool(dir, file, "bundle") {
		return
	}
	for _, m := range gemSource.FindAllStringSubmatch(gemfile, 8) {
		if !strings.HasPrefix(m[1], "https://rubygems.org") {
			s.note(dirFile(dir, "Gemfile"), "names a source of its own: only the host's rubygems source can be read")
		}
	}
	s.env("BUNDLE_PATH", "vendor/bundle")
	s.add(dir, step{id: "bundle", file: file, why: "install gems into vendor/bundle", argv: []string{"bundle", "install"}, registry: "rubygems"})
}

// java detects Maven and Gradle. Neither has a command that fetches all that tests need:
// both are run up to the tests. Maven chooses the library that runs tests when it finds
// one, so that a pattern matches all classes and no method.
func (s *scan) java(dir string) {
	switch {
	case s.has(dir, "pom.xml"):
		goals := []string{"-B", "-ntp", "test", "-Dtest=*#fumehoodNone", "-Dsurefire.failIfNoSpecifiedTests=false"}
		st := step{id: "maven", file: "pom.xml", why: "compile, and fetch what tests need", registry: "maven"}
		switch {
		case s.installed("mvn"):
			st.argv = append([]string{"mvn"}, goals...)
		case s.has(dir, "mvnw") && s.has(dir, ".mvn/wrapper/maven-wrapper.properties") && s.installed("java"):
			st.argv = append([]string{"./mvnw"}, goals...)
		default:
			s.note(dirFile(dir, "pom.xml"), "could not set up: mvn is not installed")
			return
		}
		s.add(dir, st)
	case s.has(dir, "build.gradle") || s.has(dir, "build.gradle.kts") || s.has(dir, "settings.gradle") || s.has(dir, "settings.gradle.kts"):
		file := "build.gradle"
		for _, name := range []string{"settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle"} {
			if s.has(dir, name) {
				file = name
			}
		}
		if !s.installed("gradle") {
			if s.has(dir, "gradlew") {
				s.note(dirFile(dir, "gradlew"), "could not set up: gradle is not installed, and its wrapper downloads it from services.gradle.org, which is not a registry")
				return
			}
			s.note(dirFile(dir, file), "could not set up: gradle is not installed")
			return
		}
		s.note(dirFile(dir, file), "plugins of plugins.gradle.org, which is not a registry, may not be reachable")
		s.add(dir, step{id: "gradle", file: file, why: "compile, and fetch what tests need", argv: []string{"gradle", "--no-daemon", "--console=plain", "testClasses"}, registry: "maven"})
	}
}

// unsupported are files of package managers that set-up does not know, or that have no
// registry here.
var unsupported = []struct{ file, text string }{
	{"composer.lock", "Composer's packages come from Packagist, for which there is no registry"},
	{"vcpkg.json", "vcpkg builds packages from many hosts"},
	{"conanfile.txt", "Conan's packages come from conan.io, for which there is no registry"},
	{"conanfile.py", "Conan's packages come from conan.io, for which there is no registry"},
	{"packages.lock.json", "NuGet has no registry here"},
	{"mix.lock", "Hex has no registry here"},
	{"pubspec.lock", "pub.dev has no registry here"},
	{"Package.resolved", "Swift packages come from git hosts"},
	{"stack.yaml.lock", "Hackage has no registry here"},
	{"deno.lock", "Deno's packages come from JSR and URLs, for which there is no registry"},
	{"environment.yml", "conda channels have no registry here"},
	{"pixi.lock", "conda channels have no registry here"},
	{"Podfile.lock", "CocoaPods has no registry here"},
	{"renv.lock", "CRAN has no registry here"},
	{"MODULE.bazel.lock", "Bazel fetches from many hosts"},
}

// others notes what is left out.
func (s *scan) others(dir string) {
	for _, u := range unsupported {
		if s.has(dir, u.file) {
			s.note(dirFile(dir, u.file), "left out: %s", u.text)
		}
	}
}
