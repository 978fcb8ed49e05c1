package fumehood.egress

# METADATA
# title: Requests to the API are intercepted, searched for secrets, and limited in size
intercept contains {"rule": "org.seen"} if input.name == "api.example.com"

budget contains {"rule": "org.little", "bytes": 1048576} if input.name == "api.example.com"

deny contains {"rule": "org.read-only", "message": sprintf("%s must not be called with %s", [input.name, input.method]), "suggestion": "use GET"} if {
	input.kind == "request"
	input.name == "api.example.com"
	not input.method in {"GET", "HEAD"}
}

# METADATA
# title: The company's git server has a private address
private contains {"rule": "org.private"} if input.name == "git.corp.example"

# METADATA
# title: A content delivery network has more than 64 names
many_names contains {"rule": "org.many-names"} if endswith(input.name, ".cdn.example.com")

# METADATA
# title: A secret in a request to the API is redacted instead of denied
redact contains {"rule": "org.redact"} if input.name == "api.example.com"

# METADATA
# title: Events of the API come through a WebSocket, whose messages are not seen
raw contains {"rule": "org.socket"} if {
	input.kind == "request"
	input.name == "api.example.com"
	input.path == "/v1/events"
}
