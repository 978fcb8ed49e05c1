# Rust: rules of this repository in addition to the default policy.
package fumehood.command

# METADATA
# title: Benchmarks say nothing in a sandbox, and take long
# custom:
#   rule: repo.rust-bench
#   text_only: true
#   match: ["cargo bench", "cargo +nightly bench"]
#   not_match: ["cargo test", "cargo clippy -- -D warnings"]
deny contains {"rule": "repo.rust-bench", "message": "benchmarks say nothing in a sandbox, and take long", "suggestion": "run cargo test"} if {
	input.command.program == "cargo"
	input.command.sub == "bench"
}
