# SPDX-License-Identifier: Apache-2.0
# Uses compilers and Perl, and prints "ok NAME" or "not ok NAME" for what they did.
step() {
	local name=$1
	shift
	if "$@" >"$log" 2>&1; then echo "ok $name"; else echo "not ok $name"; tail -n 5 "$log" >&2; fi
}
log=$(mktemp) dir=$(mktemp -d)
cd "$dir" || exit
for i in $(seq 40); do echo "int f$i(int x) { return x + $i; }" >"f$i.c"; done
{ seq 40 | sed 's/.*/int f&(int);/'; echo 'int main(void) { int s = 0;'; seq 40 | sed 's/.*/s = f&(s);/'; echo 'return s != 820; }'; } >main.c
printf 'objects := $(patsubst %%.c,%%.o,$(wildcard f*.c) main.c)\nmain: $(objects)\n\t$(CC) -o $@ $^\nlib.so: f1.c\n\t$(CC) -shared -fPIC -o $@ $^\n' >makefile
printf '#include <thread>\n#include <atomic>\n#include <vector>\nint main() { std::atomic<int> n{0}; std::vector<std::thread> l; for (int i = 0; i < 16; i++) l.emplace_back([&] { for (int j = 0; j < 10000; j++) n++; }); for (auto &t : l) t.join(); return n != 160000; }\n' >threads.cc
printf '#include <sys/mman.h>\nint main(void) { unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3}; void *p = mmap(0, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0); __builtin_memcpy(p, code, 6); mprotect(p, 4096, PROT_READ|PROT_EXEC); return ((int (*)(void))p)() != 42; }\n' >jit.c
printf '#include <dlfcn.h>\nint main(void) { void *l = dlopen("./lib.so", RTLD_NOW); return !l || ((int (*)(int))dlsym(l, "f1"))(1) != 2; }\n' >load.c
printf '#include <sys/mman.h>\nint main(void) { unsigned long n = 64ul << 30; char *p = mmap(0, n, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0); if (p == MAP_FAILED) return 1; for (unsigned long i = 0; i < n; i += 1ul << 28) p[i] = 1; return munmap(p, n) != 0; }\n' >large.c
step 'make -j4' make -s -j4 main
step 'what it made' ./main
step 'nothing to make' make -q main
step 'a library' make -s lib.so
step 'a program that loads it' bash -c 'gcc -o load load.c -ldl && ./load'
step 'threads in C++' bash -c 'g++ -O1 -pthread -o threads threads.cc && ./threads'
step 'code made at run time' bash -c 'gcc -o jit jit.c && ./jit'
step '64 GiB mapped' bash -c 'gcc -o large large.c && ./large'
step 'a static program' bash -c 'gcc -static -o static main.c f*.c && ./static'
step 'Perl: fork and pipes' perl -e 'for (1..20) { pipe(R, W); if (!fork) { print W "x"; close W; exit } close W; die unless <R> eq "x"; wait }'
step 'Perl: signals' perl -e '$SIG{ALRM} = sub { exit 0 }; alarm 1; sleep 10; exit 1'
step 'Perl: sockets' perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1"); if (!fork) { IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $s->sockport)->print("x\n"); exit } die unless $s->accept->getline eq "x\n"; wait'
step 'Perl: file locks' perl -MFcntl=:flock -e 'open F, ">l"; flock(F, LOCK_EX) or die; if (!fork) { open G, ">l"; exit !flock(G, LOCK_EX|LOCK_NB) } wait; exit($? == 0)'
