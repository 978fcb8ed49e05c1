// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"crypto/md5"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Where Debian's package manager, and its tool for files that packages make, keep what they installed.
const (
	dpkgStatus  = "/var/lib/dpkg/status"
	ucfHashfile = "/var/lib/ucf/hashfile"
)

// maxEtcFile and maxEtcFiles limit the files of packages below /etc that are shown.
const (
	maxEtcFile  = 256 << 10
	maxEtcFiles = 1000
)

// machineEtc are the names in /etc that configure the machine, its accounts, services, network and
// packages. No library of a command needs them, so they are not shown, whatever is in them.
var machineEtc = []string{
	"PackageKit", "X11", "adduser.conf", "deluser.conf", "login.defs", "pam.*", "security", "selinux", "polkit*",
	"passwd*", "group*", "*shadow*", "subuid*", "subgid*", "sudo*", "doas*", "skel", "default", "environment*", "profile*",
	"init*", "rc*", "systemd", "sysctl*", "modules*", "modprobe*", "udev", "cron*", "anacrontab", "at.*", "logrotate*",
	"logcheck", "rsyslog*", "tmpfiles*", "binfmt*", "grub*", "kernel*", "update-motd*", "motd", "issue*", "dbus*",
	"apparmor*", "audit*", "libaudit*", "fstab*", "crypttab*", "exports*", "samba", "apache*", "httpd", "nginx", "lighttpd",
	"caddy", "haproxy", "ssh", "ssl", "pki", "ca-certificates*", "gnupg", "docker", "containers", "containerd", "crio*",
	"cni", "kube*", "rancher", "NetworkManager", "network*", "netplan", "wireguard", "openvpn", "ipsec*", "strongswan*",
	"ppp", "chatscripts", "wpa*", "dhcp*", "ldap", "nslcd*", "sssd", "krb5*", "hosts*", "host.conf", "resolv*",
	"nsswitch*", "bind", "unbound", "postfix", "exim*", "mail*", "aliases", "msmtprc*", "netrc*", "wgetrc*", "curlrc*",
	"machine-*", "hostname", "hostid", "apt", "dpkg", "debconf*", "ucf*", "dnf", "yum*", "mysql", "postgresql*", "redis",
	"mongo*", "rabbitmq", "prometheus", "grafana", "vault*", "consul*", "gitconfig", "git*", "npmrc", "pip.conf",
}

// secretEtc matches a path whose file may hold a credential, wherever it is.
var secretEtc = pattern.New(`(?i)\.(?:key|pem|p12|pfx|jks|keystore|kdbx|gpg|asc|env)$|passw|secret|credential|token|` +
	`apikey|api-key|netrc|htaccess|machine-id|private|auth`)

// packagedEtc returns the files below /etc of base that a package of Debian brought and that were not
// changed: the data that its libraries need to start. A file is not the host's own if its content is
// byte for byte that of the package: it holds no secret of this host. What was changed, what is not
// for every user, what is no plain file of root, and what machineEtc and secretEtc name, is left out.
// Hosts without dpkg have none: of them only hostFiles are shown.
func (r Root) packagedEtc(base string) map[string][]byte {
	found := map[string][]byte{}
	sums := packagedSums(filepath.Join(base, dpkgStatus), filepath.Join(base, ucfHashfile))
	for _, at := range sortedKeys(sums) {
		if len(found) == maxEtcFiles {
			break
		}
		if isForMachine(at) || r.isCoveredByMount(at) || r.hasOurs(path.Dir(at)) && path.Dir(at) != "/etc" {
			continue
		}
		if _, ours := r.Files[at]; ours {
			continue
		}
		if data, ok := readPackaged(filepath.Join(base, at), sums[at]); ok {
			found[at] = data
		}
	}
	return found
}

// isForMachine reports whether machineEtc or secretEtc name the path.
func isForMachine(at string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(at, "/etc/"), "/")
	return slices.ContainsFunc(machineEtc, func(machine string) bool { return isNamedBy(machine, name) }) ||
		secretEtc.MatchString(at)
}

// isNamedBy reports whether pattern matches name. An asterisk at its beginning or end is any text: path.Match takes
// longer for all files than reading them.
func isNamedBy(pattern, name string) bool {
	begin, before := strings.CutPrefix(pattern, "*")
	words, after := strings.CutSuffix(begin, "*")
	switch {
	case before && after:
		return strings.Contains(name, words)
	case before:
		return strings.HasSuffix(name, words)
	case after:
		return strings.HasPrefix(name, words)
	}
	return name == words
}

// conffiles is the field of a package whose lines name files and their sums.
const conffiles = "\nConffiles:\n"

// packagedSums returns the MD5 sums of the files below /etc as packages brought them.
func packagedSums(status, ucf string) map[string]string {
	sums := map[string]string{}
	add := func(at, sum string) {
		if strings.HasPrefix(at, "/etc/") && path.Clean(at) == at && len(sum) == 2*md5.Size {
			sums[at] = sum
		}
	}
	data, _ := os.ReadFile(status)
	for _, rest, found := strings.Cut(string(data), conffiles); found; _, rest, found = strings.Cut(rest, conffiles) {
		for line := range strings.Lines(rest) {
			if !strings.HasPrefix(line, " ") {
				break
			}
			if words := strings.Fields(line); len(words) == 2 { // a third word: "obsolete"
				add(words[0], words[1])
			}
		}
	}
	data, _ = os.ReadFile(ucf)
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); len(words) == 2 {
			add(words[1], words[0])
		}
	}
	return sums
}

// readPackaged returns the content of a file of root that every user can read, if it has the sum.
func readPackaged(file, sum string) ([]byte, bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o044 != 0o044 || info.Mode()&0o022 != 0 ||
		ownerOf(info) != 0 || info.Size() > maxEtcFile {
		return nil, false
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEtcFile+1))
	if got := md5.Sum(data); err != nil || hex.EncodeToString(got[:]) != sum {
		return nil, false
	}
	text := string(data)
	// The sandbox replaces the words in braces.
	for _, word := range []string{"PRIVATE KEY-----", "{uid}", "{gid}", "{services}"} {
		if strings.Contains(text, word) {
			return nil, false
		}
	}
	return data, true
}

// holdsCredentials reports whether a file of settings has one of the words that name a credential.
func holdsCredentials(file string, words []string) bool {
	text := strings.ToLower(readSmall(file))
	if filepath.Base(file) == "settings.xml" {
		text = withoutComments(text)
	}
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
