# cargo may build and test the crate. Settings must not name programs. Only known
# subcommands are allowed, since cargo x runs the program cargo-x.
package fumehood.command

import data.fumehood.lib

program_option contains o.value if {
	input.command.program == "cargo"
	some o in input.command.options
	o.name == "--config"
	o.static
	not regex.match(harmless_cargo_setting, o.value)
}

harmless_cargo_setting := concat("", [
	`^(net\.(offline|retry)|term\.[a-z.]+|profile\.[a-z]+\.(opt-level|debug|lto|codegen-units)`,
	`|build\.(jobs|incremental|target-dir))=\S*$`,
])

program_option contains word if {
	input.command.program in {"rustc", "clippy-driver"}
	some word in input.command.argv
	regex.match(`linker|^-Zcodegen-backend|^-Clink`, word)
}

cargo_reason(word) := "does not build or test the repository" if {
	word in {"install", "uninstall", "publish", "login", "logout", "owner", "yank", "search", "add", "remove", "rm", "update", "new", "init"}
} else := "is a separate program"

cargo_instead := concat("", [
	"use cargo's own subcommands, such as `cargo test` or `cargo build`, `cargo clippy`, `cargo fmt`, `cargo nextest run`, ",
	"`cargo llvm-cov`, `cargo deny check` or `cargo audit`",
])

# METADATA
# title: Unknown cargo subcommands are denied
# custom:
#   rule: cargo.subcommand
#   severity: medium
#   category: code
#   match: ["cargo evil-subcommand", "cargo watch -s x", "cargo flamegraph -c x"]
#   not_match: ["cargo test", "cargo clippy --all-targets", "cargo +nightly fmt --check", "cargo --offline check", "cargo nextest run"]
deny contains lib.denial(
	"cargo.subcommand",
	sprintf("cargo %s %s", [word, cargo_reason(word)]),
	cargo_instead,
) if {
	input.command.program == "cargo"
	word := input.command.sub
	word != ""
	not word in {
		"build", "b", "check", "c", "test", "t", "bench", "run", "r", "doc", "d", "clean", "clippy", "fmt", "fix", "tree", "metadata", "fetch",
		"generate-lockfile", "locate-project", "pkgid", "read-manifest", "rustc", "rustdoc", "verify-project", "version", "vendor", "package", "help",
		"report", "info",
		"nextest", "llvm-cov", "tarpaulin", "deny", "audit", "hack", "miri", "expand", "udeps", "machete", "outdated", "semver-checks", "public-api",
		"criterion", "insta", "mutants", "careful", "sort", "spellcheck", "geiger", "bloat", "asm", "fuzz", "xtask", "msrv", "minimal-versions",
		"all-features", "readme", "sqlx", "component", "leptos", "shear", "vet", "about", "make", "modules", "license",
	}
}
