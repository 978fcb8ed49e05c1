// SPDX-License-Identifier: Apache-2.0

package names

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadServers(t *testing.T) {
	got, err := ReadServers(strings.NewReader("# made by hand\nsearch corp.example\nnameserver 127.0.0.53 ; local\n" +
		"nameserver\nnameserver nonsense\n nameserver fe80::1%eth0\noptions ndots:5\nnameserver ::ffff:9.9.9.9\nnameserver 1.1.1.1\nnameserver 8.8.8.8\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"127.0.0.53:53", "[fe80::1%eth0]:53", "9.9.9.9:53", "1.1.1.1:53"}
	var list []string
	for _, s := range got {
		list = append(list, s.String())
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if _, err := ReadServers(strings.NewReader("search corp.example\n")); err == nil {
		t.Error("a file without a server is no error")
	}
}

func TestReadHosts(t *testing.T) {
	got, err := ReadHosts(strings.NewReader("127.0.0.1 localhost Box.corp.example # me\n::1 localhost ip6-localhost\n" +
		"fe80::1%lo0 localhost\nnonsense name\n10.0.0.7\tmirror.corp.example mirror bad!name\n"))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for name, addrs := range got {
		list[name] = outcome(addrs, nil)
	}
	want := map[string]string{"localhost": "127.0.0.1 ::1", "box.corp.example": "127.0.0.1", "ip6-localhost": "::1",
		"mirror.corp.example": "10.0.0.7", "mirror": "10.0.0.7"}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

func TestReadHostsIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 2 * maxStaticNames {
		fmt.Fprintf(&b, "10.0.0.1 h%d.example\n", i)
	}
	got, err := ReadHosts(strings.NewReader(b.String()))
	if err != nil || len(got) != maxStaticNames {
		t.Errorf("%d names, %v; want %d", len(got), err, maxStaticNames)
	}
}
