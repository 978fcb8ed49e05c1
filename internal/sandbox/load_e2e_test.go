// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// canaryLibrary prints CANARY when it is loaded, as whatever it is taken for.
const canaryLibrary = `#include <unistd.h>
int plugin_is_GPL_compatible = 1;
__attribute__((constructor)) static void loaded(void) { (void)!write(2, "CANARY\n", 7); }
unsigned la_version(unsigned v) { return v; }
`

// What a tool loads as code from the workspace is refused in every way that the tool has,
// and it is loaded if that is allowed.
func TestE2ELoad(t *testing.T) {
	t.Parallel()
	o, rec := gatedOptions(t)
	library := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", filepath.Join(o.Workspace, "x.so"))
	library.Stdin = strings.NewReader(canaryLibrary)
	if out, err := library.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range map[string]string{
		"a.c": "int main(void) { return 0; }\n", "ssl.cnf": "openssl_conf = a\n[a]\nengines = b\n[b]\nc = d\n[d]\nengine_id = x\ndynamic_path = /workspace/x.so\ninit = 0\n",
		"gconv-modules": "module X// INTERNAL /workspace/x 1\nmodule INTERNAL X// /workspace/x 1\n", "load.mk": "load ./x.so\nall: ;\n",
	} {
		if err := os.WriteFile(filepath.Join(o.Workspace, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := testRunner(t, o)
	for _, text := range []string{
		"gcc -fplugin=./x.so -c a.c -o /tmp/a.o",
		"gcc -Wp,-fplugin=./x.so -c a.c -o /tmp/a.o",
		"gcc -fcompare-debug=-fplugin=./x.so -c a.c -o /tmp/a.o",
		"gcc -E -fplugin=./x.so a.c",
		"gcc a.c -o /tmp/a -Wl,-plugin,./x.so",
		"gcc -c a.c -o /tmp/a.o; ld -plugin ./x.so /tmp/a.o -o /tmp/a",
		"gcc -c a.c -o /tmp/a.o; nm --plugin ./x.so /tmp/a.o",
		"gcc -c a.c -o /tmp/a.o; ar --plugin ./x.so rc /tmp/a.a /tmp/a.o",
		"gcc -c a.c -o /tmp/a.o; ar rc /tmp/a.a /tmp/a.o; ranlib --plugin ./x.so /tmp/a.a",
		"LD_PRELOAD=./x.so /usr/bin/true",
		"LD_AUDIT=./x.so /usr/bin/true",
		"mkdir -p /tmp/l; cp x.so /tmp/l/libc.so.6; LD_LIBRARY_PATH=/tmp/l /usr/bin/true",
		"/lib64/ld-linux-x86-64.so.2 --preload ./x.so /usr/bin/true",
		"cp /lib64/ld-linux-x86-64.so.2 /tmp/ld.so; gcc a.c -o /tmp/own -Wl,--dynamic-linker=/tmp/ld.so; /tmp/own && echo CANARY",
		"perl -MDynaLoader -e 'DynaLoader::dl_load_file(q(./x.so))'",
		"perl -e 'require DynaLoader; @DynaLoader::dl_library_path = (q(.)); DynaLoader::dl_load_file(q(/proc/self/cwd/x.so))'",
		`/usr/bin/python3 -c 'import ctypes; ctypes.CDLL("./x.so")'`,
		"/usr/bin/python3 -c 'import x'",
		"PYTHONPATH=. /usr/bin/python3 -c 'import x'",
		"cp x.so /dev/shm/y.so; cd /dev/shm; /usr/bin/python3 -c 'import y'",
		"sqlite3 :memory: '.load ./x.so'",
		`sqlite3 :memory: 'select load_extension("./x.so")'`,
		`printf '.load ./x.so\n' > /tmp/rc; sqlite3 -init /tmp/rc :memory: 'select 1'`,
		"bash -c 'enable -f ./x.so x'",
		`node -e 'process.dlopen({exports: {}}, "/workspace/x.so")'`,
		"OPENSSL_CONF=ssl.cnf openssl version -a; OPENSSL_CONF=ssl.cnf openssl dgst -md5 a.c",
		"cp x.so /tmp/p.so; openssl list -provider-path /tmp -provider p -providers",
		"GCONV_PATH=. iconv -f X -t UTF-8 a.c",
		"gawk -l ./x.so 'BEGIN {}'",
		"make -f load.mk",
	} {
		t.Run(text, func(t *testing.T) {
			rec.reset(withGrant)
			out, _ := play(t, r, text)
			refused := rec.loads(proposal.EventRefused)
			if strings.Contains(out, "CANARY") || len(refused) == 0 {
				t.Errorf("refused %d; output %q", len(refused), out)
			}
			rec.reset(withGrant)
			if out, _ := play(t, r, text, points.ExecBuilt); !strings.Contains(out, "CANARY") && len(rec.loads(proposal.EventLoad)) == 0 || len(rec.refused()) > 0 {
				t.Errorf("with the grant: refused %q, output %q", rec.refused(), out)
			}
		})
	}
}
