package fumehood.command

test_secrets_a_public_file if allowed("cat /etc/os-release") == {"text.read"}

test_secrets_keys if denied("cat ~/.ssh/id_rsa") == {"home.use", "read.secret"}

test_secrets_a_token if denied("printenv GITHUB_TOKEN") == {"read.credential"}

test_secrets_environments if denied("ps auxe") == {"read.process"}

test_secrets_a_pattern_file if denied("grep -f /etc/shadow x") == {"read.secret"}
