// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

var (
	cargoSource = pattern.New(`(?m)^\s*\[(source|registries|registry)[.\]]`)
	cargoGit    = pattern.New(`(?m)\bgit\s*=\s*"|^source = "git\+`)
	tomlMembers = pattern.New(`(?ms)^\s*members\s*=\s*\[([^\]]*)\]`)
	quotedWord  = pattern.New(`"([^"\n]{1,255})"`)
	swiftGit    = pattern.New(`"(remoteSourceControl|repositoryURL)"`)
	gemSource   = pattern.New(`(?m)^\s*(?:source|remote:?)[ (]+["']?(https?://[^"'\s]+)`)
)

// detectRust detects a Cargo project.
func (s *setupScan) detectRust(dir string) (covered []string) {
	manifest, ok := s.readText(dir, "Cargo.toml")
	if !ok {
		return nil
	}
	covered = quotedMembers(manifest)
	file, argv := "Cargo.toml", []string{"cargo", "fetch"}
	if s.hasFile(dir, "Cargo.lock") {
		file, argv = "Cargo.lock", append(argv, "--locked")
	}
	if !s.requireTool(dir, file, "cargo") {
		return covered
	}
	lock, _ := s.readText(dir, "Cargo.lock")
	if cargoGit.MatchString(manifest) || cargoGit.MatchString(lock) {
		s.addNote(dirFile(dir, file), "has git dependencies, which are not in a registry: they may not be reachable")
	}
	for _, config := range []string{".cargo/config.toml", ".cargo/config"} {
		if text, _ := s.readText(dir, config); cargoSource.MatchString(text) {
			s.addNote(dirFile(dir, config), "names registries of its own: only the host's crates registry can be read")
		}
	}
	s.addStep(dir, step{id: "cargo", file: file, why: "download the crates", argv: argv, registry: "crates"})
	return covered
}

// quotedMembers returns the first list called members of a TOML text.
func quotedMembers(text string) (members []string) {
	if m := tomlMembers.FindStringSubmatch(text); m != nil {
		for _, word := range quotedWord.FindAllStringSubmatch(m[1], 64) {
			members = append(members, word[1])
		}
	}
	return members
}

// detectRuby detects a Gemfile. Gems go into the workspace: the system's directory is read-only.
func (s *setupScan) detectRuby(dir string) (covered []string) {
	gemfile, ok := s.readText(dir, "Gemfile")
	if !ok {
		return nil
	}
	file := "Gemfile"
	if s.hasFile(dir, "Gemfile.lock") {
		file = "Gemfile.lock"
	}
	if !s.requireTool(dir, file, "bundle") {
		return nil
	}
	for _, m := range gemSource.FindAllStringSubmatch(gemfile, 8) {
		if !strings.HasPrefix(m[1], "https://rubygems.org") {
			s.addNote(dirFile(dir, "Gemfile"), "names a source of its own: only the host's rubygems source can be read")
		}
	}
	s.setEnv("BUNDLE_PATH", "vendor/bundle")
	s.addStep(dir, step{id: "bundle", file: file, why: "install gems into vendor/bundle",
		argv: []string{"bundle", "install"}, registry: "rubygems"})
	return nil
}

