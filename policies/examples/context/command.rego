# Rules by what a run is about: copy this file and write your own names. Each rule asks for what must
# be known, so that it refuses where nothing is known, as on your own machine without --context.
package fumehood.command

# METADATA
# title: Code of newcomers waits for a person, or for the label "safe to test"
# custom:
#   rule: org.newcomer
#   text_only: true
ask contains {
	"rule": "org.newcomer",
	"message": "the author is new to this repository",
	"suggestion": "ask a maintainer to read the change, and to add the label safe to test",
} if {
	not input.command.program in {"cat", "git", "grep", "ls"}
	not known_author
	not "safe to test" in input.context.labels
}

known_author if input.context.association in {"OWNER", "MEMBER", "COLLABORATOR"}

# METADATA
# title: make runs only what the pull request does not change
# custom:
#   rule: org.makefile
#   text_only: true
deny contains {
	"rule": "org.makefile",
	"message": "the pull request changes the Makefile, or may change it",
	"suggestion": "run the tests by their own tool",
} if {
	input.command.program == "make"
	not same_makefile
}

same_makefile if {
	input.context.changed.complete
	every path in input.context.changed.paths {
		not endswith(path, "Makefile")
	}
}

# METADATA
# title: Integration tests run on weekdays from 8 to 18 o'clock, UTC
# custom:
#   rule: org.hours
#   text_only: true
deny contains {
	"rule": "org.hours",
	"message": "the systems that these tests use are only there in working hours",
	"suggestion": "run them on a weekday from 8 to 18 o'clock, UTC",
} if {
	input.command.program == "make"
	"integration" in input.command.argv
	not working_hours
}

working_hours if {
	input.context.started != ""
	start := time.parse_rfc3339_ns(input.context.started)
	not time.weekday(start) in {"Saturday", "Sunday"}
	hour := time.clock(start)[0]
	hour >= 8
	hour < 18
}
