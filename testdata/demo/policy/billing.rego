# The billing repository's own policy, on top of the default.
package fumehood.command

# METADATA
# title: A person approves before a month is closed
# custom:
#   rule: billing.close-month
#   match: ["python3 scripts/close_month.py march.json"]
#   not_match: ["python3 scripts/soak.py"]
ask contains {"rule": "billing.close-month", "message": "closing a month is an accountant's decision", "suggestion": "run the tests of the export"} if {
	input.command.program == "python3"
	some operand in input.command.operands
	endswith(operand.value, "scripts/close_month.py")
}