// detectJava detects Maven and Gradle. Neither has a command that fetches all that tests need:
// both are run up to the tests. Maven chooses the library that runs tests when it finds
// one, so that a pattern matches all classes and no method. What is below is a module.
func (s *setupScan) detectJava(dir string) (covered []string) {
	covered = []string{"**"}
	switch {
	case s.hasFile(dir, "pom.xml"):
		goals := []string{"-B", "-ntp", "test", "-Dtest=*#fumehoodNone", "-Dsurefire.failIfNoSpecifiedTests=false"}
		st := step{id: "maven", file: "pom.xml", why: "compile, and fetch what tests need", registry: "maven"}
		switch {
		case s.hasTool("mvn"):
			st.argv = append([]string{"mvn"}, goals...)
		case s.hasFile(dir, "mvnw") && s.hasFile(dir, ".mvn/wrapper/maven-wrapper.properties") && s.hasTool("java"):
			st.argv = append([]string{"./mvnw"}, goals...)
		default:
			s.addNote(dirFile(dir, "pom.xml"), "could not set up: mvn is not installed")
			return covered
		}
		s.addStep(dir, st)
	case s.hasFile(dir, "build.gradle") || s.hasFile(dir, "build.gradle.kts") || s.hasFile(dir, "settings.gradle") ||
		s.hasFile(dir, "settings.gradle.kts"):
		file := "build.gradle"
		for _, name := range []string{"settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle"} {
			if s.hasFile(dir, name) {
				file = name
			}
		}
		s.addGradleStep(dir, file)
	default:
		return nil
	}
	return covered
}

var (
	gradleElsewhere = pattern.New(`(?m)^\s*distributionUrl\s*[=:]`)
	gradleServices  = pattern.New(`(?m)^\s*distributionUrl\s*[=:]\s*https\\?://services\.gradle\.org/distributions/`)
	googleMaven     = pattern.New(`(?m)^\s*google\s*(\(\)|\{)`)
)

// addGradleStep adds the step of Gradle: by its wrapper, which commands after set-up use, or by the host's.
func (s *setupScan) addGradleStep(dir, file string) {
	const properties = "gradle/wrapper/gradle-wrapper.properties"
	goals := []string{"--no-daemon", "--console=plain", "testClasses"}
	st := step{id: "gradle", file: file, why: "compile, and fetch what tests need", registry: "maven",
		also: []string{"gradle"}}
	wrapper, wraps := s.readText(dir, properties)
	switch {
	case wraps && s.hasFile(dir, "gradlew") && s.hasTool("java"):
		st.argv = append([]string{"./gradlew"}, goals...)
		if gradleElsewhere.MatchString(wrapper) && !gradleServices.MatchString(wrapper) {
			s.addNote(dirFile(dir, properties), "does not use services.gradle.org: Gradle may not be reachable")
		}
	case s.hasTool("gradle"):
		st.argv = append([]string{"gradle"}, goals...)
	default:
		s.addNote(dirFile(dir, file), "could not set up: gradle is not installed")
		return
	}
	if text, _ := s.readText(dir, file); googleMaven.MatchString(text) {
		s.addNote(dirFile(dir, file), "uses Google's repository, which is not a registry: it may not be reachable")
	}
	s.addStep(dir, st)
}

// unsupported are files of package managers that set-up does not know, or that have no
// registry here.
var unsupported = []struct{ file, text string }{
	{"vcpkg.json", "vcpkg builds packages from many hosts"},
	{"conanfile.txt", "Conan's packages come from conan.io, for which there is no registry"},
	{"conanfile.py", "Conan's packages come from conan.io, for which there is no registry"},
	{"stack.yaml.lock", "Hackage has no registry here"},
	{"Podfile.lock", "CocoaPods has no registry here"},
	{"renv.lock", "CRAN has no registry here"},
	{"MODULE.bazel.lock", "Bazel fetches from many hosts"},
}

func isUnsupported(name string) bool {
	for _, u := range unsupported {
		if u.file == name {
			return true
		}
	}
	return false
}

// noteUnsupported notes what is left out.
func (s *setupScan) noteUnsupported(dir string) {
	for _, u := range unsupported {
		if s.hasFile(dir, u.file) {
			s.addNote(dirFile(dir, u.file), "left out: %s", u.text)
		}
	}
	if pins, _ := s.readText(dir, "Package.resolved"); swiftGit.MatchString(pins) {
		s.addNote(dirFile(dir, "Package.resolved"), "names packages of git, which cannot be fetched: commit them, or "+
			"configure tuist.dev and pin its packages with swift package resolve --replace-scm-with-registry")
	}
}
