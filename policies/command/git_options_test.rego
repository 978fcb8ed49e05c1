package fumehood.command

test_git_options_a_plain_option if allowed("git diff --stat") == {"git.read"}

test_git_options_plain_configuration if allowed("git -c color.ui=never log") == {"git.read"}

test_git_options_a_pager if allowed("git -c core.pager=id log") == {"git.read"}

test_git_options_an_external_diff if allowed("git diff --ext-diff") == {"git.read"}

test_git_options_an_archive_elsewhere if denied("git archive -o /etc/x HEAD") == {"option.place"}

test_git_options_a_text_to_find if allowed("git log -Scat") == {"git.read"}

test_git_options_a_quoted_text_to_find if allowed("git log -p -S'withQuery' --oneline") == {"git.read"}

test_git_options_a_template if denied("git init --template=x .") == {"git.option"}
