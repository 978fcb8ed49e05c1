// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"crypto/md5"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// Unchanged files of packages in /etc are shown; what may be the host's own is not.
func TestPackagedEtc(t *testing.T) {
	const text = "as the package has it"
	cases := []struct {
		path, content string
		mode          os.FileMode
		uid           int
		shown         bool
	}{
		{"R/Renviron.site", text, 0o644, 0, true},
		{"lib/deep/data.xml", text, 0o444, 0, true},
		{"R/Renviron", text, 0o644, 0, true}, // of ucf
		{"changed.conf", "password = x", 0o644, 0, false},
		{"group-only.conf", text, 0o640, 0, false},
		{"of-a-user.conf", text, 0o644, 1000, false},
		{"writable.conf", text, 0o666, 0, false},
		{"link.conf", "-> R/Renviron.site", 0o644, 0, false},
		{"not-listed.conf", text, 0o644, 0, false},
		{"obsolete.conf", text, 0o644, 0, false},
		{"described.conf", text, 0o644, 0, false}, // by a description, not as a file
		{"mysql/debian.cnf", text, 0o644, 0, false},
		{"ssl/private/a.conf", text, 0o644, 0, false},
		{"lib/server.key", text, 0o644, 0, false},
		{"lib/api-token", text, 0o644, 0, false},
		{"lib/cert.conf", "-----BEGIN RSA PRIVATE KEY-----", 0o644, 0, false},
		{"hosts", text, 0o644, 0, false},
		{"nsswitch.conf", text, 0o644, 0, false},
		{"chromium.d/flags", text, 0o644, 0, false}, // a directory with a generated file
		{"fonts/fonts.conf", text, 0o644, 0, false}, // bound
	}
	files, want := map[string]string{"usr/x": ""}, []string{}
	status := "Package: x\nConffiles:\n"
	for _, c := range cases {
		files["etc/"+c.path] = c.content
		sum := fmt.Sprintf("%x", md5.Sum([]byte(text)))
		switch c.path {
		case "lib/cert.conf":
			sum = fmt.Sprintf("%x", md5.Sum([]byte(c.content)))
		case "obsolete.conf":
			sum += " obsolete"
		}
		if c.path != "not-listed.conf" && c.path != "described.conf" && c.path != "R/Renviron" {
			status += " /etc/" + c.path + " " + sum + "\n"
		}
		if c.shown {
			want = append(want, "/etc/"+c.path)
		}
	}
	sum := fmt.Sprintf("%x", md5.Sum([]byte(text)))
	files["var/lib/dpkg/status"] = status + " /etc/../usr/x " + sum + "\nDescription: x\n /etc/described.conf " + sum + "\n"
	files["var/lib/ucf/hashfile"] = sum + "  /etc/R/Renviron\n"
	base := tree(t, files)
	for _, c := range cases {
		if !strings.HasPrefix(c.content, "-> ") {
			must(t, os.Chmod(base+"/etc/"+c.path, c.mode))
			must(t, os.Lchown(base+"/etc/"+c.path, c.uid, 0))
		}
	}
	r, err := hostRoot(base, Search{})
	must(t, err)
	ours := generatedFiles()
	got := slices.Sorted(maps.Keys(r.Files))
	got = slices.DeleteFunc(got, func(at string) bool { return ours[at] != nil })
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	if string(r.Files["/etc/hosts"]) == text || string(r.Files["/etc/R/Renviron"]) != text {
		t.Errorf("%q", r.Files)
	}
}

// Maven's settings are shown unless they have a password; those in comments are examples.
func TestMavenSettings(t *testing.T) {
	for text, shown := range map[string]bool{
		"<!-- <password>x</password> -->":         true,
		"<server><password>x</password></server>": false,
	} {
		base := tree(t, map[string]string{"usr/x": "", "etc/maven/settings.xml": text, "etc/maven/m2.conf": ""})
		r, err := hostRoot(base, Search{})
		must(t, err)
		if _, got := r.Binds["/etc/maven/settings.xml"]; got != shown || r.Binds["/etc/maven/m2.conf"] == "" {
			t.Errorf("%s: %v", text, r.Binds)
		}
	}
}
